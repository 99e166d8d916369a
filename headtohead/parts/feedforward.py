"""The position-wise network after attention."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Literal

import torch.nn.functional as F
from torch import Tensor, nn

from headtohead.parts.linear import Linear
from headtohead.spec import Part, Size


class Feedforward(Part):
    """Called as (x) -> x, width to width, with `ratio` times the width inside."""

    ratio: float = 4.0
    bias: bool = True
    matrices: ClassVar[int] = 2

    def hidden(self, size: Size) -> int:
        """The inner width."""
        return round(self.ratio * size.width)

    def refuse(self, size: Size, recipe: Any) -> Iterator[str]:
        if self.hidden(size) < 1:
            yield f"ratio = {self.ratio} leaves no inner width at model.width = {size.width}"

    def flops(self, size: Size) -> tuple[float, float]:
        """(matrix, element-wise) operations per token."""
        return 2.0 * self.matrices * size.width * self.hidden(size), 0.0


class Gelu(Feedforward):
    """W_2 gelu(W_1 x): exact as in BERT, or by tanh as in GPT-2 (Hendrycks & Gimpel 2016)."""

    approximation: Literal["exact", "tanh"] = "exact"

    def build(self, size: Size) -> nn.Module:
        return Expansion(
            size.width, self.hidden(size), self.bias, F.gelu if self.approximation == "exact" else tanh_gelu
        )


class ReluSquared(Feedforward):
    """W_2 relu(W_1 x)² (So et al. 2021, "Primer")."""

    def build(self, size: Size) -> nn.Module:
        return Expansion(size.width, self.hidden(size), self.bias, relu_squared)


class SwiGlu(Feedforward):
    """W_2 (silu(W_g x) ⊙ W_1 x) (Shazeer 2020); 8/3 of the width keeps the parameters of a ratio of 4."""

    ratio: float = 8 / 3
    bias: bool = False
    matrices: ClassVar[int] = 3

    def build(self, size: Size) -> nn.Module:
        return GatedExpansion(size.width, self.hidden(size), self.bias)


def tanh_gelu(x: Tensor) -> Tensor:
    """½x(1 + tanh(√(2/π)(x + 0.044715x³)))."""
    return F.gelu(x, approximate="tanh")


def relu_squared(x: Tensor) -> Tensor:
    """relu(x)²."""
    return F.relu(x).square()


class Expansion(nn.Module):
    def __init__(self, width: int, hidden: int, bias: bool, activation: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.up = nn.Linear(width, hidden, bias=bias)
        self.activation = activation
        self.down = Linear(hidden, width, bias, into_residual=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.activation(self.up(x)))


class GatedExpansion(nn.Module):
    def __init__(self, width: int, hidden: int, bias: bool) -> None:
        super().__init__()
        self.gate = nn.Linear(width, hidden, bias=bias)
        self.up = nn.Linear(width, hidden, bias=bias)
        self.down = Linear(hidden, width, bias, into_residual=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))
