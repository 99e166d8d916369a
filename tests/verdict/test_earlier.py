"""Spreads of earlier studies: which are taken, and what they lend."""

import json

import pytest
from study_folder import BASE, CHAL, STUDY, write_study

from headtohead.verdict.earlier import gather, read_earlier
from headtohead.verdict.judge import judge, judge_and_write
from headtohead.verdict.moderated import moderated, prior_from
from headtohead.verdict.statistics import paired

SCALE = {"texts": {"baseline": {"hash": "feed"}}, "training": {"baseline": 1000}, "operations": {"baseline": 6.54e11}}


def judged(place, **changes):
    """A folder with a verdict; `sd` is that of the first oracle."""
    write_study(place, {"baseline": BASE, "small": CHAL}, **(SCALE | {"lock": place.name} | changes))
    judge_and_write(place)
    return place


@pytest.fixture
def own(tmp_path):
    return write_study(tmp_path / "own", {"baseline": BASE, "small": CHAL}, **SCALE)


def lent(own):
    gather(own, STUDY | SCALE)
    return read_earlier(own)


def test_what_was_judged_beside_it_at_the_same_scale(tmp_path, own):
    judged(tmp_path / "a", operations={"baseline": 6.46e11})  # 6.5e11, as 6.54e11 is
    judged(tmp_path / "b", study="another")
    assert [(each["study"], each["challenger"], each["seeds"]) for each in lent(own)] == [
        ("smaller", "small", 5),
        ("another", "small", 5),
    ]
    assert lent(own)[0]["sd"] == pytest.approx(0.00328634, abs=1e-8)


@pytest.mark.parametrize(
    "change",
    [
        {"training": {"baseline": 2000}},
        {"operations": {"baseline": 7e11}},
        {"texts": {"baseline": {"hash": "beef"}}},
        {"primary": {"name": "loss", "unit": "nats per masked token", "better": "lower"}},
        {"lock": "ab12"},  # itself, elsewhere
        {"request": {"against_itself": True, "settings": []}},
        {"seeds": [0, 1]},  # UNREPLICATED
    ],
)
def test_what_lends_nothing(tmp_path, own, change):
    judged(tmp_path / "a", **change)
    assert lent(own) == []


def test_a_study_without_a_verdict_or_with_a_broken_one_lends_nothing(tmp_path, own):
    (judged(tmp_path / "a") / "verdict.json").unlink()
    (judged(tmp_path / "b") / "verdict.json").write_text("{")
    (tmp_path / "ledger.jsonl").write_text("")
    assert lent(own) == []


def test_what_is_judged_later_lends_nothing(tmp_path, own):
    assert lent(own) == []
    judged(tmp_path / "a")
    assert lent(own) == []


def test_three_earlier_comparisons_moderate_the_spread(tmp_path, own):
    for name in "abc":
        judged(tmp_path / name)
    before = judge(own)["arms"]["small"]
    assert before["moderated"] is None
    gather(own, STUDY | SCALE)
    found = judge(own)["arms"]["small"]
    by_hand = moderated(paired(BASE, CHAL), prior_from([(0.00328634, 5)] * 3))
    assert found["moderated"]["p"] == pytest.approx(by_hand.p, rel=1e-4)
    assert found["moderated"]["prior"] == {"sd": pytest.approx(0.0035, abs=4e-4), "df": 10.0, "comparisons": 3}
    assert (found["verdict"], found["p"]) == (before["verdict"], before["p"])
    json.dumps(found, allow_nan=False)
