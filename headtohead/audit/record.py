"""The audits of what a finished run left behind: its measures, its documents and the log of its steps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from headtohead.audit import Finding, contamination, epochs, floor, gap, spikes, undertrain, unknown
from headtohead.measure.likelihood import at_most
from headtohead.study import Recipe
from headtohead.text.cache import Tokens
from headtohead.text.corpus import open_corpus
from headtohead.text.overlap import overlap


class Scored(NamedTuple):
    """measures.json, and by document what was scored of held-out text and of the probe."""

    measures: dict[str, Any]
    held_out: dict[str, np.ndarray]
    probe: dict[str, np.ndarray]


class Steps(NamedTuple):
    """What the log says of every step."""

    losses: list[float]
    rates: list[float]
    of_tokens: bool  # whether the loss is a single term


def read_steps(folder: Path) -> Steps:
    """The log of a run; a loss that is no number is written as null."""
    lines = (folder / "steps.jsonl").read_text(encoding="utf-8").splitlines()
    steps = [json.loads(line) for line in lines]
    losses = [float("nan") if step["loss"] is None else step["loss"] for step in steps]
    single = not any(name.startswith("loss.") for step in steps for name in step)
    return Steps(losses, [step["rate"] for step in steps], single)


def audit_record(recipe: Recipe, tokens: Tokens, scored: Scored, steps: Steps) -> list[Finding]:
    """What can be said without the network."""
    measures = scored.measures
    seen, own = measures["tokens"], measures["parameters.not_embedding"]
    shared = overlap(open_corpus(recipe.text, recipe.split), tokens)
    found = [
        contamination.audit(shared, scored.held_out),
        gap.audit(scored.held_out, scored.probe),
        floor.audit(measures),
        epochs.audit(seen, len(tokens.train.ids), len(at_most(recipe, tokens).validation.ids)),
        undertrain.audit(undertrain.Course(seen, own, steps.rates, steps.losses)),
        spikes.audit(steps.losses, recipe.steps, 0, recipe.schedule.warmup),
    ]
    if "unknown" in measures:
        shares = measures["unknown"], measures["unknown_bytes"]
        found.append(unknown.audit(*shares, measures["loss"], measures["loss.spelled"]))
    return found
