"""From a row of scores to a row of weights. The question of the study `softmax_one` is asked here."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from headtohead.parts.precision import widen
from headtohead.spec import Part, Size


class Normalizer(Part):
    """Called as (scores) -> weights over the last axis; scores are batch × heads × queries × keys.

    A score of −∞ gives weight 0, and a row of nothing but −∞ gives a row of zeros.
    """

    @property
    def scales_softmax(self) -> bool:
        """Whether it is the softmax times a factor of the row, which renormalizing would cancel."""
        return False


def softmax(scores: Tensor) -> Tensor:
    """Softmax over the last axis with empty rows zero, in at least float32."""
    x = widen(scores)
    empty = x.amax(-1, keepdim=True) == -math.inf
    return torch.softmax(x.masked_fill(empty, 0.0), -1).masked_fill(empty, 0.0).to(scores.dtype)


class Softmax(Normalizer):
    """exp(x_i) / Σ exp(x_j)."""

    def __call__(self, scores: Tensor) -> Tensor:
        return softmax(scores)


class SoftmaxN(Normalizer):
    """exp(x_i) / (n + Σ exp(x_j)), any real n ≥ 0 (Miller 2023, "Attention is off by one", n = 1).

    Shifted by s = max(0, max x), for the n implicit zero scores take part in the maximum:
    exp(x − s) / (n·exp(−s) + Σ exp(x − s)) never overflows. n = 0 is the plain softmax, to the bit.
    """

    n: float = 1.0

    @property
    def scales_softmax(self) -> bool:
        return self.n > 0

    def refuse(self, size: Size, recipe: Any) -> Iterator[str]:
        if not (self.n >= 0 and math.isfinite(self.n)):
            yield f"n = {self.n} must be a finite number ≥ 0"

    def __call__(self, scores: Tensor) -> Tensor:
        if self.n == 0:
            return softmax(scores)
        x = widen(scores)
        shift = x.detach().amax(-1, keepdim=True).clamp_min(0.0)
        e = torch.exp(x - shift)
        return (e / (self.n * torch.exp(-shift) + e.sum(-1, keepdim=True))).to(scores.dtype)


class LearnedSink(Normalizer):
    """exp(x_i) / (exp(s_h) + Σ exp(x_j)) with one learned s a head (gpt-oss, OpenAI 2025); at `start` = 0 it is softmax1."""

    start: float = 0.0

    @property
    def scales_softmax(self) -> bool:
        return True

    def build(self, size: Size) -> nn.Module:
        return SinkSoftmax(size.heads, self.start)


class SinkSoftmax(nn.Module):
    def __init__(self, heads: int, start: float) -> None:
        super().__init__()
        self.sink = nn.Parameter(torch.full((heads,), float(start)))

    def forward(self, scores: Tensor) -> Tensor:
        x, sink = widen(scores), widen(self.sink)[:, None, None]
        shift = torch.maximum(x.detach().amax(-1, keepdim=True), sink.detach())
        e = torch.exp(x - shift)
        return (e / (torch.exp(sink - shift) + e.sum(-1, keepdim=True))).to(scores.dtype)


class ClippedSoftmax(Normalizer):
    """clip((ζ − γ)·softmax(x) + γ, 0, 1) (Bondarenko et al. 2023), ζ = `high` ≥ 1, γ = `low` ≤ 0."""

    high: float = 1.03
    low: float = -0.03

    def refuse(self, size: Size, recipe: Any) -> Iterator[str]:
        if self.low > 0 or self.high < 1:
            yield f"needs low ≤ 0 and high ≥ 1, got low={self.low}, high={self.high}"

    def __call__(self, scores: Tensor) -> Tensor:
        return ((self.high - self.low) * softmax(widen(scores)) + self.low).clamp(0.0, 1.0).to(scores.dtype)


class Sigmoid(Normalizer):
    """σ(x_i − log L), L the recipe's context length, a constant (Ramapuram et al. 2024)."""

    def build(self, size: Size) -> SigmoidWeights:
        return SigmoidWeights(-math.log(size.length))


class SigmoidWeights:
    def __init__(self, bias: float) -> None:
        self.bias = bias

    def __call__(self, scores: Tensor) -> Tensor:
        return torch.sigmoid(widen(scores) + self.bias).to(scores.dtype)


class Sparsemax(Normalizer):
    """The nearest point of the simplex, max(x_i − t, 0) with Σ = 1 (Martins & Astudillo 2016).

    t by Newton's method from max x − 1: t ← (Σ_{x>t} x − 1) / |{x > t}|. It rises monotonically and stops moving
    once the support is right; `steps` = 12 was exact to length 2,048. The gradient flows through the support's t alone.
    The maximum is taken off first, which changes nothing but the rounding: sums of scores near 1,000 would lose 1e-2.
    """

    steps: int = 12

    def refuse(self, size: Size, recipe: Any) -> Iterator[str]:
        if self.steps < 1:
            yield f"steps = {self.steps} must be at least 1"

    def __call__(self, scores: Tensor) -> Tensor:
        x = widen(scores)
        # an empty row's maximum is −∞; taking off a finite number leaves it −∞ and not NaN
        x = x - x.detach().amax(-1, keepdim=True).clamp_min(torch.finfo(x.dtype).min)
        with torch.no_grad():
            t = torch.full_like(x[..., :1], -1.0)
            for _ in range(self.steps - 1):
                t = _threshold(x, x > t)
        return (x - _threshold(x, x > t)).clamp_min(0.0).to(scores.dtype)


def _threshold(x: Tensor, support: Tensor) -> Tensor:
    total = torch.where(support, x, 0.0).sum(-1, keepdim=True)
    return (total - 1) / support.sum(-1, keepdim=True).clamp_min(1)
