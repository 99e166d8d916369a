"""Lays out a study's folder before its first run: the plan, its lock, the route, and the study's own file."""

from __future__ import annotations

import traceback
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from headtohead.files import write_atomically, write_json
from headtohead.imports import outside
from headtohead.launch.difference import differences
from headtohead.launch.made import Made, in_time, make, paced
from headtohead.launch.routing import choose_route, jobs_here
from headtohead.measure import MEASURES, cost
from headtohead.objectives import Prediction
from headtohead.plan import CONTROLS, Loaded
from headtohead.request import LOCKED, TUNE, Options, file_hash, lock_content, lock_of, plan_of, request
from headtohead.run import batches
from headtohead.spec import Mistake, describe, diff, fields, short
from headtohead.study import Claim, Recipe, Study, levels_of, network_of
from headtohead.text.cache import Tokens, prepare
from headtohead.train import Route, accumulate

FRESH = CONTROLS[1]  # the arm whose seeds come after all others


def refuse_other(before: dict[str, Any] | None, plan: dict[str, Any], out: Path) -> None:
    """Refuse a plan in a folder that was locked with another."""
    if before is None or before["lock"] == plan["lock"]:
        return
    what = differences(before, plan, plan["request"]["reference"] or plan["study"])
    alike = all(before.get(name) == plan[name] for name in LOCKED if name != "seeds")
    verdict = plan.get("purpose") != TUNE and plan["request"]["confirm"] is None
    fresh = ", or ask for fresh seeds with --confirm N" if alike and verdict else ""
    raise Mistake(f"{out} was locked with {what}; choose another folder with --out{fresh}, or delete this one")


def agree(loaded: Loaded, options: Options, out: Path) -> dict[str, Any]:
    """The plan that was asked for, after everything in it was tried; writes nothing, and refuses where something is wrong."""
    made = make(loaded, options)
    before = plan_of(out)
    if made.study.match == "wallclock":
        made = in_time(made, _pace_of(loaded, made, options, before))
    if before is None:
        rehearse(made.study)
    plan = make_plan(loaded, made, options)
    refuse_other(before, plan, out)
    return plan


def _pace_of(loaded: Loaded, made: Made, options: Options, before: dict[str, Any] | None) -> dict[str, float]:
    """How fast every arm's steps are: as the folder has it, or else measured."""
    if before and before.get("pace") and list(before["pace"]) == list(made.study.arms()):
        return dict(before["pace"])
    rehearse(made.study)
    route, _ = choose_route(make_plan(loaded, made, options), jobs_here())
    return paced(made.study, route)


def lay_out(plan: dict[str, Any], study_file: Path, out: Path, jobs: int) -> None:
    """Write the plan where there is none yet: its last file makes it one, so that an interrupted beginning begins anew."""
    before = plan_of(out)
    refuse_other(before, plan, out)  # again: another command may have begun here since it was agreed
    if before is None:
        if not plan["request"]["builtin"]:
            write_atomically(out / "study.py", study_file.read_bytes())
        route, why = choose_route(plan, jobs)
        write_json(out / "route.json", route._asdict() | {"why": why})
        write_json(out / "study.lock", {"lock": plan["lock"], **lock_content(plan)})
    if before is None or before["request"] != plan["request"]:  # the same plan, asked for in other words
        write_json(out / "study.json", plan)


def make_plan(loaded: Loaded, made: Made, options: Options) -> dict[str, Any]:
    """study.json: everything that judging and reporting need, without torch and without the study's code."""
    study = made.study
    arms = study.arms()
    tokens = {name: prepare(recipe.text, recipe.tokenizer, recipe.split) for name, recipe in arms.items()}
    plan = {
        "study": loaded.name,
        "question": loaded.question,
        "size": options.size,
        "baseline": "baseline",
        "primary": {"name": study.primary, "unit": _unit(study), "better": study.better},
        "margin": study.margin,
        "alpha": study.alpha,
        "seeds": seeds_of(study, options),
        "looks": list(study.looks),
        "match": study.match,
        "grid": _grid(study),
        "fresh": {FRESH: study.seeds + (options.confirm or 0)} if options.against_itself else {},
        "claims": [_claim(claim) for claim in study.claims],
        "arms": {name: describe(recipe) for name, recipe in arms.items()},
        "changed": {
            name: {
                address: [short(one), short(other)] for address, (one, other) in diff(study.baseline, recipe).items()
            }
            for name, recipe in study.challengers.items()
        },
        "made": {name: [name, values] for name, values in made.values.items() if values},
        "pace": made.pace,
        "tuning": made.tuning,
        "texts": {name: _text(tokens[name], recipe) for name, recipe in arms.items()},
        "shared": {
            name: shared_start(study.baseline, recipe, tokens[name].vocabulary.size) for name, recipe in arms.items()
        },
        "training": {name: recipe.steps * recipe.batch * recipe.length for name, recipe in arms.items()},
        "operations": {name: _operations(recipe, tokens[name], "flops") for name, recipe in arms.items()},
        "elementwise": {name: _operations(recipe, tokens[name], "flops.elementwise") for name, recipe in arms.items()},
        "price": {key: value for key, value in describe(study.price).items() if key != "part"},
        "code": file_hash(loaded.path),
        "imports": loaded.imports,
        "files": {str(path): loaded.imports[name] for name, path in outside().items() if name in loaded.imports},
        "sources": {name: recipe.text.identity() for name, recipe in arms.items()},
        "version": version("headtohead"),
    }
    plan["lock"] = lock_of(plan)
    return plan | {"request": request(loaded.path, options)}


