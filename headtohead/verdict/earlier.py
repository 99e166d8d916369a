"""Spreads that earlier studies lend to a new one: gathered when it is locked, and never afterwards."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from headtohead.files import Damaged, read_json, write_json
from headtohead.verdict import words

EARLIER = "earlier.json"
SPEAKS = tuple(
    word for word in words.WORDS if word not in (*words.REFUSED, words.IDENTICAL, words.UNREPLICATED)
)  # verdicts whose pairs were fair, whole and several


def gather(out: Path, plan: Mapping[str, Any]) -> None:
    """Write earlier.json into a folder that has none: what the judged studies beside it have found at the same scale."""
    path = out / EARLIER
    if path.exists():
        return
    found = [entry for folder in sorted(out.parent.iterdir()) if folder != out for entry in _spreads(folder, plan)]
    write_json(path, found)


def read_earlier(out: Path) -> list[dict[str, Any]]:
    path = out / EARLIER
    return read_json(path, list) if path.exists() else []


def _spreads(folder: Path, plan: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The spread of every paired comparison of another study, if it is one at this scale and on this measure."""
    try:
        study, verdict = read_json(folder / "study.json"), read_json(folder / "verdict.json")
    except (OSError, Damaged):
        return
    unpaired = study.get("request", {}).get("against_itself")
    if unpaired or scale_of(study) is None or scale_of(study) != scale_of(plan) or study["lock"] == plan["lock"]:
        return
    for name, entry in verdict["arms"].items():
        if entry["verdict"] in SPEAKS and entry.get("sd"):
            yield {"study": study["study"], "challenger": name, "sd": entry["sd"], "seeds": entry["seeds"]}


def scale_of(plan: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """What must be equal: the measure, the baseline's text and tokens trained on, and its operations to two digits."""
    base = plan["baseline"]
    try:
        text, tokens, operations = plan["texts"][base]["hash"], plan["training"][base], plan["operations"][base]
    except KeyError:
        return None
    return json.dumps(plan["primary"], sort_keys=True), text, tokens, f"{operations:.1e}"
