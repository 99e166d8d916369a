"""Aggregates over tasks against scipy's trimmed mean and rank test, and what their intervals cover."""

import numpy as np
import pytest
from scipy import stats

from headtohead.spec import Mistake
from headtohead.verdict.tasks import aggregate, drawn, improvement, interquartile_mean, probability_of_improvement


def _scores(seed: int, runs: int = 5, tasks: int = 8, shift: float = 0.0) -> np.ndarray:
    draw = np.random.default_rng(seed)
    return draw.normal(0.8 + shift, 0.05, size=(runs, tasks)) + np.linspace(-0.1, 0.1, tasks)


@pytest.mark.parametrize("shape", [(1, 5), (3, 5), (5, 8), (2, 9)])
def test_the_middle_half_is_scipys_trimmed_mean(shape):
    scores = np.random.default_rng(0).normal(size=shape)
    assert interquartile_mean(scores) == pytest.approx(stats.trim_mean(scores, 0.25, axis=None))
    assert aggregate(scores).value == pytest.approx(stats.trim_mean(scores, 0.25, axis=None))


def test_one_wild_task_does_not_move_it():
    scores = _scores(1)
    wild = scores.copy()
    wild[:, 7] = 50.0
    assert interquartile_mean(wild) < scores.max()


def test_improvement_is_mann_and_whitneys_u():
    base, chal = np.round(_scores(2), 1), np.round(_scores(3, runs=4, shift=0.03), 1)  # rounding makes ties
    tasks = [stats.mannwhitneyu(chal[:, k], base[:, k]).statistic / (4 * 5) for k in range(8)]
    assert improvement(base, chal) == pytest.approx(np.mean(tasks))
    assert improvement(base, chal) + improvement(chal, base) == pytest.approx(1.0)
    assert probability_of_improvement(base, chal).value == pytest.approx(np.mean(tasks))


def test_runs_are_drawn_inside_their_task():
    scores = np.arange(5)[:, None] + 100.0 * np.arange(6)
    again = drawn(scores, np.random.default_rng(0), resamples=400)
    assert again.shape == (400, 5, 6) and (again // 100 == np.arange(6)).all()
    assert np.unique(again[:, :, 0]).tolist() == [0, 1, 2, 3, 4]
    assert (again[:, :, 0] != again[:, :, 1] - 100).any()  # each task draws for itself


def test_intervals_are_those_of_a_bootstrap_by_hand():
    scores, draw = _scores(4, runs=10), np.random.default_rng(9)
    by_hand = [
        stats.trim_mean(np.column_stack([draw.choice(column, size=10) for column in scores.T]), 0.25, axis=None)
        for _ in range(3000)
    ]
    assert aggregate(scores).interval == pytest.approx(np.quantile(by_hand, [0.025, 0.975]), abs=0.002)
    assert aggregate(scores) == aggregate(scores)


def test_coverage_at_ten_runs():
    truth = float(interquartile_mean(_scores(5, runs=200_000)))
    inside = [low < truth < high for low, high in (aggregate(_scores(seed, runs=10)).interval for seed in range(200))]
    assert np.mean(inside) > 0.88


def test_what_is_refused():
    with pytest.raises(Mistake, match="5 tasks or more"):
        aggregate(np.ones((3, 4)))
    with pytest.raises(Mistake, match="both arms have"):
        probability_of_improvement(np.ones((3, 5)), np.ones((3, 6)))
    with pytest.raises(Mistake, match="no score"):
        aggregate(np.full((3, 5), np.nan))
