"""A transformers folder becomes a run's folder, whose slots can then be changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from headtohead.checkpoint import network_tensors, save_weights
from headtohead.files import whole_folder, write_json
from headtohead.generation import plain
from headtohead.hub.families import FAMILIES, OUTPUT, Family, Top
from headtohead.hub.settings import UNJUDGED, model_of
from headtohead.hub.tensors import plain_names, read_all, rows_for, to_ours
from headtohead.hub.vocabulary import vocabulary_of
from headtohead.model import Network, Transformer
from headtohead.objectives.masked import MaskedLM
from headtohead.parts.head import Bare
from headtohead.plan import parse_value
from headtohead.spec import Mistake, at, check, describe, diff, get, short, walk
from headtohead.study import Recipe
from headtohead.text.elsewhere import save_for_transformers
from headtohead.text.examples import Lines, Stream
from headtohead.text.subwords import PieceVocabulary
from headtohead.text.tokenizer import Given


class Source(NamedTuple):
    """What a folder of transformers came to."""

    architecture: str
    model: Transformer
    objective: Any
    length: int
    tensors: dict[str, Tensor]  # by our names
    left_out: list[str]


def read_folder(folder: Path) -> Source:
    """The parts and the tensors of a transformers model, before anything is built."""
    config = _config(folder)
    family = FAMILIES[config.model_type]
    _check_fixed(config, family)
    tensors = plain_names(read_all(folder), family)
    top = next((top for top in family.tops if _fits(config, tensors, top)), None)
    model = model_of(config, family, top)
    length = getattr(config, family.length) - getattr(model.position, "padding_offset", 0)
    rows = list(rows_for(family, top, max(model.sharing.groups_of(model.layers)) + 1))
    ours = to_ours(tensors, rows, _names(model, config.vocab_size, length))
    if ours[OUTPUT].shape[0] != config.vocab_size:
        raise Mistake(
            f"{folder}: config.json has a vocabulary of {config.vocab_size}, the table {ours[OUTPUT].shape[0]} rows"
        )
    copies = dict(top.copies) if top else {}
    _check_copies(tensors, ours, copies)
    left = sorted(tensors.keys() - {row.theirs for row in rows} - copies.keys())
    architecture, objective = (top.architecture, top.objective) if top else (family.base, MaskedLM())
    return Source(architecture, model, objective, length, ours, left)


def _config(folder: Path) -> Any:
    if not (folder / "config.json").is_file():
        wrong = "there is no folder" if not folder.is_dir() else "there is no config.json in"
        raise Mistake(f"{wrong} {folder}; give a folder of transformers, written by save_pretrained")
    try:
        kind = json.loads((folder / "config.json").read_text(encoding="utf-8")).get("model_type")
    except (ValueError, AttributeError):
        raise Mistake(f"{folder / 'config.json'} is no JSON object; download it again") from None
    if kind not in FAMILIES:
        raise Mistake(f"{folder} is of the architecture {kind!r}; those that can be imported are {', '.join(FAMILIES)}")
    from transformers import AutoConfig

    return AutoConfig.from_pretrained(folder, local_files_only=True)


def _check_fixed(config: Any, family: Family) -> None:
    for key, wanted in family.fixed:
        if getattr(config, key, wanted) != wanted:
            raise Mistake(
                f"its {key} is {getattr(config, key)!r}, for which headtohead has no part; only {wanted!r} is"
            )


def _fits(config: Any, tensors: dict[str, Tensor], top: Top) -> bool:
    right = all(getattr(config, key, wanted) == wanted for key, wanted in top.fixed)
    return right and all(row.theirs in tensors for row in top.rows)


def _names(model: Transformer, vocabulary: int, length: int) -> set[str]:
    with torch.device("meta"):
        size = Recipe(model=model, length=length).size(vocabulary)
        return {name for name, _ in model.build(size).named_parameters()}


def _check_copies(tensors: dict[str, Tensor], ours: dict[str, Tensor], copies: dict[str, str]) -> None:
    """What is tied may be in the file twice, but not with two values."""
    for theirs, own in copies.items():
        if theirs in tensors and not torch.equal(tensors[theirs], ours[own]):
            raise Mistake(f"its {theirs} is not the tied tensor that config.json says it is; it cannot be imported")


def recipe_of(source: Source, vocabulary: PieceVocabulary, out: Path) -> Recipe:
    """The recipe of an imported model: its body and head, the objective they were made for, its own tokenizer."""
    if source.objective.masks and not vocabulary.mask_name:
        raise Mistake("its tokenizer names no mask token, which a masked model needs; set mask_token in its config")
    lines = source.objective.masks and vocabulary.marks is not None
    return Recipe(
        model=source.model,
        objective=source.objective,
        tokenizer=Given(place=str(out.resolve()), mask=vocabulary.mask_name),
        examples=Lines() if lines else Stream(),
        length=source.length,
    )


def fill(network: Network, tensors: dict[str, Tensor]) -> list[str]:
    """Put published tensors into a network; gives the names of parameters that the network alone has."""
    own = network_tensors(network)
    fresh = []
    with torch.no_grad():
        for name, parameter in own.items():
            if name not in tensors:
                fresh.append(name)
                continue
            given = tensors[name]
            if given.shape != parameter.shape:
                raise Mistake(
                    f"{name} is {list(given.shape)} in the file and {list(parameter.shape)} in the model asked for"
                )
            parameter.copy_(given)
    return fresh


def bring_in(folder: Path, out: Path, settings: tuple[tuple[str, str], ...] = ()) -> dict[str, Any]:
    """Write a run's folder for a transformers folder, in one step; what it came to."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise Mistake(f"--out {out} is not empty; name a new folder")
    source = read_folder(folder)
    vocabulary = vocabulary_of(folder, len(source.tensors[OUTPUT]))
    with whole_folder(out) as draft:
        vocabulary.save(draft / "vocabulary.json")
        save_for_transformers(vocabulary, draft, source.objective.masks)
        before = recipe_of(source, vocabulary, out)
        recipe = changed(before, settings)
        learner = recipe.learner(vocabulary.size, 0)
        fresh = fill(learner.model, source.tensors)
        if settings:
            _check_effect(before, recipe, source, vocabulary, learner.model)
        lost = sorted(source.tensors.keys() - network_tensors(learner.model).keys())
        write_json(draft / "recipe.json", describe(recipe))
        save_weights(draft / "model.safetensors", learner)
        told = _told(folder, source, before, recipe) | {"new": fresh, "left_out": [*source.left_out, *lost]}
        state = {"state": "finished", "step": 0, "steps": 0, "seconds": 0.0, "reason": None, "lock": ""}
        write_json(draft / "status.json", state | {"imported": told})
    return {"run": str(out), "parameters": sum(p.numel() for p in learner.model.parameters()), **told}


