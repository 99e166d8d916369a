"""Were both runs of each pair made alike: the same libraries, code and device? (A-REPRO, A-MIXED)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headtohead.audit import Finding

Pair = tuple[Mapping[str, Any], Mapping[str, Any]]  # environment.json of the baseline's run and of the challenger's
OF_THE_DEVICE = ("device", "system")


def reproducible(pairs: Sequence[Pair]) -> Finding:
    """A-REPRO: what differs inside a pair, other than the arm."""
    known = [(one, other) for one, other in pairs if one and other]
    if not known:
        sentence = "No run says where it took place."
        return Finding("A-REPRO", "warn", "after", "skip", "no environment on record", sentence)
    odd = {
        key: (one.get(key), other.get(key))
        for one, other in known
        for key in _keys(one, other)
        if one.get(key) != other.get(key)
    }
    if odd:
        told = "; ".join(f"{key}: {_short(before)} and {_short(after)}" for key, (before, after) in odd.items())
        sentence = "The runs of a pair were made under different conditions, which may differ in more than the arm."
        return Finding("A-REPRO", "warn", "after", "fail", told, sentence)
    first = known[0][0]
    told = ", ".join(f"{key} {_short(first[key])}" for key in ("python", "torch", "device") if key in first)
    return Finding("A-REPRO", "warn", "after", "pass", told, "Both runs of every pair were made alike.")


def mixed(pairs: Sequence[Pair]) -> Finding:
    """A-MIXED: whether the arms ran on different devices, so that their times say nothing."""
    known = [(one, other) for one, other in pairs if "device" in one and "device" in other]
    devices = [{str(env.get("device")) for env in side} for side in (zip(*known, strict=True) if known else ((), ()))]
    told = " and ".join(", ".join(sorted(names)) for names in devices if names)
    if known and devices[0] != devices[1]:
        sentence = "The arms ran on different devices, so their times and costs are not compared."
        return Finding("A-MIXED", "warn", "after", "fail", told, sentence)
    result = "pass" if known else "skip"
    return Finding(
        "A-MIXED", "warn", "after", result, told or "no environment on record", "The arms ran on the same devices."
    )


def _keys(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    return list(dict.fromkeys([*one, *other]))


def _short(value: Any) -> str:
    return ", ".join(f"{key}={inner}" for key, inner in value.items()) if isinstance(value, dict) else str(value)
