"""Was either arm tuned as well as the other? What n trials are expected to find, and two audits of the search itself.

A tuned arm's own score is the best of several and so too good: verdicts rest on fresh seeds alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from headtohead.audit import Finding
from headtohead.spec import Mistake

BORDER = 0.1  # of a searched range, in logarithms: a best value this near an end may lie beyond it
UNEQUAL = 1.1  # one arm's budget over the other's


class Trial(NamedTuple):
    """One set of values that was tried, by address, what came out, and how long it took."""

    values: Mapping[str, Any]
    score: float
    seconds: float = 0.0


def expected_best(scores: Sequence[float], n: int, better: str = "lower") -> float:
    """What the best of n of these trials is on average, drawn without replacement: unbiased for n fresh trials.

    For scores in rising order Σ_{i ≥ n} v_i C(i-1, n-1) / C(N, n). Dodge et al. (2019), "Show your work".
    """
    values, sign = _rising(scores, n, better)
    count = len(values)
    i = np.arange(n, count + 1)
    logs = _log_choose(i - 1, n - 1) - _log_choose(np.array([count]), n)
    return sign * float(np.exp(logs) @ values[n - 1 :])


def expected_best_drawn(scores: Sequence[float], n: int, better: str = "lower") -> float:
    """The same with replacement, as that paper has it: Σ v_i [(i/N)^n - ((i-1)/N)^n]; too pessimistic for n near N."""
    values, sign = _rising(scores, n, better)
    powers = (np.arange(len(values) + 1) / len(values)) ** n
    return sign * float(np.diff(powers) @ values)


def _rising(scores: Sequence[float], n: int, better: str) -> tuple[np.ndarray, int]:
    """The scores so that higher is better, in rising order, and the sign that turns them back."""
    if not 1 <= n <= len(scores):
        raise Mistake(f"the best of {n} of {len(scores)} trials is not known; ask for 1 to {len(scores)}")
    sign = 1 if better == "higher" else -1
    return np.sort(sign * np.asarray(scores, dtype=float)), sign


def _log_choose(n: np.ndarray, k: int) -> np.ndarray:
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


def curve(scores: Sequence[float], better: str = "lower") -> list[float]:
    """The expected best of 1, 2, … all trials."""
    return [expected_best(scores, n, better) for n in range(1, len(scores) + 1)]


def depends_on_budget(baseline: Sequence[float], challenger: Sequence[float], better: str = "lower") -> bool:
    """Whether another number of trials, up to those both arms had, would have put the other arm ahead."""
    pairs = zip(curve(baseline, better), curve(challenger, better), strict=False)
    signs = {math.copysign(1, chal - base) for base, chal in pairs if chal != base}
    return len(signs) > 1


def edge(arm: str, trials: Sequence[Trial], better: str = "lower") -> Finding:
    """A-EDGE: whether the best value found lies at the border of what was searched, so that a better one may lie beyond."""
    best = min(trials, key=lambda trial: trial.score if better == "lower" else -trial.score)
    places = {address: _place(address, best, trials) for address in best.values}
    at_edge = {address: place for address, place in places.items() if place is not None}
    told = ", ".join(f"{address} = {best.values[address]:g}" for address in at_edge if _at_border(at_edge[address]))
    if told:
        sentence = f"The best setting of {arm} lies at the border of the search: widen it for every arm."
        return Finding("A-EDGE", "warn", "tuning", "fail", told, sentence)
    searched = ", ".join(f"{address} at {place:.2f} of its range" for address, place in at_edge.items())
    if not searched:
        sentence = f"No setting of {arm} was searched over a range, so that none can lie at its border."
        return Finding("A-EDGE", "warn", "tuning", "skip", f"{len(trials)} trials", sentence)
    return Finding("A-EDGE", "warn", "tuning", "pass", searched, f"The best setting of {arm} lies inside the search.")


def _at_border(place: float) -> bool:
    return not BORDER <= place <= 1 - BORDER


def _place(address: str, best: Trial, trials: Sequence[Trial]) -> float | None:
    """Where in its range, in logarithms, a number lies; None for what is no positive number or never varied."""
    values = [trial.values.get(address) for trial in trials]
    if not all(isinstance(value, int | float) and not isinstance(value, bool) and value > 0 for value in values):
        return None
    logs = np.log(np.array(values, dtype=float))
    span = float(np.ptp(logs))
    return (math.log(best.values[address]) - float(logs.min())) / span if span else None


def budget(baseline: Sequence[Trial], challenger: Sequence[Trial]) -> Finding:
    """A-BUDGET: whether both arms had as many trials and as much time; an arm without trials has the other's values."""
    if not baseline and not challenger:
        return Finding("A-BUDGET", "warn", "tuning", "skip", "no trials on record", "Neither arm was tuned.")
    evidence = f"{len(baseline)} trials of the baseline, {len(challenger)} of the challenger"
    if not (baseline and challenger):
        tuned, other = ("baseline", "challenger") if baseline else ("challenger", "baseline")
        sentence = f"The {tuned} was tuned and the {other} was not: tune both alike."
        return Finding("A-BUDGET", "warn", "tuning", "fail", evidence, sentence)
    seconds = [sum(trial.seconds for trial in trials) for trials in (baseline, challenger)]
    evidence += f"; {seconds[0]:.3g} and {seconds[1]:.3g} seconds"
    if _unequal(len(baseline), len(challenger)) or _unequal(*seconds):
        sentence = "The arms were not tuned alike: their budgets differ by more than 10 %."
        return Finding("A-BUDGET", "warn", "tuning", "fail", evidence, sentence)
    return Finding("A-BUDGET", "warn", "tuning", "pass", evidence, "Both arms had the same budget for tuning.")


