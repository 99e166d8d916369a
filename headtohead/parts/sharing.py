"""Which layers are one and the same block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headtohead.spec import Part, Size


class Sharing(Part):
    """`groups_of(layers)` -> for each layer the number of its block; equal numbers share all weights."""

    def groups_of(self, layers: int) -> list[int]:
        """The block of each layer."""
        return list(range(layers))


class Distinct(Sharing):
    """Every layer its own block."""


class Shared(Sharing):
    """`groups` blocks, each serving a contiguous run of layers (ALBERT, Lan et al. 2019, with 1)."""

    groups: int = 1

    def groups_of(self, layers: int) -> list[int]:
        return [layer * self.groups // layers for layer in range(layers)]

    def refuse(self, size: Size, recipe: Any) -> Iterator[str]:
        if not 1 <= self.groups <= size.layers:
            yield f"groups = {self.groups} must lie between 1 and model.layers = {size.layers}"
