"""The statistics against hand-computed examples, tables of power, scipy's own tests, and simulation."""

import itertools
import math
import subprocess
import sys

import numpy as np
import pytest
from printed import close
from scipy import integrate, stats

from headtohead.spec import Mistake
from headtohead.verdict.statistics import (
    PLENTY,
    above,
    below,
    detectable,
    equatable,
    holm,
    noether,
    paired,
    power,
    power_tost,
    sd_upper,
    seeds_needed,
    seeds_to_detect,
    seeds_to_equate,
    sign_flip,
    tost,
)

BASE = [3.412, 3.405, 3.421, 3.398, 3.417]
CHAL = [3.401, 3.398, 3.407, 3.391, 3.404]
THREE = [-0.011, 0.004, -0.009]


def ones(d):
    """Arms of which the differences are exactly d."""
    return [0.0] * len(d), list(d)


def test_the_measure_of_closeness_counts_printed_digits():
    assert close(0.12345, ".1234") and close(0.12345, ".1235") and not close(0.1236, ".1235")
    assert close(1.674e-4, "1.67e-4") and not close(1.676e-4, "1.67e-4")


# ---- the paired t test ---------------------------------------------------------------------------------------------


def test_oracle_of_five_pairs():
    pair = paired(BASE, CHAL)
    printed = {
        "mean": "-.010400",
        "sd": ".00328634",
        "se": ".00146969",
        "t": "-7.07630",
        "p": ".00210479",
        "correlation": ".98928",
        "better_probability": ".97769",
    }
    assert {name: text for name, text in printed.items() if not close(getattr(pair, name), text)} == {}
    assert close(pair.interval[0], "-.0144805") and close(pair.interval[1], "-.0063195")
    assert close(pair.interval_tost[0], "-.0135332") and close(pair.interval_tost[1], "-.0072668")
    assert (pair.n, pair.won, pair.identical, pair.floored) == (5, 5, False, False)
    assert close(sign_flip(np.subtract(CHAL, BASE)), ".0625")
    # Unpaired, the same runs show nothing: the pairing made the difference.
    assert close(stats.ttest_ind(CHAL, BASE, equal_var=False).pvalue, ".0745")


def test_oracle_of_three_pairs():
    pair = paired(*ones(THREE))
    printed = {"mean": "-.0053333", "sd": ".0081445", "se": ".0047022", "t": "-1.13421", "p": ".374350"}
    assert {name: text for name, text in printed.items() if not close(getattr(pair, name), text)} == {}
    assert close(pair.interval[0], "-.025565") and close(pair.interval[1], ".014899")
    assert close(pair.interval_tost[0], "-.019064") and close(pair.interval_tost[1], ".008397")
    assert pair.won == 2


@pytest.mark.parametrize("n", [2, 3, 5, 12, 40])
def test_equal_to_scipy(n):
    random = np.random.default_rng(n)
    base = 3 + random.normal(size=n)
    chal = base + 0.1 * random.normal(size=n) - 0.05
    pair, theirs = paired(base, chal, alpha=0.1), stats.ttest_rel(chal, base)
    assert pair.t == pytest.approx(theirs.statistic, rel=1e-10)
    assert pair.p == pytest.approx(theirs.pvalue, rel=1e-9)
    for level, interval in ((0.9, pair.interval), (0.8, pair.interval_tost)):
        limits = theirs.confidence_interval(level)
        assert interval == pytest.approx((limits.low, limits.high), rel=1e-9)
    assert pair.correlation == pytest.approx(stats.pearsonr(base, chal).statistic, abs=1e-12)
    assert pair.skew == pytest.approx(stats.skew(chal - base), abs=1e-9)
    gain = (np.var(base, ddof=1) + np.var(chal, ddof=1)) / np.var(chal - base, ddof=1)
    assert pair.pairing_gain == pytest.approx(gain)
    assert pair.dz == pytest.approx((chal - base).mean() / (chal - base).std(ddof=1))


def test_better_probability_predicts_a_new_pair():
    """Seen from where a sixth difference falls, the probability given by the first five is uniform."""
    draws = np.random.default_rng(0).normal(-0.5, 1, size=(3000, 6))
    said = [paired(*ones(d[:5] - d[5])).better_probability for d in draws]
    assert stats.kstest(said, "uniform").pvalue > 0.01
    assert stats.kstest([paired(*ones(d[:5])).better_probability for d in draws], "uniform").pvalue < 1e-9


