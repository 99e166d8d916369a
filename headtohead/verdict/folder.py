"""A study's folder as it lies on disk: what was declared, and what each run left behind."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from headtohead.files import read_json
from headtohead.request import TUNE, folder_for, options_from
from headtohead.spec import Mistake
from headtohead.verdict.compare import Outcome, Seed
from headtohead.verdict.margins import Measure

FINISHED = "finished"
FAILED = "failed"


@dataclass(frozen=True)
class Run:
    """One arm with one seed, finished or failed."""

    folder: Path
    state: str
    reason: str | None
    seconds: float  # of training
    steady: float  # the same without what is paid once, such as compilation: the median step times the steps
    memory: float | None
    measures: dict[str, Any]
    audits: list[dict[str, Any]]


Runs = dict[str, dict[Seed, Run]]  # arm -> seed -> run


def read_study(out: Path) -> dict[str, Any]:
    """What the study declared."""
    path = out / "study.json"
    if not path.exists():
        raise Mistake(f"{out} holds no study.json; name the folder that `h2h run STUDY --out DIR` wrote")
    study: dict[str, Any] = read_json(path)
    if study.get("purpose") == TUNE:
        name = study["request"]["reference"]
        raise Mistake(f"{out} holds a tuning, on which no verdict rests; use it with: h2h run {name} --tuned {out}")
    return study


def command(study: Mapping[str, Any], out: str | None = None) -> str:
    """The command that asks for a study as it was asked for, as it was typed; `out` puts it into another folder."""
    asked = study.get("request", {})
    return _typed(study, asked.get("seeds"), asked.get("confirm"), out or asked.get("out"))


def fresh_seeds(study: Mapping[str, Any], count: int) -> str:
    """The command that trains so many seeds that nobody has looked at, into a folder of their own."""
    asked = study.get("request", {})
    used, out = asked.get("seeds"), asked.get("out")
    if asked.get("confirm"):  # these are fresh seeds themselves: others begin after them, in one more folder
        used = max(study["seeds"]) + 1
        out = out or str(folder_for(study["study"], options_from(asked)))
    return _typed(study, used, count, f"{out.rstrip('/')}-confirm" if out else None)


def _typed(study: Mapping[str, Any], seeds: int | None, confirm: int | None, out: str | None) -> str:
    asked = study.get("request", {})
    named = study["study"] if asked.get("builtin", True) else f"{study['study']}.py"
    words = ["h2h", "run", asked.get("reference") or named]
    if study.get("size") not in (None, "demo"):
        words += ["--size", study["size"]]
    for option, value in (("--seeds", seeds), ("--steps", asked.get("steps"))):
        words += [option, str(value)] if value is not None else []
    for address, value in asked.get("settings", ()):
        words += ["--set", f"{address}={value}"]
    words += ["--against-itself"] if asked.get("against_itself") else []
    words += ["--tuned", asked["tuned"]] if asked.get("tuned") else []
    for option, value in (("--confirm", confirm), ("--out", out)):
        words += [option, str(value)] if value is not None else []
    return shlex.join(words)


def read_runs(out: Path, study: dict[str, Any]) -> Runs:
    """All runs of a study. Refuses one that is still going on: a verdict in between is a look that was not planned."""
    runs: Runs = {arm: {} for arm in study["arms"]}
    unfinished = []
    for arm, seeds in runs.items():
        for seed in study["seeds"]:
            folder = out / "arms" / arm / f"seed{seed}"
            problem = _unfinished(folder, study["primary"]["name"]) if folder.is_dir() else None
            if problem:
                unfinished.append(f"{arm} seed {seed} ({problem})")
            elif folder.is_dir():
                seeds[seed] = _read_run(folder, study.get("lock"))
    unfinished += _not_begun(runs, study)
    if unfinished:
        raise Mistake(f"the study is not finished: {', '.join(unfinished)}; finish it with: {command(study, str(out))}")
    return runs


def _not_begun(runs: Runs, study: dict[str, Any]) -> list[str]:
    """Seeds that no arm has, and arms that have no seed. A seed that only some arms have is missing, and listed."""
    seeds = [seed for seed in study["seeds"] if not any(seed in mine for mine in runs.values())]
    arms = [arm for arm, mine in runs.items() if not mine]
    return [f"seed {seed} (not begun)" for seed in seeds] + [f"{arm} (not begun)" for arm in arms]


def _unfinished(folder: Path, primary: str) -> str | None:
    """What keeps a run from being judged, or None."""
    if not (folder / "status.json").exists():
        return "no status.json"
    status = read_json(folder / "status.json")
    if status["state"] == FAILED:
        return None
    if status["state"] != FINISHED:
        return f"{status['state']}, step {status['step']} of {status['steps']}"
    for name in ("measures.json", "audits.json", "steps.jsonl"):
        if not (folder / name).exists():
            return f"no {name}"
    return None if primary in read_json(folder / "measures.json") else f"measures.json has no {primary!r}"


def _read_run(folder: Path, lock: str | None) -> Run:
    status = read_json(folder / "status.json")
    if status.get("lock", lock) != lock:
        raise Mistake(f"{folder} is of another study: it was run under another lock; delete it and run the study again")
    measures, audits = (folder / name for name in ("measures.json", "audits.json"))
    return Run(
        folder=folder,
        state=status["state"],
        reason=status.get("reason"),
        seconds=status.get("seconds") or 0.0,
        steady=status.get("steady_seconds") or status.get("seconds") or 0.0,
        memory=status.get("peak_memory"),
        measures=read_json(measures) if measures.exists() else {},  # a failed run may have left none
        audits=read_json(audits, list) if audits.exists() else [],
    )


def outcome(runs: Mapping[Seed, Run], measure: Measure) -> Outcome:
    """What an arm's runs came to on a measure. A finished run whose measure is not finite has failed."""
    values: dict[Seed, float] = {}
    failed: dict[Seed, str] = {}
    for seed, run in runs.items():
        value = run.measures.get(measure.name)
        if run.state == FAILED:
            failed[seed] = run.reason or "failed without a reason"
        elif value is not None and math.isfinite(value):
            values[seed] = float(value)
        elif measure.name in run.measures:
            failed[seed] = f"{measure.name} is not finite"
    return Outcome(values, failed)


class Log(NamedTuple):
    """What a run's log says of every step; a step that was repeated after a resume counts once."""

    batches: dict[int, str]  # the hash of the batch
    losses: dict[int, float]  # of training, where it is a number


def read_log(run: Run) -> Log:
    """The log of a run's steps."""
    log = Log({}, {})
    with open(run.folder / "steps.jsonl", encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                step = json.loads(line)
            except json.JSONDecodeError:
                raise Mistake(f"{file.name} line {number} is not JSON; delete the run's folder and run again") from None
            log.batches[step["step"]] = step["batch"]
            if step.get("loss") is not None:
                log.losses[step["step"]] = step["loss"]
    return log


def first_difference(one: Mapping[int, str], other: Mapping[int, str]) -> int | None:
    """The first step at which two runs saw different batches, or None where all of them agree."""
    return min((step for step in one.keys() | other.keys() if one.get(step) != other.get(step)), default=None)
