"""Failures against worked examples, hypergeometric sums and scipy's exact binomial interval."""

from math import comb

import pytest
from printed import close
from scipy import stats

from headtohead.verdict.stability import failure_rate, fisher


def test_oracles():
    assert close(fisher(0, 5, 5, 5), ".0079") and close(fisher(0, 3, 3, 3), ".10") and close(fisher(0, 5, 3, 5), ".167")
    assert failure_rate(0, 5)[0] == 0.0 and close(failure_rate(0, 5)[1], ".522")


@pytest.mark.parametrize(("failed", "runs", "there", "of"), [(1, 5, 4, 5), (2, 8, 0, 5), (0, 3, 0, 5), (3, 3, 5, 5)])
def test_fisher_sums_the_tables_that_are_no_likelier(failed, runs, there, of):
    total, ways = failed + there, comb(runs + of, failed + there)
    chances = {k: comb(runs, k) * comb(of, total - k) / ways for k in range(total + 1) if k <= runs and total - k <= of}
    p = sum(chance for chance in chances.values() if chance <= chances[failed] * (1 + 1e-9))
    assert fisher(failed, runs, there, of) == pytest.approx(p)


@pytest.mark.parametrize(("failed", "runs"), [(0, 3), (1, 5), (3, 5), (5, 5), (2, 40)])
def test_interval_is_scipys(failed, runs):
    theirs = stats.binomtest(failed, runs).proportion_ci(0.9, method="exact")
    assert failure_rate(failed, runs, alpha=0.1) == pytest.approx((theirs.low, theirs.high))
