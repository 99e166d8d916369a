"""Planned looks: their levels, what may end a study early, and how often all looks together are wrong."""

import math

import numpy as np
import pytest
from printed import close
from scipy import stats

from headtohead.spec import Mistake
from headtohead.verdict import words
from headtohead.verdict.looks import planned, settled, share


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
