"""Folders that are made once and then only read: $H2H_CACHE/text/<key>/, or ~/.cache/headtohead/text/<key>/.

A folder is written beside its place and renamed into it, so that it is whole or absent. Two processes that want the
same one: the first works, the other waits for a lock that the system takes back when its holder dies.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import inspect
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from headtohead.files import Damaged
from headtohead.spec import Mistake

try:
    import fcntl
except ImportError:  # Windows: both processes work, and the rename decides whose folder stays
    fcntl = None  # type: ignore[assignment]

T = TypeVar("T")

# The user's to mend, by another folder; any other OSError is ours.
UNUSABLE = {
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.ENOTDIR,
    errno.EEXIST,
}


def key(*parts: object) -> str:
    """A name for what is made from these parts."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def code(thing: Any) -> str:
    """The source of the module that defines a class, so that an edited class never meets what its older self made."""
    try:
        return inspect.getsource(sys.modules[thing.__module__])
    except (OSError, TypeError, KeyError):
        return str(time.time_ns())  # typed at a prompt: nothing to compare with, so made anew


def kept(name: str, write: Callable[[Path], None], read: Callable[[Path], T]) -> T:
    """`read` of the folder called `name`; where there is none, `write` fills it first."""
    folder = root() / name
    if not folder.is_dir():
        _once(folder, write)
    try:
        return read(folder)
    except (Damaged, ValueError, EOFError, FileNotFoundError) as error:
        raise Mistake(f"the prepared text in {folder} is damaged; delete that folder and run again") from error


def _once(folder: Path, write: Callable[[Path], None]) -> None:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _alone(folder.with_suffix(".lock")):
            if not folder.is_dir():
                _make(folder, write)
    except OSError as error:
        if error.errno in UNUSABLE or not folder.parent.is_dir():
            reason = f"cannot write {folder.parent} ({error.strerror})"
            raise Mistake(f"{reason}; set H2H_CACHE to a folder that can hold it") from error
        raise


def root() -> Path:
    return Path(os.environ.get("H2H_CACHE") or "~/.cache/headtohead").expanduser() / "text"


@contextlib.contextmanager
def _alone(lock: Path) -> Iterator[None]:
    if fcntl is None:
        yield
        return
    # The file stays: whoever removed it could leave two processes with locks on two files of one name.
    with open(lock, "a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        for dead in lock.parent.glob(f"{lock.stem}.*.partial"):
            shutil.rmtree(dead, ignore_errors=True)
        yield


def _make(folder: Path, write: Callable[[Path], None]) -> None:
    partial = folder.with_suffix(f".{os.getpid()}.partial")
    partial.mkdir()
    try:
        write(partial)
        for path in [*partial.rglob("*"), partial]:
            _to_disk(path)
        try:
            partial.rename(folder)
        except OSError:
            if not folder.is_dir():  # otherwise another process was first, with the same contents
                raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _to_disk(path: Path) -> None:
    """A name may reach the disk before what it names; after this a power cut leaves both or neither."""
    if os.name == "nt" and path.is_dir():  # Windows opens no folder
        return
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
