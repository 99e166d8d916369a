"""From hidden states at the scored positions to logits."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headtohead.parts.embedding import Embedded
from headtohead.parts.norm import LayerNorm
from headtohead.spec import Part, Size


class Head(Part):
    """Called as (x, embedding) -> logits; x is scored positions × width, `embedding` offers `.rows()` and `.down(x)`."""

    def flops(self, size: Size) -> tuple[float, float]:
        """(matrix, element-wise) operations per scored token."""
        down = 2.0 * size.width * size.embedding_width if size.embedding_width != size.width else 0.0
        return down + 2.0 * size.embedding_width * size.vocabulary, 0.0


class Tied(Head):
    """x · Eᵀ with the token embeddings (Press & Wolf 2017; GPT-2 without `bias`)."""

    bias: bool = False

    def build(self, size: Size) -> nn.Module:
        return TiedLogits(size.vocabulary if self.bias else 0)


class TiedLogits(nn.Module):
    def __init__(self, biases: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(biases)) if biases else None

    def forward(self, x: Tensor, embedding: Embedded) -> Tensor:
        return F.linear(embedding.down(x), embedding.rows(), self.bias)


class Untied(Head):
    """W x + b with a matrix of its own (study 5)."""

    bias: bool = True

    def build(self, size: Size) -> nn.Module:
        return PerTokenLogits(size.width, size.vocabulary, False, self.bias)

    def flops(self, size: Size) -> tuple[float, float]:
        return 2.0 * size.width * size.vocabulary, 0.0


class BertHead(Head):
    """Eᵀ · LN(gelu(W x + b)) + c (BERT, RoBERTa, ELECTRA's generator); W goes to the embedding's width.

    LayerNorm's `eps` is 1e-5 in RoBERTa's released weights and 1e-12 in BERT; ALBERT's `gelu` is by tanh. Each of the four
    steps can be left out: `dense`, `gelu` ("none"), `norm` and the bias c (`bias`), which is how study 2 came to its head.
    """

    eps: float = 1e-5
    dense: bool = True
    gelu: Literal["exact", "tanh", "none"] = "exact"
    norm: bool = True
    bias: bool = True

    def build(self, size: Size) -> nn.Module:
        return BertLogits(self, size)

    def flops(self, size: Size) -> tuple[float, float]:
        if not self.dense:
            return Head.flops(self, size)
        return 2.0 * size.embedding_width * (size.width + size.vocabulary), 0.0


class BertLogits(nn.Module):
    def __init__(self, part: BertHead, size: Size) -> None:
        super().__init__()
        inner = replace(size, width=size.embedding_width)
        self.gelu = part.gelu
        self.dense = nn.Linear(size.width, size.embedding_width) if part.dense else None
        self.norm = LayerNorm(part.eps).build(inner) if part.norm else None
        self.bias = nn.Parameter(torch.zeros(size.vocabulary)) if part.bias else None

    def forward(self, x: Tensor, embedding: Embedded) -> Tensor:
        x = embedding.down(x) if self.dense is None else self.dense(x)
        if self.gelu != "none":
            x = F.gelu(x, approximate="tanh" if self.gelu == "tanh" else "none")
        return F.linear(x if self.norm is None else self.norm(x), embedding.rows(), self.bias)


class Clap(Head):
    """β · x · Êᵀ with the embedding's effective rows, x as it is and no bias (study 2's contrastive head).

    One β, unconstrained, starts at `beta`; with a factorized embedding x first goes through the transpose of its map up.
    """

    beta: float = 1.0

    def build(self, size: Size) -> nn.Module:
        return ClapLogits(self.beta)


class ClapLogits(nn.Module):
    def __init__(self, beta: float) -> None:
        super().__init__()
        self.beta = nn.Parameter(torch.tensor(float(beta)))

    def forward(self, x: Tensor, embedding: Embedded) -> Tensor:
        return self.beta * F.linear(embedding.down(x), embedding.rows())


class Bare(Head):
    """x itself: an encoder that is published without a head. It predicts nothing until it is given one."""

    outputs: ClassVar[str] = "hidden"

    def build(self, size: Size) -> nn.Module:
        return Hidden()

    def flops(self, size: Size) -> tuple[float, float]:
        return 0.0, 0.0


class Hidden(nn.Module):
    def forward(self, x: Tensor, embedding: Embedded) -> Tensor:
        return x


class Pooled(Head):
    """W₂ tanh(W₁ x + b₁) + b₂ on the first position of each row (BERT's pooler and classifier); `outputs` classes."""

    outputs: int = 2

    def build(self, size: Size) -> nn.Module:
        return PooledLogits(size.width, self.outputs)

    def flops(self, size: Size) -> tuple[float, float]:
        return 2.0 * size.width * (size.width + self.outputs), 0.0


class PooledLogits(nn.Module):
    def __init__(self, width: int, outputs: int) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width)
        self.out = nn.Linear(width, outputs)

    def forward(self, x: Tensor, embedding: Embedded) -> Tensor:
        return self.out(torch.tanh(self.dense(x)))


class PerToken(Head):
    """W x + b on every scored position, `outputs` values each; `dense` puts gelu(W₁ x + b₁) before it (ELECTRA)."""

    outputs: int = 2
    dense: bool = False

    def build(self, size: Size) -> nn.Module:
        return PerTokenLogits(size.width, self.outputs, self.dense, True)

    def flops(self, size: Size) -> tuple[float, float]:
        return 2.0 * size.width * (self.outputs + size.width * self.dense), 0.0


class PerTokenLogits(nn.Module):
    def __init__(self, width: int, outputs: int, dense: bool, bias: bool) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width) if dense else None
        self.out = nn.Linear(width, outputs, bias=bias)

    def forward(self, x: Tensor, embedding: Embedded) -> Tensor:
        return self.out(x if self.dense is None else F.gelu(self.dense(x)))