@pytest.mark.parametrize("seed", range(20))
def test_a_difference_changes_sign_with_its_arms(seed):
    random = np.random.default_rng(seed)
    base, chal = random.normal(size=(2, random.integers(2, 9)))
    one, other = paired(base, chal), paired(chal, base)
    assert other.interval == pytest.approx((-one.interval[1], -one.interval[0]))
    assert other.interval_tost == pytest.approx((-one.interval_tost[1], -one.interval_tost[0]))
    assert (other.mean, other.t, other.dz, other.skew) == pytest.approx((-one.mean, -one.t, -one.dz, -one.skew))
    assert (other.p, other.sd, other.correlation) == pytest.approx((one.p, one.sd, one.correlation))
    assert other.better_probability == pytest.approx(1 - one.better_probability)
    assert other.won == one.n - one.won
    assert below(other, 0.3) == pytest.approx(above(one, -0.3))
    assert tost(other, 0.3) == pytest.approx(tost(one, 0.3))


@pytest.mark.parametrize("seed", range(20))
def test_units_do_not_matter(seed):
    random = np.random.default_rng(seed)
    base, chal = random.normal(size=(2, 5))
    one, other = paired(base, chal), paired(100 * base + 7, 100 * chal + 7)
    assert (other.t, other.p, other.dz, other.won) == pytest.approx((one.t, one.p, one.dz, one.won))
    assert other.interval == pytest.approx((100 * one.interval[0], 100 * one.interval[1]))


def test_no_interval_below_two_pairs():
    for n in (0, 1):
        pair = paired(BASE[:n], CHAL[:n])
        assert pair.n == n
        for value in (pair.sd, pair.se, pair.p, *pair.interval, *pair.interval_tost, pair.better_probability):
            assert math.isnan(value)
        assert tost(pair, 10.0) == 1.0
    assert paired(BASE[:1], CHAL[:1]).mean == pytest.approx(-0.011)
    assert paired([], []).identical is False


def test_two_pairs_have_an_interval_of_df_one():
    pair = paired(BASE[:2], CHAL[:2])
    assert close((pair.interval[1] - pair.mean) / pair.se, "12.7")


def test_identical_arms():
    pair = paired(BASE, BASE)
    assert pair.identical and not pair.floored
    assert (pair.mean, pair.sd, pair.t, pair.p, pair.won, pair.interval) == (0, 0, 0, 1, 0, (0, 0))
    assert tost(pair, 1e-9) == 0.0
    assert below(pair, 0.0) == above(pair, 0.0) == 1.0


@pytest.mark.parametrize(
    ("base", "shift", "exact"),
    [(BASE, -0.5, True), ([0.1, 0.2, 0.7, 1.3], 0.1, False), ([1.1, 2.3, 9.7], 1 / 3, False)],
)
def test_equal_differences_get_an_assumed_spread(base, shift, exact):
    chal = [value + shift for value in base]
    assert (len(set(np.subtract(chal, base))) == 1) == exact  # the others are equal only up to rounding
    pair = paired(base, chal)
    assert pair.floored and not pair.identical
    assert pair.sd == pytest.approx(1e-6 * np.mean(base))
    assert pair.mean == pytest.approx(shift)


def test_a_real_spread_however_small_is_kept():
    pair = paired(*ones([1e-9, 2e-9, 4e-9]))
    assert not pair.floored and pair.sd == pytest.approx(np.std([1e-9, 2e-9, 4e-9], ddof=1))


def test_equal_differences_from_a_baseline_of_zero():
    assert paired([0.0, 0.0, 0.0], [2.0, 2.0, 2.0]).sd == pytest.approx(2e-6)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_refused(value):
    with pytest.raises(Mistake, match=r"value 2 of the challenger is .*failure"):
        paired([1.0, 2.0], [1.0, value])
    with pytest.raises(Mistake, match="value 1 of the baseline"):
        paired([value, 2.0], [1.0, 2.0])


def test_unequal_lengths_are_refused():
    with pytest.raises(Mistake, match="keep the seeds both have"):
        paired([1.0, 2.0], [1.0])


# ---- equivalence, families, sign flips -----------------------------------------------------------------------------


@pytest.mark.parametrize(("margin", "p"), [(0.017053, ".0053016"), (0.0165, ".0071271"), (0.01, ".60052")])
def test_oracle_of_equivalence(margin, p):
    assert close(tost(paired(BASE, CHAL), margin), p)


def test_default_margin_of_the_oracle():
    assert close(0.005 * np.mean(BASE), ".017053")


@pytest.mark.parametrize("seed", range(20))
def test_equivalence_is_the_narrow_interval_inside_the_margin(seed):
    random = np.random.default_rng(seed)
    pair = paired(*random.normal(size=(2, 6)))
    for margin in np.linspace(0.01, 3, 50):
        inside = -margin < pair.interval_tost[0] and pair.interval_tost[1] < margin
        assert (tost(pair, margin) < 0.05) == inside


