"""Did training stop too early to say anything about longer training? (A-UNDERTRAIN)"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from headtohead.audit import Finding

TOKENS = 5.0  # for each parameter; Hoffmann et al. (2022) have about 20
FALL, SHARE, FEWEST = 0.01, 0.1, 20  # of the loss, over the last tenth of the steps, of which there are so many
DECAYED = 0.105  # of the peak rate; a floor of a tenth is decay enough


class Course(NamedTuple):
    """What a run was given: tokens, parameters that are no table of vectors, and its rates and losses step by step."""

    tokens: int
    parameters: int
    rates: Sequence[float]
    losses: Sequence[float]


def audit(course: Course, when: str = "after") -> Finding:
    """Too few tokens a parameter, a loss that still falls after the rate has decayed, or a rate that has not."""
    ratio = course.tokens / max(course.parameters, 1)
    last, peak = course.rates[-1], max(course.rates)
    falls = falling(course.losses)
    faults = []
    if ratio < TOKENS:
        faults.append(f"{ratio:.2f} tokens a parameter (at least {TOKENS:g})")
    if last > DECAYED * peak:
        faults.append(f"the rate ended at {last / peak:.0%} of its peak")
    elif falls is not None and falls > FALL:
        faults.append(f"the training loss fell by {falls:.1%} over the last tenth of the steps")
    evidence = "; ".join(faults) or f"{ratio:.1f} tokens a parameter, the rate ended at {last / peak:.0%} of its peak"
    if faults:
        sentence = "Training stopped early: a longer run may rank the arms otherwise."
        return Finding("A-UNDERTRAIN", "warn", when, "fail", evidence, sentence)
    return Finding("A-UNDERTRAIN", "warn", when, "pass", evidence, "Training went on until little was left to gain.")


def falling(losses: Sequence[float]) -> float | None:
    """By which share the loss fell from the tenth before the last one to the last; None where these are too few steps.

    A fall counts beyond two standard errors, for batches differ.
    """
    span = int(SHARE * len(losses))
    if span < FEWEST:
        return None
    before, after = np.array(losses[-2 * span : -span]), np.array(losses[-span:])
    error = float(np.sqrt(before.var(ddof=1) / span + after.var(ddof=1) / span))
    fall = float(before.mean() - after.mean())
    return fall / float(before.mean()) if fall > 2 * error else 0.0
