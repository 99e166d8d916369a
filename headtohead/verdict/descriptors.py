"""The paired t test read as probabilities, and the noise between runs. No decision rests on them."""

from __future__ import annotations

import math
from typing import NamedTuple

from headtohead.verdict.statistics import Paired, above, below, sd_upper


class Posterior(NamedTuple):
    """Of the true difference, after these pairs."""

    better: float  # P(d < 0)
    within_margin: float  # P(|d| < margin)
    worse_by_margin: float  # P(d > margin)
    better_by_margin: float  # P(d < -margin)


def posterior(pair: Paired, margin: float) -> Posterior | None:
    """With a flat prior d is t-distributed about the mean with the standard error as its scale; None without a spread.

    The p of "the true difference is at least x" is P(d > x), so these are the one-sided tests under another name.
    """
    if pair.n < 2 or not pair.se:
        return None
    worse, better = below(pair, margin), above(pair, -margin)
    return Posterior(1 - below(pair, 0.0), 1 - worse - better, worse, better)


def noise(pair: Paired) -> dict[str, float] | None:
    """Of pairs of runs that differ in their seeds alone: how far two such runs are apart, and one from the mean of all.

    d = x' - x has the sd √2 σ. Paired differences have √2 σ √(1 - ρ), so this is an upper bound for them, never a prior.
    """
    if pair.n < 2:
        return None
    return {"sd": pair.sd, "run": pair.sd / math.sqrt(2), "upper": sd_upper(pair.n, pair.sd)}
