"""The audits of a comparison, from the files of both arms' runs: same text, same unit, same conditions, same size."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headtohead.audit import Finding, comparable, primary, restarts, sameness, size, unknown
from headtohead.files import read_json
from headtohead.spec import Mistake
from headtohead.verdict.compare import Seed
from headtohead.verdict.folder import FAILED, Run

TIMES = ("seconds", "dollars")


def of_pair(
    study: Mapping[str, Any],
    measure: str,
    baseline: Mapping[Seed, Run],
    challenger: Mapping[Seed, Run],
    seeds: Sequence[Seed],
) -> list[dict[str, Any]]:
    """Every audit that needs both arms; `seeds` are those of the pairs."""
    sides = [[run.measures for run in runs.values() if run.state != FAILED] for runs in (baseline, challenger)]
    pairs = [(_environment(baseline[seed]), _environment(challenger[seed])) for seed in seeds]
    found: list[Finding] = [primary.audit(measure)]
    if all(sides):
        found += [comparable.evaluation_set(*sides), comparable.unit(measure, *sides), *_unknown(measure, *sides)]
    found += [sameness.reproducible(pairs), sameness.mixed(pairs)]
    paired = [[runs[seed].measures for seed in seeds] for runs in (baseline, challenger)]
    ratios = {name: _ratio(name, *paired) for name in size.COMPARED}
    found.append(size.audit(ratios, study.get("match") or "tokens"))
    found.append(_restarts(baseline, challenger))
    return [finding._asdict() | {"seeds": list(seeds)} for finding in found]


def refuse_unit(measure: str, baseline: Mapping[Seed, Run], challenger: Mapping[Seed, Run]) -> None:
    """Raise a Mistake where a measure is of each token and the arms' tokens differ: a claim on it has no answer."""
    sides = [[run.measures for run in runs.values() if run.state != FAILED] for runs in (baseline, challenger)]
    found = comparable.unit(measure, *sides)
    if found.result == "fail":
        raise Mistake(found.sentence)


def times_compare(ratios: dict[str, float], of_pair: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The ratios, without those of time and cost where the arms ran on different devices."""
    refused = any(audit["id"] == "A-MIXED" and audit["result"] == "fail" for audit in of_pair)
    return {name: math.nan if refused and name in TIMES else value for name, value in ratios.items()}


def _environment(run: Run) -> dict[str, Any]:
    path: Path = run.folder / "environment.json"
    return read_json(path) if path.is_file() else {}


def _unknown(
    measure: str, baseline: Sequence[Mapping[str, Any]], challenger: Sequence[Mapping[str, Any]]
) -> list[Finding]:
    """A-UNK, where either vocabulary has an unknown token."""
    rates = [[float(run["unknown"]) for run in runs if "unknown" in run] for runs in (baseline, challenger)]
    if not any(rates):
        return []
    same = len({run.get("evaluation") for run in [*baseline, *challenger]}) == 1
    return [unknown.compare(rates[0], rates[1], same=same, charged=measure.endswith(".spelled"))]


def _ratio(name: str, baseline: Sequence[Mapping[str, Any]], challenger: Sequence[Mapping[str, Any]]) -> float:
    """Of the means; operations are those of all of training."""
    sides = []
    for runs in (challenger, baseline):
        values = [run.get(name, math.nan) * (run.get("tokens", 1) if name == "flops" else 1) for run in runs]
        sides.append(math.fsum(values) / len(values) if values else math.nan)
    return sides[0] / sides[1] if sides[1] else math.nan


def _restarts(baseline: Mapping[Seed, Run], challenger: Mapping[Seed, Run]) -> Finding:
    """A-RESTART: those that each arm's own runs asked for, and the seeds whose runs do not share them."""
    told = [{seed: _restarted(run) for seed, run in runs.items()} for runs in (baseline, challenger)]
    counts = [
        {seed: sum(one["arm"] == runs[seed].folder.parent.name for one in each) for seed, each in side.items()}
        for side, runs in zip(told, (baseline, challenger), strict=True)
    ]
    unlike = [seed for seed in told[0].keys() & told[1].keys() if _plan(told[0][seed]) != _plan(told[1][seed])]
    return restarts.audit(counts[0], counts[1], sorted(unlike, key=str))


def _restarted(run: Run) -> list[dict[str, Any]]:
    path = run.folder / "status.json"
    return (read_json(path) if path.is_file() else {}).get("restarts") or []


def _plan(restarted: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    return [(one["from"], one["skip"], one["reseed"]) for one in restarted]
