"""What was equal between the arms, and what the challenger took as a multiple of the baseline, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

EQUAL = {"parameters": "at equal parameters", "flops": "at equal FLOPs", "wallclock": "at equal time"}
TOKENS = {True: "at equal tokens", False: "on different batches", None: "whether at equal tokens is not known"}
NEAR = 1.1  # times that differ by more than this were equal when the steps were set, and not when they were run


def equal_at(entry: Mapping[str, Any]) -> str:
    """At equal tokens, or whatever else was matched by design; then the tokens are one more multiple."""
    match = entry.get("match") or {}
    by, tokens = match.get("by"), match.get("tokens")
    if by in EQUAL:
        time = entry["ratios"]["seconds"]
        missed = by == "wallclock" and time is not None and not 1 / NEAR < time < NEAR
        return ("planned " if missed else "") + EQUAL[by] + (f", tokens ×{tokens:.3g}" if tokens else "")
    if tokens is not None and tokens != 1:
        return f"tokens ×{tokens:.3g}"
    if tokens == 1 and entry["same_data"] is None:
        return TOKENS[True]
    return TOKENS[entry["same_data"]]
