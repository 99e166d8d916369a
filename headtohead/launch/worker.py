"""A process that takes the runs of a study one after another: python -m headtohead.launch.worker OUT HASH."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from pathlib import Path

import torch

from headtohead.files import read_json, write_atomically
from headtohead.plan import arms_of
from headtohead.request import folders, plan_of, whole
from headtohead.run import Run, claimed
from headtohead.spec import Mistake
from headtohead.train import Route


def die_with_parent() -> None:
    """End when the other end of standard input is gone, however it went."""

    def watch() -> None:
        while os.read(0, 1):  # not sys.stdin, whose lock would be held when the interpreter ends
            pass
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def work(out: Path, trusted: str | None) -> int:
    """Do what is left of a study; how many runs broke down."""
    plan = plan_of(out)
    if plan is None:
        raise Mistake(f"{out} holds no study")
    chosen = read_json(out / "route.json")
    route = Route(**{name: chosen[name] for name in Route._fields})
    torch.set_num_threads(route.threads)
    torch.use_deterministic_algorithms(route.device == "cpu")
    arms = arms_of(out, plan, trusted)
    broken = 0
    for arm, seed, folder in folders(out, plan):
        if whole(folder):
            continue
        with claimed(folder) as mine:
            if not mine or whole(folder):
                continue
            torch._dynamo.reset()  # every run compiles as if it were alone, so that the order of runs cannot matter
            try:
                run = Run(folder, arms[arm], seed, route, plan["lock"], plan["primary"]["name"])
                if run.tokens.fingerprint != plan["texts"][arm]["hash"]:
                    raise Mistake("the text is not the one that was locked; put it back or start in another folder")
                run.execute()
            except Exception:
                broken += 1
                write_atomically(folder / "error.txt", traceback.format_exc())
    return broken


if __name__ == "__main__":
    die_with_parent()
    sys.exit(1 if work(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None) else 0)
