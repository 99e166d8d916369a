"""The moderated spread: worked examples, the prior found again from simulated studies, and its level."""

import math

import numpy as np
import pytest
from printed import close
from scipy import optimize, special

from headtohead.verdict.moderated import Prior, inverse_trigamma, moderated, prior_from
from headtohead.verdict.statistics import paired

BASE = [3.412, 3.405, 3.421, 3.398, 3.417]
CHAL = [3.401, 3.398, 3.407, 3.391, 3.404]
THREE = [-0.011, 0.004, -0.009]
PRIOR = Prior(0.005, 10)


def test_oracles():
    five, three = moderated(paired(BASE, CHAL), PRIOR), moderated(paired([0.0] * 3, THREE), PRIOR)
    assert close(five.sd, ".00457634") and close(five.t, "-5.08160") and close(five.p, ".000167271") and five.df == 14
    assert close(three.sd, ".00564702") and close(three.t, "-1.63584") and close(three.p, ".127814") and three.df == 12


def test_without_weight_it_is_the_paired_test():
    pair = paired(BASE, CHAL)
    found = moderated(pair, Prior(1.0, 0.0))
    assert (found.t, found.p, found.df) == (pytest.approx(pair.t), pytest.approx(pair.p), 4)
    assert found.interval == pytest.approx(pair.interval)


@pytest.mark.parametrize("x", [1e-4, 0.3, 1.0, 1.6449, 40.0, 1e5])
def test_inverse_trigamma(x):
    root = optimize.brentq(lambda y: special.polygamma(1, y) - x, 1e-4, 1e5, xtol=1e-14, rtol=1e-14)
    assert inverse_trigamma(x) == pytest.approx(root, rel=1e-9)


def _studies(draw, count, sd, df, seeds):
    """Studies whose true variances are sd² df / chi² with df degrees of freedom, as the prior supposes."""
    true = sd * np.sqrt(df / draw.chisquare(df, size=count))
    return [
        (s * math.sqrt(draw.chisquare(n - 1) / (n - 1)), n)
        for s, n in zip(true, draw.choice(seeds, count), strict=True)
    ]


@pytest.mark.parametrize("df", [2.0, 6.0])
def test_the_prior_is_found_again(df):
    found = prior_from(_studies(np.random.default_rng(0), 20_000, 0.005, df, [3, 5, 8]))
    assert found.sd == pytest.approx(0.005, rel=0.03) and found.df == pytest.approx(df, rel=0.06)


def test_earlier_studies_weigh_ten_degrees_at_most():
    alike = _studies(np.random.default_rng(1), 5000, 0.005, 1e9, [3, 5])
    assert prior_from(alike) == (pytest.approx(0.005, rel=0.02), 10)
    assert prior_from([(0.005, 5)] * 4) == (pytest.approx(0.005 * math.exp((math.log(2) - special.psi(2)) / 2)), 10)


def test_too_few_earlier_studies_lend_nothing():
    assert prior_from([(0.005, 5), (0.004, 5)]) is None
    assert prior_from([(0.005, 5), (0.004, 5), (0.0, 5), (0.1, 1)]) is None  # no spread, and one seed


def test_its_level_holds_where_its_supposition_does():
    draw = np.random.default_rng(2)
    true = 0.005 * np.sqrt(6 / draw.chisquare(6, size=4000))
    wrong = [moderated(paired(np.zeros(3), draw.normal(0, sd, 3)), Prior(0.005, 6)).p < 0.05 for sd in true]
    assert np.mean(wrong) == pytest.approx(0.05, abs=0.01)
