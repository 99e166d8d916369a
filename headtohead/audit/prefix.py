"""The honest loss: what a causal model scores when it is given nothing but the text before each token (A-PREFIX)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from headtohead.audit import Finding
from headtohead.objectives import Batch, Prediction
from headtohead.text.cache import Tokens
from headtohead.train import to_device

ROWS, PLACES = 64, 16
TOLERANCE = 1e-3  # nats, in float32; held-out text is never scored in less


def audit(learner: Prediction, recipe: Any, tokens: Tokens, when: str = "after") -> Finding:
    """−ln p of 64 held-out rows at 16 drawn places: from one pass over the row, and from the row cut off at each place."""
    if not recipe.objective.ahead:
        sentence = "It may read both sides: it does not predict what comes next."
        return Finding("A-PREFIX", "fatal", when, "pass", "not an objective of the next token", sentence)
    batch = _rows(recipe, tokens)
    if batch is None:
        sentence = "Which of its places are scored depends on more than the row, so none can be cut off."
        return Finding("A-PREFIX", "fatal", when, "skip", "the objective chooses what is scored", sentence)
    full, alone, count = honest(learner, batch)
    evidence = f"{full:.4f} nats a token from whole rows, {alone:.4f} from what comes before, {count:,} tokens"
    if not abs(full - alone) <= TOLERANCE:
        sentence = f"Its loss is not honest: given only what comes before, it is {alone:.4f} and not {full:.4f}."
        return Finding("A-PREFIX", "fatal", when, "fail", evidence, sentence)
    return Finding(
        "A-PREFIX", "fatal", when, "pass", evidence, "Its loss needs nothing but what comes before each token."
    )


def _rows(recipe: Any, tokens: Tokens) -> Batch | None:
    """The first 64 held-out rows, every place scored."""
    width = recipe.length + recipe.objective.ahead
    rows = next(recipe.examples.held_out(tokens, width, max(1, recipe.length), ROWS, recipe.objective.ahead))
    batch = recipe.objective.prepare(rows, np.random.default_rng(0), tokens.vocabulary)
    return batch if batch.scored is None else None


def honest(learner: Prediction, batch: Batch) -> tuple[float, float, int]:
    """The mean −ln p at the drawn places with the rest of the row in sight, and without; and of how many tokens."""
    length = batch.ids.shape[1]
    drawn = np.random.default_rng(0).permutation(length)[:PLACES]
    device = next(learner.parameters()).device
    with torch.inference_mode():
        whole = learner.eval().score(to_device(batch, device)).double().view(batch.ids.shape).cpu()
        counted = batch.weight.view(batch.ids.shape) > 0
        seen, cut = [], []
        for place in drawn.tolist():
            short = to_device(_until(batch, place + 1), device)
            alone = learner.score(short).double().view(short.ids.shape).cpu()[:, -1]
            seen.append(whole[:, place][counted[:, place]])
            cut.append(alone[counted[:, place]])
    before, after = torch.cat(seen), torch.cat(cut)
    return (float(before.mean()), float(after.mean()), len(before)) if len(before) else (math.nan, math.nan, 0)


def _until(batch: Batch, length: int) -> Batch:
    """The first `length` places of every row."""
    rows = batch.ids.shape

    def first(column: torch.Tensor | None) -> torch.Tensor | None:
        return None if column is None else column[:, :length].contiguous()

    return batch._replace(
        ids=batch.ids[:, :length].contiguous(),
        position=batch.position[:, :length].contiguous(),
        document=first(batch.document),
        segments=first(batch.segments),
        target=batch.target.view(rows)[:, :length].reshape(-1),
        weight=batch.weight.view(rows)[:, :length].reshape(-1),
    )
