"""What was asked for on the command line. Imports no torch, so that a finished study answers at once."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from headtohead.files import read_json
from headtohead.spec import Mistake, load

BUILTIN = Path(__file__).parent / "studies"
MOST_SEEDS = 10_000  # more is a slip of the finger, and would take a folder each
AS_TYPED = ("reference", "out")  # of a request: how it was typed, not what was asked
LOCKED = (
    *("study", "primary", "margin", "alpha", "seeds", "looks", "match", "grid", "claims", "arms", "fresh", "tuning"),
    *("texts", "code", "imports", "version"),
)
TUNE = "tuning"  # the purpose of a plan whose runs leave the tuning slice out and are scored on it
FIRST_TUNING_SEED = 1_000_000  # no verdict has a seed from here on
# what a finished run leaves
LEFT = ("recipe.json", "measures.json", "audits.json", "steps.jsonl", "documents.npz", "model.safetensors")


class Options(NamedTuple):
    """What the command line changes in a study."""

    size: str = "demo"
    seeds: int | None = None
    steps: int | None = None
    settings: tuple[tuple[str, str], ...] = ()
    against_itself: bool = False
    confirm: int | None = None
    tuned: str | None = None


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
        if Path(f"{reference}.py").is_file():
            raise Mistake(f"there is no built-in study {reference!r}; did you mean your file {reference}.py?")
        if Path(reference).exists():
            raise Mistake(f"{reference} is no study; give a .py file or a built-in name (`h2h list studies`)")
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


def lock_content(plan: dict[str, Any]) -> dict[str, Any]:
    """What may not change once the first run has begun."""
    return {name: plan.get(name) for name in LOCKED}


def lock_of(plan: dict[str, Any]) -> str:
    """The hash of what is locked."""
    content = json.dumps(lock_content(plan), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.blake2b(content.encode(), digest_size=16).hexdigest()


def as_locked(out: Path, plan: dict[str, Any]) -> bool:
    """Whether a folder's study.json still says what was locked before its first run, as study.lock has it."""
    path = out / "study.lock"
    return path.is_file() and lock_of(plan) == plan.get("lock") == read_json(path).get("lock")


def request(path: Path, options: Options, reference: str = "", out: Path | None = None) -> dict[str, Any]:
    """What was asked, as it is kept in study.json, and how it was typed."""
    plain = options._asdict() | {"settings": [list(pair) for pair in options.settings]}
    typed = {"reference": reference or str(path), "out": None if out is None else str(out)}
    return {"study": path.stem, "builtin": is_builtin(path), "hash": file_hash(path), **plain, **typed}


def options_from(asked: dict[str, Any]) -> Options:
    """The options that a request was made with."""
    settings = tuple((address, value) for address, value in asked["settings"])
    return Options(**{name: asked[name] for name in Options._fields if name in asked} | {"settings": settings})


