"""A spread lent by earlier comparisons: three seeds say little of their own. A companion, no verdict.

The prior comes from earlier locked paired comparisons at the same scale and on the same measure, never from runs of the
baseline against itself under other seeds: those are not paired, and spread more than differences do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import polygamma, psi

from headtohead.verdict.pooled import Companion, companion
from headtohead.verdict.statistics import Paired

MOST_DF = 10.0  # what earlier studies may weigh against this one's own seeds
FEWEST_EARLIER = 3  # comparisons, to see how much their spreads differ


class Prior(NamedTuple):
    """A spread of differences, and the degrees of freedom that it is worth."""

    sd: float
    df: float


def prior_from(earlier: Sequence[tuple[float, int]]) -> Prior | None:
    """The prior of earlier comparisons, each an sd of differences and its number of seeds; None where there are too few.

    Moments of e = ln s² - ψ(d/2) + ln(d/2), whose variance beyond the ψ'(d/2) of sampling is ψ'(ν0/2):
    Smyth (2004), "Linear models and empirical Bayes methods", section 6.2. ν0 is at most 10.
    """
    usable = np.array([(sd, n - 1) for sd, n in earlier if n > 1 and sd > 0])
    if len(usable) < FEWEST_EARLIER:
        return None
    sd, df = usable.T
    e = np.log(sd**2) - psi(df / 2) + np.log(df / 2)
    excess = float(e.var(ddof=1) - polygamma(1, df / 2).mean())
    if excess <= 0:  # they differ no more than samples of one spread do
        return Prior(math.exp(e.mean() / 2), MOST_DF)
    half = inverse_trigamma(excess)
    return Prior(math.exp((e.mean() + psi(half) - math.log(half)) / 2), min(2 * half, MOST_DF))


def inverse_trigamma(x: float) -> float:
    """The y with ψ'(y) = x, by Newton's method on 1 / ψ', which is nearly straight."""
    y = 0.5 + 1 / x
    for _ in range(50):
        value = float(polygamma(1, y))
        step = value * (1 - value / x) / float(polygamma(2, y))
        y += step
        if abs(step) < 1e-12 * y:
            break
    return y


def moderated(pair: Paired, prior: Prior) -> Companion:
    """s̃² = (ν0 s0² + (S - 1) sd²) / (ν0 + S - 1), with ν0 + S - 1 degrees of freedom."""
    df = prior.df + pair.n - 1
    sd = math.sqrt((prior.df * prior.sd**2 + (pair.n - 1) * pair.sd**2) / df)
    return companion(pair.mean, sd, pair.n, df, pair.alpha)
