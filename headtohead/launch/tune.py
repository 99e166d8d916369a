"""The same learning rates tried in every arm, on seeds and on text that no verdict rests on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from headtohead.files import read_json, write_json
from headtohead.launch.folder import make_plan, rehearse
from headtohead.launch.made import TUNING, Made, best_of, make, untuned
from headtohead.plan import Loaded, settled
from headtohead.request import FIRST_TUNING_SEED, TUNE, Options, folders, lock_of, plan_of, state_of
from headtohead.spec import Mistake, get
from headtohead.study import Study

RATE = "optimizer.rate"
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the baseline's own rate
FEWEST = 3  # rates, so that one can lie inside


def rates_of(text: str | None, study: Study) -> tuple[float, ...]:
    """The rates that were asked for, or five about the baseline's own."""
    if text is None:
        return tuple(float(f"{factor * get(study.baseline, RATE):.3g}") for factor in FACTORS)
    try:
        rates = tuple(sorted({float(each) for each in text.split(",")}))
    except ValueError:
        rates = ()
    if len(rates) < FEWEST or not all(0 < rate < math.inf for rate in rates):
        raise Mistake(f"--rates {text}: takes {FEWEST} or more numbers above 0, e.g. --rates 5e-4,1e-3,2e-3,4e-3")
    return rates


def plan_tuning(loaded: Loaded, options: Options, rates: Sequence[float], seeds: int) -> dict[str, Any]:
    """A plan whose arms are trials: every arm of the study with every rate."""
    made = make(loaded, options)
    trials = {
        trial(arm, rate): (arm, {**made.values.get(arm, {}), RATE: rate}) for arm in made.study.arms() for rate in rates
    }
    arms = {
        name: settled(made.study, {arm: {RATE: values[RATE]}}).arms()[arm] for name, (arm, values) in trials.items()
    }
    rehearse(made.study)
    whole = make_plan(
        loaded, Made(replace(made.study, challengers=arms, looks=(), grid=(), claims=()), made.values), options
    )
    plan = {**whole, "purpose": TUNE, "made": {name: list(of) for name, of in trials.items()}}
    for column in ("arms", "texts", "shared", "training", "operations", "elementwise"):
        plan[column] = {name: value for name, value in whole[column].items() if name in trials}
    plan["seeds"] = [FIRST_TUNING_SEED + k for k in range(seeds)]
    plan["tried"] = {
        "address": RATE,
        "rates": list(rates),
        "recipes": {arm: untuned(recipe, RATE) for arm, recipe in made.study.arms().items()},
    }
    return plan | {"lock": lock_of(plan)}


def trial(arm: str, rate: float) -> str:
    """What a trial's folder is called."""
    return f"{arm}.rate-{rate:g}"


def write_tuning(out: Path) -> dict[str, Any]:
    """Read every trial and leave tuning.json: what was tried, what it came to, and what each arm's best is."""
    plan = plan_of(out)
    if plan is None:
        raise Mistake(f"{out} holds no tuning")
    tried, better = plan["tried"], plan["primary"]["better"]
    runs = {(trial, seed): folder for trial, seed, folder in folders(out, plan)}
    arms = {}
    for arm, recipe in tried["recipes"].items():
        trials = [_trial(plan, runs, arm, rate) for rate in tried["rates"]]
        arms[arm] = {"recipe": recipe, "trials": trials, "best": best_of(arm, trials, better)}
    told = {name: plan[name] for name in ("study", "primary", "seeds")} | {"address": tried["address"], "arms": arms}
    write_json(out / TUNING, told)
    return told


def _trial(plan: dict[str, Any], runs: dict[tuple[str, int], Path], arm: str, rate: float) -> dict[str, Any]:
    """One rate in one arm: the mean over the tuning seeds; none where a run failed."""
    folders_of = [runs[trial(arm, rate), seed] for seed in plan["seeds"]]
    states = [state_of(folder) for folder in folders_of]
    scores = [_score(folder, plan["primary"]["name"]) for folder in folders_of]
    whole = all(score is not None and math.isfinite(score) for score in scores)
    return {
        "values": {RATE: rate},
        "score": math.fsum(score for score in scores if score is not None) / len(scores) if whole else None,
        "seconds": math.fsum(state.get("steady_seconds") or state.get("seconds") or 0.0 for state in states),
    }


def _score(folder: Path, measure: str) -> float | None:
    if state_of(folder)["state"] != "finished":
        return None
    return read_json(folder / "measures.json").get(measure)
