"""Documents and seeds: worked examples, analysis of variance by hand, and what the intervals cover."""

import math

import numpy as np
import pytest
from printed import close
from scipy import stats

from headtohead.spec import Mistake
from headtohead.verdict.documents import (
    MORE_SEEDS,
    MORE_TEXT,
    checkpoints,
    crossed,
    effects_by_document,
    mean_squares,
    resampled,
)

N, Z = [10, 20, 5, 40], [-1, -1, 0.5, -6]
X = [[-0.02, -0.01, 0, -0.03], [-0.01, 0, 0.01, -0.02], [-0.04, -0.02, -0.01, -0.05]]


# ---- two trained networks ------------------------------------------------------------------------------------------


def test_oracle_of_two_checkpoints():
    found = checkpoints(Z, N)
    assert (found.documents, found.effect) == (4, pytest.approx(-0.1, abs=1e-15))
    assert close(found.se, ".0377124")
    assert close(found.interval[0], "-.220018") and close(found.interval[1], ".020018")
    assert np.mean(np.divide(Z, N)) == pytest.approx(-0.05)  # the mean of means is another quantity


def test_with_equal_documents_it_is_the_t_test():
    z = np.random.default_rng(0).normal(-0.3, 1, size=40)
    found, theirs = checkpoints(z, np.full(40, 7), alpha=0.1), stats.ttest_1samp(z / 7, 0)
    limits = theirs.confidence_interval(0.9)
    assert found.p == pytest.approx(theirs.pvalue) and found.interval == pytest.approx((limits.low, limits.high))


def test_one_document_has_no_interval_and_equal_arms_no_p():
    alone = checkpoints([-3.0], [6])
    assert alone.effect == -0.5 and math.isnan(alone.se) and math.isnan(alone.p)
    same = checkpoints([0.0, 0.0, 0.0], [1, 2, 3])
    assert (same.effect, same.se, same.p) == (0.0, 0.0, 1.0)


