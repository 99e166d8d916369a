"""How much a query agrees with a key."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headtohead.spec import Part, Size


class Score(Part):
    """Called as (q, k) -> scores; q and k are batch × heads × length × head width, scores batch × heads × queries × keys."""

    def flops(self, size: Size) -> tuple[float, float]:
        """(matrix, element-wise) operations per query token, forward, all heads."""
        return 2.0 * size.length * size.width, 0.0


class ScaledDot(Score):
    """q·k / √d, d the head width (Vaswani et al. 2017, eq. 1)."""

    def __call__(self, q: Tensor, k: Tensor) -> Tensor:
        return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])


class Additive(Score):
    """w·tanh(W_q q + W_k k + b), without 1/√d (Bahdanau et al. 2015).

    [W_q | W_k] is the first layer on the pair [q; k], split so that each token is projected once and pairs only add.
    `hidden` = 0 stands for the head width; `shared` uses one scorer for all heads.
    """

    hidden: int = 0
    shared: bool = False

    def build(self, size: Size) -> nn.Module:
        return AdditiveScore(1 if self.shared else size.heads, self.hidden or size.head_width, size.head_width)

    def flops(self, size: Size) -> tuple[float, float]:
        hidden = self.hidden or size.head_width
        projections = 4.0 * size.heads * size.head_width * hidden
        return projections, size.heads * size.length * 4.0 * hidden


class AdditiveScore(nn.Module):
    def __init__(self, heads: int, hidden: int, head_width: int) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.zeros(heads, hidden, head_width))
        self.key = nn.Parameter(torch.zeros(heads, hidden, head_width))
        self.bias = nn.Parameter(torch.zeros(heads, hidden))
        self.weight = nn.Parameter(torch.zeros(heads, 1, hidden))

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        q = q @ self.query.transpose(-2, -1) + self.bias[:, None]
        k = k @ self.key.transpose(-2, -1)
        pairs = torch.tanh(q[..., :, None, :] + k[..., None, :, :])
        return (pairs * self.weight[:, :, None]).sum(-1)


class Cosine(Score):
    """g · q̂·k̂ with unit-length q̂, k̂ and one learned g (query-key norm, Henry et al. 2020).

    g starts at `scale`, or at log2(L² − L) for context length L, the paper's formula, where `scale` is None.
    """

    scale: float | None = None

    def refuse(self, size: Size, recipe: Any) -> Iterator[str]:
        if self.scale is None and size.length < 2:
            yield f"the paper's start log2(L² − L) needs length of at least 2, got {size.length}; or give scale"

    def build(self, size: Size) -> nn.Module:
        return CosineScore(math.log2(size.length**2 - size.length) if self.scale is None else self.scale)


class CosineScore(nn.Module):
    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(float(scale)))

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        return self.scale * (F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1))
