"""How well held-out text is predicted: evaluation mode, float32, every scored token once, sums in float64."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from headtohead.objectives import Exam, Prediction, to_device
from headtohead.text.cache import Tokens

ROWS = 32  # a batch of held-out rows; no result depends on it


class Likelihood(NamedTuple):
    """Figures for measures.json and, for each document, the columns of documents.npz."""

    figures: dict[str, Any]
    documents: dict[str, np.ndarray]


def likelihood(learner: Prediction, recipe: Any, tokens: Tokens, stride: int) -> Likelihood:
    """Mean −ln p, perplexity exp(mean) of the whole text, and bits per byte and character where every token is scored.

    Rows of the context length start every `stride` tokens; a token is scored in the first row that has it with the most
    context. `unigram` is the same text's loss under add-one smoothed training frequencies: what knowing no context gives.
    """
    with torch.inference_mode():
        scored = [_score(learner, exam) for exam in held_out(recipe, tokens, stride)]
    nll, source, width, length, target = (np.concatenate(column) for column in zip(*scored, strict=True))
    columns = {
        name: np.bincount(source, weights=values.astype(np.float64))
        for name, values in (("nll", nll), ("tokens", np.ones_like(nll)), ("bytes", width), ("characters", length))
    }
    loss = float(columns["nll"].sum() / columns["tokens"].sum())
    figures: dict[str, Any] = {"loss": loss, "perplexity": math.exp(min(loss, 700.0)), "scored_tokens": len(nll)}
    if not recipe.objective.masks:  # bits per byte of masked tokens would be no code length
        bits = float(columns["nll"].sum()) / math.log(2)
        figures |= {"bits_per_byte": bits / float(width.sum()), "bits_per_character": bits / float(length.sum())}
    figures["unigram"] = unigram(tokens, target)
    figures["evaluation"] = hashlib.blake2b(target.tobytes() + source.tobytes(), digest_size=16).hexdigest()
    return Likelihood(figures, {"document": np.arange(len(columns["nll"])), **columns})


def held_out(recipe: Any, tokens: Tokens, stride: int) -> Iterator[Exam]:
    """What is scored of the validation text."""
    width = recipe.length + recipe.objective.ahead
    scored = tokens.at_most(recipe.held_out, width) if recipe.held_out else tokens
    for rows in recipe.examples.held_out(scored, width, stride, ROWS, recipe.objective.ahead):
        yield from recipe.objective.exams(rows, tokens.vocabulary)


def _score(learner: Prediction, exam: Exam) -> tuple[np.ndarray, ...]:
    if any(module.training for module in learner.modules()):
        raise RuntimeError("held-out text must be scored in evaluation mode")
    device = next(learner.parameters()).device
    nll = learner.score(to_device(exam.batch, device)).double().cpu().numpy()
    return nll, exam.source, exam.bytes, exam.characters, exam.batch.target.numpy()


def unigram(tokens: Tokens, target: np.ndarray) -> float:
    """Mean −ln p of the targets under the training text's token frequencies, add-one smoothed."""
    counts = np.bincount(tokens.train.ids, minlength=tokens.vocabulary.size) + 1.0
    return float(-np.log(counts[target] / counts.sum()).mean())
