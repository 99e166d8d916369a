"""A run as a folder that transformers loads: of a family that it knows where there is one, else with its own code."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor

from headtohead.checkpoint import network_tensors
from headtohead.files import whole_folder, write_atomically, write_json
from headtohead.generation import plain
from headtohead.hub.bundle import MODELING, sources
from headtohead.hub.card import card
from headtohead.hub.families import FAMILIES, Family, Top
from headtohead.hub.settings import settings_of
from headtohead.hub.tensors import WEIGHTS, rows_for, to_theirs
from headtohead.inspection import Trained, load
from headtohead.model import Transformer
from headtohead.objectives.masked import MaskedLM
from headtohead.parts.head import Bare
from headtohead.spec import Mistake, describe
from headtohead.text.elsewhere import save_for_transformers

CLOSE = 1e-4  # of the largest logit: what an exported model may differ by from the run it came from


def send_out(run: Path, folder: Path, study: Path | None = None, trust_study: bool = False) -> str:
    """Write the folder in one step, after loading it as a user will and comparing logits; what it came to."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Mistake(f"{folder} is not empty; name a new folder")
    trained = load(run, study, trust_study)
    with whole_folder(folder) as draft:
        told = write(trained, run, draft)
    return f"{folder}: {told}"


def write(trained: Trained, run: Path, folder: Path) -> str:
    """Everything that the folder holds."""
    masks = trained.recipe.objective.masks
    tokenizer = save_for_transformers(trained.tokenizer, folder, masks)
    found = family_of(trained)
    with _quiet():
        name = _write_own(trained, folder) if found is None else _write_plain(trained, folder, *found)
        _prove(trained, folder, name, own=found is None)
    write_json(folder / "headtohead.json", describe(trained.recipe))
    write_atomically(folder / "README.md", card(run, name, own=found is None))
    more = "" if tokenizer else "; transformers cannot have its tokenizer, so there is none"
    kind = "with its own code (trust_remote_code=True)" if found is None else "of transformers"
    return f"{name}, {kind}, logits equal to the run's{more}"


def family_of(trained: Trained) -> tuple[Family, Top, dict[str, Any]] | None:
    """The family, head and settings by which transformers knows this recipe, if it does."""
    recipe, network = trained.recipe, trained.model
    if not isinstance(recipe.model, Transformer):
        return None
    ours = {name for name, _ in network.named_parameters()}
    for family in FAMILIES.values():
        bare = Top(family.base, Bare(), MaskedLM())
        for top in (*family.tops, bare):
            settings = settings_of(recipe.model, family, top)
            if settings is None or not _whole(family, top, network, ours):
                continue
            if settings.get("pad_token_id", trained.tokenizer.pad) == trained.tokenizer.pad:
                return family, top, settings  # else positions would be counted from another token
    return None


def _whole(family: Family, top: Top, network: Any, ours: set[str]) -> bool:
    """Whether each tensor that the family asks for is there, and none is left over."""
    rows = list(rows_for(family, top, len(network.blocks)))
    asked = {name for row in rows if not row.optional or set(row.ours) <= ours for name in row.ours}
    return asked == ours


def _write_plain(trained: Trained, folder: Path, family: Family, top: Top, settings: dict[str, Any]) -> str:
    from transformers import AutoConfig, GenerationConfig

    recipe, network, vocabulary = trained.recipe, trained.model, trained.tokenizer
    tensors = network_tensors(network)
    rows = list(rows_for(family, top, len(network.blocks)))  # type: ignore[arg-type]
    prefix = "" if top.architecture == family.base else family.prefix
    _save(folder, to_theirs(tensors, rows, prefix))
    offset = getattr(recipe.model.position, "padding_offset", 0)  # type: ignore[attr-defined]
    ends = {"bos_token_id": None, "eos_token_id": None} | _ends(vocabulary)
    config = AutoConfig.for_model(
        family.name,
        **{"pad_token_id": vocabulary.pad} | ends | settings,
        **{family.length: recipe.length + offset, "vocab_size": len(tensors["embedding.token.weight"])},
        architectures=[top.architecture],
    )
    config.save_pretrained(folder)
    if recipe.objective.ahead:
        GenerationConfig(**ends, pad_token_id=vocabulary.pad).save_pretrained(folder)
    return top.architecture


