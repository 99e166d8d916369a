"""What stands beside the test in a study's entries."""

import math

import numpy as np
import pytest
from study_folder import BASE, CHAL

from headtohead.verdict.judge import judge
from headtohead.verdict.pooled import pooled
from headtohead.verdict.stability import fisher

TINY = [3.409, 3.409, 3.417, 3.401, 3.412]


def arms(out):
    return judge(out)["arms"]


def test_the_pooled_spread(write):
    found = arms(write({"baseline": BASE, "small": CHAL, "tiny": TINY}))
    by_hand = pooled(np.array([BASE, CHAL, TINY]))
    for entry, own in zip(found.values(), by_hand, strict=True):
        assert (entry["pooled"]["p"], entry["pooled"]["df"]) == (pytest.approx(own.p), 8)
        assert entry["pooled"]["interval"] == pytest.approx(own.interval)


def test_a_challenger_that_has_no_spread_or_lacks_a_seed_is_not_pooled(write):
    found = arms(write({"baseline": BASE, "small": CHAL, "same": BASE, "gap": [*TINY[:4], None]}))
    assert [entry["pooled"] for entry in found.values()] == [None, None, None]


def test_unequal_spreads_are_not_pooled(write):
    found = arms(write({"baseline": BASE, "small": CHAL, "wild": [3.3, 3.5, 3.2, 3.6, 3.4]}))
    assert "factor of" in found["small"]["pooled"]["refused"] == found["wild"]["pooled"]["refused"]


def test_higher_is_better_is_shown_unflipped(write, run):
    primary = {"name": "accuracy", "unit": "accuracy", "better": "higher"}
    out = write({"baseline": [None] * 3, "small": [None] * 3, "tiny": [None] * 3}, primary=primary)
    values = {"baseline": [0.70, 0.71, 0.69], "small": [0.80, 0.82, 0.79], "tiny": [0.75, 0.77, 0.73]}
    for arm, scores in values.items():
        for seed, score in enumerate(scores):
            run(out, arm, seed, 3.0, measures={"accuracy": score})
    entry = arms(out)["small"]
    assert 0 < entry["pooled"]["interval"][0] < entry["effect"] < entry["pooled"]["interval"][1]
    assert entry["posterior"]["better"] > 0.99 and entry["posterior"]["worse_by_margin"] < 0.01


def test_failed_runs_are_compared(write):
    out = write({"baseline": BASE, "small": [math.nan, math.nan, math.nan, 3.4, 3.4]})
    found = arms(out)["small"]["stability"]
    assert (found["baseline"]["failed"], found["challenger"]["failed"]) == (0, 3)
    assert found["p"] == pytest.approx(fisher(0, 5, 3, 5)) == pytest.approx(0.167, abs=5e-4)
    assert found["baseline"]["rate"] == [0.0, pytest.approx(0.522, abs=5e-4)]
