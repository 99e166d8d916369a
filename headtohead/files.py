"""Files that are whole or absent: what a crash interrupts is never half a result."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headtohead.spec import Mistake

DRAFT = ".{name}.{process}.tmp"


class Damaged(Mistake):
    """A file of ours that does not hold what we wrote."""


def write_atomically(path: Path, content: str | bytes) -> None:
    """Put `content` in place of a file in one step: a reader sees the old file or the new one, never a piece."""
    path = Path(path)
    # Beside the target, because only a rename inside one file system is a single step.
    draft = path.with_name(DRAFT.format(name=path.name, process=os.getpid()))
    try:
        with open(draft, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A folder to fill, which takes its name when everything in it is written: a reader sees all of it or none."""
    folder = Path(os.path.abspath(folder))
    draft = folder.with_name(f".{folder.name}.{os.getpid()}.draft")
    draft.mkdir(parents=True)
    try:
        yield draft
        for path in [*draft.rglob("*"), draft]:
            handle = os.open(path, os.O_RDONLY)
            os.fsync(handle)
            os.close(handle)
        os.replace(draft, folder)  # an empty folder of that name makes way
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def sweep(folder: Path) -> None:
    """Remove the drafts that killed processes left in a folder, which no other process is at work in."""
    for draft in Path(folder).glob(DRAFT.format(name="*", process="*")):
        draft.unlink(missing_ok=True)


def read_json(path: Path, kind: type = dict) -> Any:
    """The value in a JSON file, of the kind that our files have."""
    try:
        value = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:  # not JSON, or not UTF-8
        raise Damaged(f"{path} is damaged ({' '.join(str(error).split())}); delete it and run again") from None
    if not isinstance(value, kind):
        raise Damaged(f"{path} is damaged (it holds {type(value).__name__}); delete it and run again")
    return value


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON, keys in their own order. NaN and infinity are refused: no other reader takes them."""
    write_atomically(path, json.dumps(value, indent=1, allow_nan=False, ensure_ascii=False) + "\n")
