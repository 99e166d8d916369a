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
PAIRS = 10_000_000  # tokens of training in which pairs are counted


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
    nll, source, width, length, target, before = (np.concatenate(column) for column in zip(*scored, strict=True))
    columns = {
        name: np.bincount(source, weights=values.astype(np.float64))
        for name, values in (("nll", nll), ("tokens", np.ones_like(nll)), ("bytes", width), ("characters", length))
    }
    loss = float(columns["nll"].sum() / columns["tokens"].sum())
    figures: dict[str, Any] = {"loss": loss, "perplexity": math.exp(min(loss, 700.0)), "scored_tokens": len(nll)}
    if not recipe.objective.masks:  # bits per byte of masked tokens would be no code length
        bits = float(columns["nll"].sum()) / math.log(2)
        figures |= {"bits_per_byte": bits / float(width.sum()), "bits_per_character": bits / float(length.sum())}
    figures["scored_bytes"] = int(width.sum())
    figures["unigram"] = unigram(tokens, target)
    if recipe.objective.ahead:
        figures["bigram"] = bigram(tokens, before, target)
    if tokens.vocabulary.unknown is not None:
        figures |= unknown(figures, target == tokens.vocabulary.unknown, width)
    figures["evaluation"] = hashlib.blake2b(target.tobytes() + source.tobytes(), digest_size=16).hexdigest()
    return Likelihood(figures, {"document": np.arange(len(columns["nll"])), **columns})


def held_out(recipe: Any, tokens: Tokens, stride: int) -> Iterator[Exam]:
    """What is scored of the validation text."""
    width = recipe.length + recipe.objective.ahead
    for rows in recipe.examples.held_out(at_most(recipe, tokens), width, stride, ROWS, recipe.objective.ahead):
        yield from recipe.objective.exams(rows, tokens.vocabulary)


def at_most(recipe: Any, tokens: Tokens) -> Tokens:
    """The text with as many validation documents as the recipe has scored."""
    return tokens.at_most(recipe.held_out, recipe.length + recipe.objective.ahead) if recipe.held_out else tokens


def _score(learner: Prediction, exam: Exam) -> tuple[np.ndarray, ...]:
    if any(module.training for module in learner.modules()):
        raise RuntimeError("held-out text must be scored in evaluation mode")
    device = next(learner.parameters()).device
    nll = learner.score(to_device(exam.batch, device)).double().cpu().numpy()
    ids = exam.batch.ids.reshape(-1).numpy()
    before = ids if exam.batch.scored is None else ids[exam.batch.scored.numpy()]  # of a causal model: the token before
    return nll, exam.source, exam.bytes, exam.characters, exam.batch.target.numpy(), before


def unigram(tokens: Tokens, target: np.ndarray) -> float:
    """Mean −ln p of the targets under the training text's token frequencies, add-one smoothed."""
    counts = np.bincount(tokens.train.ids, minlength=tokens.vocabulary.size) + 1.0
    return float(-np.log(counts[target] / counts.sum()).mean())


def bigram(tokens: Tokens, before: np.ndarray, target: np.ndarray) -> float:
    """The same under how often each token follows the one before it: −ln (c(a, b) + 1) / (c(a) + V)."""
    size = tokens.vocabulary.size
    train = tokens.train.ids[:PAIRS].astype(np.int64)
    pairs, counts = np.unique(train[:-1] * size + train[1:], return_counts=True)
    asked = before.astype(np.int64) * size + target
    place = np.minimum(np.searchsorted(pairs, asked), len(pairs) - 1)
    hits = np.where(pairs[place] == asked, counts[place], 0)
    return float(-np.log((hits + 1.0) / (np.bincount(train[:-1], minlength=size)[before] + size)).mean())


def unknown(figures: dict[str, Any], strange: np.ndarray, width: np.ndarray) -> dict[str, float]:
    """How much of what is scored is unknown text, and the losses with its bytes spelled out evenly: + bytes · ln 256.

    Without that, a vocabulary that knows fewer words has less to predict.
    """
    charged = float(width[strange].sum()) * math.log(256)
    loss = figures["loss"] + charged / figures["scored_tokens"]
    found = {"unknown": float(strange.mean()), "unknown_bytes": float(width[strange].sum() / max(width.sum(), 1))}
    found["loss.spelled"] = loss
    if "bits_per_byte" in figures:
        found["bits_per_byte.spelled"] = figures["bits_per_byte"] + charged / math.log(2) / float(width.sum())
    return found
