"""How the model knows where a token stands. Built once for all layers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal

import torch
from torch import Tensor, nn

from headtohead.spec import Part, Size


class Position(Part):
    """Three ways in, each the identity unless a variant says otherwise.

    `.embed(position)` -> vectors added to the token embeddings, or None; `.turn(q, k, query_position, key_position)` ->
    q, k; `.bias(query_position, key_position)` -> (1 or batch) × (heads or 1) × queries × keys added to the scores, or
    None. Positions are batch (or 1) × length and restart in each document.
    """

    def build(self, size: Size) -> Any:
        return Unplaced()


class Unplaced(nn.Module):
    """No position anywhere; the variants override what they use."""

    def embed(self, position: Tensor) -> Tensor | None:
        return None

    def turn(self, q: Tensor, k: Tensor, query_position: Tensor, key_position: Tensor) -> tuple[Tensor, Tensor]:
        return q, k

    def bias(self, query_position: Tensor, key_position: Tensor) -> Tensor | None:
        return None


class Nothing(Position):
    """No position at all."""


class Learned(Position):
    """One learned vector a position (GPT-2, BERT). RoBERTa leaves its first two rows unused: `padding_offset` = 2."""

    padding_offset: int = 0

    def refuse(self, size: Size, recipe: Any) -> Iterator[str]:
        if self.padding_offset < 0:
            yield f"padding_offset = {self.padding_offset} must be at least 0"

    def build(self, size: Size) -> nn.Module:
        return LearnedTable(size.length + self.padding_offset, size.embedding_width, self.padding_offset)


class LearnedTable(Unplaced):
    def __init__(self, rows: int, width: int, offset: int) -> None:
        super().__init__()
        self.offset = offset
        self.table = nn.Embedding(rows, width)

    def embed(self, position: Tensor) -> Tensor:
        return self.table(position + self.offset)


class Sinusoidal(Position):
    """sin and cos of p / base^(2i/d) (Vaswani et al. 2017).

    "interleaved" is the paper's order sin, cos, sin …; "halves" is tensor2tensor's and fairseq's, which study 2 used:
    all sines, then all cosines, with 2i/(d − 2) in the exponent.
    """

    base: float = 10000.0
    layout: Literal["interleaved", "halves"] = "interleaved"

    def refuse(self, size: Size, recipe: Any) -> Iterator[str]:
        if size.embedding_width % 2:
            yield f"needs an even width; that of model.embedding is {size.embedding_width}"

    def build(self, size: Size) -> nn.Module:
        return Waves(size.embedding_width, self.base, self.layout == "halves")


class Waves(Unplaced):
    speed: Tensor

    def __init__(self, width: int, base: float, halves: bool) -> None:
        super().__init__()
        self.halves = halves
        last = max(width // 2 - 1, 1) if halves else width / 2
        speed = torch.exp(-math.log(base) / last * torch.arange(width // 2, dtype=torch.float64))
        self.register_buffer("speed", speed.float(), persistent=False)

    def embed(self, position: Tensor) -> Tensor:
        angle = position[..., None] * self.speed
        waves = torch.stack([angle.sin(), angle.cos()], -2 if self.halves else -1)
        return waves.flatten(-2)


class Rotary(Position):
    """Pairs of query and key channels turned by p / base^(2i/d) (Su et al. 2021).

    "halves" pairs channel i with i + d/2 (GPT-NeoX, LLaMA), "pairs" channel 2i with 2i + 1 (the paper).
    """

    base: float = 10000.0
    layout: Literal["halves", "pairs"] = "halves"

    def refuse(self, size: Size, recipe: Any) -> Iterator[str]:
        if size.head_width % 2:
            yield f"needs an even head width; model.width / model.heads = {size.head_width}"

    def build(self, size: Size) -> nn.Module:
        return Rotation(size.head_width, self.base, self.layout == "pairs")


class Rotation(Unplaced):
    speed: Tensor

    def __init__(self, head_width: int, base: float, pairs: bool) -> None:
        super().__init__()
        self.pairs = pairs
        speed = base ** -(torch.arange(0, head_width, 2, dtype=torch.float64) / head_width)
        self.register_buffer("speed", speed.float(), persistent=False)

    def turn(self, q: Tensor, k: Tensor, query_position: Tensor, key_position: Tensor) -> tuple[Tensor, Tensor]:
        return self._rotate(q, query_position), self._rotate(k, key_position)

    def _rotate(self, x: Tensor, position: Tensor) -> Tensor:
        angle = position[:, None, :, None] * self.speed
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        if self.pairs:
            even, odd = x[..., 0::2], x[..., 1::2]
            return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)
        low, high = x.chunk(2, -1)
        return torch.cat([low * cos - high * sin, low * sin + high * cos], -1)


def slopes(heads: int) -> list[float]:
    """ALiBi's slopes: 2^(−8k/n) for a power of two; else those of the power below, then every second of the one above.

    As published they are not sorted (Press et al. 2021): 6 heads have 1/4, 1/16, 1/64, 1/256, 1/2, 1/8.
    """
    power = 2 ** math.floor(math.log2(heads))
    below = [2 ** (-8 * k / power) for k in range(1, power + 1)]
    return below if power == heads else below + slopes(2 * power)[0::2][: heads - power]


class Alibi(Position):
    """−m_h·|i − j| added to the scores, m_h fixed (Press et al. 2021), as study 2 used it in encoders.

    "symmetric" is that; "shifted" takes 0.5 off the distance of keys ahead, −m_h·(|i − j| − ½[j > i]), so that left and
    right differ; "sides" lets the first half of the heads see only keys at or before, the other half only at or after,
    each half with the slopes of its own number of heads.
    """

    shape: Literal["symmetric", "shifted", "sides"] = "symmetric"

    def refuse(self, size: Size, recipe: Any) -> Iterator[str]:
        if self.shape == "sides" and size.heads % 2:
            yield f"two sides need an even number of heads, model.heads = {size.heads}"

    def build(self, size: Size) -> nn.Module:
        return LinearBias(size.heads, self.shape)


class LinearBias(Unplaced):
    slope: Tensor

    def __init__(self, heads: int, shape: str) -> None:
        super().__init__()
        self.shape = shape
        values = slopes(heads // 2) * 2 if shape == "sides" else slopes(heads)
        self.register_buffer("slope", torch.tensor(values), persistent=False)

    def bias(self, query_position: Tensor, key_position: Tensor) -> Tensor:
        ahead = key_position[:, None, None, :] - query_position[:, None, :, None]
        distance = ahead.abs().to(self.slope.dtype)
        if self.shape == "shifted":
            distance = distance - 0.5 * (ahead > 0)
        bias = -self.slope[:, None, None] * distance
        if self.shape == "sides":
            left = torch.arange(len(self.slope), device=ahead.device)[:, None, None] < len(self.slope) // 2
            bias = bias.masked_fill(torch.where(left, ahead > 0, ahead < 0), -math.inf)
        return bias


class RelativeBuckets(Position):
    """A learned score for each head and bucket of distance, one table for all layers (T5, Raffel et al. 2019).

    Half of the buckets hold one distance each, the rest grow logarithmically up to `distance`. With `both_sides` keys
    ahead have buckets of their own (T5's encoder); without, they share bucket 0 (its decoder).
    """

    buckets: int = 32
    distance: int = 128
    both_sides: bool = True

    def refuse(self, size: Size, recipe: Any) -> Iterator[str]:
        if self.buckets < 4 or self.buckets % 4 or self.distance <= self.buckets // 2:
            yield f"needs a multiple of 4 buckets and distance > buckets / 2, got {self.buckets} and {self.distance}"

    def build(self, size: Size) -> nn.Module:
        return BucketTable(size.heads, self.buckets, self.distance, self.both_sides)


class BucketTable(Unplaced):
    def __init__(self, heads: int, buckets: int, distance: int, both_sides: bool) -> None:
        super().__init__()
        self.buckets, self.distance, self.both_sides = buckets, distance, both_sides
        self.table = nn.Embedding(buckets, heads)

    def bias(self, query_position: Tensor, key_position: Tensor) -> Tensor:
        bucket = self.bucket(key_position[:, None, :] - query_position[:, :, None])
        return self.table(bucket).permute(0, 3, 1, 2)

    def bucket(self, ahead: Tensor) -> Tensor:
        """The bucket of key − query."""
        buckets, start = self.buckets, torch.zeros_like(ahead)
        if self.both_sides:
            buckets //= 2
            start = buckets * (ahead > 0)
            far = ahead.abs()
        else:
            far = (-ahead).clamp_min(0)
        exact = buckets // 2
        growth = torch.log(far.clamp_min(1) / exact) / math.log(self.distance / exact) * (buckets - exact)
        return start + torch.where(far < exact, far, (exact + growth.long()).clamp_max(buckets - 1))