def seeds_of(study: Study, options: Options) -> list[int]:
    """A study's seeds, or, to confirm it, as many as asked for that it has not used."""
    if options.confirm is None:
        return list(range(study.seeds))
    if options.confirm < 1:
        raise Mistake(f"--confirm {options.confirm}: at least 1 fresh seed, and 3 for a verdict")
    return list(range(study.seeds, study.seeds + options.confirm))


def _grid(study: Study) -> dict[str, Any] | None:
    """The two addresses of a grid, and where every arm stands in it."""
    places = levels_of(study)
    cells = {name: [short(level) for level in place] for name, place in places.items()}
    return {"addresses": list(study.grid), "cells": cells} if places else None


def _claim(claim: Claim) -> dict[str, Any]:
    told = {name: value for name, value in fields(claim).items() if value not in (None, "")}
    return {"claim": type(claim).__name__, "challenger": None, **told}


def _unit(study: Study) -> str:
    """The objective states the loss's unit; every other measure has its own."""
    return study.baseline.objective.unit if study.primary == "loss" else MEASURES[study.primary].unit


def _text(tokens: Tokens, recipe: Recipe) -> dict[str, Any]:
    sizes = {"train": len(tokens.train.ids), "validation": len(tokens.validation.ids)}
    return {
        "name": tokens.name,
        "note": tokens.note,
        "hash": tokens.fingerprint,
        "vocabulary": tokens.vocabulary.size,
        **sizes,
        "examples": recipe.examples.counts(tokens, recipe.length + recipe.objective.ahead),
    }


def _operations(recipe: Recipe, tokens: Tokens, kind: str) -> float:
    size = tokens.vocabulary.size
    figures = cost.operations(recipe, network_of(recipe, size), size)
    return figures[kind] * recipe.steps * recipe.batch * recipe.length


def shared_start(baseline: Recipe, recipe: Recipe, vocabulary: int) -> dict[str, int]:
    """Parameters of an arm, and how many of them start as the baseline's do: same name, same shape, same draw."""
    ours = dict(network_of(recipe, vocabulary).named_parameters())
    theirs = dict(network_of(baseline, vocabulary).named_parameters())
    alike = [p for name, p in ours.items() if name in theirs and theirs[name].shape == p.shape]
    same_draw = type(recipe.model) is type(baseline.model) and not any(
        address.startswith("model.initialization") for address in diff(baseline, recipe)
    )
    return {
        "parameters": sum(p.numel() for p in ours.values()),
        "shared": sum(p.numel() for p in alike) if same_draw else 0,
    }


def check_length(name: str, recipe: Recipe, tokens: Tokens) -> None:
    """A text must hold at least one row on either side."""
    width = recipe.length + recipe.objective.ahead
    try:
        recipe.examples.check(tokens, width)
    except Mistake as mistake:
        raise Mistake(f"arm {name}: {mistake}") from None


def rehearse(study: Study) -> None:
    """One small step of every arm, so that code that fails, fails before anything is written."""
    for name, recipe in study.arms().items():
        tokens = prepare(recipe.text, recipe.tokenizer, recipe.split)
        check_length(name, recipe, tokens)
        _one_step(name, recipe, tokens)


def _one_step(name: str, recipe: Recipe, tokens: Tokens) -> None:
    try:
        if sum(p.numel() for p in network_of(recipe, tokens.vocabulary.size).parameters()) > 5e7:
            return  # minutes on a laptop: the first run will tell
        learner = recipe.learner(tokens.vocabulary.size, 0)
        few = at_most(recipe, rows=2)
        _, pieces, _ = next(batches(few, tokens, 0, 0))
        accumulate(learner, pieces, Route())
        _finite(learner)
    except Mistake as mistake:
        raise Mistake(f"arm {name}: {mistake}") from None
    except Exception as error:
        frame = _deepest(error)
        raise Mistake(f"arm {name}: {type(error).__name__} at {frame}: {' '.join(str(error).split())[:300]}") from error


def _finite(learner: Prediction) -> None:
    """Refuse a gradient that is no number before the first step; later ones are outcomes."""
    for where, parameter in learner.named_parameters():
        if parameter.grad is not None and not bool(torch.isfinite(parameter.grad).all()):
            raise Mistake(
                f"the gradient of {where} is not finite at the start; hidden keys have a score of −∞, and "
                "−∞ times a weight has no gradient: set them to 0 before the product and back to −∞ after it (masked_fill)"
            )


def at_most(recipe: Recipe, rows: int) -> Recipe:
    """The recipe with few rows a step."""
    return replace(recipe, batch=rows, accumulate=1)


def _deepest(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "site-packages" not in frame.filename] or frames
    return f"{Path(own[-1].filename).name}:{own[-1].lineno}"
