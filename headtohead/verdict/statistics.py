"""The statistics of a few paired runs: the difference, its interval, equivalence, and what more seeds would show.

Every function takes measures where lower is better; `margins.Measure.oriented` turns the others. A number that does not
exist (the spread of one pair) is NaN, and every comparison with it is false, which gives the weaker answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import gammaincinv, ndtr, ndtri, stdtr, stdtrit

from headtohead.spec import Mistake

FLOOR = 1e-6  # of the baseline's mean: the spread assumed where all differences are equal but not zero
FEWEST = 3  # seeds below which nothing is said of a method
FINEST = 20  # pairs up to which all 2**n sign patterns are counted
PLENTY = 1_000_000  # pairs beyond which t and the normal distribution ask for the same number, give or take two


@dataclass(frozen=True)
class Paired:
    """Challenger minus baseline over n seeds: d, one difference a seed; lower is better."""

    n: int
    alpha: float
    mean: float
    sd: float
    se: float
    t: float
    p: float  # two-sided
    interval: tuple[float, float]  # level 1 - alpha
    interval_tost: tuple[float, float]  # level 1 - 2 alpha: inside the margin exactly when TOST holds
    correlation: float  # of the two arms over seeds
    pairing_gain: float  # how many times smaller the variance of d is than that of unpaired runs
    dz: float  # mean / sd
    won: int  # pairs in which the challenger was strictly better
    better_probability: float  # that the challenger is better on a new seed
    skew: float
    identical: bool  # every difference is exactly 0
    floored: bool  # the differences had no spread, so one was assumed


def paired(baseline: Sequence[float], challenger: Sequence[float], alpha: float = 0.05) -> Paired:
    """The paired t test on d = challenger - baseline: t = mean / (sd / sqrt(n)) with n - 1 degrees of freedom.

    Student (1908), "The probable error of a mean". A t interval keeps its level at three seeds; a bootstrap does not.
    """
    base, chal = _finite(baseline, "baseline"), _finite(challenger, "challenger")
    if len(base) != len(chal):
        raise Mistake(f"{len(base)} baseline and {len(chal)} challenger values are no pairs; keep the seeds both have")
    d = chal - base
    n = len(d)
    mean = float(d.mean()) if n else math.nan
    sd, floored = _spread(base, chal)
    se = sd / math.sqrt(n) if n else math.nan
    t = mean / se if se else 0.0
    variances = _variance(base) + _variance(chal)
    return Paired(
        n=n,
        alpha=alpha,
        mean=mean,
        sd=sd,
        se=se,
        t=t,
        p=2 * float(stdtr(n - 1, -abs(t))) if n > 1 else math.nan,
        interval=_around(mean, se, n, alpha),
        interval_tost=_around(mean, se, n, 2 * alpha),
        correlation=_ratio(_covariance(base, chal), math.sqrt(_variance(base) * _variance(chal))),
        pairing_gain=_ratio(variances, sd**2),
        dz=_ratio(mean, sd),
        won=int((d < 0).sum()),
        better_probability=_new_pair(mean, sd, n),
        skew=_skew(d),
        identical=bool(n) and not d.any(),
        floored=floored,
    )


def _finite(values: Sequence[float], arm: str) -> np.ndarray:
    numbers = np.asarray(values, dtype=float)
    for place in np.flatnonzero(~np.isfinite(numbers)):
        raise Mistake(f"value {place + 1} of the {arm} is {numbers[place]}; leave its pair out and report a failure")
    return numbers


def _spread(base: np.ndarray, chal: np.ndarray) -> tuple[float, bool]:
    """The sd of the differences, and whether it had to be assumed because they are equal but not zero."""
    d = chal - base
    if len(d) < 2:
        return math.nan, False
    sd = float(d.std(ddof=1))
    # Equal differences of rounded losses have an sd of a few units in the last place, not of exactly 0.
    rounding = 4 * np.finfo(float).eps * max(np.abs(base).max(), np.abs(chal).max())
    if sd > rounding or not d.any():
        return sd, False
    return FLOOR * (abs(float(base.mean())) or abs(float(d.mean()))), True


def _covariance(one: np.ndarray, other: np.ndarray) -> float:
    if len(one) < 2:
        return math.nan
    return float(((one - one.mean()) * (other - other.mean())).sum() / (len(one) - 1))


def _variance(values: np.ndarray) -> float:
    return _covariance(values, values)


def _ratio(above: float, below: float) -> float:
    return above / below if below else math.nan


def _critical(df: int, alpha: float) -> float:
    """The upper alpha point of t."""
    return float(stdtrit(df, 1 - alpha)) if df > 0 else math.nan


def _around(mean: float, se: float, n: int, alpha: float) -> tuple[float, float]:
    half = _critical(n - 1, alpha / 2) * se
    return mean - half, mean + half


def interval_at(pair: Paired, alpha: float) -> tuple[float, float]:
    """The interval of the mean difference at level 1 - alpha."""
    return _around(pair.mean, pair.se, pair.n, alpha)


def _new_pair(mean: float, sd: float, n: int) -> float:
    """P(d < 0) for one more seed: a new difference is off the mean by sd * sqrt(1 + 1/n)."""
    return float(stdtr(n - 1, -mean / (sd * math.sqrt(1 + 1 / n)))) if n > 1 and sd else math.nan


def _skew(d: np.ndarray) -> float:
    """m3 / m2**1.5 with biased moments; at three seeds it cannot exceed 0.71."""
    if not len(d) or not (second := float(((d - d.mean()) ** 2).mean())):
        return math.nan
    return float(((d - d.mean()) ** 3).mean()) / second**1.5


# ---- one-sided tests and families of them --------------------------------------------------------------------------


def below(pair: Paired, limit: float) -> float:
    """p of "the true difference is at least `limit`": small when it is shown to lie below."""
    if pair.n < 2:
        return 1.0
    if not pair.se:
        return float(pair.mean >= limit)
    return float(stdtr(pair.n - 1, (pair.mean - limit) / pair.se))


def above(pair: Paired, limit: float) -> float:
    """p of "the true difference is at most `limit`": small when it is shown to lie above."""
    if pair.n < 2:
        return 1.0
    if not pair.se:
        return float(pair.mean <= limit)
    return float(stdtr(pair.n - 1, (limit - pair.mean) / pair.se))


def tost(pair: Paired, margin: float) -> float:
    """p of two one-sided tests that the true difference lies inside (-margin, margin).

    Schuirmann (1987), "A comparison of the two one-sided tests procedure and the power approach".
    """
    return max(below(pair, margin), above(pair, -margin))


def holm(ps: Sequence[float]) -> list[float]:
    """p values adjusted for being several: the k-th smallest of K times K - k + 1, never falling, at most 1.

    Holm (1979), "A simple sequentially rejective multiple test procedure"; valid under any dependence.
    """
    adjusted, running = [0.0] * len(ps), 0.0
    for rank, place in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        running = max(running, min(1.0, (len(ps) - rank) * ps[place]))
        adjusted[place] = running
    return adjusted


def sign_flip(d: Sequence[float]) -> float:
    """Exact two-sided p of the mean over all 2**n sign patterns; the smallest possible is 2 / 2**n.

    Fisher (1935), "The design of experiments", section 21.
    """
    if len(d) > FINEST:
        raise Mistake(f"{len(d)} pairs have too many sign patterns to count; use the t test beyond {FINEST} pairs")
    sums = np.zeros(1)
    for value in np.abs(_finite(d, "difference")):
        sums = np.concatenate([sums + value, sums - value])
    slack = 1e-12 * float(np.abs(np.asarray(d, dtype=float)).sum())  # equal sums differ by rounding
    return float((np.abs(sums) >= abs(float(np.sum(d))) - slack).mean())


# ---- what more seeds would show ------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _chi(df: int) -> np.ndarray:
    """Equally likely values of sample sd / true sd: sqrt(chi2.ppf(u, df) / df) at midpoints u."""
    u = (np.arange(8192) + 0.5) / 8192
    values = np.sqrt(2 * gammaincinv(df / 2, u) / df)
    values.setflags(write=False)  # shared by all callers
    return values


def power(n: int, dz: float, alpha: float = 0.05) -> float:
    """Chance that a two-sided paired t test finds a true difference of dz standard deviations.

    The mean over s = sample sd / true sd of P(|Z + dz sqrt(n)| > t s): the noncentral t, also where its own
    routines return NaN.
    """
    if n < 2:
        return math.nan
    bar, shift = _critical(n - 1, alpha / 2) * _chi(n - 1), dz * math.sqrt(n)
    return float((ndtr(shift - bar) + ndtr(-bar - shift)).mean())


def power_tost(n: int, dz: float, alpha: float = 0.05) -> float:
    """Chance that TOST with a margin of dz standard deviations holds when there is no true difference."""
    if n < 2:
        return math.nan
    room = dz * math.sqrt(n) - _critical(n - 1, alpha) * _chi(n - 1)
    return float(np.maximum(0.0, 2 * ndtr(room) - 1).mean())


Chance = Callable[[int, float, float], float]


def _smallest(chance: Chance, n: int, alpha: float, wanted: float) -> float:
    """The dz at which a rising chance reaches what is wanted, by bisection."""
    low, high = 0.0, 1.0
    while chance(n, high, alpha) < wanted:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if chance(n, middle, alpha) < wanted else (low, middle)
    return high


def detectable(n: int, sd: float, alpha: float = 0.05, power: float = 0.8) -> float:
    """The smallest true difference, in the measure's own unit, that n pairs find with this chance."""
    return sd * _smallest(_detects, n, alpha, power) if n > 1 else math.nan


