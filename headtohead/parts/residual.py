"""How a sub-layer joins the stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor, nn

from headtohead.spec import Part, Size


class Residual(Part):
    """Called as (x, norm, sublayer) -> x, once around attention and once around the feed-forward.

    `normed` says whether it uses the norm at all, `final_norm` whether the body ends with one more.
    """

    normed: ClassVar[bool] = True
    final_norm: ClassVar[bool] = True


Sublayer = Callable[[Tensor], Tensor]


class PreNorm(Residual):
    """x + f(norm(x)), and a norm at the end (GPT-2; Xiong et al. 2020)."""

    def __call__(self, x: Tensor, norm: Sublayer, sublayer: Sublayer) -> Tensor:
        return x + sublayer(norm(x))


class PostNorm(Residual):
    """norm(x + f(x)) (Vaswani et al. 2017; BERT, RoBERTa)."""

    final_norm: ClassVar[bool] = False

    def __call__(self, x: Tensor, norm: Sublayer, sublayer: Sublayer) -> Tensor:
        return norm(x + sublayer(x))


class NoResidual(Residual):
    """f(norm(x)): the residuals of study 5 switched off, all else the same."""

    def __call__(self, x: Tensor, norm: Sublayer, sublayer: Sublayer) -> Tensor:
        return sublayer(norm(x))


class ReZero(Residual):
    """x + α·f(x) with one learned α a sub-layer, without any norm (Bachlechner et al. 2020: α starts at `start` = 0)."""

    start: float = 0.0
    normed: ClassVar[bool] = False
    final_norm: ClassVar[bool] = False

    def build(self, size: Size) -> nn.Module:
        return ScaledResidual(self.start)


class ScaledResidual(nn.Module):
    def __init__(self, start: float) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.tensor(float(start)))

    def forward(self, x: Tensor, norm: Sublayer, sublayer: Sublayer) -> Tensor:
        return x + self.alpha * sublayer(x)
