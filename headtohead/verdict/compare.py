"""One challenger against the baseline on one measure: the pairs of seeds, and what is missing or failed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headtohead.verdict.margins import LOG_RATIO, Measure
from headtohead.verdict.statistics import (
    FINEST,
    Paired,
    detectable,
    interval_at,
    paired,
    power,
    seeds_needed,
    sign_flip,
    tost,
)
from headtohead.verdict.words import Verdict

Seed = int | str
FEWEST_FLIPS = 6  # below six seeds no sign pattern is rare enough to be evidence


@dataclass(frozen=True)
class Outcome:
    """What the runs of one arm came to on one measure. A failed run is an outcome, never a gap."""

    values: dict[Seed, float]
    failed: dict[Seed, str] = field(default_factory=dict)  # seed -> reason

    @property
    def mean(self) -> float:
        return math.fsum(self.values.values()) / len(self.values) if self.values else math.nan


@dataclass(frozen=True)
class Rule:
    """What was declared before the first run, as far as one measure is concerned."""

    measure: Measure
    margin: float
    alpha: float
    seeds: tuple[Seed, ...]
    family: int = 1  # challengers that are tested together


@dataclass(frozen=True)
class Comparison:
    rule: Rule
    baseline: Outcome
    challenger: Outcome
    seeds: tuple[Seed, ...]  # those that both arms finished
    pair: Paired  # oriented: lower is better


def compare(rule: Rule, baseline: Outcome, challenger: Outcome) -> Comparison:
    """Pair the runs by seed. Seeds that only one arm finished are left out here and listed as missing or failed."""
    shared = tuple(seed for seed in rule.seeds if seed in baseline.values and seed in challenger.values)
    base, chal = (rule.measure.oriented(arm.values[seed] for seed in shared) for arm in (baseline, challenger))
    return Comparison(rule, baseline, challenger, shared, paired(base.tolist(), chal.tolist(), rule.alpha))


def card(comparison: Comparison, verdict: Verdict, p_adjusted: float) -> dict[str, Any]:
    """The statistics of a challenger's entry, in the measure's own direction."""
    rule, pair = comparison.rule, comparison.pair
    effect = rule.measure.shown(pair.mean)
    return {
        "verdict": verdict.word,
        "qualifiers": list(verdict.qualifiers),
        "effect": effect,
        "interval": unflipped(rule.measure, pair.interval),
        "interval_level": 1 - rule.alpha,
        "relative": relative(comparison, effect),
        "perplexity_ratio": math.exp(min(effect, 700.0)) if rule.measure.unit.startswith("nats") else None,
        "p": pair.p,
        "p_adjusted": p_adjusted,
        "seeds": pair.n,
        "won": pair.won,
        "margin": rule.margin,
        "interval_simultaneous": unflipped(rule.measure, interval_at(pair, rule.alpha / rule.family)),
        "interval_tost": unflipped(rule.measure, pair.interval_tost),
        "p_tost": tost(pair, rule.margin),
        "sign_flip": _sign_flip(comparison),
        "dz": rule.measure.shown(pair.dz),
        "sd": pair.sd,
        "better_probability": pair.better_probability,
        "correlation": pair.correlation,
        "pairing_gain": pair.pairing_gain,
        "skew": rule.measure.shown(pair.skew),
        **_reach(comparison),
    }


def unflipped(measure: Measure, interval: tuple[float, float]) -> list[float] | None:
    """An interval of oriented differences as the reader knows the measure, or None where there is none."""
    return None if math.isnan(interval[0]) else sorted(map(measure.shown, interval))


def relative(comparison: Comparison, effect: float) -> float:
    """The effect as a share of the baseline's mean over the same seeds; of logarithms, exp(effect) - 1."""
    if comparison.rule.measure.unit == LOG_RATIO:
        return math.expm1(effect)
    base = np.mean([comparison.baseline.values[seed] for seed in comparison.seeds]) if comparison.seeds else math.nan
    return effect / abs(float(base)) if base else math.nan


def _sign_flip(comparison: Comparison) -> float | None:
    if not FEWEST_FLIPS <= comparison.pair.n <= FINEST:
        return None
    base, chal = (
        comparison.rule.measure.oriented(arm.values[seed] for seed in comparison.seeds)
        for arm in (comparison.baseline, comparison.challenger)
    )
    return sign_flip((chal - base).tolist())


def _reach(comparison: Comparison) -> dict[str, Any]:
    """What these seeds could have shown, and how many could show the margin, at the level each of the family gets."""
    rule, pair = comparison.rule, comparison.pair
    if not pair.sd > 0:
        return {"detectable": None, "power": None, "seeds_needed": None}
    alpha = rule.alpha / rule.family
    return {
        "detectable": detectable(pair.n, pair.sd, alpha),
        "power": power(pair.n, rule.margin / pair.sd, alpha),
        "seeds_needed": list(seeds_needed(pair.sd, pair.n, rule.margin, alpha)),
    }


def whereabouts(comparison: Comparison) -> dict[str, Any]:
    """Every declared seed of both arms: its value, or why there is none."""
    arms = {"baseline": comparison.baseline, "challenger": comparison.challenger}
    return {
        "paired_seeds": list(comparison.seeds),
        "values": {name: _by_seed(arm.values) for name, arm in arms.items()},
        "failures": {name: _by_seed(arm.failed) for name, arm in arms.items()},
        "missing": {name: missing(comparison.rule.seeds, arm) for name, arm in arms.items()},
    }


def missing(seeds: Sequence[Seed], arm: Outcome) -> list[Seed]:
    return [seed for seed in seeds if seed not in arm.values and seed not in arm.failed]


def _by_seed(values: dict[Seed, Any]) -> dict[str, Any]:
    return {str(seed): value for seed, value in values.items()}


def plain(value: Any) -> Any:
    """A value as JSON can hold it: what does not exist (NaN, infinity) is null, also deep inside."""
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
