"""Many runs on this machine: one process a core, a live line of what they are doing, and a stop that leaves no orphans."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headtohead.files import read_json
from headtohead.request import folders, state_of
from headtohead.spec import Mistake


def run_all(out: Path, plan: dict[str, Any], jobs: int) -> Iterator[list[dict[str, Any]]]:
    """Start `jobs` workers and yield the state of all runs until they have ended; then raise if one broke down."""
    logs = out / "logs"
    logs.mkdir(exist_ok=True)
    for _, _, folder in folders(out, plan):
        (folder / "error.txt").unlink(missing_ok=True)
    with workers(out, plan, jobs) as processes:
        while any(process.poll() is None for process in processes):
            yield snapshot(out, plan)
            time.sleep(0.25)
    yield snapshot(out, plan)
    report_breakdowns(out, plan, [process.returncode for process in processes])


@contextmanager
def workers(out: Path, plan: dict[str, Any], jobs: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Worker processes that live no longer than this block, nor than this process: their standard input is our hand."""
    threads = read_json(out / "route.json")["threads"]
    # a worker imports what this process could: what lies beside the study's file, too
    places = os.pathsep.join(place for place in sys.path if place)
    environment = os.environ | {
        "OMP_NUM_THREADS": str(threads),
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONPATH": places,
    }
    command = [sys.executable, "-m", "headtohead.launch.worker", str(out), plan["code"], str(len(plan["seeds"]))]
    processes = []
    try:
        for number in range(jobs):
            with open(out / "logs" / f"worker{number}.txt", "ab") as log:
                streams: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": log, "stderr": log}
                processes.append(subprocess.Popen(command, env=environment, **streams))
        yield processes
    finally:
        for process in processes:
            if process.poll() is None:
                process.terminate()
        for process in processes:
            process.wait()
            if process.stdin:
                process.stdin.close()


def snapshot(out: Path, plan: dict[str, Any]) -> list[dict[str, Any]]:
    """The state of every run."""
    return [{"arm": arm, "seed": seed, **state_of(folder)} for arm, seed, folder in folders(out, plan)]


def report_breakdowns(out: Path, plan: dict[str, Any], codes: list[int]) -> None:
    """A run that raised is neither finished nor a result: say which, and where its traceback is."""
    for arm, seed, folder in folders(out, plan):
        error = folder / "error.txt"
        if error.exists():
            last = error.read_text(encoding="utf-8").strip().splitlines()[-1]
            raise Breakdown(f"{arm}, seed {seed}: {last} (the whole traceback is in {error})")
    if any(codes):
        raise Breakdown(f"a worker ended with code {next(filter(None, codes))}; its last words are in {out / 'logs'}")


class Breakdown(Exception):
    """A run could not be carried out; the command says so and exits with 1."""


@contextmanager
def study_claimed(out: Path) -> Iterator[None]:
    """One command a study's folder at a time; the claim dies with the process."""
    import fcntl

    out.mkdir(parents=True, exist_ok=True)
    with open(out / "lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Mistake(
                f"another h2h run is at work in {out}; wait for it, or choose another folder with --out"
            ) from None
        yield
