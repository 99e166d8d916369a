"""Going on from a prompt, token by token, with a memory of what was read where that provably changes nothing.

A memory is right only where no token's hidden state depends on what comes later. The parts are asked by trying them:
the whole context is read at once and in pieces, and the memory is used if both give the same logits. So a user's own
part needs to declare nothing, and one that looks ahead (a softmax over future keys, say) is simply read anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from headtohead.model import Network
from headtohead.spec import Mistake

SAME = 1e-4  # of the largest logit; two ways of adding up the same float32 numbers differ by less


class Draw(NamedTuple):
    """How the next token is chosen: softmax(logits / temperature), cut down to the `top_k` likeliest tokens (0: all),
    then to the fewest that hold `top_p` of the probability (Holtzman et al. 2020). Temperature 0 takes the likeliest.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0

    def check(self) -> None:
        """Refuse what is no choice."""
        if not 0 <= self.temperature < math.inf:
            raise Mistake(f"temperature {self.temperature} must be a number from 0 on")
        if self.top_k < 0:
            raise Mistake(f"top-k = {self.top_k} must be at least 1, or 0 for all tokens")
        if not 0 < self.top_p <= 1:
            raise Mistake(f"top-p = {self.top_p} must be above 0 and at most 1")

    def weights(self, logits: Tensor) -> Tensor:
        """The probability of each token, in float64."""
        logits = logits.double()
        if self.top_k:
            least = logits.topk(min(self.top_k, len(logits))).values[-1]
            logits = logits.masked_fill(logits < least, -math.inf)
        if self.temperature == 0:
            return (logits == logits.max()).double()
        # without the maximum taken off, a small temperature overflows
        weights = torch.softmax((logits - logits.max()) / self.temperature, 0)
        if self.top_p < 1:
            ordered, place = weights.sort(descending=True, stable=True)
            enough = ordered.cumsum(0) - ordered >= self.top_p  # what stands before it has the share already
            weights = weights.index_fill(0, place[enough], 0.0)
        return weights


Reader = Callable[[Tensor], Tensor]


def reader_of(network: Network, length: int, reach: int) -> Reader:
    """A function of all ids so far, 1 × any number, to the logits of the next; `reach` is how many there may be."""
    trial = min(length, reach)
    if network.memory(1) is not None and trial > 1 and _same(network, trial):
        return _Remembering(network, length)
    return lambda ids: plain(network, ids[:, -length:])[-1]


def plain(network: Network, ids: Tensor) -> Tensor:
    """Logits of every position of one row, everything read at once."""
    return network(ids, torch.arange(ids.shape[1], device=ids.device)[None])


def _same(network: Network, length: int) -> bool:
    """Whether reading in pieces gives what reading at once gives, over as long a context as will be needed."""
    rows = getattr(getattr(network, "embedding", None), "token", None)
    most = 2 if rows is None else rows.num_embeddings
    ids = torch.randint(most, (1, length), generator=torch.Generator().manual_seed(0)).to(
        next(network.parameters()).device
    )
    whole, memory = plain(network, ids), network.memory(length)
    assert memory is not None
    ends = sorted({*range(1, min(length, 9)), length // 3, 2 * length // 3, length - 1, length} - {0})
    for start, end in zip([0, *ends], ends, strict=False):
        here = network.go_on(ids[:, start:end], memory)[0]
        if not bool((here - whole[end - 1]).abs().max() <= SAME * whole[end - 1].abs().max()):
            return False
    return True


class _Remembering:
    """Reads each token once, as long as the context holds them all; then the last `length` anew for every token, for
    their positions have moved.
    """

    def __init__(self, network: Network, length: int) -> None:
        self.network, self.length, self.read = network, length, 0
        self.memory = network.memory(length)

    def __call__(self, ids: Tensor) -> Tensor:
        if self.memory is None or ids.shape[1] > self.length:
            return plain(self.network, ids[:, -self.length :])[-1]
        new, self.read = ids[:, self.read :], ids.shape[1]
        return self.network.go_on(new, self.memory)[0]


def drawn(reader: Reader, ids: Tensor, draw: Draw, seed: int) -> Iterator[int]:
    """The tokens after `ids`, without end; a seed, one continuation."""
    draw.check()
    generator = torch.Generator().manual_seed(seed)
    while True:
        weights = draw.weights(reader(ids).cpu())
        chosen = torch.multinomial(weights, 1, generator=generator)
        ids = torch.cat([ids, chosen[None].to(ids.device)], 1)
        yield int(chosen)
