"""Planned looks: their levels, what may end a study early, and how often all looks together are wrong."""

import json
import math

import numpy as np
import pytest
from printed import close
from scipy import stats

from headtohead.spec import Mistake
from headtohead.verdict import words
from headtohead.verdict.judge import judge
from headtohead.verdict.looks import planned, settled, share
from headtohead.verdict.statistics import paired


def test_oracle_of_the_usual_looks():
    looks = planned((3, 5, 8), 0.05)
    assert [(look.number, look.seeds) for look in looks] == [(1, 3), (2, 5), (3, 8)]
    critical = [stats.t.ppf(1 - look.alpha / 2, look.seeds - 1) for look in looks]
    assert all(close(value, text) for value, text in zip(critical, ("7.649", "3.961", "3.128"), strict=True))


def test_an_open_end_spends_no_more_than_alpha():
    assert sum(share(k, 0.05) for k in range(1, 1_000_000)) == pytest.approx(0.05, abs=1e-6)
    looks = planned((3, 5, 8), 0.05, open_ended=True)
    assert [look.alpha for look in looks] == pytest.approx([0.3 / math.pi**2 / k**2 for k in (1, 2, 3)])
    assert planned((), 0.05) == []


@pytest.mark.parametrize("looks", [(3, 3, 8), (8, 5, 3), (5, 4)])
def test_looks_rise(looks):
    with pytest.raises(Mistake, match="must rise"):
        planned(looks, 0.05)


def test_a_look_needs_seeds_for_a_verdict():
    with pytest.raises(Mistake, match="begin with 3"):
        planned((2, 5), 0.05)


def test_what_ends_a_study_early():
    assert [word for word in words.WORDS if not settled([word])] == [
        words.UNREPLICATED,
        words.NOT_WORSE,
        words.NOT_BETTER,
        words.INCONCLUSIVE,
    ]
    assert settled([words.BETTER, words.EQUIVALENT]) and not settled([words.BETTER, words.NOT_WORSE])


def _ps(d: np.ndarray, seeds: int) -> np.ndarray:
    return stats.ttest_1samp(d[:, :seeds], 0, axis=1).pvalue


def test_planned_looks_keep_the_level_and_unplanned_ones_do_not():
    d = np.random.default_rng(0).normal(size=(20_000, 10))
    looked = np.any([_ps(d, look.seeds) < look.alpha for look in planned((3, 5, 8), 0.05)], axis=0)
    assert looked.mean() == pytest.approx(0.042, abs=0.005)
    until = np.any([_ps(d, seeds) < 0.05 for seeds in range(3, 11)], axis=0)
    assert until.mean() == pytest.approx(0.166, abs=0.009)


# ---- in a study's folder -------------------------------------------------------------------------------------------

BASE = [3.412, 3.405, 3.421, 3.398, 3.417, 3.409, 3.411, 3.402]
CHAL = [3.401, 3.409, 3.407, 3.396, 3.404, 3.398, 3.406, 3.397]


@pytest.fixture
def looked(write):
    """A study with three looks, of whose seeds so many have been run."""

    def make(count, **changes):
        arms = {
            name: [*values[:count], *[None] * (8 - count)] for name, values in (("baseline", BASE), ("small", CHAL))
        }
        return write(arms, looks=[3, 5, 8], margin=0.01, **changes)

    return make


@pytest.mark.parametrize(("count", "number", "seeds"), [(3, 1, 3), (4, 1, 3), (5, 2, 5), (7, 2, 5), (8, 3, 8)])
def test_a_folder_is_judged_at_the_last_look_it_has_reached(looked, count, number, seeds):
    found = judge(looked(count))
    entry, pair = found["arms"]["small"], paired(BASE[:seeds], CHAL[:seeds], alpha=0.05 / 3)
    assert found["look"] == {"number": number, "seeds": seeds, "alpha": 0.05 / 3, "planned": [3, 5, 8]}
    assert (found["seeds"], entry["seeds"], entry["missing"]["challenger"]) == (list(range(seeds)), seeds, [])
    assert entry["interval"] == pytest.approx(pair.interval) and entry["interval_level"] == 1 - 0.05 / 3
    assert entry["p"] == pytest.approx(pair.p)
    assert (entry["verdict"] == "BETTER") == (pair.p < 0.05 / 3)


def test_before_the_first_look_there_is_nothing_to_judge(looked):
    with pytest.raises(Mistake, match=r"seed 2 \(not begun\)"):
        judge(looked(2))


def test_a_run_of_the_next_look_that_is_going_on_is_not_looked_at(looked):
    out = looked(5)
    status = out / "arms/small/seed4/status.json"
    status.write_text(json.dumps(json.loads(status.read_text()) | {"state": "running"}))
    assert judge(out)["look"]["seeds"] == 3


def test_what_is_open_goes_on_to_the_next_look_and_after_the_last_to_fresh_seeds(looked):
    out = looked(3)
    assert judge(out)["arms"]["small"]["command"] == f"h2h run smaller --out {out}"


def test_after_the_last_look_fresh_seeds_are_needed(write):
    arms = {"baseline": BASE, "small": [value + 0.001 * (-1) ** k for k, value in enumerate(BASE)]}
    entry = judge(write(arms, looks=[3, 5, 8], margin=1e-5))["arms"]["small"]
    assert entry["verdict"] == "INCONCLUSIVE" and " --confirm " in entry["command"]


def test_equivalence_too_is_shown_at_the_looks_own_level(looked):
    """p of TOST between α/3 and α: settled by a single look, open at one of three."""
    out = looked(8)
    pair = paired(BASE, CHAL)
    assert pair.mean < 0
    assert judge(out)["arms"]["small"]["interval_tost"] == pytest.approx(paired(BASE, CHAL, 0.05 / 3).interval_tost)