def test_one_sided_tests_are_scipys():
    pair, d = paired(BASE, CHAL), np.subtract(CHAL, BASE)
    assert below(pair, -0.008) == pytest.approx(stats.ttest_1samp(d, -0.008, alternative="less").pvalue)
    assert above(pair, -0.013) == pytest.approx(stats.ttest_1samp(d, -0.013, alternative="greater").pvalue)


def test_holm_oracle():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []
    assert holm([0.2]) == [0.2]
    assert holm([0.7, 0.6]) == [1.0, 1.0]


@pytest.mark.parametrize("seed", range(10))
def test_holm_rejects_what_stepping_down_rejects(seed):
    ps = np.random.default_rng(seed).uniform(0, 0.06, size=7)
    rejected = set()
    for rank, place in enumerate(np.argsort(ps)):  # the procedure itself: stop at the first that fails
        if ps[place] >= 0.05 / (len(ps) - rank):
            break
        rejected.add(int(place))
    assert {place for place, p in enumerate(holm(ps)) if p < 0.05} == rejected


SMALLEST = {3: ".25", 4: ".125", 5: ".0625", 8: ".0078", 10: ".0020", 20: "2e-6"}


@pytest.mark.parametrize("n", SMALLEST)
def test_smallest_p_of_sign_flips(n):
    d = -np.random.default_rng(n).uniform(0.5, 1.5, size=n)
    assert sign_flip(d) == 2 / 2**n
    assert close(sign_flip(d), SMALLEST[n])


@pytest.mark.parametrize("seed", range(10))
def test_sign_flips_counted_one_by_one(seed):
    random = np.random.default_rng(seed)
    d = random.integers(-4, 5, size=random.integers(1, 8)).astype(float)  # whole numbers make ties
    means = [abs(np.dot(signs, d)) for signs in itertools.product([1, -1], repeat=len(d))]
    assert sign_flip(d) == np.mean([mean >= abs(d.sum()) for mean in means])