def _ends(vocabulary: Any) -> dict[str, int]:
    marks = vocabulary.marks
    return {} if marks is None else {"bos_token_id": marks[0], "eos_token_id": marks[1]}


def _write_own(trained: Trained, folder: Path) -> str:
    from transformers import GenerationConfig

    recipe, network = trained.recipe, trained.model
    for name, text in sources(recipe.model).items():
        write_atomically(folder / name, text)
    tensors = network_tensors(network) | dict(network.named_buffers())
    _save(folder, {_place(name): tensor for name, tensor in tensors.items()})
    size = recipe.size(trained.tokenizer.size)
    kind = "CausalLM" if recipe.objective.ahead else "MaskedLM"
    kinds = {f"AutoModelFor{kind}": f"HeadToHeadFor{kind}"}
    if hasattr(network, "head"):  # a module of the user's own gives logits and nothing else
        kinds |= {"AutoModel": "HeadToHeadModel"} | {
            f"AutoModelFor{task}Classification": f"HeadToHeadFor{task}Classification" for task in ("Sequence", "Token")
        }
    config = {
        "model_type": "headtohead",
        "architectures": [f"HeadToHeadFor{kind}"],
        "auto_map": {auto: f"{MODELING}.{name}" for auto, name in ({"AutoConfig": "HeadToHeadConfig"} | kinds).items()},
        "vocab_size": size.vocabulary,
        "length": recipe.length,
        "hidden_size": size.width,
        "causal": bool(recipe.objective.ahead),
        "pad_token_id": trained.tokenizer.pad,
        "dtype": "float32",
    }
    write_json(folder / "config.json", config | _ends(trained.tokenizer))
    if recipe.objective.ahead:
        GenerationConfig(use_cache=False, pad_token_id=trained.tokenizer.pad).save_pretrained(folder)
    return f"HeadToHeadFor{kind}"


def _place(name: str) -> str:
    return name if name.startswith("head.") else f"body.network.{name}"


def _save(folder: Path, tensors: dict[str, Tensor]) -> None:
    plain_tensors = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    write_atomically(folder / WEIGHTS, save(plain_tensors, metadata={"format": "pt"}))


def _prove(trained: Trained, folder: Path, name: str, own: bool) -> None:
    """Load the folder as its reader will, and compare."""
    import transformers

    if own:
        auto = getattr(transformers, name.replace("HeadToHead", "AutoModel"))
        theirs = auto.from_pretrained(folder, trust_remote_code=True, local_files_only=True).eval()
    else:
        theirs = getattr(transformers, name).from_pretrained(folder, local_files_only=True).eval()
    most = min(trained.recipe.length, 64)
    generator = torch.Generator().manual_seed(0)
    plain_ids = torch.tensor([n for n in range(trained.tokenizer.size) if n != trained.tokenizer.pad])
    ids = plain_ids[torch.randint(len(plain_ids), (1, most), generator=generator)]
    with torch.inference_mode():
        found, ours = theirs(ids)[0][0].float(), plain(trained.model, ids)
    found = found[:, None] if found.dim() == 1 else found
    if not bool((found - ours).abs().max() <= CLOSE * ours.abs().max().clamp_min(1e-6)):
        raise RuntimeError(f"what was exported gives logits that differ by {(found - ours).abs().max():.2e}")


@contextmanager
def _quiet() -> Iterator[None]:
    """transformers' progress bars and advice are not about what the user asked for."""
    from transformers.utils import logging as theirs

    level = theirs.get_verbosity()
    theirs.set_verbosity(logging.ERROR)
    theirs.disable_progress_bar()
    try:
        yield
    finally:
        theirs.set_verbosity(level)
        theirs.enable_progress_bar()
