"""The one rule of precision: softmaxes and norms compute at least in float32, and in float64 where a test asks for it."""

import torch
from torch import Tensor


def widen(x: Tensor) -> Tensor:
    """`x` in promote_types(its type, float32)."""
    return x.to(torch.promote_types(x.dtype, torch.float32))
