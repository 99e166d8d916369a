"""A process that takes a study's runs one after another: python -m headtohead.launch.worker OUT HASH SEEDS."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

import torch

from headtohead.files import read_json, write_atomically
from headtohead.plan import arms_of
from headtohead.request import TUNE, first, folders, plan_of, whole
from headtohead.run import Run, Terms, claimed
from headtohead.spec import Mistake
from headtohead.study import Recipe
from headtohead.train import Route


def die_with_parent() -> None:
    """End when the other end of standard input is gone, however it went."""

    def watch() -> None:
        while os.read(0, 1):  # not sys.stdin, whose lock would be held when the interpreter ends
            pass
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def work(out: Path, trusted: str | None, seeds: int) -> int:
    """Do what is left of a study's first so many seeds; how many runs broke down."""
    whole_plan = plan_of(out)
    if whole_plan is None:
        raise Mistake(f"{out} holds no study")
    plan = first(whole_plan, seeds)
    chosen = read_json(out / "route.json")
    route = Route(**{name: chosen[name] for name in Route._fields})
    torch.set_num_threads(route.threads)
    torch.use_deterministic_algorithms(route.device == "cpu")
    arms = arms_of(out, plan, trusted)
    broken: set[Path] = set()
    while _pass(out, plan, route, arms, broken):  # again, where a restart of one arm left others something to repeat
        pass
    return len(broken)


def _pass(out: Path, plan: dict[str, Any], route: Route, arms: dict[str, Recipe], broken: set[Path]) -> bool:
    """Do every run that is not whole and that nobody else is at; whether there was any. `broken` are those that raised."""
    done = False
    for arm, seed, folder in folders(out, plan):
        if whole(folder) or folder in broken:
            continue
        with claimed(folder) as mine:
            if not mine or whole(folder):
                continue
            done = True
            torch._dynamo.reset()  # every run compiles as if it were alone, so that the order of runs cannot matter
            try:
                baseline = None if arm == plan["baseline"] else arms.get(plan["baseline"])  # a tuning has none
                terms = Terms(plan["lock"], plan["primary"]["name"], baseline)
                run = Run(folder, arms[arm], seed + plan.get("fresh", {}).get(arm, 0), route, terms)
                if run.tokens.fingerprint != plan["texts"][arm]["hash"]:
                    raise Mistake("the text is not the one that was locked; put it back or start in another folder")
                if plan.get("purpose") == TUNE:
                    run.tokens = run.tokens.for_tuning()
                run.execute()
            except Exception:
                broken.add(folder)
                write_atomically(folder / "error.txt", traceback.format_exc())
    return done


if __name__ == "__main__":
    die_with_parent()
    sys.exit(1 if work(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])) else 0)