def same_request(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether the same was asked, however it was typed."""
    bare = [{name: value for name, value in asked.items() if name not in AS_TYPED} for asked in (one, other)]
    return bare[0] == bare[1]


def same_sources(plan: dict[str, Any]) -> bool:
    """Whether the files that a study imports, and the texts of the package's own kinds, are what they were."""
    files = plan.get("files", {})
    if any(not Path(path).is_file() or file_hash(Path(path)) != mark for path, mark in files.items()):
        return False
    for arm, mark in plan.get("sources", {}).items():
        described = plan["arms"][arm]["text"]
        if described["part"].startswith("headtohead.") and load(described).identity() != mark:
            return False
    return True


def folder_for(study: str, options: Options) -> Path:
    """Where a study's runs lie, unless told."""
    words = [study, "" if options.size == "demo" else options.size]
    words += ["against-itself" if options.against_itself else "", "tuned" if options.tuned else ""]
    words += ["confirm" if options.confirm else ""]
    return Path("h2h-runs") / "-".join(filter(None, words))


def check_out(out: Path) -> None:
    """Refuse a folder that runs cannot go to, before anything is prepared."""
    place = out
    while not os.path.lexists(place):
        place = place.parent
    if not place.is_dir():
        raise Mistake(f"--out {out}: {place} is {'a file' if place.is_file() else 'no folder'}; name a new folder")
    if not os.access(place, os.W_OK | os.X_OK):
        raise Mistake(f"--out {out}: {place} cannot be written to; name a folder of your own")
    if place == out and plan_of(out) is None and not (out / "lock").is_file() and any(out.iterdir()):
        raise Mistake(
            f"--out {out}: the folder holds other things and no study; name a new folder, e.g. {out / 'study'}"
        )


def parse_settings(pairs: list[str]) -> tuple[tuple[str, str], ...]:
    """--set ADDRESS=VALUE, taken apart."""
    for pair in pairs:
        if "=" not in pair:
            raise Mistake(f"--set {pair}: write ADDRESS=VALUE, e.g. --set model.layers=3")
    return tuple((pair.partition("=")[0].strip(), pair.partition("=")[2].strip()) for pair in pairs)


def make_folder(out: Path) -> None:
    """Make the folder that runs go to, where the system lets us."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Mistake(f"{out} cannot be made: {error.strerror}; choose another folder with --out") from None


def study_folder(place: Path) -> Path:
    """A folder that holds a study, or the user's mistake."""
    if (place / "study.json").is_file():
        return place
    if not place.exists():
        wrong = f"there is no folder {place}"
    elif not place.is_dir():
        wrong = f"{place} is a file"
    else:
        wrong = f"{place} holds no study.json"
    above = [_near(parent) for parent in place.absolute().parents if (parent / "study.json").is_file()]
    below = [file.parent for home in (place, Path("h2h-runs")) for file in sorted(home.glob("*/study.json"))]
    raise Mistake(f"{wrong}; give the folder of a study, e.g. {[*above, *below, 'h2h-runs/softmax_one'][0]}")


def run_folder(place: Path, what: str = "model.safetensors") -> Path:
    """The folder of a finished run, or the user's mistake."""
    if (place / what).is_file() and (place / "recipe.json").is_file():
        return place
    if (place / "config.json").is_file():
        raise Mistake(f"{place} is a folder of transformers; make a run of it: h2h import {place}")
    if not place.exists():
        wrong = f"there is no folder {place}"
    elif (place / "recipe.json").is_file():
        wrong = f"{place} is the folder of a run that is not finished"
    else:
        wrong = f"{place} is not the folder of a finished run"
    ended = [
        file for pattern in ("arms/*/seed*", "*/seed*", "seed*") for file in sorted(place.glob(f"{pattern}/{what}"))
    ]
    raise Mistake(f"{wrong}; give {f'one, e.g. {ended[0].parent}' if ended else 'one, <study>/arms/<arm>/seed<k>'}")


def _near(path: Path) -> Path:
    """A path as it is said from here."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


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


def ended(folder: Path) -> bool:
    """Whether a run has come to its end, well or badly."""
    return state_of(folder)["state"] in ("finished", "failed")


def restarts_of(folder: Path) -> list[dict[str, Any]]:
    """The restarts that the runs of a seed have asked for, in any arm: every arm of the seed repeats them."""
    path = folder.parent.parent.parent / "restarts" / f"{folder.name}.json"
    return read_json(path, list) if path.is_file() else []


def whole(folder: Path) -> bool:
    """Whether a run has ended and what it left is still there, so that nothing is left to do.

    A run that restarts at all has something left to do when another arm of its seed was restarted since.
    """
    state = state_of(folder)
    failed = state["state"] == "failed"
    if "restarts" in state and state["restarts"] != restarts_of(folder):
        return False
    return ended(folder) and (failed or all((folder / name).is_file() for name in LEFT))


def first(plan: dict[str, Any], seeds: int) -> dict[str, Any]:
    """The plan with its first so many seeds, as a look at it has them."""
    return {**plan, "seeds": plan["seeds"][:seeds]}


def complete(out: Path, plan: dict[str, Any]) -> bool:
    """Whether nothing is left to do in any run."""
    return all(whole(folder) for _, _, folder in folders(out, plan))


def judged(out: Path, plan: dict[str, Any]) -> bool:
    """Whether the verdict and the page are there, and nothing of what they rest on was touched since.

    By the time at which the system saw a change of a file, which no program sets.
    """
    made = [out / name for name in ("verdict.json", "report.html")]
    if not all(path.is_file() for path in made):
        return False
    runs = [folder / name for _, _, folder in folders(out, plan) for name in (*LEFT, "status.json")]
    rests_on = [out / name for name in ("study.json", "study.lock", "earlier.json")] + runs
    touched = max(path.stat().st_ctime_ns for path in rests_on if path.is_file())
    verdict, page = (path.stat().st_mtime_ns for path in made)
    return page >= verdict >= touched and as_locked(out, plan)
