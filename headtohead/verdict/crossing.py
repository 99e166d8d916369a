"""Would the verdict be the same at another budget? The difference late in training, and where it is heading."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from headtohead.audit import Finding

LATE = 0.3  # of training
WINDOWS = 6  # into which the late steps are cut, one a point of the curve
FEWEST_STEPS = 10  # in a window
NOISE = 2.0  # standard errors over seeds; less is neither a sign nor a slope


def late_differences(baseline: Mapping[int, float], challenger: Mapping[int, float]) -> list[tuple[float, float]]:
    """Points (step, mean difference of the two losses) over windows of the last 30 % of the steps that both runs have.

    The losses are those of the same training batches, so that the batches' own ups and downs cancel.
    """
    shared = sorted(baseline.keys() & challenger.keys())
    late = shared[len(shared) - int(LATE * len(shared)) :]
    if len(late) < WINDOWS * FEWEST_STEPS:
        return []
    d = np.array([challenger[step] - baseline[step] for step in late])
    points = zip(np.array_split(late, WINDOWS), np.array_split(d, WINDOWS), strict=True)
    return [(float(steps.mean()), float(differences.mean())) for steps, differences in points]


def crossing(curves: Sequence[Sequence[tuple[float, float]]]) -> Finding:
    """A-CROSS: d(t) of every seed. It changes its sign, or would if it went on for as long again as its slope says.

    Only what exceeds two standard errors over the seeds counts, for the curves of equal arms cross all the time.
    """
    usable = [np.array(curve) for curve in curves if len(curve)]
    if not usable:
        few = f"fewer than {WINDOWS * FEWEST_STEPS} late steps"
        return _finding("skip", few, "Too short to see where the difference is heading.")
    steps, d = usable[0][:, 0], np.array([curve[:, 1] for curve in usable])
    centred = steps - steps.mean()
    slopes = d @ centred / (centred @ centred)
    mean, slope = d.mean(axis=0), float(slopes.mean())
    clear = np.abs(mean) > NOISE * _error(d)
    reach = slope * float(steps[-1] - steps[0]) * len(steps) / (len(steps) - 1)  # over as long as these steps took
    evidence = f"d(t) from {mean[0]:+.4g} to {mean[-1]:+.4g} over the last {LATE:.0%} of steps"
    if (mean[clear] > 0).any() and (mean[clear] < 0).any():
        return _finding("fail", evidence, "The arms' training curves cross: a shorter run would say otherwise.")
    if abs(slope) > NOISE * float(_error(slopes[:, None])[0]) and abs(reach) > abs(mean[-1]):
        sentence = "The difference still moves by more than its own size: another budget may say otherwise."
        return _finding("fail", f"{evidence}, slope {reach:+.4g} over as long", sentence)
    return _finding("pass", evidence, "Late in training the difference keeps its sign.")


def _error(columns: np.ndarray) -> np.ndarray:
    """The standard error of each column's mean over seeds; one seed has none, and everything counts."""
    seeds = len(columns)
    return columns.std(axis=0, ddof=1) / math.sqrt(seeds) if seeds > 1 else np.zeros(columns.shape[1])


def _finding(result: str, evidence: str, sentence: str) -> Finding:
    return Finding("A-CROSS", "warn", "after", result, evidence, sentence)
