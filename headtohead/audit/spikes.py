"""Spikes and divergence, told from the training losses alone (A-SPIKE); needs no torch, so that a log is enough."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from headtohead.audit import Finding

WINDOW = 100  # steps before the one that is judged
SCALE, FLOOR = 1.4826, 1e-3  # from the median absolute deviation to a standard deviation; of the median, its least
SPIKE, AT_ONCE, RISE, IN_A_ROW = 10.0, 30.0, 0.1, 3
BACK, SHARE = 200, 0.02  # steps, or of all steps, within which a spike must be over
MEMORY, WORSE, SETTLED = 0.98, 1.5, 0.1  # of the running mean, over its best, after so much of training
BLIND = 1.02  # times ln V: at the end it predicts clearly worse than one who knows nothing


class Judged(NamedTuple):
    """A step beside the steps before it."""

    z: float
    median: float
    mad: float  # median absolute deviation, scaled to a standard deviation


class Spike(NamedTuple):
    """Where one began, and how far out it was."""

    step: int
    z: float
    back: int | None  # the first step at which it was over


class Detector:
    """Fed with the losses of one step after another; says at which step a spike was seen."""

    def __init__(self, warmup: int = 0) -> None:
        self.warmup, self.steps, self.out = warmup, 0, 0
        self.window: deque[float] = deque()
        self.ordered: list[float] = []

    def judge(self, loss: float) -> Judged | None:
        """A loss beside the window before it; None while that is not full."""
        if len(self.window) < WINDOW:
            return None
        return judged(self.ordered, loss)

    def add(self, loss: float) -> float | None:
        """The z of a spike that this step makes certain, or None. Losses of a spike do not enter the window."""
        found = self.judge(loss)
        self.steps += 1
        out = found is not None and found.z > SPIKE and loss > found.median + RISE
        self.out = self.out + 1 if out else 0
        if not out and self.steps > self.warmup:
            self.keep(loss)
        if found is not None and out and (found.z > AT_ONCE or self.out == IN_A_ROW):
            return found.z
        return None

    def keep(self, loss: float) -> None:
        self.window.append(loss)
        insort(self.ordered, loss)
        if len(self.window) > WINDOW:
            del self.ordered[bisect_left(self.ordered, self.window.popleft())]


def judged(window: Sequence[float], loss: float) -> Judged:
    """z = (l − median) / max(1.4826 · MAD, .001 · median) over the window."""
    values = np.asarray(window)
    median = float(np.median(values))
    mad = max(SCALE * float(np.median(np.abs(values - median))), FLOOR * abs(median))
    return Judged((loss - median) / mad if mad else 0.0, median, mad)


def spikes(losses: Sequence[float], warmup: int = 0) -> Iterator[Spike]:
    """Every spike of a run, and when it was over."""
    detector = Detector(warmup)
    open_since: tuple[int, float, float] | None = None
    for step, loss in enumerate(losses):
        if not math.isfinite(loss):
            break
        beside = detector.judge(loss)
        z = detector.add(loss)
        if open_since is not None:
            if loss <= open_since[2]:
                yield Spike(open_since[0], open_since[1], step)
                open_since = None
        elif z is not None and beside is not None:
            open_since = (step - detector.out + 1, z, beside.median + 3 * beside.mad)
    if open_since is not None:
        yield Spike(open_since[0], open_since[1], None)


def diverged(losses: Sequence[float], steps: int, vocabulary: int = 0, warmup: int = 0) -> str | None:
    """Why a run is called diverged, or None. A run too short for a window is never called so while its losses are finite.

    `vocabulary` is 0 where the loss is not −ln p of a token.
    """
    bad = next((step for step, loss in enumerate(losses) if not math.isfinite(loss)), None)
    if bad is not None:
        return f"step {bad}: the loss is {losses[bad]}"
    if len(losses) <= warmup + WINDOW:
        return None
    patience = max(BACK, math.ceil(SHARE * steps))
    for spike in spikes(losses, warmup):
        end = spike.back if spike.back is not None else len(losses)
        if end - spike.step > patience:
            return f"step {spike.step}: a spike (z = {spike.z:.1f}) that was not over after {patience} steps"
    found = _drifted(losses, max(warmup, math.ceil(SETTLED * steps)))
    if found is not None:
        return found
    last = float(np.mean(losses[-WINDOW // 2 :]))
    if vocabulary > 1 and last > BLIND * math.log(vocabulary):
        return f"the loss ended at {last:.3f}, above ln {vocabulary} = {math.log(vocabulary):.3f}"
    return None


def _drifted(losses: Sequence[float], settled: int) -> str | None:
    """The running mean of the loss far above its best."""
    mean, best = losses[0], math.inf
    for step, loss in enumerate(losses):
        mean = MEMORY * mean + (1 - MEMORY) * loss
        if step >= settled:
            best = min(best, mean)
            if mean > WORSE * best:
                return f"step {step}: the running mean of the loss is {mean:.3f}, {mean / best:.2f} times its best"
    return None


def audit(losses: Sequence[float], steps: int, vocabulary: int = 0, warmup: int = 0) -> Finding:
    """A-SPIKE: what happened on the way, of a run that came to its end."""
    found = list(spikes(losses, warmup))
    told = ", ".join(f"step {spike.step} (z = {spike.z:.1f})" for spike in found[:5])
    why = diverged(losses, steps, vocabulary, warmup)
    if why is not None:
        return Finding("A-SPIKE", "warn", "after", "fail", f"diverged at {why}", "Training diverged.")
    if found:
        sentence = "The training loss jumped and came back; a jump in one arm alone is a result of its own."
        return Finding("A-SPIKE", "warn", "after", "fail", told, sentence)
    if len(losses) <= warmup + WINDOW:
        few = f"{len(losses)} steps, {warmup} of them warm-up"
        return Finding("A-SPIKE", "warn", "after", "skip", few, f"Fewer than {WINDOW} steps after the warm-up.")
    return Finding("A-SPIKE", "warn", "after", "pass", f"{len(losses):,} steps, no spike", "Training was steady.")
