"""What a study's arms are made into before they run: with tuned values, and matched to the baseline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import torch

from headtohead.files import read_json
from headtohead.matching import matched, steps_for
from headtohead.plan import Loaded, settled, with_options
from headtohead.request import Options
from headtohead.run import batches
from headtohead.spec import Mistake, at, fingerprint
from headtohead.study import Recipe, Study
from headtohead.text.cache import prepare
from headtohead.train import Route, train

TUNING = "tuning.json"
WARM_UP, TIMED = 10, 20  # steps that are not timed, and that are
Values = dict[str, dict[str, Any]]  # arm -> address -> value


class Made(NamedTuple):
    """A study as it will run, what was put in place of its own values, and the tuning that chose some of them."""

    study: Study
    values: Values
    tuning: dict[str, Any] | None = None
    pace: dict[str, float] | None = None  # median seconds a step, where time is matched


def make(loaded: Loaded, options: Options) -> Made:
    """The study that was asked for, tuned and matched; where time is matched, not yet."""
    study = with_options(loaded, options)
    tuning = None if options.tuned is None else read_tuning(Path(options.tuned), study)
    values: Values = {} if tuning is None else {arm: found["best"] for arm, found in tuning["arms"].items()}
    values = merged(values, matched(settled(study, values)))
    return Made(settled(study, values), values, tuning)


def merged(one: Values, other: Values) -> Values:
    """Both, for every arm that has any."""
    return {arm: one.get(arm, {}) | other.get(arm, {}) for arm in [*one, *(arm for arm in other if arm not in one)]}


def read_tuning(folder: Path, study: Study) -> dict[str, Any]:
    """What `h2h tune` found for these arms, or the user's mistake."""
    path = folder / TUNING
    if not path.is_file():
        raise Mistake(f"--tuned {folder}: there is no {TUNING}; name the folder that `h2h tune` wrote")
    tuning: dict[str, Any] = read_json(path)
    for name, recipe in study.arms().items():
        found = tuning["arms"].get(name)
        if found is None or found["recipe"] != untuned(recipe, tuning["address"]):
            raise Mistake(
                f"--tuned {folder}: arm {name} is not the one that was tuned; run `h2h tune` with the same study, --steps "
                "and --set"
            )
        if found["best"] != best_of(name, found["trials"], tuning["primary"]["better"]):
            raise Mistake(f"--tuned {folder}: arm {name} has another best than its trials say; run `h2h tune` again")
    return tuning


def best_of(arm: str, trials: Sequence[dict[str, Any]], better: str) -> dict[str, float]:
    """The values of the best trial."""
    known = [found for found in trials if found["score"] is not None]
    if not known:
        raise Mistake(
            f"every rate failed in arm {arm}; try lower ones, e.g. --rates 1e-5,1e-4,1e-3 --out another folder"
        )
    sign = 1 if better == "lower" else -1
    return dict(min(known, key=lambda found: sign * found["score"])["values"])


def untuned(recipe: Recipe, address: str) -> str:
    """A hash of all of a recipe but the value that is tuned."""
    return fingerprint(at(recipe, {address: 1.0}))


def in_time(made: Made, pace: Mapping[str, float]) -> Made:
    """The same with as many steps as take the baseline's time, the schedule stretched or shrunk with them."""
    wanted = pace["baseline"] * made.study.baseline.steps
    arms = made.study.challengers.items()
    steps: Values = {name: {"steps": steps_for(name, recipe, pace[name], wanted)} for name, recipe in arms}
    changed = {name: value for name, value in steps.items() if value["steps"] != made.study.challengers[name].steps}
    return made._replace(study=settled(made.study, changed), values=merged(made.values, changed), pace=dict(pace))


def paced(study: Study, route: Route) -> dict[str, float]:
    """Median seconds of a step of every arm on the study's route, the arms taking turns so that a neighbour slows all."""
    torch.set_num_threads(route.threads)
    turns = {name: _steps(recipe, route) for name, recipe in study.arms().items()}
    seconds: dict[str, list[float]] = {name: [] for name in turns}
    for _ in range(WARM_UP + TIMED):
        for name, steps in turns.items():
            seconds[name].append(next(steps))
    return {name: median(every[WARM_UP:]) for name, every in seconds.items()}


def _steps(recipe: Recipe, route: Route) -> Iterator[float]:
    """The seconds of one step after another."""
    tokens = prepare(recipe.text, recipe.tokenizer, recipe.split)
    learner = recipe.learner(tokens.vocabulary.size, 0).to(route.device)
    if route.compiled:
        learner.accelerate()
    enough = recipe.rescaled(max(recipe.steps, WARM_UP + TIMED))
    stream = batches(enough, tokens, 0, 0)
    optimizers = recipe.optimizer.optimizers(learner)
    for step in train(learner, optimizers, stream, lambda _: recipe.optimizer.rate, recipe.clip, route):
        yield step.seconds
