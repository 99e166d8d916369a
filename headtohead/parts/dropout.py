"""Noise that is a function of (seed, step, layer, site, row, element), so that arms share it and a resume repeats it.

An element is kept when a hash of its index and of two 32-bit keys of its row clears a threshold. The keys come with
the batch (`row_keys`), a layer and a site mix theirs in, and nothing is drawn from a generator: micro-batches,
processes, compilation and the order of calls make no difference. The finalizer is a multiply-xorshift of the kind
studied by Appleby (murmur3) and Wellons (2018); its rate and its independence are tested in tests/parts/test_dropout.py.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headtohead.spec import Part, Size


class Dropout(Part):
    """Rates after the embeddings, on the attention weights, after attention and after the feed-forward.

    RoBERTa has (.1, .1, .1, .1), study 5 (.1, 0, .1, 0), nanoGPT on a small text (0, 0, 0, 0).
    """

    embedding: float = 0.0
    weights: float = 0.0
    attention: float = 0.0
    feedforward: float = 0.0

    def refuse(self, size: Size, recipe: Any) -> Iterator[str]:
        for name in ("embedding", "weights", "attention", "feedforward"):
            if not 0 <= getattr(self, name) < 1:
                yield f"{name} = {getattr(self, name)} must lie in [0, 1)"


def row_keys(seed: int, step: int, rows: np.ndarray) -> Tensor:
    """Two 32-bit keys for each row of a step, rows × 2; `rows` are numbers within the whole batch."""
    digests = [hashlib.blake2b(f"dropout/{seed}/{step}/{row}".encode(), digest_size=8).digest() for row in rows]
    return torch.from_numpy(np.frombuffer(b"".join(digests), dtype="<i4").reshape(-1, 2).astype(np.int32))


Site = tuple[int, int]


def site(name: str) -> Site:
    """The two constants of a place in the network; compiled code cannot hash a name, so take it once, outside."""
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    return tuple(int.from_bytes(half, "little", signed=True) for half in (digest[:4], digest[4:]))  # type: ignore[return-value]


def _shift(x: Tensor, bits: int) -> Tensor:
    """x >> bits for the unsigned number that an int32 holds."""
    return (x >> bits) & ((1 << (32 - bits)) - 1)


# The three odd multipliers of the "triple32" finalizer, as signed numbers. With the two of "lowbias32" neighbours at a
# distance of 96 or 768 were correlated by .002, ten standard errors over thirty million pairs.
_FIRST, _SECOND, _THIRD = 0xED5AD4BB - (1 << 32), 0xAC4C1B51 - (1 << 32), 0x31848BAB


def _mix(x: Tensor, added: Tensor | int) -> Tensor:
    x = (x ^ _shift(x, 17)) * _FIRST + added
    x = (x ^ _shift(x, 11)) * _SECOND
    x = (x ^ _shift(x, 15)) * _THIRD
    return x ^ _shift(x, 14)


def place(keys: Tensor, where: Site) -> Tensor:
    """Row keys with a place mixed in: a layer, a site."""
    first, second = keys[:, 0], keys[:, 1]
    return torch.stack([_mix(first ^ where[0], second), _mix(second ^ where[1], first)], 1)


def keep(keys: Tensor, shape: torch.Size | tuple[int, ...], rate: float) -> Tensor:
    """Which elements stay: rows × shape, each with probability 1 − rate."""
    count = 1
    for n in shape:
        count *= n
    index = torch.arange(count, dtype=torch.int32, device=keys.device)
    hashed = _mix(index ^ keys[:, :1], keys[:, 1:])
    dropped = min(round(rate * 2**32), 2**32 - 1)  # of 2³² values; all of them would not fit the comparison
    return (hashed >= dropped - 2**31).view(-1, *shape)


def drop(x: Tensor, keys: Tensor | None, where: Site, rate: float) -> Tensor:
    """Dropout at one site; `keys` are the row keys of this step and layer, or None where nothing is dropped."""
    if keys is None or rate == 0:
        return x
    return x * keep(place(keys, where), x.shape[1:], rate) * (1 / (1 - rate))
