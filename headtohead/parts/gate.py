"""A gate on what each head returns."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from headtohead.spec import Part, Size


class HeadGate(Part):
    """Called as (x, heads) -> heads; x is the attention's input, heads is batch × heads × length × head width."""

    def flops(self, size: Size) -> tuple[float, float]:
        """(matrix, element-wise) operations per token."""
        return 0.0, 0.0


class NoGate(HeadGate):
    """Heads as they are."""

    def __call__(self, x: Tensor, heads: Tensor) -> Tensor:
        return heads


class Gate(HeadGate):
    """σ(w_h·x_h + b_h) times head h, x_h the head's slice of the input (gated attention, Bondarenko et al. 2023).

    `bias` is where b starts: 0 opens every gate half way.
    """

    bias: float = 0.0

    def build(self, size: Size) -> nn.Module:
        return HeadwiseGate(size.heads, size.head_width, self.bias)

    def flops(self, size: Size) -> tuple[float, float]:
        return 0.0, 3.0 * size.width


class HeadwiseGate(nn.Module):
    def __init__(self, heads: int, head_width: int, bias: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(heads, 1, head_width))
        self.bias = nn.Parameter(torch.full((heads,), float(bias)))

    def forward(self, x: Tensor, heads: Tensor) -> Tensor:
        slices = x.unflatten(-1, (heads.shape[1], -1)).transpose(1, 2)
        opening = (slices * self.weight).sum(-1, keepdim=True) + self.bias[:, None, None]
        return heads * torch.sigmoid(opening)
