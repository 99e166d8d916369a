"""One challenger's report card, in a fixed order, from verdict.json alone: the terminal and the page say the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headtohead.report import beside, numbers
from headtohead.report.glossary import CLAIMS, LABELS, SIZES, VERDICTS, explain
from headtohead.report.numbers import Scale
from headtohead.verdict.budget import equal_at

Entry = Mapping[str, Any]  # a challenger's part of the verdict
Fact = tuple[str, list[str]]

COSTS = {"parameters": "parameters", "flops": "FLOPs", "seconds": "time", "memory": "memory", "dollars": "dollars"}
UNTUNED = "untuned"
INCOMPARABLE = "INCOMPARABLE"
REFUSED = ("INVALID", "UNSTABLE")
SILENT = (*REFUSED, "UNREPLICATED")  # verdicts beside which no probability may stand
TUNING = "none on record: every arm has the settings that the study gives it, which may not be its best"
NOT_GIVEN = "no difference is given: the arms were not scored on the same tokens of the same text"


def facts(name: str, verdict: Mapping[str, Any]) -> list[Fact]:
    """What is to be said of a challenger; what there is nothing to say of is left out."""
    entry = verdict["arms"][name]
    told = {
        "meaning": meaning(entry),
        "changed": changes(entry),
        "effect": effects(entry, verdict["primary"]),
        "seeds": _seeds(entry, beside.family(verdict)) + beside.look(verdict),
        "new text": [] if entry["verdict"] in REFUSED else beside.new_text(entry, unit(verdict["primary"])),
        "beside": [] if entry["verdict"] in SILENT else beside.other_spreads(entry),
        "reach": _reach(entry, verdict["primary"]),
        "audits": _audits(entry["audits"]) + _audits(verdict["baseline"]["audits"], " of the baseline"),
        "costs": [match(entry)],
        "tuning": [TUNING] if UNTUNED in entry["qualifiers"] else beside.tuning(entry, verdict["primary"]),
        "noise": beside.noise(entry, unit(verdict["primary"])),
        "stability": stability(entry) + beside.failures(entry),
        "claims": [claim(each, verdict["primary"]) for each in entry["claims"]],
        "lock": _lock(verdict, entry),
        "to settle it": _settling(entry),
    }
    return [(label, lines) for label, lines in told.items() if lines]


def meaning(entry: Entry) -> list[str]:
    """The verdict and its labels in words; of tuning the card has a line of its own."""
    labels = [explain(label) for label in entry["qualifiers"] if label != UNTUNED]
    return [VERDICTS[entry["verdict"]].text, *labels]


def answer(name: str, verdict: Mapping[str, Any]) -> str:
    """The verdict on a challenger in a few plain sentences."""
    entry = verdict["arms"][name]
    labels = f" ({', '.join(entry['qualifiers'])})" if entry["qualifiers"] else ""
    size = [f"Its size: {LABELS[label]}." for label in SIZES if label in entry["qualifiers"]]
    figures = "; ".join([*effects(entry, verdict["primary"])[:2], *_seeds(entry, beside.family(verdict))[:1]])
    told = [VERDICTS[entry["verdict"]].text, *size, f"{figures[0].upper()}{figures[1:]}."]
    return f"{name}{labels}. {' '.join(told)}"


def best_first(verdict: Mapping[str, Any]) -> list[str]:
    """The challengers by their effect; those without one last."""
    sign = 1 if verdict["primary"]["better"] == "lower" else -1
    effects = {name: entry["effect"] for name, entry in verdict["arms"].items()}
    return sorted(effects, key=lambda name: (effects[name] is None, sign * (effects[name] or 0.0)))


def unit(primary: Mapping[str, Any]) -> str:
    """The unit behind a number of the primary measure: " nats per token"."""
    return f" {primary['unit'] or primary['name']}"


def effect_scale(entry: Entry) -> Scale:
    return numbers.scale_for(entry["effect"] or 0.0, entry["interval"])


def interval(entry: Entry) -> str:
    """−0.0145 to −0.0063; nothing where there is none."""
    scale = effect_scale(entry)
    return " to ".join(numbers.signed(end, scale) for end in entry["interval"]) if entry["interval"] else ""


def changes(entry: Entry) -> list[str]:
    """The addresses with what stood there and what stands there now."""
    return [f"{address}: {before} -> {after}" for address, (before, after) in entry["changes"].items()]


def effects(entry: Entry, primary: Mapping[str, Any]) -> list[str]:
    """The difference, its share of the baseline, and how it stands to the margin."""
    if entry["effect"] is None:
        return [NOT_GIVEN if INCOMPARABLE in entry["qualifiers"] else "no pair of finished runs"]
    only = "descriptive only: " if VERDICTS[entry["verdict"]].tone == "refused" else ""
    if entry["effect"] == 0 and not numbers.half_width(entry["interval"]):
        return [f"{only}exactly 0 in every pair"]
    difference = f"{only}{primary['name']} {numbers.signed(entry['effect'], effect_scale(entry))}{unit(primary)}"
    if entry["interval"]:
        difference += f", {100 * entry['interval_level']:.3g} % interval {interval(entry)}"
    told = [difference, _shares(entry), _margin(entry, primary)]
    return [line for line in told if line]


def _shares(entry: Entry) -> str:
    """The effect in per cent of the baseline, and as a ratio of perplexities."""
    half, told = numbers.half_width(entry["interval"]), []
    if entry["relative"] is not None:
        told.append(f"{numbers.percent(entry['relative'], entry['effect'], half)} of the baseline")
    if entry["perplexity_ratio"] is not None:
        times = entry["perplexity_ratio"]
        place = numbers.place_of(times * (half or abs(entry["effect"])))
        told.append(f"perplexity ×{numbers.written(times, numbers.scale([times], place))}")
    return ", ".join(told)


def _margin(entry: Entry, primary: Mapping[str, Any]) -> str:
    said = f"margin ±{numbers.significant(entry['margin'], 2)}{unit(primary)}"
    said += "" if entry.get("margin_stated", True) else ", the usual one, for the study states none"
    if entry["interval"] is None or entry["verdict"] in SILENT:
        return said
    inside = numbers.probability(entry["p_tost"])
    return f"{said}; the test of lying inside it (TOST) has p {inside}, and shows it where p is small"


def _seeds(entry: Entry, family: str) -> list[str]:
    """The pairs that were won, and the p values."""
    if INCOMPARABLE in entry["qualifiers"]:
        return []
    told = [f"better in {entry['won']} of {numbers.plural(entry['seeds'], 'pair')}"]
    if entry["verdict"] in SILENT:
        return told
    if entry["better_probability"] is not None:
        chance = numbers.significant(100 * entry["better_probability"], 2)
        told[0] += f"; the chance that a new seed is better: {chance} %"
    if entry["p"] is not None:
        several = f", {numbers.probability(entry['p_adjusted'])} adjusted for {family}" if family else ""
        told.append(f"p {numbers.probability(entry['p'])}{several}")
    if entry["sign_flip"] is not None:
        told.append(f"p {numbers.probability(entry['sign_flip'])} if only the signs are counted on (sign-flip test)")
    return told


def _reach(entry: Entry, primary: Mapping[str, Any]) -> list[str]:
    """What these seeds could have shown, and what it takes to show the margin."""
    if entry["detectable"] is None or entry["verdict"] in SILENT:
        return []
    found = numbers.significant(entry["detectable"], 2)
    seeds = numbers.plural(entry["seeds"], "seed")
    needed = numbers.span(*map(str, entry["seeds_needed"]))
    margin = numbers.significant(entry["margin"], 2)
    return [
        f"{seeds} find a true difference of {found}{unit(primary)} with a chance of 80 %",
        f"one of the margin, {margin}, takes {needed} seeds of every arm{price(entry)}",
    ]


def _settling(entry: Entry) -> list[str]:
    """The command that buys fresh seeds; their price, where the line on the reach has not told it."""
    return [entry["command"] + ("" if entry["detectable"] else price(entry))] if entry["command"] else []


def price(entry: Entry) -> str:
    """What the seeds needed would take, in time and money."""
    if not entry["price"]:
        return ""
    needed = entry["price"]["needed"]
    told = [numbers.span(*map(numbers.duration, needed["seconds"]))]
    if needed["dollars"][0]:
        told.append(numbers.span(*map(numbers.dollars, needed["dollars"])))
    return f" ({', '.join(told)})"


def _audits(found: list[dict[str, Any]], whose: str = "") -> list[str]:
    """How many passed, failed and were skipped; of the baseline only what failed. Each failed one with its evidence."""
    failed = [audit for audit in found if audit["result"] == "fail"]
    told = [
        f"{audit['id']}{whose} failed ({audit['severity']}, {seeds_of(audit)}): {audit['sentence']} ({audit['evidence']})"
        for audit in failed
    ]
    if whose:
        return told
    counts = {word: sum(audit["result"] == result for audit in found) for word, result in RESULTS.items()}
    summary = ", ".join(f"{count} {word}" for word, count in counts.items())
    return [summary if found else "none on record", *told]


RESULTS = {"passed": "pass", "failed": "fail", "skipped": "skip"}


def seeds_of(audit: Mapping[str, Any]) -> str:
    """seed 3, or seeds 0, 1."""
    seeds = audit.get("seeds", [])
    return f"seed{'s' if len(seeds) != 1 else ''} {', '.join(map(str, seeds))}"


def match(entry: Entry) -> str:
    """What was equal by design, and what the challenger cost as a multiple of the baseline."""
    costs = [f"{name} {numbers.ratio(entry['ratios'][key])}" for key, name in COSTS.items()]
    return ", ".join([equal_at(entry), *(cost for cost in costs if numbers.NOTHING not in cost)])


def stability(entry: Entry) -> list[str]:
    """The runs that failed, with the reason, and those that are not there."""
    told = [
        f"{arm} seed {seed} failed: {reason}"
        for arm, seeds in entry["failures"].items()
        for seed, reason in seeds.items()
    ]
    told += [f"{arm} seed {seed} is missing" for arm, seeds in entry["missing"].items() for seed in seeds]
    return told or ["no run failed, none is missing"]


def claim(said: Mapping[str, Any], primary: Mapping[str, Any]) -> str:
    """A claim that was made before the first run, and its answer."""
    own = said["measure"] == primary["name"]
    margin = f", margin {numbers.significant(said['margin'], 2)}" if said["margin"] is not None else ""
    told = (
        f"{said['measure']} {CLAIMS[said['claim']]}{margin}{unit(primary) if own and margin else ''}: {said['answer']}"
    )
    if said["reason"]:
        return f"{told} ({said['reason']})"
    p = {"yes": said["p_yes"], "no": said["p_no"]}.get(said["answer"])
    return told + (f" (adjusted p {numbers.probability(p)})" if p is not None else "")


def _lock(verdict: Mapping[str, Any], entry: Entry) -> list[str]:
    """The hash of what was declared before the first run, and what did not come as declared."""
    if not verdict["lock"]:
        return []
    odd = sum(len(seeds) for kind in ("failures", "missing") for seeds in entry[kind].values())
    told = f"{numbers.plural(odd, 'run')} failed or missing" if odd else "all runs as declared"
    told = "study.json or study.lock was changed since" if "exploratory" in entry["qualifiers"] else told
    return [f"{verdict['lock']}; {told}"]
