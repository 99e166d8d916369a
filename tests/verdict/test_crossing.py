"""Differences late in training: curves that cross, that will, and that only tremble."""

import numpy as np
import pytest

from headtohead.verdict.crossing import crossing, late_differences

STEPS = 1000


def _runs(difference, seeds=5, noise=0.002):
    """Pairs of training curves: the same batches' ups and downs in both arms, and `difference` at every step."""
    draw = np.random.default_rng(0)
    pairs = []
    for _ in range(seeds):
        base = 3 + np.exp(-np.arange(STEPS) / 200) + draw.normal(0, 0.1, STEPS)
        chal = base + difference + draw.normal(0, noise) + draw.normal(0, noise, STEPS)
        pairs.append((dict(enumerate(base)), dict(enumerate(chal))))
    return pairs


def _found(difference, **more):
    return crossing([late_differences(*pair) for pair in _runs(np.broadcast_to(difference, STEPS), **more)])


def test_windows_are_means_of_the_last_steps():
    base, chal = ({step: value * step for step in range(STEPS)} for value in (0.0, 1.0))
    points = late_differences(base, chal)
    assert points == [(pytest.approx(700 + 50 * k + 24.5),) * 2 for k in range(6)]
    assert late_differences(dict(list(base.items())[:199]), chal) == []  # 59 late steps
    assert len(late_differences(dict(list(base.items())[:200]), chal)) == 6


def test_a_steady_difference_passes():
    found = _found(-0.05)
    assert (found.id, found.severity, found.result) == ("A-CROSS", "warn", "pass")
    assert found.evidence.startswith("d(t) from -0.049")


def test_curves_that_cross_late_are_found():
    assert "cross" in _found(np.linspace(-0.4, 0.08, STEPS)).sentence  # 0 at step 830
    assert _found(np.linspace(0.4, -0.08, STEPS)).result == "fail"


def test_curves_that_crossed_early_pass():
    early = np.where(np.arange(STEPS) < 500, 0.1, -0.1)
    assert _found(early).result == "pass"


def test_a_gap_that_closes_is_found_before_it_has():
    closing = np.linspace(-0.5, -0.1, STEPS)  # in the last 30 % from -.22 to -.1
    found = _found(closing)
    assert found.result == "fail" and "another budget" in found.sentence and "slope +0.1" in found.evidence
    assert _found(np.linspace(-0.5, -0.3, STEPS)).result == "pass"


def test_equal_arms_whose_curves_tremble_pass():
    results = []
    for seed in range(200):
        draw = np.random.default_rng(seed)
        d = draw.normal(0, 0.01, (5, 1)) + draw.normal(0, 0.003, (5, 6))
        results.append(crossing([list(zip(range(6), row, strict=True)) for row in d.tolist()]).result)
    assert results.count("fail") <= 0.15 * 200
    assert min(abs(np.random.default_rng(0).normal(0, 0.01, 5))) > 0  # their signs do differ


def test_one_seed_is_taken_as_it_is_and_no_curve_is_skipped():
    assert crossing([[(k, d) for k, d in enumerate([0.1, 0.1, 0.05, -0.01, -0.02, -0.03])]]).result == "fail"
    assert crossing([]).result == crossing([[], []]).result == "skip"
