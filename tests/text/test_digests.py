"""Remembered hashes: files are read once, and never believed after a change."""

import hashlib
import os
import shutil

import pytest

from headtohead.text import digests as module
from headtohead.text.digests import digests


@pytest.fixture
def settled(tmp_path, monkeypatch):
    """A file whose times lie well behind the clock, and how often files were read."""
    monkeypatch.setenv("H2H_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "SETTLED", -1.0)
    path = tmp_path / "a.txt"
    path.write_text("one")
    reads = []
    hashed = module._hashed
    monkeypatch.setattr(module, "_hashed", lambda file: (reads.append(file.name), hashed(file))[1])
    return path, reads


def expected(path):
    return {path: hashlib.blake2b(path.read_bytes()).hexdigest()[:64]}


def test_an_unchanged_file_is_read_once(settled):
    path, reads = settled
    assert [digests([path]) for _ in range(3)] == [expected(path)] * 3 and reads == ["a.txt"]


@pytest.mark.parametrize("how", ["written", "same size and old times", "replaced", "another inode, all else equal"])
def test_a_changed_file_is_read_again(settled, how):
    path, reads = settled
    before, stat = digests([path]), path.stat()
    if how == "written":
        path.write_text("longer")
    elif how == "replaced":
        (path.parent / "new").write_text("two")
        os.replace(path.parent / "new", path)
    elif how == "same size and old times":
        path.write_text("two")
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    else:
        (path.parent / "new").write_text("two")
        shutil.copystat(path, path.parent / "new")
        os.replace(path.parent / "new", path)
    assert digests([path]) == expected(path) != before and len(reads) == 2


def test_what_was_touched_just_now_is_not_remembered(settled, monkeypatch):
    path, reads = settled
    monkeypatch.setattr(module, "SETTLED", 3.0)
    digests([path])
    digests([path])
    assert len(reads) == 2
    later = module.time.time_ns() + int(4e9)
    monkeypatch.setattr(module.time, "time_ns", lambda: later)
    digests([path])
    digests([path])
    assert len(reads) == 3


def test_a_damaged_or_unwritable_memory_is_no_harm(settled, tmp_path, monkeypatch):
    path, reads = settled
    digests([path])
    (memory,) = (tmp_path / "cache/text/digests").iterdir()
    memory.write_text("{")
    assert digests([path]) == expected(path) and len(reads) == 2
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("H2H_CACHE", str(tmp_path / "file"))
    assert digests([path]) == expected(path)