def _told(folder: Path, source: Source, before: Recipe, after: Recipe) -> dict[str, Any]:
    changes = {address: [short(one), short(other)] for address, (one, other) in diff(before, after).items()}
    bare = get(after, "model.head") == Bare()
    return {"from": folder.name, "architecture": source.architecture, "predicts": not bare, "changed": changes}


def changed(recipe: Recipe, settings: tuple[tuple[str, str], ...]) -> Recipe:
    """The recipe with the settings asked for; one that is there already is an error."""
    for address, text in settings:
        before, recipe = recipe, at(recipe, {address: parse_value(text)})
        if not diff(before, recipe):
            raise Mistake(f"--set {address}={text}: the model has that already, so nothing would change")
    check(recipe)
    size = recipe.model.complete(recipe.size(2))
    for address, part in walk(recipe.model, "model"):
        for reason in part.refuse(size, recipe):
            raise Mistake(f"{address}: {reason}")
    return recipe


def _check_effect(before: Recipe, after: Recipe, source: Source, vocabulary: PieceVocabulary, network: Network) -> None:
    """Refuse a change of the model after which it computes just what it did."""
    judged = [
        address
        for address in diff(before, after)
        if address.startswith("model.") and address.split(".")[1] not in UNJUDGED
    ]
    if not judged:
        return
    original = before.learner(vocabulary.size, 0).model
    fill(original, source.tensors)
    most = min(after.length, before.length, 32)
    ids = torch.randint(vocabulary.size, (1, most), generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        same = torch.equal(plain(original.eval(), ids), plain(network.eval(), ids))
    if same:
        raise Mistake(f"{', '.join(judged)}: the model computes just what it did before, so nothing was changed")
