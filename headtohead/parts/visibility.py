"""Which keys a query may look at. Padding and other documents are the body's business, not this slot's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from headtohead.spec import Part, Size


class Visibility(Part):
    """Called as (query_position, key_position) -> bool; the two broadcast against each other."""


class Causal(Visibility):
    """The past and itself: key ≤ query."""

    def __call__(self, query_position: Tensor, key_position: Tensor) -> Tensor:
        return key_position <= query_position


class Everyone(Visibility):
    """Every key, as in an encoder."""

    def __call__(self, query_position: Tensor, key_position: Tensor) -> Tensor:
        return torch.ones_like(query_position - key_position, dtype=torch.bool)


class Window(Visibility):
    """At most `width` tokens, itself included: 0 ≤ query − key < width (Beltagy et al. 2020; Mistral 7B, 2023).

    `future` lets it look as far ahead as back: |query − key| < width.
    """

    width: int = 256
    future: bool = False

    def refuse(self, size: Size, recipe: Any) -> Iterator[str]:
        if self.width < 1:
            yield f"width = {self.width} must be at least 1"

    def __call__(self, query_position: Tensor, key_position: Tensor) -> Tensor:
        back = query_position - key_position
        if self.future:
            return back.abs() < self.width
        return (back >= 0) & (back < self.width)
