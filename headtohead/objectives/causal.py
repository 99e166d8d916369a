"""Predict the next token."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import torch

from headtohead.objectives import Batch, Exam, Objective, no_tokens, one_document, segments_of
from headtohead.spec import Size
from headtohead.text.examples import Rows
from headtohead.text.tokenizer import Vocabulary


class CausalLM(Objective):
    """−ln p(x_{t+1} | x_1 … x_t) at every position whose successor is in the same document (Radford et al. 2018)."""

    ahead: ClassVar[int] = 1

    def refuse(self, size: Size, recipe: Any) -> Iterator[str]:
        yield from no_tokens(recipe.model)

    def prepare(self, rows: Rows, noise: np.random.Generator, vocabulary: Vocabulary) -> Batch:
        here, after = rows.document[:, :-1], rows.document[:, 1:]
        target = rows.ids[:, 1:]
        weight = np.broadcast_to((here == after) & (after >= 0), target.shape)
        return Batch(
            ids=torch.from_numpy(np.ascontiguousarray(rows.ids[:, :-1])),
            position=torch.from_numpy(np.ascontiguousarray(rows.position[:, :-1])),
            document=one_document(here),
            segments=segments_of(rows._replace(segments=rows.segments[..., :-1])),
            scored=None,
            target=torch.from_numpy(target.reshape(-1)),
            weight=torch.from_numpy(weight.reshape(-1).astype(np.float32)),
        )

    def exams(self, rows: Rows, vocabulary: Vocabulary) -> Iterator[Exam]:
        batch = self.prepare(rows, np.random.default_rng(0), vocabulary)
        fresh = np.flatnonzero(rows.fresh[:, 1:])
        scored = torch.from_numpy(fresh)
        batch = batch._replace(scored=scored, target=batch.target[scored], weight=batch.weight[scored])
        taken = [column[:, 1:].reshape(-1)[fresh] for column in (rows.source, rows.bytes, rows.characters)]
        yield Exam(batch, *taken)
