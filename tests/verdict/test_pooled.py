"""The pooled error: the worked example, a regression on arms and seeds, and when it is refused."""

import numpy as np
import pytest
from printed import close

from headtohead.verdict.pooled import pooled, refusal
from headtohead.verdict.statistics import paired

ARMS = np.array([[3.41, 3.40, 3.42], [3.40, 3.395, 3.412], [3.405, 3.40, 3.41]])


def test_oracle():
    one, two = pooled(ARMS)
    assert close(one.sd**2 / 2, "7.94444e-6") and one.df == two.df == 4
    assert close(one.t, "-3.33135") and close(one.p, ".029069")
    assert close(two.t, "-2.17262") and close(two.p, ".095530")
    assert close(paired(ARMS[0], ARMS[1]).p, ".034091") and close(paired(ARMS[0], ARMS[2]).p, ".225403")
    assert refusal(ARMS) is None


@pytest.mark.parametrize("shape", [(3, 3), (5, 4)])
def test_the_error_is_that_of_a_regression_on_arms_and_seeds(shape):
    values = np.random.default_rng(0).normal(size=shape)
    arm, seed = np.indices(shape).reshape(2, -1)
    design = np.column_stack([arm == k for k in range(shape[0])] + [seed == k for k in range(1, shape[1])]).astype(
        float
    )
    _, rest, rank, _ = np.linalg.lstsq(design, values.ravel(), rcond=None)
    assert values.size - rank == (shape[0] - 1) * (shape[1] - 1)
    found = pooled(values, alpha=0.1)[1]
    assert found.sd**2 / 2 == pytest.approx(rest[0] / (values.size - rank))
    assert found.df == values.size - rank
    # the coefficient of arm 2 against arm 0, with its standard error
    covariance = np.linalg.inv(design.T @ design) * rest[0] / found.df
    contrast = np.zeros(design.shape[1])
    contrast[[0, 2]] = -1, 1
    assert found.se == pytest.approx(np.sqrt(contrast @ covariance @ contrast))


def test_with_one_challenger_it_would_be_the_paired_test():
    found, pair = pooled(ARMS[:2])[0], paired(ARMS[0], ARMS[1])
    assert (found.t, found.p, found.df) == (pytest.approx(pair.t), pytest.approx(pair.p), 2)
    assert found.interval == pytest.approx(pair.interval)


def test_what_is_refused():
    base = np.zeros(3)
    wide = np.array([base, [1.0, 2.0, 3.0], [1.0, 4.0, 7.0]])
    assert refusal(wide) is None  # exactly three times
    assert "factor of 3.1, more than 3" in refusal(wide * [[1], [1], [3.1 / 3]])
    assert refusal(ARMS[:2]) == "one challenger has nothing to pool with"
    assert refusal(ARMS[:, :1]) == "one seed has no spread"
    assert "no spread" in refusal(np.array([base, base, [1.0, 2.0, 3.0]]))


def test_three_seeds_find_more_with_it_and_no_true_difference_as_rarely():
    draw = np.random.default_rng(1)
    found = np.zeros((2, 2))
    for values in draw.normal(size=(2000, 5, 3)):
        for place, shift in enumerate((0.0, 3.0)):
            moved = values + shift * (np.arange(5) == 1)[:, None]
            found[place] += pooled(moved)[0].p < 0.05, paired(moved[0], moved[1]).p < 0.05
    assert found[0] / 2000 == pytest.approx([0.05, 0.05], abs=0.015)
    assert found[1, 0] > 1.4 * found[1, 1]
