"""The learning rate's course: a pure function of the step. Nothing here imports torch."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self

from headtohead.spec import Part, Size


class Schedule(Part):
    """Called as (step, steps) -> factor of the peak rate, for step 0 … steps − 1.

    The first `warmup` steps rise linearly from 1 / warmup. Decay starts after them, or, with `multiplied`, runs from step
    0 and is multiplied by the warm-up (ELECTRA).
    """

    warmup: int = 0
    multiplied: bool = False

    def refuse(self, size: Size, recipe: Any) -> Iterator[str]:
        if not 0 <= self.warmup < recipe.steps:
            near = recipe.steps // 10
            yield (
                f"warmup = {self.warmup} must be at least 0 and below steps = {recipe.steps}; write "
                f"schedule={type(self).__name__}(warmup={near}) in the recipe, or --set schedule.warmup={near}"
            )
        floor = getattr(self, "floor", 0.0)
        if not 0 <= floor <= 1:
            yield f"floor = {floor} must lie in [0, 1], a share of the peak"

    def rescaled(self, ratio: float) -> Self:
        """The same course over `ratio` times as many steps."""
        return replace(self, warmup=round(self.warmup * ratio))

    def __call__(self, step: int, steps: int) -> float:
        rise = min(1.0, (step + 1) / self.warmup) if self.warmup else 1.0
        if self.multiplied:
            return rise * self.decay(step, steps)
        return rise if step < self.warmup else self.decay(step - self.warmup, steps - self.warmup)

    def decay(self, step: int, steps: int) -> float:
        """The course without its warm-up."""
        raise TypeError(f"{type(self).__name__} must define decay(step, steps)")


class Constant(Schedule):
    """1 throughout."""

    def decay(self, step: int, steps: int) -> float:
        return 1.0


class LinearDecay(Schedule):
    """From 1 to `floor` in a straight line: floor + (1 − floor)(1 − t/T)^power (fairseq's and BERT's polynomial decay)."""

    floor: float = 0.0
    power: float = 1.0

    def refuse(self, size: Size, recipe: Any) -> Iterator[str]:
        yield from Schedule.refuse(self, size, recipe)
        if self.power <= 0:
            yield f"power = {self.power} must be above 0, or the rate would not fall"

    def decay(self, step: int, steps: int) -> float:
        return self.floor + (1 - self.floor) * (1 - step / steps) ** self.power


class CosineDecay(Schedule):
    """floor + (1 − floor)·½(1 + cos(πt / (horizon·T))), t and T counted after the warm-up (Loshchilov & Hutter 2017).

    A `horizon` above 1 is a period longer than the run: study 2's of 146,390 updates, of which 133,082 were run, 10,000 of
    them warm-up, is 146,390 / 123,082 = 1.1894.
    """

    floor: float = 0.1
    horizon: float = 1.0

    def refuse(self, size: Size, recipe: Any) -> Iterator[str]:
        yield from Schedule.refuse(self, size, recipe)
        if self.horizon < 1:
            yield f"horizon = {self.horizon} must be at least 1, the run's own length"

    def decay(self, step: int, steps: int) -> float:
        return self.floor + (1 - self.floor) * 0.5 * (1 + math.cos(math.pi * step / (self.horizon * steps)))


class WarmupStableDecay(Schedule):
    """1, then over the last `decay_share` of what follows the warm-up linearly down to `floor` (Hu et al. 2024, "MiniCPM")."""

    decay_share: float = 0.2
    floor: float = 0.0

    def refuse(self, size: Size, recipe: Any) -> Iterator[str]:
        yield from Schedule.refuse(self, size, recipe)
        if not 0 < self.decay_share <= 1:
            yield f"decay_share = {self.decay_share} must be above 0 and at most 1, a share of steps"

    def decay(self, step: int, steps: int) -> float:
        left = (steps - step) / (self.decay_share * steps)
        return self.floor + (1 - self.floor) * min(1.0, left)


class InverseSquareRoot(Schedule):
    """√(w / (w + t)), w the warm-up or, where there is none, 1 (Vaswani et al. 2017)."""

    def decay(self, step: int, steps: int) -> float:
        start = max(self.warmup, 1)
        return math.sqrt(start / (start + step))