def _documents(draw: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Documents of very different lengths, whose tokens' differences are off by what each document has of its own."""
    n = np.ceil(draw.lognormal(4, 1, size=count))
    return n * (0.02 + draw.normal(0, 0.05, size=count)) + np.sqrt(n) * draw.normal(0, 0.5, size=count), n


@pytest.mark.parametrize("count", [100, 400])
def test_coverage_of_the_ratio(count):
    draw = np.random.default_rng(count)
    inside = [low < 0.02 < high for low, high in (checkpoints(*_documents(draw, count)).interval for _ in range(2000))]
    assert np.mean(inside) == pytest.approx(0.95, abs=0.025)


@pytest.mark.parametrize("count", [30, 200])
def test_resampled_documents_agree_with_a_bootstrap_by_hand(count):
    z, n = _documents(np.random.default_rng(1), count)
    draws = np.random.default_rng(2).integers(0, count, size=(20_000, count))
    thetas = z[draws].sum(axis=1) / n[draws].sum(axis=1)
    low, high = (0.025, 0.975)
    if count >= 50:  # BCa: the percentiles moved by bias z0 and acceleration a of the jackknife
        theta, without = z.sum() / n.sum(), (z.sum() - z) / (n.sum() - n)
        z0, off = stats.norm.ppf(np.mean(thetas < theta)), without.mean() - without
        a = (off**3).sum() / (6 * (off**2).sum() ** 1.5)
        low, high = (
            stats.norm.cdf(z0 + (z0 + stats.norm.ppf(q)) / (1 - a * (z0 + stats.norm.ppf(q)))) for q in (low, high)
        )
    width = np.ptp(thetas)
    assert resampled(z, n) == pytest.approx(tuple(np.quantile(thetas, [low, high])), abs=0.015 * width)
    assert resampled(z, n) == resampled(z, n)


def test_few_documents_are_not_drawn_again():
    with pytest.raises(Mistake, match=r"19 documents.*at least 20"):
        resampled(np.ones(19), np.ones(19))


# ---- seeds and documents -------------------------------------------------------------------------------------------


def test_oracle_of_seeds_and_documents():
    found = crossed(X)
    assert close(found.effect, "-.0166667")
    printed = ("6.33333e-4", "6.44444e-4", "1.11111e-5")
    assert all(close(square, text) for square, text in zip(found.mean_squares, printed, strict=True))
    assert close(found.variances[0], "1.55556e-4") and close(found.variances[1], "2.11111e-4")
    assert close(found.variances[2], "1.11111e-5")
    assert close(found.se**2, "1.05556e-4") and close(found.se, ".0102740") and close(found.df, "4.73270")
    half = stats.t.ppf(0.975, found.df) * found.se
    assert found.interval == pytest.approx((found.effect - half, found.effect + half))
    assert found.p == pytest.approx(2 * stats.t.sf(-found.effect / found.se, found.df))
    assert close(np.mean(X, axis=1).std(ddof=1) / math.sqrt(3), ".0072648")  # what seeds alone would say


def test_share_of_the_seed_says_what_to_buy():
    seed, _, rest = crossed(X).variances
    assert crossed(X).share_seed == pytest.approx((seed / 3) / ((seed + rest / 4) / 3))
    assert crossed(X).advice == MORE_SEEDS
    draw = np.random.default_rng(0)
    only_text = draw.normal(0, 0.001, size=(5, 1)) + draw.normal(0, 1, size=(5, 50))
    assert crossed(only_text).share_seed < 0.5 and crossed(only_text).advice == MORE_TEXT
    assert crossed(np.zeros((3, 4))).advice is None


@pytest.mark.parametrize("shape", [(3, 4), (5, 60)])
def test_mean_squares_add_up_to_the_whole(shape):
    x = np.random.default_rng(3).normal(size=shape)
    rows, columns, rest = mean_squares(x)
    freedom = shape[0] - 1, shape[1] - 1
    whole = rows * freedom[0] + columns * freedom[1] + rest * freedom[0] * freedom[1]
    assert whole == pytest.approx(((x - x.mean()) ** 2).sum())
    # between rows it is scipy's one-way analysis of variance
    within = (whole - rows * freedom[0]) / (shape[0] * (shape[1] - 1))
    assert rows / within == pytest.approx(stats.f_oneway(*x).statistic)


def test_a_variance_is_never_below_either_factors():
    """Where what is left exceeds both, the sum would be negative."""
    x = np.array([[1.0, -1.0, 1.0], [-1.0, 1.0, -1.0]])
    squares, found = mean_squares(x), crossed(x)
    assert squares[0] + squares[1] < squares[2]
    assert found.se**2 == pytest.approx(max(squares[:2]) / 6) and found.df >= 1
    assert found.variances[:2] == (0.0, 0.0)


def test_documents_keep_every_seeds_own_ratio():
    draw = np.random.default_rng(4)
    n = draw.integers(5, 500, size=50)
    z = n * draw.normal(-0.01, 0.02, size=(4, 50))
    x = effects_by_document(z, n)
    assert x.mean(axis=1) == pytest.approx(z.sum(axis=1) / n.sum())
    one = checkpoints(z[0], n)  # and over documents its spread is that of the linearised ratio
    assert x[0].std(ddof=1) / math.sqrt(50) == pytest.approx(one.se)
    assert effects_by_document(z, np.full(50, 8)) == pytest.approx(z / 8)


def test_coverage_over_new_seeds_and_new_documents():
    """Of a question about both, intervals that know of one are too short: .953 against .887 and .907."""
    draw, inside = np.random.default_rng(5), np.zeros(3)
    critical = stats.t.ppf(0.975, 2)
    for _ in range(2000):
        x = draw.normal(0, 0.004, (3, 1)) + draw.normal(0, 0.05, (1, 200)) + draw.normal(0, 0.05, (3, 200))
        seeds, documents = x.mean(axis=1), x.mean(axis=0)
        low, high = crossed(x).interval
        inside += [
            low < 0 < high,
            abs(seeds.mean()) < critical * seeds.std(ddof=1) / math.sqrt(3),
            abs(documents.mean()) < 1.96 * documents.std(ddof=1) / math.sqrt(200),
        ]
    assert inside / 2000 == pytest.approx([0.953, 0.887, 0.907], abs=0.025)
