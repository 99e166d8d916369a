"""Was the held-out text seen in training? (A-CONTAM)"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from headtohead.audit import Finding
from headtohead.text.overlap import Overlap

FATAL, WARN = 0.01, 0.001  # of the scored bytes


def audit(found: Overlap | None, documents: Mapping[str, np.ndarray], when: str = "after") -> Finding:
    """The share of the bytes that stand in contaminated documents, and the loss there and elsewhere.

    `documents` are the columns of documents.npz: the first documents of the validation side, each with its sums.
    """
    if found is None:
        sentence = "The training text is too large to be compared with the held-out text here."
        return Finding("A-CONTAM", "fatal", when, "skip", "more training text than is compared in memory", sentence)
    count = len(documents["document"])
    sizes = np.array(found.sizes[:count], dtype=float)
    dirty = np.zeros(count, dtype=bool)
    dirty[[index for index in found.dirty if index < count]] = True
    share = float(sizes[dirty].sum() / max(sizes.sum(), 1.0))
    evidence = f"{share:.2%} of {int(sizes.sum()):,} bytes, {int(dirty.sum())} of {count} documents"
    if dirty.any() and not dirty.all():
        evidence += f"; loss {_loss(documents, dirty):.4f} there, {_loss(documents, ~dirty):.4f} elsewhere"
    if share > WARN:
        sentence = f"{share:.1%} of the held-out text stands in the training text too."
        return Finding("A-CONTAM", "fatal" if share > FATAL else "warn", when, "fail", evidence, sentence)
    return Finding("A-CONTAM", "fatal", when, "pass", evidence, "The held-out text was not seen in training.")


def _loss(documents: Mapping[str, np.ndarray], chosen: np.ndarray) -> float:
    tokens = float(documents["tokens"][chosen].sum())
    return float(documents["nll"][chosen].sum()) / tokens if tokens else math.nan
