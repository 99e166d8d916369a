"""Did a fine-tuned classifier collapse to one class? (A-MAJORITY)"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headtohead.audit import Finding

NEAR, ONE_CLASS = 0.002, 0.95


def audit(predictions: Sequence[int], labels: Sequence[int], when: str = "after") -> Finding:
    """COLLAPSED: accuracy within .2 points of the majority rate with over 95 % of one class, or Matthews' correlation 0."""
    guessed, true = np.asarray(predictions), np.asarray(labels)
    if not len(true):
        return Finding("A-MAJORITY", "fatal", when, "skip", "no examples", "There is nothing to classify.")
    accuracy = float((guessed == true).mean())
    rate, one = (float(np.unique(classes, return_counts=True)[1].max()) / len(true) for classes in (true, guessed))
    correlation = matthews(guessed, true)
    evidence = (
        f"accuracy {100 * accuracy:.2f}, majority rate {100 * rate:.2f}, {one:.1%} of the predictions are one class"
    )
    evidence += f", Matthews' correlation {correlation:.3f}"
    if (abs(accuracy - rate) <= NEAR and one > ONE_CLASS) or correlation == 0:
        sentence = "COLLAPSED: it says the same of everything; this is no graded result."
        return Finding("A-MAJORITY", "fatal", when, "fail", evidence, sentence)
    return Finding("A-MAJORITY", "fatal", when, "pass", evidence, "It tells the classes apart.")


def matthews(guessed: np.ndarray, true: np.ndarray) -> float:
    """Matthews' correlation for any number of classes (Gorodkin 2004); 0 where either side is constant."""
    classes = np.union1d(guessed, true)
    table = np.array([[np.sum((true == a) & (guessed == b)) for b in classes] for a in classes], dtype=float)
    total, right, by_true, by_guess = table.sum(), np.trace(table), table.sum(1), table.sum(0)
    spread = (total**2 - by_guess @ by_guess) * (total**2 - by_true @ by_true)
    return float((right * total - by_guess @ by_true) / np.sqrt(spread)) if spread else 0.0


def collapsed(accuracy: float, rate: float) -> bool:
    """Whether a published accuracy, of which no predictions are known, is that of the majority class to .2 points."""
    return abs(accuracy - rate) <= NEAR + 1e-12
