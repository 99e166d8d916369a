"""Whether a comparison may be believed at all: audits, the text it was evaluated on, and the data it was trained on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headtohead.verdict import words
from headtohead.verdict.compare import Seed
from headtohead.verdict.folder import Log, Run, first_difference

GRAVITY = {"pass": 0, "skip": 1, "fail": 2}


def worst(runs: Mapping[Seed, Run]) -> list[dict[str, Any]]:
    """An arm's audits, each once with its worst result over the seeds, and the seeds that had it."""
    found: dict[str, dict[str, Any]] = {}
    for seed, run in runs.items():
        for audit in run.audits:
            kept = found.get(audit["id"])
            if kept is None or _gravity(audit) > _gravity(kept):
                found[audit["id"]] = audit | {"seeds": [seed]}
            elif _gravity(audit) == _gravity(kept) and seed not in kept["seeds"]:
                kept["seeds"].append(seed)
    return list(found.values())


def _gravity(audit: dict[str, Any]) -> tuple[int, bool]:
    return GRAVITY[audit["result"]], audit["severity"] == "fatal"


def fatal(audits: Iterable[dict[str, Any]]) -> list[str]:
    return [audit["id"] for audit in audits if audit["severity"] == "fatal" and audit["result"] == "fail"]


def objections(
    baseline: Mapping[Seed, Run], challenger: Mapping[Seed, Run], of_pair: Sequence[dict[str, Any]] = ()
) -> list[str]:
    """What makes a comparison INVALID. A fault of the baseline spoils every comparison with it."""
    own, theirs, both = fatal(worst(challenger)), fatal(worst(baseline)), fatal(of_pair)
    incomparable = [words.INCOMPARABLE] if {"A-EVALSET", "A-UNIT"} & set(both) else []
    others = [name for name in both if name not in ("A-EVALSET", "A-UNIT", *own)]
    return own + [f"{name} of the baseline" for name in theirs] + others + incomparable


def reservations(
    baseline: Mapping[Seed, Run], challenger: Mapping[Seed, Run], of_pair: Sequence[dict[str, Any]]
) -> list[str]:
    """The caveats that audits bring, those of the pair too: warnings that have a label, and audits that were not done."""
    audited = [worst(baseline), worst(challenger)]
    labels = [
        words.AUDIT_CAVEATS[audit["id"]]
        for audits in [*audited, of_pair]
        for audit in audits
        if audit["result"] == "fail" and audit["id"] in words.AUDIT_CAVEATS
    ]
    labels += [words.SINGLE_BUDGET for audit in of_pair if (audit["id"], audit["result"]) == ("A-CROSS", "skip")]
    every = [audit for audits in [*audited, of_pair] for audit in audits]
    skipped = any(audit["severity"] == "fatal" and audit["result"] == "skip" for audit in every)
    return list(dict.fromkeys(labels)) + ([words.UNAUDITED] if skipped or not all(audited) else [])


def different_data(logs: Sequence[tuple[Seed, Log, Log]], longer: bool = False) -> dict[str, int]:
    """The seeds whose run did not see the baseline's batches, with the first step at which the two part.

    Where one arm is trained for longer by design, as far as both were.
    """
    pairs = [(seed, *(_shared(base, own) if longer else (base.batches, own.batches))) for seed, base, own in logs]
    steps = {str(seed): first_difference(base, own) for seed, base, own in pairs}
    return {seed: step for seed, step in steps.items() if step is not None}


def _shared(base: Log, own: Log) -> tuple[dict[int, str], dict[int, str]]:
    """The batches of the steps that both took."""
    last = min(max(log.batches, default=-1) for log in (base, own))
    one, other = ({step: batch for step, batch in log.batches.items() if step <= last} for log in (base, own))
    return one, other
