"""Hashes of files, remembered, so that gigabytes are not read again at every start.

A remembered hash is used only while the file's device, inode, size, time of change and time of its status are what they
were. The last one the system sets itself whenever the file is written or its times are set, so a copy with an old date
does not pass. What is left is a second write within one tick of a file system's clock: a hash is therefore remembered only
of a file that had not changed for `SETTLED` seconds when it was read, which is longer than the coarsest clock in use (FAT's
2 s). Someone who sets the machine's clock back can still deceive it; `rm` of the cache's folder `digests` forgets all.
"""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

from headtohead.files import Damaged, read_json, write_json
from headtohead.text import store
from headtohead.text.unpacked import opened

SETTLED = 3.0


def digests(files: list[Path]) -> dict[Path, str]:
    """The hash of each file's bytes."""
    if not files:
        return {}
    place = store.root() / "digests" / f"{store.key([str(file) for file in files])}.json"
    known = _remembered(place)
    found, fresh = {}, {}
    for file in files:
        before = _stamp(file)
        old = known.get(str(file))
        found[file] = old[1] if old and old[0] == before else _hashed(file)
        if before == _stamp(file) and ((old and old[0] == before) or _settled(before)):
            fresh[str(file)] = [before, found[file]]
    if fresh != known:
        _remember(place, fresh)
    return found


def _stamp(file: Path) -> list[int]:
    with opened(file) as stream:
        stat = os.fstat(stream.fileno())
    return [stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]


def _settled(stamp: list[int]) -> bool:
    """Whether the file was last touched long enough ago that a later write must show in its times."""
    return max(stamp[3:]) < time.time_ns() - SETTLED * 1e9


def _hashed(file: Path) -> str:
    with opened(file) as stream:
        return hashlib.file_digest(stream, "blake2b").hexdigest()[:64]


def _remembered(place: Path) -> dict[str, list]:
    try:
        return read_json(place)
    except (OSError, Damaged):
        return {}


def _remember(place: Path, known: dict[str, list]) -> None:
    """Only a help: where it cannot be written, the files are read again the next time."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        write_json(place, known)
    except OSError:
        return
