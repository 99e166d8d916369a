"""One error for several challengers: the spread that all arms share, worth most at three seeds. A companion, no verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from headtohead.verdict.documents import mean_squares

MOST = 3.0  # times as large may the largest sd of differences be as the smallest


@dataclass(frozen=True)
class Companion:
    """A t test of the same mean difference with another estimate of its spread."""

    sd: float  # of differences
    se: float
    t: float
    df: float
    p: float
    interval: tuple[float, float]


def companion(mean: float, sd: float, n: int, df: float, alpha: float) -> Companion:
    """t = mean / (sd / √n) with the degrees of freedom that the sd has."""
    se = sd / math.sqrt(n)
    half = float(stdtrit(df, 1 - alpha / 2)) * se
    return Companion(sd, se, mean / se, df, 2 * float(stdtr(df, -abs(mean) / se)), (mean - half, mean + half))


def refusal(values: np.ndarray) -> str | None:
    """Why these arms × seeds, the baseline first, share no spread; None where they may."""
    arms, seeds = values.shape
    if arms < 3:
        return "one challenger has nothing to pool with"
    if seeds < 2:
        return "one seed has no spread"
    spreads = (values[1:] - values[0]).std(axis=1, ddof=1)
    if not spreads.min() > 0:
        return "a challenger's differences have no spread"
    ratio = float(spreads.max() / spreads.min())
    if ratio > MOST:
        return f"the challengers' spreads differ by a factor of {ratio:.2g}, more than {MOST:g}"
    return None


def pooled(values: np.ndarray, alpha: float = 0.05) -> Sequence[Companion]:
    """A randomised block over all arms: t = mean difference / √(2 MSE / S), K (S - 1) degrees of freedom.

    MSE is what neither arm nor seed explains; 2 MSE is the variance of a difference if it is the same in all arms.
    Fisher (1935), "The design of experiments", section 26.
    """
    arms, seeds = values.shape
    sd = math.sqrt(2 * mean_squares(values)[2])
    differences = (values[1:] - values[0]).mean(axis=1)
    return [companion(float(mean), sd, seeds, (arms - 1) * (seeds - 1), alpha) for mean in differences]
