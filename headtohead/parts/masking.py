"""How a key that may not be seen is taken out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor

from headtohead.spec import Part, Size


class Masking(Part):
    """Called as (scores, allowed, normalize) -> weights. Padding and other documents are −∞ in the scores already."""


class MinusInfinity(Masking):
    """Scores of hidden keys become −∞ before the normalizer (Vaswani et al. 2017)."""

    def __call__(self, scores: Tensor, allowed: Tensor, normalize: Callable[[Tensor], Tensor]) -> Tensor:
        return normalize(scores.masked_fill(~allowed, -math.inf))


class ZeroAfter(Masking):
    """Weights of hidden keys become 0 after the normalizer, and nothing is renormalized.

    The mistake of study 3: the normalizer's sum still runs over the hidden keys, so a causal model reads the future
    from the size of what is left.
    """

    def __call__(self, scores: Tensor, allowed: Tensor, normalize: Callable[[Tensor], Tensor]) -> Tensor:
        return normalize(scores) * allowed


class ZeroThenRenormalize(Masking):
    """ZeroAfter, then each row divided by what is left; equal to −∞ for the softmax alone. A row left with 0 stays 0."""

    def refuse(self, size: Size, recipe: Any) -> Iterator[str]:
        if recipe.model.attention.normalizer.scales_softmax:
            yield "renormalizing cancels model.attention.normalizer, which only scales the softmax's rows"

    def __call__(self, scores: Tensor, allowed: Tensor, normalize: Callable[[Tensor], Tensor]) -> Tensor:
        kept = normalize(scores) * allowed
        total = kept.sum(-1, keepdim=True)
        return kept / total.masked_fill(total == 0, 1.0)
