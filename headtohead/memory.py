"""What a model keeps of the tokens it has read, so that each new one is read alone: keys, values and positions."""

from __future__ import annotations

import torch
from torch import Tensor


class Past:
    """One layer's keys and values, rows × heads × tokens × head width, as they were when they were read."""

    def __init__(self, length: int) -> None:
        self.length, self.count = length, 0
        self.kept: tuple[Tensor, ...] = ()

    def add(self, *new: Tensor) -> tuple[Tensor, ...]:
        """All that was kept and the new tokens behind it; room for the whole context is taken once."""
        if not self.kept:
            self.kept = tuple(x.new_empty(*x.shape[:-2], self.length, x.shape[-1]) for x in new)
        before, self.count = self.count, self.count + new[0].shape[-2]
        for room, x in zip(self.kept, new, strict=True):
            room[..., before : self.count, :] = x
        return tuple(room[..., : self.count, :] for room in self.kept)


class Memory:
    """The past of every layer, and where its tokens stand."""

    def __init__(self, layers: int, length: int) -> None:
        self.layers = [Past(length) for _ in range(layers)]
        self.length = length
        self.position: Tensor | None = None

    def add(self, position: Tensor) -> Tensor:
        """The positions of all tokens read, the new ones last."""
        self.position = position if self.position is None else torch.cat([self.position, position], 1)
        return self.position
