"""What the matrices are before training; vectors keep what their module sets (norms 1, biases 0, β its start)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from torch import Generator, Tensor

from headtohead.spec import Part, Size


class Role(NamedTuple):
    """What an initialization may know of a matrix."""

    embedding: bool  # a table of vectors
    fan: tuple[int, int]  # in, out
    head_fan: tuple[int, int] | None  # of the matrix that a study with one a head would have had
    into_residual: bool  # its product is added to the stream
    layers: int


class Initialization(Part):
    """Called as (tensor, role, generator): fills one matrix in place from its own generator."""

    def __call__(self, tensor: Tensor, role: Role, generator: Generator) -> None:
        raise TypeError(f"{type(self).__name__} must define __call__(tensor, role, generator)")


class Normal(Initialization):
    """N(0, std²), .02 in BERT, RoBERTa and study 2."""

    std: float = 0.02

    def refuse(self, size: Size, recipe: Any) -> Iterator[str]:
        if self.std <= 0:
            yield f"std = {self.std} must be above 0"

    def __call__(self, tensor: Tensor, role: Role, generator: Generator) -> None:
        tensor.normal_(0.0, self.std, generator=generator)


class Xavier(Initialization):
    """U(−a, a), a = gain·√(6 / (fan in + fan out)) (Glorot & Bengio 2010); tables N(0, .02²), as in study 5.

    `per_head` takes the fan of the study's own matrices, one a head for query, key and value together.
    """

    gain: float = 1.0
    per_head: bool = True

    def refuse(self, size: Size, recipe: Any) -> Iterator[str]:
        if self.gain <= 0:
            yield f"gain = {self.gain} must be above 0"

    def __call__(self, tensor: Tensor, role: Role, generator: Generator) -> None:
        if role.embedding:
            tensor.normal_(0.0, 0.02, generator=generator)
            return
        fan = role.head_fan if self.per_head and role.head_fan else role.fan
        bound = self.gain * math.sqrt(6 / sum(fan))
        tensor.uniform_(-bound, bound, generator=generator)


class ScaledNormal(Initialization):
    """N(0, std²), and std / √(2·layers) for the matrices that end in the residual stream (GPT-2, Radford et al. 2019)."""

    std: float = 0.02

    def refuse(self, size: Size, recipe: Any) -> Iterator[str]:
        if self.std <= 0:
            yield f"std = {self.std} must be above 0"

    def __call__(self, tensor: Tensor, role: Role, generator: Generator) -> None:
        scale = math.sqrt(2 * role.layers) if role.into_residual else 1.0
        tensor.normal_(0.0, self.std / scale, generator=generator)
