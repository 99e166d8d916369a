"""What was asked for on the command line. Imports no torch, so that a finished study answers at once."""

from __future__ import annotations

import difflib
import hashlib
from pathlib import Path
from typing import Any, NamedTuple

from headtohead.files import read_json
from headtohead.spec import Mistake

BUILTIN = Path(__file__).parent / "studies"


class Options(NamedTuple):
    """What the command line changes in a study."""

    size: str = "demo"
    seeds: int | None = None
    steps: int | None = None
    settings: tuple[tuple[str, str], ...] = ()
    against_itself: bool = False
    confirm: int | None = None


def find_study(reference: str) -> Path:
    """The file of a built-in study or of the user's own."""
    if reference.endswith(".py") or "/" in reference:
        path = Path(reference)
        if not path.is_file():
            raise Mistake(
                f"there is no study file {reference}; write one, or see `h2h list studies` for the built-in ones"
            )
        return path
    path = BUILTIN / f"{reference}.py"
    if reference.startswith("_") or not path.is_file():
        known = builtin_studies()
        near = difflib.get_close_matches(reference, known, n=1, cutoff=0.0)[0]
        raise Mistake(f"there is no study {reference!r}; did you mean {near!r}? (`h2h list studies` has them all)")
    return path


def builtin_studies() -> list[str]:
    """Names of the built-in studies."""
    return sorted(path.stem for path in BUILTIN.glob("[a-z]*.py"))


def is_builtin(path: Path) -> bool:
    """Whether a study's file is one of the package's own."""
    return path.resolve().parent == BUILTIN.resolve()


def file_hash(path: Path) -> str:
    """The hash by which a copy of a study file is known."""
    return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()


def request(path: Path, options: Options) -> dict[str, Any]:
    """What was asked, as it is kept in study.json."""
    plain = options._asdict() | {"settings": [list(pair) for pair in options.settings]}
    return {"study": path.stem, "builtin": is_builtin(path), "hash": file_hash(path), **plain}


def parse_settings(pairs: list[str]) -> tuple[tuple[str, str], ...]:
    """--set ADDRESS=VALUE, taken apart."""
    for pair in pairs:
        if "=" not in pair:
            raise Mistake(f"--set {pair}: write ADDRESS=VALUE, e.g. --set model.layers=3")
    return tuple((pair.partition("=")[0].strip(), pair.partition("=")[2].strip()) for pair in pairs)


def plan_of(out: Path) -> dict[str, Any] | None:
    """The study.json of a folder, if there is one."""
    path = out / "study.json"
    return read_json(path) if path.is_file() else None


def folders(out: Path, plan: dict[str, Any]) -> list[tuple[str, int, Path]]:
    """Every run of a plan: arm, seed and folder; all arms of a seed before the next seed."""
    return [(arm, seed, out / "arms" / arm / f"seed{seed}") for seed in plan["seeds"] for arm in plan["arms"]]


def state_of(folder: Path) -> dict[str, Any]:
    """A run's status; `state` is "absent" where it never began."""
    path = folder / "status.json"
    return read_json(path) if path.is_file() else {"state": "absent"}


def complete(out: Path, plan: dict[str, Any]) -> bool:
    """Whether every run has ended."""
    return all(state_of(folder)["state"] in ("finished", "failed") for _, _, folder in folders(out, plan))
