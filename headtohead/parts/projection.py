"""From a hidden state to queries, keys and values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headtohead.parts.linear import Linear
from headtohead.spec import Part, Size


class Projection(Part):
    """Called as (x) -> q, k, v, each batch × heads × length × head width. Query, key and value keep their own parameters."""

    def key_value_heads_of(self, heads: int) -> int:
        """How many key-value heads a model with that many heads has."""
        return heads

    def flops(self, size: Size) -> tuple[float, float]:
        """(matrix, element-wise) operations per token."""
        return 6.0 * size.width * size.width, 0.0


class Separate(Projection):
    """W_Q, W_K and W_V of their own (Vaswani et al. 2017)."""

    bias: bool = True

    def build(self, size: Size) -> nn.Module:
        return Projections(size, ("query", "key", "value"), self.bias)


class SharedQK(Projection):
    """W_Q = W_K, W_V of its own (study 3, model 2; Kitaev et al. 2020)."""

    bias: bool = True

    def build(self, size: Size) -> nn.Module:
        return Projections(size, ("query", "query", "value"), self.bias)

    def flops(self, size: Size) -> tuple[float, float]:
        return 4.0 * size.width * size.width, 0.0


class SharedQKV(Projection):
    """W_Q = W_K = W_V (study 3, model 3)."""

    bias: bool = True

    def build(self, size: Size) -> nn.Module:
        return Projections(size, ("query", "query", "query"), self.bias)

    def flops(self, size: Size) -> tuple[float, float]:
        return 2.0 * size.width * size.width, 0.0


class Grouped(Projection):
    """Fewer key-value heads, each serving a run of query heads (Ainslie et al. 2023; 1 is Shazeer's multi-query, 2019)."""

    key_value_heads: int = 2
    bias: bool = True

    def key_value_heads_of(self, heads: int) -> int:
        return self.key_value_heads

    def refuse(self, size: Size, recipe: Any) -> Iterator[str]:
        if self.key_value_heads < 1 or size.heads % self.key_value_heads:
            yield f"key_value_heads = {self.key_value_heads} must divide model.heads = {size.heads}"

    def build(self, size: Size) -> nn.Module:
        return Projections(size, ("query", "key", "value"), self.bias)

    def flops(self, size: Size) -> tuple[float, float]:
        return 2.0 * size.width * (size.width + 2 * size.key_value_heads * size.head_width), 0.0


class Projections(nn.Module):
    """Linear maps for the three roles; a role may borrow another's map. Joined into one product when called."""

    def __init__(self, size: Size, roles: tuple[str, str, str], bias: bool) -> None:
        super().__init__()
        self.roles, self.heads, self.head_width, self.bias = roles, size.heads, size.head_width, bias
        inner = {"query": size.heads, "key": size.key_value_heads, "value": size.key_value_heads}
        for name in dict.fromkeys(roles):
            # a study with one matrix a head drew it with that matrix's fan, which has all three roles in it
            fan = (size.width, 3 * size.head_width)
            self.add_module(name, Linear(size.width, inner[name] * size.head_width, bias, head_fan=fan))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        maps = {name: self.get_parameter(f"{name}.weight") for name in dict.fromkeys(self.roles)}
        weights: list[Tensor] = [*maps.values()]
        biases: list[Tensor] = [self.get_parameter(f"{name}.bias") for name in maps] if self.bias else []
        joined = F.linear(x, torch.cat(weights), torch.cat(biases) if biases else None)
        pieces = joined.split([w.shape[0] for w in weights], dim=-1)
        made = {name: self._heads(piece) for name, piece in zip(maps, pieces, strict=True)}
        q, k, v = (made[role] for role in self.roles)
        return q, k, v

    def _heads(self, x: Tensor) -> Tensor:
        x = x.unflatten(-1, (-1, self.head_width)).transpose(1, 2)
        return x if x.shape[1] == self.heads else x.repeat_interleave(self.heads // x.shape[1], dim=1)
