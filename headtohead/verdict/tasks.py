"""Many tasks with few runs each: one figure over all of them, and how sure it is. For five tasks or more.

Scores are normalised and higher is better: runs × tasks of one arm, a run being a pre-training seed. Agarwal et al. (2021),
"Deep reinforcement learning at the edge of the statistical precipice".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from headtohead.spec import Mistake

FEWEST_TASKS = 5
RESAMPLES = 10_000

Figure = Callable[[np.ndarray], np.ndarray]  # ... × runs × tasks -> ...


class Aggregate(NamedTuple):
    """A figure over all tasks, with its interval over runs drawn again inside each task."""

    value: float
    interval: tuple[float, float]


def interquartile_mean(scores: np.ndarray) -> np.ndarray:
    """The mean of the middle half of all runs × tasks: scipy's trimmed mean, a quarter of the values off either end."""
    whole = np.sort(scores.reshape(*scores.shape[:-2], -1), axis=-1)
    cut = whole.shape[-1] // 4
    return whole[..., cut : whole.shape[-1] - cut].mean(axis=-1)


def improvement(baseline: np.ndarray, challenger: np.ndarray) -> np.ndarray:
    """P(challenger better) on a task drawn at random: Mann and Whitney's U over the number of pairs, ties a half.

    Either arm is ... × runs × tasks.
    """
    above = challenger[..., :, None, :] > baseline[..., None, :, :]
    equal = challenger[..., :, None, :] == baseline[..., None, :, :]
    return (above + 0.5 * equal).mean(axis=(-3, -2, -1))


def aggregate(scores: np.ndarray, alpha: float = 0.05, figure: Figure = interquartile_mean) -> Aggregate:
    """A figure of one arm, with a percentile interval."""
    scores = _enough(scores)
    return _interval(float(figure(scores)), figure(drawn(scores, np.random.default_rng(0))), alpha)


def probability_of_improvement(baseline: np.ndarray, challenger: np.ndarray, alpha: float = 0.05) -> Aggregate:
    """How likely a run of the challenger is above one of the baseline; either arm is drawn again on its own."""
    base, chal = _enough(baseline), _enough(challenger)
    if base.shape[1] != chal.shape[1]:
        raise Mistake(f"{base.shape[1]} and {chal.shape[1]} tasks cannot be compared; keep those that both arms have")
    draw = np.random.default_rng(0)
    return _interval(float(improvement(base, chal)), improvement(drawn(base, draw), drawn(chal, draw)), alpha)


def drawn(scores: np.ndarray, draw: np.random.Generator, resamples: int = RESAMPLES) -> np.ndarray:
    """Stratified: inside each task as many of its runs as there are, with replacement; resamples × runs × tasks."""
    runs, tasks = scores.shape
    chosen = draw.integers(0, runs, size=(resamples, runs, tasks))
    return scores[chosen, np.arange(tasks)]


def _enough(scores: np.ndarray) -> np.ndarray:
    scores = np.asarray(scores, dtype=float)
    if scores.ndim != 2 or scores.shape[1] < FEWEST_TASKS:
        raise Mistake(f"aggregates are for {FEWEST_TASKS} tasks or more, given as runs × tasks; judge fewer one by one")
    if not np.isfinite(scores).all():
        raise Mistake("a task of a run has no score; run it, or leave the task out of every run of both arms")
    return scores


def _interval(value: float, resampled: np.ndarray, alpha: float) -> Aggregate:
    low, high = np.quantile(resampled, [alpha / 2, 1 - alpha / 2])
    return Aggregate(value, (float(low), float(high)))
