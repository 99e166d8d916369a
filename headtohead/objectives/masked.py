"""Predict tokens that were taken out."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import numpy as np
import torch

from headtohead.model import Model
from headtohead.objectives import Batch, Exam, Objective, no_tokens, one_document, segments_of
from headtohead.spec import Size
from headtohead.text.exam import REPLICATES
from headtohead.text.examples import Rows
from headtohead.text.tokenizer import Vocabulary


class MaskedLM(Objective):
    """−ln p of each chosen token given the rest; of the chosen, 80 % are masked, 10 % random, 10 % kept (BERT, 2018).

    `count` "independent" chooses each token with probability `rate` (transformers' collator, study 1); "exact" chooses
    round(rate · n) tokens of a row without replacement, at least one (ELECTRA). Special tokens are never chosen.
    """

    rate: float = 0.15
    masked: float = 0.8
    random: float = 0.1
    count: Literal["independent", "exact"] = "independent"
    masks: ClassVar[bool] = True
    unit: ClassVar[str] = "nats per masked token"

    def refuse(self, size: Size, recipe: Any) -> Iterator[str]:
        if not 0 < self.rate < 1:
            yield f"rate = {self.rate} must lie between 0 and 1"
        if self.masked < 0 or self.random < 0 or self.masked + self.random > 1:
            yield f"masked = {self.masked} and random = {self.random} must be shares that add up to at most 1"
        if recipe.objective is self:  # not where another objective has its masks alone
            yield from no_tokens(recipe.model)

    def networks(self, model: Model) -> dict[str, tuple[Model, float]]:
        return {"model": (model, self.rate)}

    def prepare(self, rows: Rows, noise: np.random.Generator, vocabulary: Vocabulary) -> Batch:
        maskable = _maskable(rows, vocabulary)
        u = noise.random(rows.ids.shape)
        chosen = (
            maskable & (u < self.rate) if self.count == "independent" else _lowest(u, maskable, self._quota(maskable))
        )
        fate = noise.random(rows.ids.shape)
        strangers = vocabulary.plain[noise.integers(0, len(vocabulary.plain), rows.ids.shape)]
        ids = np.where(chosen & (fate < self.masked), vocabulary.mask, rows.ids)
        ids = np.where(chosen & (fate >= self.masked) & (fate < self.masked + self.random), strangers, ids)
        return _batch(rows, ids, np.flatnonzero(chosen), self._capacity(rows.ids.shape))

    def _quota(self, maskable: np.ndarray) -> np.ndarray:
        return np.maximum(1, np.rint(self.rate * maskable.sum(1)).astype(int))

    def _capacity(self, shape: tuple[int, ...]) -> int:
        """Places for scored positions, the same for every batch so that shapes stay put: six sigma above the mean."""
        rows, length = shape
        if self.count == "exact":
            return rows * max(1, round(self.rate * length))
        mean = self.rate * rows * length
        return min(rows * length, math.ceil(mean + 6 * math.sqrt(mean * (1 - self.rate))))

    def exams(self, rows: Rows, vocabulary: Vocabulary) -> Iterator[Exam]:
        """The fixed sets of masked tokens that `held_out` marks in its rows (text/exam.py), every chosen one masked."""
        for replicate in range(REPLICATES):
            chosen = rows.fresh & (rows.exam >> replicate & 1).astype(bool)
            where = np.flatnonzero(chosen)
            batch = _batch(rows, np.where(chosen, vocabulary.mask, rows.ids), where, len(where))
            taken = [column.reshape(-1)[where] for column in (rows.source, rows.bytes, rows.characters)]
            yield Exam(batch, *taken)


def _maskable(rows: Rows, vocabulary: Vocabulary) -> np.ndarray:
    return (rows.document >= 0) & ~np.isin(rows.ids, vocabulary.specials)


def _lowest(u: np.ndarray, allowed: np.ndarray, quota: np.ndarray) -> np.ndarray:
    """In each row the `quota` allowed places with the smallest u."""
    rank = np.argsort(np.argsort(np.where(allowed, u, 2.0), 1, kind="stable"), 1, kind="stable")
    return allowed & (rank < quota[:, None])


def _batch(rows: Rows, ids: np.ndarray, where: np.ndarray, capacity: int) -> Batch:
    capacity = max(capacity, len(where))
    scored = np.zeros(capacity, dtype=np.int64)
    scored[: len(where)] = where
    weight = (np.arange(capacity) < len(where)).astype(np.float32)
    return Batch(
        ids=torch.from_numpy(np.ascontiguousarray(ids)),
        position=torch.from_numpy(np.ascontiguousarray(rows.position)),
        document=one_document(rows.document),
        segments=segments_of(rows),
        scored=torch.from_numpy(scored),
        target=torch.from_numpy(rows.ids.reshape(-1)[scored]),
        weight=torch.from_numpy(weight),
    )
