"""Normalization of a hidden state."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headtohead.parts.precision import widen
from headtohead.spec import Part, Size


class Norm(Part):
    """Called as (x) -> x over the last axis."""


class LayerNorm(Norm):
    """(x − mean) / √(var + eps) · g + b (Ba et al. 2016); eps 1e-5 as in GPT-2 and RoBERTa, 1e-12 in BERT."""

    eps: float = 1e-5
    bias: bool = True

    def build(self, size: Size) -> nn.Module:
        return Normalization(size.width, self.eps, self.bias)


class Normalization(nn.Module):
    def __init__(self, width: int, eps: float, bias: bool) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        wide = widen(x)
        bias = None if self.bias is None else self.bias.to(wide.dtype)
        return F.layer_norm(wide, (x.shape[-1],), self.weight.to(wide.dtype), bias, self.eps).to(x.dtype)


class RMSNorm(Norm):
    """x / √(mean x² + eps) · g (Zhang & Sennrich 2019); eps as in LLaMA."""

    eps: float = 1e-6

    def build(self, size: Size) -> nn.Module:
        return RootMeanSquare(size.width, self.eps)


class RootMeanSquare(nn.Module):
    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        wide = widen(x)
        scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)
        return (wide * scale * self.weight).to(x.dtype)
