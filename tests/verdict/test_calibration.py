"""Is a verdict right as often as it says? Simulated studies, judged by the functions that judge real ones.

The limits are those that a true rate leaves once in a thousand: 6.6 % of 2,000 studies where 5 % is true. At full size,
10,000 studies and 5.7 %, the figures are in LOG.md.
"""

import pytest
import simulated
from scipy import stats

STUDIES = 2_000


def most(studies: int) -> float:
    """What a true 5 % exceeds once in a thousand."""
    return float(stats.binom.ppf(0.999, studies, 0.05)) / studies


def test_the_limits_are_those_of_a_true_twentieth():
    assert most(2_000) == pytest.approx(0.066, abs=6e-4) and most(10_000) == pytest.approx(0.057, abs=6e-4)


def test_nothing_false_is_said_more_often_than_one_time_in_twenty():
    rates = dict(simulated.errors(STUDIES))
    assert {what: rate for what, rate in rates.items() if rate > most(STUDIES)} == {}
    # and a test that never says anything would pass the line above
    assert all(rate > 0.03 for what, rate in rates.items() if "alone" in what)
    assert all(rate > 0.03 for what, rate in rates.items() if "NOT" in what)


def test_intervals_cover_and_power_is_what_is_printed():
    for what, rate in simulated.coverage(STUDIES):
        assert rate == pytest.approx(0.95, abs=0.016), what  # 3.3 standard errors; ± 0.7 % of 10,000
    for what, rate in simulated.powers(STUDIES):
        assert rate == pytest.approx(0.80, abs=0.03), what  # 3.3 standard errors; ± 2 % of 10,000


def test_a_judge_that_forgets_the_family_is_caught(monkeypatch):
    """The limit means something: four challengers without Holm are wrong about one time in seven."""
    monkeypatch.setattr(
        simulated, "adjust", lambda compared, family: {name: each.pair.p for name, each in compared.items()}
    )
    wrong = simulated.rate(
        500, lambda draw: bool(simulated.DIFFERENT & set(simulated.said(simulated.drawn(draw, 4, 5), 1e-9)[0])), 0
    )
    assert wrong > 0.09
