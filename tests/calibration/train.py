"""Real runs for the calibration on real training: python tests/calibration/train.py OUT PAIRED EXTRA [THREADS].

Trains every arm of the study `planted` with seeds 0 … PAIRED − 1, and its baseline alone with EXTRA seeds more, one run after
another in one process on one compiled route, into OUT/arms/<arm>/seed<k>. Goes on where it was stopped. judge.py reads them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch

from headtohead.plan import load_study
from headtohead.request import find_study, whole
from headtohead.run import Run
from headtohead.train import Route


def main(out: Path, paired: int, extra: int, threads: int = 1) -> None:
    """Seed by seed, so that what is there at any moment is a study of fewer seeds."""
    study = load_study(find_study("planted")).study
    arms, route = study.arms(), Route("cpu", threads, "bfloat16", True)
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True)
    out.mkdir(parents=True, exist_ok=True)
    (out / "route.json").write_text(json.dumps(route._asdict()))
    wanted = [(arm, seed) for seed in range(paired) for arm in arms]
    wanted += [("baseline", seed) for seed in range(paired, paired + extra)]
    for arm, seed in wanted:
        folder = out / "arms" / arm / f"seed{seed}"
        if whole(folder):
            continue
        folder.mkdir(parents=True, exist_ok=True)
        run = Run(folder, arms[arm], seed, route)
        run.execute()
        status = json.loads((folder / "status.json").read_text())
        print(arm, seed, status["state"], status["seconds"], flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