def _unequal(one: float, other: float) -> bool:
    low, high = sorted((one, other))
    return high > UNEQUAL * low


# ---- what `h2h tune` left, as a study's plan has it ----------------------------------------------------------------


def trials_of(tuning: Mapping[str, Any], arm: str) -> list[Trial]:
    """An arm's trials. One that failed counts as the worst of the others: it was paid for, and found nothing."""
    found, sign = tuning["arms"][arm]["trials"], 1 if tuning["primary"]["better"] == "lower" else -1
    known = [trial["score"] for trial in found if trial["score"] is not None]
    worst = max(known, key=lambda score: sign * score)
    return [Trial(each["values"], worst if each["score"] is None else each["score"], each["seconds"]) for each in found]


def summary(tuning: Mapping[str, Any]) -> dict[str, Any]:
    """Every arm's trials, its best values, the expected best of n, and whether the best lies at the border."""
    better, arms = tuning["primary"]["better"], {}
    for arm, found in tuning["arms"].items():
        trials = trials_of(tuning, arm)
        scores = [trial.score for trial in trials]
        arms[arm] = {
            "best": found["best"],
            "trials": found["trials"],
            "failed": sum(trial["score"] is None for trial in found["trials"]),
            "seconds": math.fsum(trial.seconds for trial in trials),
            "curve": curve(scores, better),
            "edge": edge(arm, trials, better)._asdict(),
        }
    return {name: tuning[name] for name in ("study", "primary", "seeds", "address")} | {"arms": arms}


def both(tuning: Mapping[str, Any] | None, challenger: str) -> bool:
    """Whether both arms were tuned."""
    return tuning is not None and {"baseline", challenger} <= tuning["arms"].keys()


def audits(tuning: Mapping[str, Any] | None, challenger: str) -> list[dict[str, Any]]:
    """A-BUDGET of the pair and A-EDGE of both arms, where there is a record of tuning."""
    if tuning is None:
        return []
    baseline, own = (trials_of(tuning, arm) if arm in tuning["arms"] else [] for arm in ("baseline", challenger))
    found = [budget(baseline, own)]
    named = (("baseline", baseline), (challenger, own))
    found += [edge(arm, trials, tuning["primary"]["better"]) for arm, trials in named if trials]
    return [one._asdict() | {"seeds": list(tuning["seeds"])} for one in found]


def beside(tuning: Mapping[str, Any] | None, challenger: str) -> dict[str, Any] | None:
    """The best values of both arms, what n trials are expected to find, and whether another n would say otherwise."""
    if tuning is None or not both(tuning, challenger):
        return None
    better, pair = tuning["primary"]["better"], ("baseline", challenger)
    scores = {arm: [trial.score for trial in trials_of(tuning, arm)] for arm in pair}
    return {
        "trials": {arm: len(scores[arm]) for arm in pair},
        "best": {arm: tuning["arms"][arm]["best"] for arm in pair},
        "curve": {arm: curve(scores[arm], better) for arm in pair},
        "depends_on_budget": depends_on_budget(scores["baseline"], scores[challenger], better),
    }
