"""Tensors from a family's names to ours and back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from headtohead.hub.families import IGNORED, Family, Row, Top
from headtohead.spec import Mistake

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")


def files_of(folder: Path) -> list[Path]:
    """The safetensors files of a folder; weights that are pickled are refused, with the way to convert them."""
    if (folder / INDEX).is_file():
        names = json.loads((folder / INDEX).read_text(encoding="utf-8"))["weight_map"].values()
        return [folder / name for name in sorted(set(names))]
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    pickled = sorted(path.name for pattern in PICKLES for path in folder.glob(pattern))
    if pickled:
        raise Mistake(
            f"{folder} has its weights in {pickled[0]}, a pickle, which can run code and is never opened here; where you "
            "trust it, load it with transformers' from_pretrained and write it again with save_pretrained(NEW_FOLDER)"
        )
    raise Mistake(f"{folder} has no {WEIGHTS}; give a folder written by save_pretrained")


def read_all(folder: Path) -> dict[str, Tensor]:
    """Every tensor by its name in the file, in float32."""
    found: dict[str, Tensor] = {}
    for path in files_of(folder):
        try:
            with safe_open(path, framework="pt") as file:
                found |= {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
        except (SafetensorError, OSError) as error:
            told = " ".join(str(error).split())
            raise Mistake(f"{path} is damaged or cut off ({told}); download it again") from None
    return {name: x.float() if x.is_floating_point() else x for name, x in found.items()}


def plain_names(tensors: dict[str, Tensor], family: Family) -> dict[str, Tensor]:
    """Names as the base model has them: without its prefix, without buffers, TensorFlow's words for a norm replaced."""
    found = {}
    for name, tensor in tensors.items():
        name = name.removeprefix(family.prefix)
        if not name.endswith(IGNORED):
            found[name.replace(".gamma", ".weight").replace(".beta", ".bias")] = tensor
    return found


def rows_for(family: Family, top: Top | None, blocks: int) -> Iterator[Row]:
    """Every tensor of a model with that many blocks."""
    for row in (*family.rows, *(top.rows if top else ())):
        for layer in range(blocks if "{}" in row.theirs else 1):
            yield row._replace(theirs=row.theirs.format(layer), ours=tuple(name.format(layer) for name in row.ours))


def to_ours(tensors: dict[str, Tensor], rows: list[Row], wanted: set[str]) -> dict[str, Tensor]:
    """Our tensors out of theirs; rows that hold nothing of ours are passed over where they are absent on both sides."""
    found: dict[str, Tensor] = {}
    for row in rows:
        if row.theirs not in tensors:
            if set(row.ours) & wanted:
                raise Mistake(f"the file has no {row.theirs}, which its config.json asks for; download it again")
            continue
        if not set(row.ours) <= wanted:
            raise Mistake(f"the file has {row.theirs}, for which headtohead has no part; it cannot be imported")
        tensor = tensors[row.theirs].T if row.transposed else tensors[row.theirs]
        found |= dict(zip(row.ours, tensor.chunk(len(row.ours)), strict=True))
    return found


def to_theirs(ours: dict[str, Tensor], rows: list[Row], prefix: str) -> dict[str, Tensor]:
    """Their tensors out of ours, the body's under its prefix; `rows` are the body's and the head's."""
    found = {}
    for row in rows:
        if set(row.ours) <= ours.keys():
            joined = torch.cat([ours[name] for name in row.ours])
            home = "" if row.ours[0].startswith("head.") else prefix
            found[home + row.theirs] = (joined.T if row.transposed else joined).contiguous()
    return found
