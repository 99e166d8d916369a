"""What stands beside the verdict on a card: new text, other estimates of the spread, and the planned looks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headtohead.report import numbers

Entry = Mapping[str, Any]


def new_text(entry: Entry, unit: str) -> list[str]:
    """What the held-out documents say of other text, and whether seeds or text should be bought."""
    found = entry.get("new_text")
    if not found:
        return []
    if "reason" in found:
        return [f"of other text nothing is said: {found['reason']}"]
    documents = numbers.plural(found["documents"], "document")
    if found["question"] == "E_ckpt":
        return [_checkpoints(each, documents, unit) for each in found["checkpoints"]]
    told = f"over new seeds and new text: {_difference(found, unit)} ({documents}, p {numbers.probability(found['p'])})"
    if found["share_seed"] is None:
        return [told]
    share = numbers.significant(100 * found["share_seed"], 2)
    return [told, f"{share} % of the variance on this text is the seeds' own: to narrow it, {found['advice']}"]


def _checkpoints(found: Mapping[str, Any], documents: str, unit: str) -> str:
    p = numbers.probability(found["p"])
    return (
        f"seed {found['seed']}, these two trained models on other text: {_difference(found, unit)} ({documents}, p {p})"
    )


def _difference(found: Mapping[str, Any], unit: str) -> str:
    """An effect with its interval; without one where a single document has none."""
    low, high = found["interval"]
    if low is None:
        return f"{numbers.signed(found['effect'], numbers.scale_for(found['effect'], None))}{unit}"
    scale = numbers.scale_for(found["effect"], [low, high])
    ends = f"{numbers.signed(low, scale)} to {numbers.signed(high, scale)}"
    return f"{numbers.signed(found['effect'], scale)}{unit}, interval {ends}"


def other_spreads(entry: Entry) -> list[str]:
    """Companions of the test; the verdict does not rest on them."""
    told = []
    pooled, moderated, posterior = (entry.get(name) for name in ("pooled", "moderated", "posterior"))
    if pooled and "refused" in pooled:
        told.append(f"no spread pooled over the challengers: {pooled['refused']}")
    elif pooled:
        told.append(f"p {numbers.probability(pooled['p'])} with the spread of all challengers together, {_df(pooled)}")
    if moderated:
        lent = numbers.plural(moderated["prior"]["comparisons"], "earlier comparison")
        told.append(f"p {numbers.probability(moderated['p'])} with a spread lent by {lent}, {_df(moderated)}")
    if posterior:
        chances = (
            f"{_chance(posterior[name])} that it is {what}"
            for name, what in (
                ("better_by_margin", "better by more than the margin"),
                ("within_margin", "inside it"),
                ("worse_by_margin", "worse by more"),
            )
        )
        told.append(f"read as a probability, with no prior knowledge: {', '.join(chances)}")
    return told


def _df(found: Mapping[str, Any]) -> str:
    return f"{found['df']:.3g} degrees of freedom"


def _chance(share: float) -> str:
    """In per cent; what is nearly certain is said so."""
    return "> 99.99 %" if share > 0.9999 else "< 0.01 %" if share < 1e-4 else f"{numbers.significant(100 * share)} %"


def failures(entry: Entry) -> list[str]:
    """Whether one arm fails more often, where any run failed."""
    found = entry.get("stability")
    if not found or found["p"] is None:
        return []
    counts = ", ".join(
        f"{name} {arm['failed']} of {arm['runs']} (chance to fail up to {arm['rate'][1]:.0%})"
        for name, arm in ((name, found[name]) for name in ("baseline", "challenger"))
        if arm["runs"]
    )
    return [f"failed runs: {counts}; that both fail equally often: p {numbers.probability(found['p'])}"]


def look(verdict: Mapping[str, Any]) -> list[str]:
    """Which of the planned looks this is."""
    found = verdict.get("look")
    if not found:
        return []
    looks = ", ".join(map(str, found["planned"]))
    level = numbers.significant(found["alpha"], 3)
    return [f"look {found['number']} of those planned at {looks} seeds, at level {level}"]


def family(verdict: Mapping[str, Any]) -> str:
    """What p was adjusted for; nothing where there is one challenger and never was another."""
    gone = verdict.get("abandoned") or []
    count = len(verdict["arms"]) + len(gone)
    if count < 2:
        return ""
    told = f"{count} challengers"
    return f"{told}, {', '.join(gone)} abandoned among them" if gone else told


def tuning(entry: Entry, primary: Mapping[str, Any]) -> list[str]:
    """What each arm was given by tuning, and whether another number of trials would have favoured the other arm."""
    found = entry.get("tuning")
    if not found:
        return []
    told = [
        f"{arm}: {', '.join(f'{place} = {value:g}' for place, value in found['best'][arm].items())}, best of "
        f"{numbers.plural(found['trials'][arm], 'trial')}"
        for arm in found["best"]
    ]
    base, own = (found["curve"][arm][-1] for arm in found["best"])
    scale = numbers.scale_for(own - base, None)
    told.append(
        f"expected best of {len(found['curve']['baseline'])} trials: {primary['name']} {numbers.signed(own - base, scale)} "
        "against the baseline's, on the tuning slice; no verdict rests on it"
    )
    if found["depends_on_budget"]:
        told.append("the expected-best curves cross: which arm is ahead depends on the tuning budget")
    return told


def noise(entry: Entry, unit: str) -> list[str]:
    """How far two runs of one recipe are apart, where the challenger is the baseline with other seeds."""
    found = entry.get("noise")
    if not found:
        return []
    apart, run, upper = (numbers.significant(found[name], 2) for name in ("sd", "run", "upper"))
    return [
        f"two runs that differ in their seed alone are apart with a standard deviation of {apart}{unit} (80 % upper limit "
        f"{upper}), one run from the mean of all with {run}",
        "paired runs share data, start and noise, so their differences spread less: this is an upper bound for them",
    ]
