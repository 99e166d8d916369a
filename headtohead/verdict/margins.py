"""What is measured, which way is better, and the smallest difference of it that matters."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from headtohead.measure import COSTS, MEASURES
from headtohead.spec import Mistake

LOSS_SHARE = 0.005  # of the baseline's mean: with a compute exponent of .05, about 10 % of the compute
POINT = {"accuracy": 0.01, "fraction": 0.01, "percent": 1.0, "points": 1.0}  # one point, by unit
LOG_RATIO = "log ratio"  # a measure with this unit is compared by the logarithm of its values
RATIO = math.log(1.1)


@dataclass(frozen=True)
class Measure:
    """A number that every run has one of."""

    name: str
    unit: str
    better: str  # "lower" or "higher"

    def __post_init__(self) -> None:
        if self.better not in ("lower", "higher"):
            raise Mistake(f"better={self.better!r} of measure {self.name!r} is no direction; write 'lower' or 'higher'")

    @property
    def is_loss(self) -> bool:
        return self.name == "loss" or self.unit.startswith(("nats", "bits"))

    def oriented(self, values: Iterable[float]) -> np.ndarray:
        """The values as the statistics take them: lower is better, and logarithms where ratios are compared."""
        numbers = np.asarray(list(values), dtype=float)
        if self.unit == LOG_RATIO:
            if (numbers <= 0).any():
                raise Mistake(f"{self.name} has a value that is not above 0, so no log ratio; state another unit")
            numbers = np.log(numbers)
        return numbers if self.better == "lower" else -numbers

    def shown(self, value: float) -> float:
        """A difference of oriented values as the reader knows the measure (and no minus before a zero)."""
        return (value if self.better == "lower" else -value) + 0.0


# What a claim may name without saying more; a loss's own unit is the study's to state.
KNOWN = {name: Measure(name, known.unit, known.better) for name, known in MEASURES.items() if known.better}
KNOWN |= {name: Measure(name, known.unit, known.better) for name, known in COSTS.items()}
KNOWN |= {"accuracy": Measure("accuracy", "accuracy", "higher")}


def measure_from(described: dict[str, Any]) -> Measure:
    """The measure that {"name", "unit", "better"} describes; a known name needs no more."""
    name = described["name"]
    known = KNOWN.get(name, Measure(name, "", "lower"))
    better = described.get("better") or (known.better if name in KNOWN else None)
    if better is None:
        raise Mistake(f"which way is {name!r} better? add better='lower' or better='higher' where it is named")
    return Measure(name, described.get("unit") or known.unit, better)


def default_margin(measure: Measure, baseline_mean: float) -> float:
    """The smallest difference that matters where the study states none; a convention, and printed as such.

    Losses: .5 % of the baseline's mean, in any unit. Accuracies: one point. Log ratios: a tenth more or less.
    """
    if measure.unit == LOG_RATIO:
        return RATIO
    if measure.unit in POINT:
        return POINT[measure.unit]
    if measure.is_loss and baseline_mean:
        return LOSS_SHARE * abs(baseline_mean)
    raise Mistake(f"no difference of {measure.name!r} is known to matter; state margin=… in its unit, {measure.unit!r}")


def margin_for(stated: float | None, measure: Measure, baseline_mean: float) -> float:
    """The stated margin, or the default one."""
    if stated is None:
        return default_margin(measure, baseline_mean)
    if not (math.isfinite(stated) and stated > 0):
        raise Mistake(f"margin={stated} of {measure.name!r} settles nothing; state a number above 0")
    return stated
