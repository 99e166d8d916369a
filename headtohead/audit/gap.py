"""Is held-out text easier than text that was trained on? (A-TRAINDEV)"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from headtohead.audit import Finding

ERRORS = 3.0


def audit(held_out: Mapping[str, np.ndarray], probe: Mapping[str, np.ndarray], when: str = "after") -> Finding:
    """The loss of held-out text minus that of training text, both in evaluation mode, by document."""
    (dev, dev_error), (train, train_error) = loss(held_out), loss(probe)
    gap, error = dev - train, math.hypot(dev_error, train_error)
    evidence = f"held out {dev:.4f}, trained on {train:.4f}, gap {gap:+.4f} ± {error:.4f}"
    if gap < -ERRORS * error:
        sentence = "Held-out text is predicted better than text that was trained on: the two are not of one kind."
        return Finding("A-TRAINDEV", "warn", when, "fail", evidence, sentence)
    return Finding("A-TRAINDEV", "warn", when, "pass", evidence, "Held-out text is no easier than text trained on.")


def loss(documents: Mapping[str, np.ndarray]) -> tuple[float, float]:
    """Σ nll / Σ tokens, and its standard error over documents; a single document has an infinite one."""
    scored = documents["tokens"] > 0
    nll, tokens = documents["nll"][scored], documents["tokens"][scored]
    mean, count = float(nll.sum() / tokens.sum()), len(tokens)
    if count < 2:
        return mean, math.inf
    rest = nll - mean * tokens
    return mean, math.sqrt(count / (count - 1) * float(rest @ rest)) / float(tokens.sum())
