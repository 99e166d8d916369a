"""A judged study's folder, read for the page."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headtohead.files import read_json
from headtohead.spec import Mistake
from headtohead.verdict.compare import Seed
from headtohead.verdict.folder import FAILED, Run, Runs, read_runs, read_study


@dataclass(frozen=True)
class Trace:
    """What a run left behind of its training, step by step."""

    losses: dict[int, float]  # the finite ones
    batches: int
    digest: str  # of every batch's hash, in order


Traces = dict[str, dict[Seed, Trace]]


@dataclass(frozen=True)
class Folder:
    """Everything that a study's page is drawn from."""

    study: dict[str, Any]
    verdict: dict[str, Any]
    route: dict[str, Any]
    runs: Runs
    traces: Traces
    environments: list[tuple[dict[str, Any], int]]  # each with the number of runs that had it

    @property
    def arms(self) -> list[str]:
        """The arms in the study's order."""
        return list(self.study["arms"])

    @property
    def challengers(self) -> list[str]:
        return [arm for arm in self.arms if arm != self.study["baseline"]]

    @property
    def seeds(self) -> list[Seed]:
        return list(self.study["seeds"])

    def measured(self, arm: str, name: str) -> dict[Seed, Any]:
        """A measure of an arm's finished runs, by seed; runs that do not have it are left out."""
        runs = self.runs[arm].items()
        return {seed: run.measures[name] for seed, run in runs if run.state != FAILED and name in run.measures}

    def numbers(self, arm: str, name: str) -> list[float]:
        """The finite values of a measure over an arm's finished runs."""
        return [float(value) for value in self.measured(arm, name).values() if is_number(value)]


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def mean(values: list[float]) -> float | None:
    """The mean, or None where there is nothing to average."""
    return math.fsum(values) / len(values) if values else None


def read_folder(out: Path) -> Folder:
    """A study's folder. Refuses one that is not finished, not judged, or judged when it was another study."""
    study = read_study(out)
    if not (out / "verdict.json").exists():
        read_runs(out, study)  # what is not finished is told first
        raise Mistake(f"{out} holds no verdict.json; judge the study first with: h2h verdict {out}")
    verdict = read_json(out / "verdict.json")
    if study.get("looks"):
        study |= {"seeds": study["seeds"][: len(verdict["seeds"])]}
    runs = read_runs(out, study)
    if verdict["lock"] != study["lock"] or set(verdict["arms"]) != set(study["arms"]) - {study["baseline"]}:
        raise Mistake(f"verdict.json in {out} is about another study; judge it again with: h2h verdict {out}")
    traces = {arm: {seed: _trace(run.folder) for seed, run in mine.items()} for arm, mine in runs.items()}
    return Folder(study, verdict, _optional(out / "route.json"), runs, traces, _environments(runs))


def _optional(path: Path) -> dict[str, Any]:
    return read_json(path) if path.exists() else {}


def _trace(folder: Path) -> Trace:
    """The log of a run's steps; a step that was repeated after a resume counts once. A failed run may have none."""
    path = folder / "steps.jsonl"
    lines = path.read_text(encoding="utf-8").split("\n") if path.exists() else []
    # Read as one array, which takes a third of the time that as many small texts take.
    steps = {step["step"]: step for step in json.loads(f"[{','.join(filter(str.strip, lines))}]")}
    marks = "\n".join(f"{number}:{step['batch']}" for number, step in sorted(steps.items()))
    losses = {number: step["loss"] for number, step in sorted(steps.items()) if is_number(step["loss"])}
    return Trace(losses, len(steps), hashlib.blake2b(marks.encode(), digest_size=6).hexdigest())


def _environments(runs: Mapping[str, Mapping[Seed, Run]]) -> list[tuple[dict[str, Any], int]]:
    found: dict[str, tuple[dict[str, Any], int]] = {}
    for run in (run for mine in runs.values() for run in mine.values()):
        environment = _optional(run.folder / "environment.json")
        key = json.dumps(environment, sort_keys=True)
        found[key] = (environment, found.get(key, (environment, 0))[1] + 1)
    return list(found.values())
