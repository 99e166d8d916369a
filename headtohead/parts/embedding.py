"""From token ids to the first hidden state; one part whose fields combine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headtohead.parts.norm import LayerNorm
from headtohead.spec import Part, Size


class Embedding(Part):
    """Called as (ids, segments, added) -> x in the tables' width; `.up(x)` takes that to the model's width and `.down(x)`
    back; `.rows()` are the effective token vectors.

    `width` = 0 is the model's; a smaller one is followed by a linear map up (ALBERT, ELECTRA). `normalize` makes every
    token's row unit length (CLAP). `scale` multiplies token vectors by √width (Vaswani et al. 2017). `norm` is a
    LayerNorm with `norm_eps` after the sum (BERT, RoBERTa). `segments` is the number of segment types, 0 for none.
    A "learned" mask is a row of the table, a "zero" mask is the zero vector and no id of the vocabulary (study 2).
    """

    width: int = 0
    normalize: bool = False
    scale: bool = False
    norm: bool = False
    norm_eps: float = 1e-5
    segments: int = 0
    mask: Literal["learned", "zero"] = "learned"

    def refuse(self, size: Size, recipe: Any) -> Iterator[str]:
        if self.mask == "zero" and not recipe.objective.masks:
            yield "a zero mask vector needs masks, and objective has none"
        if self.mask == "zero" and recipe.tokenizer.has_mask:
            yield "a zero mask vector is no token of the vocabulary, and tokenizer has a mask among its own"
        if self.width < 0:
            yield f"width = {self.width} must be 0 (the model's) or more"

    def build(self, size: Size) -> Embedded:
        return Embedded(self, size)

    def flops(self, size: Size) -> tuple[float, float]:
        """(matrix, element-wise) operations per token; a look-up is free."""
        return (2.0 * size.embedding_width * size.width if size.embedding_width != size.width else 0.0), 0.0


class Embedded(nn.Module):
    def __init__(self, part: Embedding, size: Size) -> None:
        super().__init__()
        inner = size.embedding_width
        self.normalize, self.zero_mask = part.normalize, part.mask == "zero"
        self.scale = inner**0.5 if part.scale else 1.0
        self.token = nn.Embedding(size.vocabulary, inner)
        self.segment = nn.Embedding(part.segments, inner) if part.segments else None
        self.norm = LayerNorm(part.norm_eps).build(replace(size, width=inner)) if part.norm else None
        self.projection = nn.Linear(inner, size.width) if inner != size.width else None

    def rows(self) -> Tensor:
        """The effective token vectors, vocabulary × width."""
        return F.normalize(self.token.weight, dim=-1, eps=1e-12) if self.normalize else self.token.weight

    def up(self, x: Tensor) -> Tensor:
        """From the tables' width to the model's."""
        return x if self.projection is None else self.projection(x)

    def down(self, x: Tensor) -> Tensor:
        """A hidden state in the tables' width, by the transpose of the map up."""
        return x if self.projection is None else x @ self.projection.weight

    def forward(self, ids: Tensor, segments: Tensor | None, added: Tensor | None) -> Tensor:
        # normalizing the few rows that occur is the same as looking up normalized rows, and cheaper
        x = self.token(ids.clamp_max(self.token.num_embeddings - 1) if self.zero_mask else ids)
        if self.normalize:
            x = F.normalize(x, dim=-1, eps=1e-12)
        x = x * self.scale
        if self.zero_mask:
            x = x.masked_fill((ids >= self.token.num_embeddings)[..., None], 0.0)
        if added is not None:
            x = x + added
        if self.segment is not None:
            x = x + self.segment(torch.zeros_like(ids) if segments is None else segments)
        return x if self.norm is None else self.norm(x)
