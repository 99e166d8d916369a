"""Batch normalization in a language model: a text's prediction depends on whatever else is in its batch.

The rows of a held-out batch overlap, so a neighbour tells what comes next, and a score holds for one composition of batches
only. Every row alone is causal; the second half of A-CAUSAL changes the neighbours. LayerNorm stands beside it.
"""

import torch
from exhibit import CAUSAL, by_network

from headtohead import LayerNorm, Norm, at


class AcrossRows(Norm):
    """(x − mean) / √(var + eps), mean and variance over the rows of the batch and the width."""

    eps: float = 1e-5

    def __call__(self, x):
        mean, var = x.mean((0, -1), keepdim=True), x.var((0, -1), keepdim=True, unbiased=False)
        return (x - mean) / torch.sqrt(var + self.eps)


PAIRS = {"a norm across the batch": (AcrossRows(), LayerNorm())}
CAUGHT_BY = {"A-CAUSAL": r"other rows move a row's logits by \d\.\de[-+]0[0-4] "}


def look(norm, folder):
    return by_network(at(CAUSAL, {"model.norm": norm}))
