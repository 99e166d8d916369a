"""A file is whole or absent, whatever happens while it is written."""

import json
import os

import pytest

from headtohead.files import read_json, sweep, whole_folder, write_atomically, write_json
from headtohead.spec import Mistake


def test_what_is_written_is_read(tmp_path):
    value = {"b": [1, 2.5, None], "a": "größer → kleiner"}
    write_json(tmp_path / "x.json", value)
    assert read_json(tmp_path / "x.json") == value
    text = (tmp_path / "x.json").read_bytes().decode("utf-8")
    assert text == json.dumps(value, indent=1, ensure_ascii=False) + "\n"
    assert text.index('"b"') < text.index('"a"')  # keys stay in their own order


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_no_number_that_json_does_not_know(tmp_path, value):
    write_json(tmp_path / "x.json", {"loss": 1.0})
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json(tmp_path / "x.json", {"loss": value})
    assert read_json(tmp_path / "x.json") == {"loss": 1.0}


def test_a_crash_before_the_rename_leaves_the_old_file_and_no_draft(tmp_path, monkeypatch):
    path = tmp_path / "verdict.json"
    write_atomically(path, "old")

    def full_disk(descriptor):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="no space"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["verdict.json"]


def test_the_text_is_on_disk_before_it_takes_the_name(tmp_path, monkeypatch):
    order = []
    sync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda descriptor: (order.append("fsync"), sync(descriptor))[1])
    monkeypatch.setattr(os, "replace", lambda *names: (order.append("replace"), replace(*names))[1])
    write_atomically(tmp_path / "x", "a\n")
    assert order == ["fsync", "replace"]
    assert (tmp_path / "x").read_bytes() == b"a\n"


def test_bytes_are_written_as_they_are(tmp_path):
    write_atomically(tmp_path / "x", b"\x00\xff\r\n")
    assert (tmp_path / "x").read_bytes() == b"\x00\xff\r\n"


def test_others_may_read_it_as_they_may_read_any_new_file(tmp_path):
    (tmp_path / "plain").write_text("")
    write_atomically(tmp_path / "atomic", "")
    assert (tmp_path / "atomic").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"null", b"\xff{}"])
def test_a_file_of_other_contents_is_damaged(tmp_path, content):
    (tmp_path / "x.json").write_bytes(content)
    with pytest.raises(Mistake, match=r"x\.json is damaged \(.+\); delete it and run again") as raised:
        read_json(tmp_path / "x.json")
    assert "\n" not in str(raised.value)


def test_a_list_is_read_where_one_is_expected(tmp_path):
    write_json(tmp_path / "x.json", [1])
    assert read_json(tmp_path / "x.json", list) == [1]


def test_drafts_that_the_dead_left_are_swept(tmp_path):
    (tmp_path / ".x.json.4711.tmp").write_text("half")
    (tmp_path / "x.json").write_text("{}")
    (tmp_path / "notes.tmp").write_text("the user's")
    sweep(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["notes.tmp", "x.json"]


def test_a_folder_is_whole_or_absent(tmp_path):
    """It appears with everything in it, takes the place of an empty one, and leaves nothing where its making fails."""
    for name in ("new", "empty"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        with whole_folder(tmp_path / name) as draft:
            (draft / "a").write_text("a")
            assert not [*(tmp_path / name).glob("*")]
        assert (tmp_path / name / "a").read_text() == "a"
    with pytest.raises(ValueError), whole_folder(tmp_path / "broken") as draft:
        (draft / "a").write_text("a")
        raise ValueError
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "new"]
