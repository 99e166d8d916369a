"""How numbers are written: signs, units, and never a digit that the interval does not support."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as some

from headtohead.report import numbers
from headtohead.report.numbers import NOTHING, Scale

SUPERSCRIPT = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def read(text):
    """A written number, and the value of one unit in its last digit."""
    found = re.fullmatch(r"([+−]?)([\d,]+)(?:\.(\d+))?(?:×10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))?", text)
    assert found, text
    sign, whole, decimals, power = found.groups()
    unit = 10.0 ** (int(power.translate(SUPERSCRIPT)) if power else 0)
    value = float(f"{whole.replace(',', '')}.{decimals or 0}") * unit
    return (-value if sign == "−" else value), unit * 10.0 ** -len(decimals or "")


@pytest.mark.parametrize(
    ("effect", "interval", "told"),
    [
        (-0.0104, [-0.0144805, -0.0063195], "−0.0104 (−0.0145 to −0.0063)"),  # half .00408: down to .0001
        (-0.0231447, [-0.03959, -0.006699], "−0.023 (−0.040 to −0.007)"),  # half .01644: down to .001
        (5.838e-6, [2.349e-6, 9.328e-6], "+5.8×10⁻⁶ (+2.3×10⁻⁶ to +9.3×10⁻⁶)"),
        (12.34, [-10.0, 34.68], "+12 (−10 to +35)"),  # half 22.34: whole numbers
        (1234.0, [1034.0, 1434.0], "+1,230 (+1,030 to +1,430)"),  # half 200: down to tens
        (0.0, [-0.02, 0.02], "+0.000 (−0.020 to +0.020)"),
        (-0.0001, [-0.5, 0.4998], "+0.00 (−0.50 to +0.50)"),  # a zero has no minus
    ],
)
def test_an_effect_has_the_digits_of_its_interval(effect, interval, told):
    scale = numbers.scale_for(effect, interval)
    low, high = (numbers.signed(end, scale) for end in interval)
    assert f"{numbers.signed(effect, scale)} ({low} to {high})" == told


@given(
    effect=some.floats(-1e3, 1e3, allow_subnormal=False).filter(lambda x: x == 0 or abs(x) > 1e-12),
    half=some.floats(1e-9, 1e3),
)
def test_no_more_digits_than_half_the_interval_has(effect, half):
    interval = [effect - half, effect + half]
    half = numbers.half_width(interval)
    if half is None:
        return
    scale = numbers.scale_for(effect, interval)
    last = 10.0 ** (scale.power - scale.decimals)  # what one unit in the last digit stands for
    assert half / 100 <= last <= half / 9.9  # two digits of half the interval
    value, unit = read(numbers.signed(effect, scale))
    assert abs(value - effect) <= 0.5001 * last
    assert unit == pytest.approx(min(last, 1.0) if not scale.power else last)


@pytest.mark.parametrize(
    ("value", "scale", "plain", "signed"),
    [
        (1.5, Scale(0, 2), "1.50", "+1.50"),
        (-1.5, Scale(0, 0), "−2", "−2"),
        (0.0, Scale(0, 1), "0.0", "+0.0"),
        (-1e-9, Scale(0, 3), "0.000", "+0.000"),
        (1234567.0, Scale(0, -3), "1,235,000", "+1,235,000"),
        (-3.2e-7, Scale(-7, 1), "−3.2×10⁻⁷", "−3.2×10⁻⁷"),
        (None, Scale(0, 2), NOTHING, NOTHING),
        (math.nan, Scale(0, 2), NOTHING, NOTHING),
        (math.inf, Scale(0, 2), NOTHING, NOTHING),
    ],
)
def test_written_on_a_scale(value, scale, plain, signed):
    assert (numbers.written(value, scale), numbers.signed(value, scale)) == (plain, signed)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (0.0170532, "0.0171"),
        (0, "0"),
        (152.4, "152"),
        (99.96, "100"),
        (9.996e-7, "1.00×10⁻⁶"),
        (6.499e11, "6.50×10¹¹"),
        (None, NOTHING),
        (math.nan, NOTHING),
        (123456.0, "123,000"),
        (999_600.0, "1.00×10⁶"),
        (-2.5, "−2.50"),
    ],
)
def test_a_size_with_three_digits(value, told):
    assert numbers.significant(value) == told


@given(some.floats(1e-12, 1e12), some.integers(1, 6))
def test_significant_digits_are_those_of_formatting(value, digits):
    """Python's own rounding to digits gives the same number."""
    assert read(numbers.significant(value, digits))[0] == pytest.approx(float(f"{value:.{digits}g}"), rel=10.0**-digits)


@pytest.mark.parametrize(
    ("p", "told"),
    [
        (0.00210479, "0.0021"),
        (3e-5, "< 0.0001"),
        (0.0, "< 0.0001"),
        (0.05, "0.050"),
        (0.0996, "0.10"),
        (0.994, "0.99"),
        (0.9951, "1"),
        (1.0, "1"),
        (None, NOTHING),
    ],
)
def test_probabilities(p, told):
    assert numbers.probability(p) == told


def test_per_cents_carry_their_sign_and_the_digits_of_the_effect():
    half = 0.0040805  # over a baseline of 3.4106 that is .12 %
    assert numbers.percent(-0.0104 / 3.4106, -0.0104, half) == "−0.30 %"
    assert numbers.percent(0.5, 0.1, None) == "+50 %"
    assert numbers.percent(0.0, 0.0, None) == "0 %"
    assert numbers.percent(None, 0.1, 0.1) == NOTHING


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.0, "0 s"),
        (54.915, "54.9 s"),
        (99.0, "99.0 s"),
        (100.0, "1.67 min"),
        (5999.0, "100 min"),
        (33340.66, "9.26 h"),
        (None, NOTHING),
    ],
)
def test_times(seconds, told):
    assert numbers.duration(seconds) == told


def test_money_memory_counts_and_ratios():
    assert [numbers.dollars(x) for x in (11.2246, 0.1, 0.0123, 0.0, None)] == [
        "$11.22",
        "$0.10",
        "$0.012",
        "$0",
        NOTHING,
    ]
    assert [numbers.memory(x) for x in (2**29, 3 * 2**30, None, 0)] == ["512 MiB", "3.00 GiB", NOTHING, NOTHING]
    assert [numbers.whole(x) for x in (752257, 0, None, math.nan)] == ["752,257", "0", NOTHING, NOTHING]
    assert [numbers.ratio(x) for x in (1.5, 1234.5, None)] == ["×1.50", "×1,234.50", NOTHING]


def test_values_that_are_the_same_everywhere():
    assert [numbers.exact(x) for x in (752257, 5.92576353, "8bdd", None, 3966681.6, True, 0)] == [
        "752,257",
        "5.92576",
        "8bdd",
        NOTHING,
        "3,966,682",
        "True",
        "0",
    ]


def test_spans_and_plurals():
    assert (numbers.span("3", "3"), numbers.span("3", "8")) == ("3", "3 to 8")
    assert [numbers.plural(n, "batch", "batches") for n in (0, 1, 2)] == ["0 batches", "1 batch", "2 batches"]
    assert numbers.plural(2, "seed") == "2 seeds"


def test_what_is_too_large_to_square_is_still_written():
    """A finite loss of 10³⁴ has an interval without end."""
    assert numbers.half_width([-math.inf, math.inf]) is None
    assert numbers.signed(9.6e34, numbers.scale_for(9.6e34, [-math.inf, math.inf])) == "+9.6×10³⁴"
    assert numbers.place_of(math.inf) == -1
