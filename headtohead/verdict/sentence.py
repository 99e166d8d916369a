"""A verdict as one line that a person can quote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headtohead.verdict import words

COSTS = {"parameters": "parameters", "flops": "FLOPs", "seconds": "time", "memory": "memory", "dollars": "dollars"}


def sentence(challenger: str, entry: Mapping[str, Any], verdict: Mapping[str, Any]) -> str:
    """The verdict on one challenger: the word, what changed, how much, at what cost, and what would settle it."""
    head = f"{challenger}: {entry['verdict']}"
    if entry["qualifiers"]:
        head += f" ({', '.join(entry['qualifiers'])})"
    parts = [_changes(entry), _failures(entry), _effect(entry, verdict), _match(entry), _open(entry, verdict)]
    return f"{head}: {'; '.join(part for part in parts if part)}."


def _changes(entry: Mapping[str, Any]) -> str:
    return ", ".join(f"{place} {_say(old)} -> {_say(new)}" for place, (old, new) in entry["changes"].items())


def _say(value: Any) -> str:
    """A described part as a person would write it."""
    if isinstance(value, dict):
        home = value.get("part") or value.get("call") or ""
        inner = ", ".join(f"{name}={_say(one)}" for name, one in value.items() if name not in ("part", "call"))
        return home.rpartition(":")[2] + (f"({inner})" if "part" in value else "")
    if isinstance(value, list):
        return f"({', '.join(map(_say, value))})"
    return str(value)


def _failures(entry: Mapping[str, Any]) -> str:
    """Runs that failed and runs that are not there, by arm."""
    told = [
        f"{arm} seed {seed} failed ({reason})"
        for arm, seeds in entry["failures"].items()
        for seed, reason in seeds.items()
    ]
    told += [f"{arm} seed {seed} is missing" for arm, seeds in entry["missing"].items() for seed in seeds]
    return ", ".join(told)


def _effect(entry: Mapping[str, Any], verdict: Mapping[str, Any]) -> str:
    """The difference with its interval, its share of the baseline, and the pairs that were won."""
    if words.INCOMPARABLE in entry["qualifiers"]:
        return "no difference is given, for the arms were not scored on the same tokens of the same text"
    if entry["effect"] is None:
        return "no pair of finished runs"
    name, unit = verdict["primary"]["name"], verdict["primary"]["unit"]
    said = f"{name} {entry['effect']:+.4g}" + (f" {unit}" if unit != name else "")
    if entry["verdict"] == words.IDENTICAL:
        return f"every {name} equals the baseline's exactly over {_seeds(entry)}; the change did nothing"
    if entry["interval"]:
        low, high = entry["interval"]
        said += f" [{100 * entry['interval_level']:.3g} % {low:+.4g} to {high:+.4g}]"
    if entry["relative"] is not None:
        said += f", {100 * entry['relative']:+.2f} %"
    said += f", better in {entry['won']} of {_seeds(entry)}"
    return f"descriptive only: {said}" if entry["verdict"] in words.REFUSED else said


def _match(entry: Mapping[str, Any]) -> str:
    match = {True: "at equal tokens", False: "on different batches", None: ""}[entry["same_data"]]
    costs = [f"×{entry['ratios'][key]:.2f} {name}" for key, name in COSTS.items() if entry["ratios"][key] is not None]
    return ", ".join([match, *costs] if match else costs)


def _open(entry: Mapping[str, Any], verdict: Mapping[str, Any]) -> str:
    """For what is still open: what these seeds could have shown, and what it takes to show the margin."""
    if entry["verdict"] not in words.OPEN:
        return ""
    told = []
    if entry["detectable"] is not None:
        low, high = entry["seeds_needed"]
        told.append(f"{_seeds(entry)} detect {entry['detectable']:.4g}")
        told.append(f"{verdict['margin']:.4g} takes {_range(str(low), str(high))} fresh seeds{_price(entry)}")
    elif entry["verdict"] == words.UNREPLICATED:
        told.append(f"{_seeds(entry)} cannot speak for the method{_price(entry)}")
    if entry["command"]:
        told.append(f"run: {entry['command']}")
    return ", ".join(told)


def _seeds(entry: Mapping[str, Any]) -> str:
    return f"{entry['seeds']} seed" + ("s" if entry["seeds"] != 1 else "")


def _price(entry: Mapping[str, Any]) -> str:
    if not entry["price"]:
        return ""
    needed = entry["price"]["needed"]
    told = [_range(*map(_time, needed["seconds"]))]
    if needed["dollars"][0]:
        told.append(_range(*(f"${amount:.2f}" for amount in needed["dollars"])))
    return f" ({', '.join(told)})"


def _range(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def _time(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 6000 else f"{seconds / 3600:.3g} h"