def equatable(n: int, sd: float, alpha: float = 0.05, power: float = 0.8) -> float:
    """The smallest margin inside which n pairs show equivalence with this chance when there is no true difference."""
    return sd * _smallest(power_tost, n, alpha, power) if n > 1 else math.nan


_detects = power  # `power` is also the name of the chance asked for


def _fewest(chance: Chance, dz: float, alpha: float, wanted: float, z: float) -> int:
    """The fewest pairs, at least 2, that reach the chance; z asks for (z / dz)**2 if sd were known, never too many."""
    if not dz > 0:
        raise Mistake(f"no number of seeds settles a difference of {dz:g} standard deviations; state a margin above 0")
    n = max(2, math.ceil(min(float(z / dz), 1e9) ** 2))
    while n < PLENTY and chance(n, dz, alpha) < wanted:
        n += 1
    return n


def seeds_to_detect(dz: float, alpha: float = 0.05, power: float = 0.8) -> int:
    """The fewest pairs with which a true difference of dz standard deviations is found with this chance."""
    return _fewest(_detects, dz, alpha, power, ndtri(1 - alpha / 2) + ndtri(power))


def seeds_to_equate(dz: float, alpha: float = 0.05, power: float = 0.8) -> int:
    """The fewest pairs with which TOST at a margin of dz standard deviations holds with this chance, if equal."""
    return _fewest(power_tost, dz, alpha, power, ndtri(1 - alpha) + ndtri((1 + power) / 2))


