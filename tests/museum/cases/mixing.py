"""A model may leak without attention: karpathy/nanochat's issue 844 reports three ways to leak that its score rewards.

They are a mean over the token's own block, a summary of an aligned chunk given to the whole chunk, and a shift that runs
around the end; the plainest is a mean over the whole sequence added to every position. A-CAUSAL sees each of them on the
logits. Each neighbour mixes as much, and only from the past.
"""

import torch
from exhibit import CAUSAL, by_network

from headtohead import Residual, at

BLOCK = 8


class MeanOfAll(Residual):
    """x + f(norm x) + the mean of x over the sequence, or over what came so far."""

    future: bool

    def __call__(self, x, norm, sublayer):
        count = torch.arange(1, x.shape[1] + 1, dtype=x.dtype)[:, None]
        return x + sublayer(norm(x)) + (x.mean(1, keepdim=True) if self.future else x.cumsum(1) / count)


class MeanOfBlock(Residual):
    """x + f(norm x) + the mean over the token's block of eight, or over what came so far of the block."""

    future: bool

    def __call__(self, x, norm, sublayer):
        place = torch.arange(x.shape[1])
        together = place[:, None] // BLOCK == place // BLOCK
        weights = (together if self.future else together & (place <= place[:, None])).to(x.dtype)
        return x + sublayer(norm(x)) + (weights / weights.sum(-1, keepdim=True)) @ x


class Chunk(Residual):
    """x + f(norm x) + the last token of the token's own chunk of eight, or of the chunk before."""

    future: bool

    def __call__(self, x, norm, sublayer):
        place = torch.arange(x.shape[1])
        last = place // BLOCK * BLOCK + (BLOCK - 1 if self.future else -1)
        shared = x[:, last.clamp(0, x.shape[1] - 1)] * (last >= 0).to(x.dtype)[:, None]
        return x + sublayer(norm(x)) + shared


class Shift(Residual):
    """x + f(norm x) + the token before, that before the first being the last one, or nothing."""

    future: bool

    def __call__(self, x, norm, sublayer):
        around = x.roll(1, 1)
        return x + sublayer(norm(x)) + (around if self.future else around * (torch.arange(x.shape[1]) > 0)[:, None])


PAIRS = {
    "a mean over the whole sequence": (MeanOfAll(True), MeanOfAll(False)),
    "a mean over a block": (MeanOfBlock(True), MeanOfBlock(False)),
    "an aligned chunk": (Chunk(True), Chunk(False)),
    "a shift around the end": (Shift(True), Shift(False)),
}
CAUGHT_BY = {"A-CAUSAL": r"changed tokens move earlier logits by \d\.\de[-+]0[0-4] "}


def look(residual, folder):
    return by_network(at(CAUSAL, {"model.residual": residual}))
