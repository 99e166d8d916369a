"""What follows a spike: a return to well before it, repeated by every arm of the seed, so that pairs stay pairs.

The restarts of a seed lie in the study's folder. They decide which batch each step has, and nothing else does: an arm that
repeats another's restart trains as if it had been told beforehand.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import nn
from torch.optim import Optimizer

from headtohead.audit.spikes import Detector
from headtohead.checkpoint import progress_of, save_checkpoint
from headtohead.files import write_json
from headtohead.request import restarts_of
from headtohead.study import Recipe

EVERY = 100  # steps between points of return
BEFORE = 100  # a return is at least so many before the spike
KEPT = 4  # points on disk
MOST = 2  # restarts that a run may ask for
SHARE, LARGEST = 0.005, 500  # of all batches, left out by a restart
SPIKE = "spike"

Restart = dict[str, Any]  # arm, spike: step, z, from: step, skip: batches, reseed: bool


def source(restarts: Sequence[Restart], seed: int, step: int) -> tuple[int, int]:
    """The seed and the number of the batch that a step has."""
    passed = [(number, one) for number, one in enumerate(restarts, 1) if one["from"] <= step]
    reseeds = [number for number, one in passed if one["reseed"]]
    return reseeded(seed, reseeds[-1]) if reseeds else seed, step + sum(one["skip"] for _, one in passed)


def reseeded(seed: int, attempt: int) -> int:
    """Another seed for order and dropout."""
    return int.from_bytes(hashlib.blake2b(f"{seed}/restart/{attempt}".encode(), digest_size=7).digest(), "little")


def points(folder: Path) -> list[Path]:
    """Every state of a run on disk."""
    return sorted([*folder.glob("checkpoint.safetensors"), *folder.glob("point-*.safetensors")])


def keep_point(folder: Path, network: nn.Module, optimizers: list[Optimizer], progress: dict[str, Any]) -> None:
    """A point of return; the oldest give way."""
    save_checkpoint(folder / f"point-{progress['steps']:09d}.safetensors", network, optimizers, progress)
    for old in sorted(folder.glob("point-*.safetensors"))[:-KEPT]:
        old.unlink()


def furthest(folder: Path, lock: str, restarts: Sequence[Restart]) -> Path | None:
    """The state with most steps whose batches were those that the restarts give.

    One that is damaged, or was left under another lock, is no start for this run.
    """
    told = [(progress_of(path) or {}, path) for path in points(folder)]
    fits = [
        (about["steps"], path)
        for about, path in told
        if about.get("lock") == lock
        and _until(about.get("restarts", []), about["steps"]) == _until(restarts, about["steps"])
    ]
    return max(fits)[1] if fits else None


def _until(restarts: Sequence[Restart], step: int) -> list[Restart]:
    return [one for one in restarts if one["from"] < step]


class Watch:
    """Looks at every loss of a run, from the first in its log on, and asks for a restart where one spikes."""

    def __init__(self, folder: Path, recipe: Recipe, log: Path) -> None:
        self.folder, self.recipe = folder, recipe
        self.detector = Detector(recipe.schedule.warmup)
        for line in log.read_text(encoding="utf-8").splitlines() if log.exists() else []:
            self.detector.add(json.loads(line)["loss"])

    def restarted(self, step: int, loss: float, norm: float) -> bool:
        """Whether this step made the run ask for a restart, which then is on disk."""
        if math.isfinite(loss) and math.isfinite(norm):
            z = self.detector.add(loss)
            if z is None:
                return False
            began = step - self.detector.out + 1
        else:
            z, began = None, step
        return ask(self.folder, self.recipe, began, z)


def ask(folder: Path, recipe: Recipe, spike: int, z: float | None) -> bool:
    """Add a restart to those of the seed, unless this run has had all that it may."""
    home, arm = folder.parent.parent.parent / "restarts", folder.parent.name
    home.mkdir(exist_ok=True)
    with open(home / "lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        known = restarts_of(folder)
        if sum(one["arm"] == arm for one in known) >= MOST:
            return False
        start = max(0, (spike - BEFORE) // EVERY * EVERY)
        skip = min(LARGEST, math.ceil(SHARE * recipe.steps)) if recipe.restart == "skip" else 0
        told = {"arm": arm, "spike": spike, "z": None if z is None else round(z, 1)}
        one = told | {"from": start, "skip": skip, "reseed": recipe.restart == "reseed"}
        write_json(home / f"{folder.name}.json", [*known, one])
    return True
