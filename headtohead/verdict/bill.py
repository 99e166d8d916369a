"""What it cost, against the baseline and in money. With the ratios, the only numbers here that depend on speed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from headtohead.verdict.compare import Outcome, Seed
from headtohead.verdict.folder import FAILED, Run, Runs

COMPARED = ("parameters", "flops", "seconds", "memory", "dollars")


def dollars_per_second(price: Mapping[str, Any] | None) -> float:
    return price["dollars_per_hour"] / 3600 if price else math.nan


def ratios(baseline: Sequence[Run], challenger: Sequence[Run], rate: float) -> dict[str, float]:
    """Challenger over baseline, each the mean of the runs that were paired."""
    ours, theirs = ([_sizes(run, rate) for run in runs] for runs in (challenger, baseline))
    return {name: _ratio([run[name] for run in ours], [run[name] for run in theirs]) for name in COMPARED}


def _sizes(run: Run, rate: float) -> dict[str, float]:
    """What a run took. measures.json counts the operations of one token, and the tokens.

    Compilation is left out: the arm that comes first pays it for all.
    """
    return {
        "parameters": _number(run.measures.get("parameters")),
        "flops": _number(run.measures.get("flops")) * run.measures.get("tokens", 1),
        "seconds": run.steady,
        "memory": _number(run.memory),
        "dollars": run.steady * rate,
    }


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


def _ratio(over: Sequence[float], below: Sequence[float]) -> float:
    return _mean(over) / _mean(below) if _mean(below) else math.nan


def cost_outcome(runs: Mapping[Seed, Run], name: str, rate: float) -> Outcome:
    """What an arm's runs came to on a cost. A run that failed is no cheaper one."""
    values = {seed: _sizes(run, rate)[name] for seed, run in runs.items() if run.state != FAILED}
    failed = {seed: run.reason or "failed without a reason" for seed, run in runs.items() if run.state == FAILED}
    return Outcome({seed: value for seed, value in values.items() if math.isfinite(value)}, failed)


def spent(runs: Runs, price: Mapping[str, Any] | None, tuning: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What all runs of a study cost; the failed ones are included, and shown apart, and so is what was tuned before."""
    every = [run for seeds in runs.values() for run in seeds.values()]
    lost = [run for run in every if run.state == FAILED]
    rate = dollars_per_second(price)
    told = {"spent": _cost(every, rate), "failed": _cost(lost, rate)}
    if tuning:
        trials = [trial for arm in tuning["arms"].values() for trial in arm["trials"]]
        seconds = math.fsum(trial["seconds"] for trial in trials)
        told["tuning"] = {"seconds": seconds, "dollars": seconds * rate}
    return told


def _cost(runs: Sequence[Run], rate: float) -> dict[str, float]:
    """Seconds of training, and seconds / 3600 * dollars an hour."""
    seconds = math.fsum(run.seconds for run in runs)
    return {"seconds": seconds, "dollars": seconds * rate}


def price_of_seeds(runs: Runs, counts: Sequence[int], rate: float) -> dict[str, Any]:
    """What one more seed costs, and what these counts of fresh seeds do: a seed is a run of every arm of the study."""
    seconds = math.fsum(_mean([run.seconds for run in _whole(mine)]) for mine in runs.values())
    return {
        "seed": {"seconds": seconds, "dollars": seconds * rate},
        "needed": {"seconds": [n * seconds for n in counts], "dollars": [n * seconds * rate for n in counts]},
    }


def _whole(runs: Mapping[Seed, Run]) -> list[Run]:
    """The finished runs, whose time is that of a whole run; where all failed, those are all there is to go by."""
    return [run for run in runs.values() if run.state != FAILED] or list(runs.values())
