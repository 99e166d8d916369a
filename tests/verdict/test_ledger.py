"""The ledger of challengers: what is one challenger, what is never forgotten, and what it does to a verdict."""

import json
import shutil

import pytest
from study_folder import BASE, CHAL, STUDY

from headtohead.spec import Mistake
from headtohead.verdict.judge import judge
from headtohead.verdict.ledger import abandoned, entries, register


def plan(**changed):
    return {"study": "smaller", "lock": "ab12", "changed": {name: {"a": [0, new]} for name, new in changed.items()}}


def test_challengers_of_other_folders_and_of_deleted_ones_are_kept(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
    register(one, plan(tiny=1, small=2))
    shutil.rmtree(one)
    register(two, plan(small=2, large=3))
    assert abandoned(two, plan(small=2, large=3)) == ["tiny"]
    one.mkdir()
    register(one, plan(tiny=1, small=2))
    assert abandoned(one, plan(tiny=1, small=2)) == ["large"]
    assert len((tmp_path / "ledger.jsonl").read_text().splitlines()) == 3
    moved = tmp_path / "elsewhere" / "one"
    moved.parent.mkdir()
    shutil.move(one, moved)  # a folder knows what it needs
    assert abandoned(moved, plan(tiny=1)) == ["small", "large"]


def test_registering_again_changes_no_file(tmp_path):
    out = tmp_path / "s"
    out.mkdir()
    register(out, plan(small=2))
    before = [(path, path.read_text(), path.stat().st_mtime_ns) for path in sorted(tmp_path.rglob("*.jsonl"))]
    register(out, plan(small=2))
    assert before == [(path, path.read_text(), path.stat().st_mtime_ns) for path in sorted(tmp_path.rglob("*.jsonl"))]


def test_what_is_one_challenger(tmp_path):
    (one,) = entries(plan(small=2))
    assert entries(plan(renamed=2))[0]["change"] == one["change"] != entries(plan(small=3))[0]["change"]
    assert entries({"study": "smaller", "changed": {"itself": {}}}) == []  # the baseline against itself
    out = tmp_path / "s"
    out.mkdir()
    register(out, plan(small=2))
    register(out, {**plan(other=9), "study": "another"})
    assert abandoned(out, plan(small=2)) == []  # another study is another family


def test_abandoned_challengers_count_in_the_family(write):
    arms = {"baseline": BASE, "small": CHAL}
    out = write(arms)
    alone = judge(out)["arms"]["small"]
    before = STUDY["changed"] | {"tiny": {"model.head": [0, 1]}, "huge": {"model.head": [0, 2]}}
    register(out, STUDY | {"changed": before})
    found = judge(out)
    entry = found["arms"]["small"]
    assert found["abandoned"] == ["tiny", "huge"]
    assert entry["p_adjusted"] == pytest.approx(3 * alone["p"])
    assert entry["detectable"] == pytest.approx(2.292 * 0.00328634, rel=1e-3)  # the level of one in three
    assert entry["interval_simultaneous"][0] < alone["interval_simultaneous"][0]


def test_a_broken_line_is_a_mistake(tmp_path):
    out = tmp_path / "s"
    out.mkdir()
    (out / "ledger.jsonl").write_text(json.dumps(entries(plan(small=2))[0]) + "\n{broken\n")
    with pytest.raises(Mistake, match="no JSON"):
        abandoned(out, plan(small=2))


def test_a_line_that_a_power_cut_tore_is_no_line(tmp_path):
    out = tmp_path / "s"
    out.mkdir()
    register(out, {"study": "s", "lock": "a", "changed": {"one": {"model.layers": ["1", "2"]}}})
    beside = tmp_path / "ledger.jsonl"
    beside.write_text(beside.read_text() + '{"study": "s", "chal')
    register(out, {"study": "s", "lock": "b", "changed": {"two": {"model.layers": ["1", "3"]}}})
    assert [json.loads(line)["challenger"] for line in beside.read_text().splitlines()] == ["one", "two"]
    assert abandoned(out, {"study": "s", "changed": {"two": {"model.layers": ["1", "3"]}}}) == ["one"]


def test_another_rate_or_length_makes_no_other_challenger(tmp_path):
    """Tuned, and matched by time that is measured anew in every folder, it stays the challenger that it was."""
    out = tmp_path / "s"
    out.mkdir()
    plain = {"study": "s", "lock": "a", "changed": {"one": {"model.layers": ["1", "2"]}}}
    register(out, plain)
    steps = {"one": {"model.layers": ["1", "2"], "steps": ["200", "81"]}}
    made = {"study": "s", "lock": "b", "changed": steps, "made": {"one": ["one", {"steps": 81}]}}
    register(out, made)
    assert abandoned(out, made) == abandoned(out, plain) == []
    assert abandoned(out, made | {"made": {}}) == ["one"]  # where the study itself says so, it is another
