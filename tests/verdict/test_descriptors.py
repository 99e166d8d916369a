"""The posterior: the worked example, and a simulation that draws it."""

import numpy as np
import pytest
from printed import close

from headtohead.verdict.descriptors import posterior
from headtohead.verdict.statistics import paired

BASE = [3.412, 3.405, 3.421, 3.398, 3.417]
CHAL = [3.401, 3.398, 3.407, 3.391, 3.404]


def test_oracle():
    pair = paired(BASE, CHAL)
    found = posterior(pair, 0.017053)
    assert close(found.better, ".998948") and close(found.within_margin, ".994674")
    assert close(posterior(pair, 0.005).better_by_margin, ".989344")
    assert found.better_by_margin + found.within_margin + found.worse_by_margin == pytest.approx(1)


def test_the_posterior_is_drawn_from_a_flat_prior():
    """sd² ~ (n - 1) s² / chi², then d ~ N(mean, sd² / n)."""
    d, draw = np.array([-0.011, 0.004, -0.009]), np.random.default_rng(0)
    sd = np.sqrt(2 * d.var(ddof=1) / draw.chisquare(2, size=400_000))
    drawn = draw.normal(d.mean(), sd / np.sqrt(3))
    shares = (drawn < 0).mean(), (abs(drawn) < 0.01).mean(), (drawn > 0.01).mean(), (drawn < -0.01).mean()
    assert posterior(paired([0.0] * 3, d), 0.01) == pytest.approx(shares, abs=0.003)


def test_without_a_spread_there_is_none():
    assert posterior(paired(BASE, BASE), 0.01) is None
    assert posterior(paired(BASE[:1], CHAL[:1]), 0.01) is None
