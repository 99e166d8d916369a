"""Does one text's prediction depend on its neighbours: the other rows of a batch, or other documents of its row?

The second half of A-CAUSAL. What a neighbour can tell is as unfair as the future: the rows of a held-out batch overlap.
"""

from __future__ import annotations

import copy
import math

import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from headtohead.audit import Finding
from headtohead.audit.causality import LONGEST, REPEATS, TOLERANCE, gap

NEIGHBOURS = 3  # rows beside the one that must not move
SEED = 0


def audit(network: nn.Module, length: int, vocabulary: int, when: str, packed: bool = False) -> Finding:
    """Change the neighbours of a row, and, where documents are `packed` into rows, those of a document.

    In evaluation mode, where nothing may move, and in training mode with dropout off, where what moves is told: batch
    normalization mixes the rows of a training batch and none of a held-out one.
    """
    double = copy.deepcopy(network).to("cpu", torch.float64).eval()
    length = min(length, LONGEST)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(SEED)
        rows = _rows(double, length, vocabulary)
        documents = _documents(double, length, vocabulary) if packed and length > 1 else 0.0
        training = _training(double, length, vocabulary)
    evidence = f"other rows move a row's logits by {rows:.1e} (allowed {TOLERANCE:.1e})"
    evidence += f", other documents a document's by {documents:.1e}" if packed else ""
    evidence += ", not tried in training mode, for it cannot be trained in float64" if math.isnan(training) else ""
    if not math.isfinite(rows) or rows > TOLERANCE:
        sentence = "Its prediction of one text depends on the other texts in the batch."
        return Finding("A-CAUSAL", "fatal", when, "fail", evidence, sentence)
    if documents > TOLERANCE:
        sentence = "Documents share a row and are said to be apart, yet one changes predictions of the other."
        return Finding("A-CAUSAL", "fatal", when, "fail", evidence, sentence)
    if training > TOLERANCE:
        evidence += f", in training mode by {training:.1e}"
        sentence = (
            "In training one text's predictions depend on the batch, as with batch normalization; held out they do not."
        )
        return Finding("A-CAUSAL", "warn", when, "fail", evidence, sentence)
    return Finding("A-CAUSAL", "fatal", when, "pass", evidence, "A text's predictions do not depend on its neighbours.")


def _training(network: nn.Module, length: int, vocabulary: int) -> float:
    """The same in training mode; NaN where a module of the user's own cannot be trained in float64."""
    try:
        return _rows(_undropped(network), length, vocabulary)
    except RuntimeError:
        return math.nan


def _rows(network: nn.Module, length: int, vocabulary: int) -> float:
    """The largest move of a row's logits when all other rows are others."""
    moved = 0.0
    position = torch.arange(length)[None]
    for _ in range(REPEATS):
        ids = torch.randint(vocabulary, (1 + NEIGHBOURS, length))
        before, after = (_seeded(network, rows, position) for rows in (ids, _changed(ids, vocabulary, slice(1, None))))
        moved = max(moved, gap(after[0], before[0]))
    return moved


def _documents(network: nn.Module, length: int, vocabulary: int) -> float:
    """The largest move of a document's logits when the other document of its row is another."""
    moved, half = 0.0, length // 2
    place = torch.arange(length)
    document = (place >= half).long().repeat(1 + NEIGHBOURS, 1)
    position = torch.where(place < half, place, place - half)[None].repeat(1 + NEIGHBOURS, 1)
    for mine, other in ((slice(0, half), slice(half, None)), (slice(half, None), slice(0, half))):
        ids = torch.randint(vocabulary, (1 + NEIGHBOURS, length))
        after = _changed(ids.T, vocabulary, other).T
        logits = [_seeded(network, rows, position, document) for rows in (ids, after)]
        moved = max(moved, gap(logits[1][:, mine], logits[0][:, mine]))
    return moved


def _changed(ids: Tensor, vocabulary: int, where: slice) -> Tensor:
    """Every id in some rows replaced by another one."""
    other = ids.clone()
    other[where] = (other[where] + torch.randint(1, max(vocabulary, 2), other[where].shape)) % vocabulary
    return other


def _seeded(network: nn.Module, ids: Tensor, *where: Tensor) -> Tensor:
    """Logits of all positions; whatever the network draws, it draws alike each time."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        return network(ids, *where).unflatten(0, ids.shape)


def _undropped(network: nn.Module) -> nn.Module:
    """The same network in training mode, without dropout."""
    training = copy.deepcopy(network).train()
    for module in training.modules():
        if isinstance(module, _DropoutNd):
            module.p = 0.0
    return training