def test_sign_flips_are_scipys_permutation_test():
    d = np.random.default_rng(3).normal(0.3, 1, size=9)
    theirs = stats.permutation_test((d,), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert sign_flip(d) == pytest.approx(theirs.pvalue)


def test_too_many_sign_flips():
    with pytest.raises(Mistake, match="use the t test"):
        sign_flip([1.0] * 21)


# ---- power ---------------------------------------------------------------------------------------------------------

# seeds: t_crit, interval half-width, MDE, MDE with three challengers, TOST margin, upper limit; in units of the sd
TABLE = {
    3: "4.303 2.484 3.264 5.667 2.660 2.117",
    4: "3.182 1.591 2.128 3.124 1.935 1.728",
    5: "2.776 1.242 1.682 2.292 1.600 1.558",
    6: "2.571 1.049 1.435 1.877 1.397 1.461",
    8: "2.365 .836 1.156 1.450 1.153 1.353",
    10: "2.262 .715 .996 1.223 1.005 1.293",
    20: "2.093 .468 .660 .784 .679 1.177",
}


@pytest.mark.parametrize("n", TABLE)
def test_table_of_what_seeds_can_show(n):
    d = np.random.default_rng(n).normal(size=n)
    d = (d - d.mean()) / d.std(ddof=1)
    half = paired(*ones(d)).interval[1]
    found = [
        half * math.sqrt(n),
        half,
        detectable(n, 1.0),
        detectable(n, 1.0, 0.05 / 3),
        equatable(n, 1.0),
        sd_upper(n, 1.0),
    ]
    assert [text for value, text in zip(found, TABLE[n].split(), strict=True) if not close(value, text)] == []


@pytest.mark.parametrize(("n", "dz", "alpha"), [(3, 1, 0.05), (3, 3.264, 0.05), (5, -1.7, 0.05), (10, 0.5, 0.01)])
def test_power_is_the_noncentral_t(n, dz, alpha):
    critical, shift = stats.t.ppf(1 - alpha / 2, n - 1), dz * math.sqrt(n)
    exact = stats.nct.sf(critical, n - 1, shift) + stats.nct.cdf(-critical, n - 1, shift)
    assert power(n, dz, alpha) == pytest.approx(exact, abs=3e-6)


def test_power_where_there_is_no_effect_or_no_doubt():
    assert power(5, 0.0, 0.05) == pytest.approx(0.05, abs=1e-5)
    assert power(5, 1e6, 0.05) == 1.0
    assert math.isnan(power(1, 1.0, 0.05)) and math.isnan(power_tost(1, 1.0, 0.05))
    assert math.isnan(detectable(1, 1.0)) and math.isnan(equatable(1, 1.0)) and math.isnan(sd_upper(1, 1.0))


@pytest.mark.parametrize(("n", "dz"), [(3, 2.66), (5, 1.2), (10, 1.005)])
def test_power_of_equivalence_is_its_integral(n, dz):
    critical = stats.t.ppf(0.95, n - 1)

    def integrand(s):
        inside = max(0.0, 2 * stats.norm.cdf(dz * math.sqrt(n) - critical * s) - 1)
        return inside * stats.chi.pdf(s * math.sqrt(n - 1), n - 1) * math.sqrt(n - 1)

    exact = integrate.quad(integrand, 0, dz * math.sqrt(n) / critical)[0]
    assert power_tost(n, dz, 0.05) == pytest.approx(exact, abs=1e-5)


def test_detectable_is_in_the_units_of_the_measure():
    assert detectable(5, 0.02) == pytest.approx(0.02 * detectable(5, 1.0))
    assert power(5, detectable(5, 0.02, 0.01, 0.9) / 0.02, 0.01) == pytest.approx(0.9)


def test_table_of_seeds():
    assert [seeds_to_detect(dz) for dz in (0.5, 0.8, 1, 1.5, 2, 3, 4)] == [34, 15, 10, 6, 5, 4, 3]
    assert [seeds_to_equate(dz) for dz in (0.5, 1, 1.5, 2, 3)] == [36, 11, 6, 4, 3]


@pytest.mark.parametrize("dz", [0.21, 0.7, 1.1, 2.4, 8.0])
def test_the_fewest_seeds_are_the_fewest(dz):
    n = seeds_to_detect(dz)
    assert power(n, dz) >= 0.8 and (n == 2 or power(n - 1, dz) < 0.8)
    n = seeds_to_equate(dz)
    assert power_tost(n, dz) >= 0.8 and (n == 2 or power_tost(n - 1, dz) < 0.8)


def test_oracle_of_seeds_needed():
    sd = paired(*ones(THREE)).sd
    assert seeds_needed(sd, 3, 0.01) == (8, 26)
    assert seeds_needed(sd, 3, 0.0165) == (5, 11)
    assert (seeds_to_equate(0.01 / sd), seeds_to_equate(0.0165 / sd)) == (8, 4)


def test_seeds_needed_are_enough_for_a_verdict_and_stricter_for_a_family():
    assert seeds_needed(1e-6, 5, 1.0) == (3, 3)
    assert seeds_needed(1.0, 5, 1.0, alpha=0.05 / 3) > seeds_needed(1.0, 5, 1.0)


def test_very_many_seeds_take_no_search():
    n = seeds_to_detect(1e-4)
    assert n > PLENTY
    assert n == pytest.approx(((stats.norm.ppf(0.975) + stats.norm.ppf(0.8)) / 1e-4) ** 2, rel=1e-6)


def test_no_seeds_settle_nothing():
    for dz in (0.0, -1.0, math.nan):
        with pytest.raises(Mistake, match="margin above 0"):
            seeds_to_detect(dz)


def test_upper_limit_of_the_spread_holds_in_four_of_five_samples():
    samples = np.random.default_rng(1).normal(size=(20000, 5)).std(axis=1, ddof=1)
    assert np.mean(sd_upper(5, 1.0) * samples > 1) == pytest.approx(0.8, abs=0.01)


def test_noether_oracle():
    assert close(noether(0.75), "28.86") and math.ceil(noether(0.75)) == 29


# ---- what the t interval covers, and how fast all this is there ----------------------------------------------------


COVERED = {
    "normal": {3: 0.953, 5: 0.953, 10: 0.946, 20: 0.944},
    "exponential": {3: 0.886, 5: 0.882, 10: 0.899},
}


@pytest.mark.parametrize(("kind", "n"), [(kind, n) for kind, covered in COVERED.items() for n in covered])
def test_coverage_of_the_t_interval(kind, n):
    draw = getattr(np.random.default_rng(n), f"standard_{kind}")
    truth = {"normal": 0.0, "exponential": 1.0}[kind]
    intervals = [paired([0.0] * n, d).interval for d in draw((2000, n))]
    inside = [low < truth < high for low, high in intervals]
    assert np.mean(inside) == pytest.approx(COVERED[kind][n], abs=0.02)  # 3 standard errors, and some for the table's


def test_a_normal_interval_would_be_too_short():
    printed = {3: 0.815, 4: 0.856, 5: 0.882, 8: 0.904, 10: 0.918, 20: 0.931}
    for n, covered in printed.items():
        assert 2 * stats.t.cdf(1.96, n - 1) - 1 == pytest.approx(covered, abs=0.012)


def test_the_verdict_loads_neither_torch_nor_the_slow_half_of_scipy():
    code = (
        "import sys, headtohead.verdict.judge, headtohead.verdict.table, headtohead.verdict.sentence;"
        "print([name for name in ('torch', 'scipy.stats', 'scipy.optimize', 'pandas') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