def sd_upper(n: int, sd: float) -> float:
    """The 80 % upper limit of the true sd: sd * sqrt((n - 1) / chi2.ppf(.2, n - 1))."""
    return sd * math.sqrt((n - 1) / (2 * float(gammaincinv((n - 1) / 2, 0.2)))) if n > 1 else math.nan


def seeds_needed(sd: float, n: int, margin: float, alpha: float = 0.05) -> tuple[int, int]:
    """How many seeds in all find a difference of `margin`, if the true sd is `sd`, and if it is its upper limit.

    Never the seeds for the observed difference: that only repeats its p value. At least three, without which there is
    no verdict.
    """
    low, high = (seeds_to_detect(margin / true, alpha) for true in (sd, sd_upper(n, sd)))
    return max(FEWEST, low), max(FEWEST, high)


def noether(gamma: float = 0.75, alpha: float = 0.05, power: float = 0.95) -> float:
    """Pairs that show P(challenger better) > 1/2 if it is gamma: ((z_alpha + z_power) / (sqrt 6 (gamma - 1/2)))^2.

    Noether (1987), "Sample size determination for some common nonparametric tests".
    """
    return float((ndtri(1 - alpha) + ndtri(power)) / (math.sqrt(6) * (gamma - 0.5))) ** 2
