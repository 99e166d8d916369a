"""Learning rates worked out by hand, step by step, and the published schedules as oracles."""

import dataclasses
import itertools
import math

import pytest
from parts.made import changed, finals

from headtohead import Constant, CosineDecay, InverseSquareRoot, LinearDecay, Recipe, WarmupStableDecay, at, schedule
from headtohead.spec import Mistake, diff, short
from headtohead.study import refuse

SCHEDULES = finals(schedule)


def course(part, steps):
    return [part(step, steps) for step in range(steps)]


# A schedule, how many steps it has, and its factor at some of them.
BY_HAND = [
    (Constant(), 3, {0: 1.0, 1: 1.0, 2: 1.0}),
    (Constant(warmup=4), 8, {0: 0.25, 1: 0.5, 2: 0.75, 3: 1.0, 4: 1.0, 7: 1.0}),
    (Constant(warmup=4, multiplied=True), 8, {0: 0.25, 3: 1.0, 7: 1.0}),
    (LinearDecay(), 10, {0: 1.0, 1: 0.9, 5: 0.5, 9: 0.1}),
    (LinearDecay(floor=0.2), 10, {0: 1.0, 5: 0.6, 9: 0.28}),
    (LinearDecay(power=2.0), 10, {0: 1.0, 5: 0.25, 9: 0.01}),
    (LinearDecay(floor=0.2, power=2.0), 10, {0: 1.0, 5: 0.4}),
    (LinearDecay(warmup=2), 10, {0: 0.5, 1: 1.0, 2: 1.0, 3: 7 / 8, 6: 0.5, 9: 1 / 8}),
    # ELECTRA: (1 − t/T)^power times the warm-up, both from step 0
    (LinearDecay(warmup=2, multiplied=True), 10, {0: 0.5, 1: 0.9, 2: 0.8, 6: 0.4, 9: 0.1}),
    (LinearDecay(warmup=2, multiplied=True, power=0.5), 8, {0: 0.5, 6: 0.5}),
    (CosineDecay(floor=0.0), 4, {0: 1.0, 1: (2 + math.sqrt(2)) / 4, 2: 0.5, 3: (2 - math.sqrt(2)) / 4}),
    (CosineDecay(), 4, {0: 1.0, 2: 0.55}),
    (CosineDecay(floor=0.0, warmup=2), 6, {0: 0.5, 1: 1.0, 2: 1.0, 4: 0.5}),
    (CosineDecay(floor=0.0, warmup=3, multiplied=True), 4, {0: 1 / 3, 2: 0.5}),
    (CosineDecay(floor=0.0, horizon=2.0), 4, {0: 1.0, 2: (2 + math.sqrt(2)) / 4}),
    (CosineDecay(floor=0.5, horizon=1.5), 6, {0: 1.0, 3: 0.5 + 0.5 * 0.75}),
    (WarmupStableDecay(), 10, {0: 1.0, 7: 1.0, 8: 1.0, 9: 0.5}),
    (WarmupStableDecay(decay_share=0.5, floor=0.5), 8, {4: 1.0, 6: 0.75, 7: 0.625}),
    (WarmupStableDecay(warmup=2, decay_share=0.5), 10, {0: 0.5, 1: 1.0, 6: 1.0, 8: 0.5, 9: 0.25}),
    (WarmupStableDecay(decay_share=1.0), 4, {0: 1.0, 1: 0.75, 3: 0.25}),
    (InverseSquareRoot(), 9, {0: 1.0, 3: 0.5, 8: 1 / 3}),
    (InverseSquareRoot(warmup=4), 100, {0: 0.25, 3: 1.0, 4: 1.0, 16: 0.5, 36: 1 / 3}),
]


@pytest.mark.parametrize(("part", "steps", "wanted"), BY_HAND, ids=short)
def test_by_hand(part, steps, wanted):
    for step, factor in wanted.items():
        assert part(step, steps) == pytest.approx(factor, rel=1e-13), step


# For every field of every schedule two settings that differ in it alone.
PAIRS = [(cls(), cls(warmup=5)) for cls in SCHEDULES]
PAIRS += [(cls(warmup=5), cls(warmup=5, multiplied=True)) for cls in SCHEDULES if cls is not Constant]
PAIRS += [
    (LinearDecay(), LinearDecay(floor=0.1)),
    (LinearDecay(), LinearDecay(power=2.0)),
    (CosineDecay(), CosineDecay(floor=0.2)),
    (CosineDecay(), CosineDecay(horizon=1.1)),
    (WarmupStableDecay(), WarmupStableDecay(floor=0.2)),
    (WarmupStableDecay(), WarmupStableDecay(decay_share=0.4)),
]


def test_every_field_of_every_schedule_is_in_the_table():
    wanted = {(cls, field.name) for cls in SCHEDULES for field in dataclasses.fields(cls)}
    # what is constant has nothing that a warm-up could be multiplied with
    assert {changed(one, other) for one, other in PAIRS} == wanted - {(Constant, "multiplied")}
    assert course(Constant(warmup=5), 20) == course(Constant(warmup=5, multiplied=True), 20)


@pytest.mark.parametrize(("one", "other"), PAIRS, ids=short)
def test_no_field_is_ignored(one, other):
    assert course(one, 20) != course(other, 20)


@pytest.mark.parametrize("cls", SCHEDULES)
@pytest.mark.parametrize("multiplied", [False, True])
def test_every_schedule_rises_in_a_line_and_never_rises_again(cls, multiplied):
    rates = course(cls(warmup=10, multiplied=multiplied), 100)
    assert all(0 < rate <= 1 for rate in rates)
    if not multiplied:
        assert rates[:10] == pytest.approx([(step + 1) / 10 for step in range(10)], rel=1e-14)
        assert rates[10] == 1.0  # the decay starts where the warm-up ended
    assert all(later <= earlier for earlier, later in itertools.pairwise(rates[9:]))


@pytest.mark.parametrize("cls", SCHEDULES)
def test_a_rescaled_schedule_has_the_same_course_over_other_steps(cls):
    part = cls(warmup=10)
    longer = part.rescaled(3.0)
    assert longer.warmup == 30 and diff(part, longer).keys() == {"warmup"}
    # the warm-up counts the steps that are done, the decay those since the warm-up
    after = [part(10 + t, 100) for t in range(90)]
    assert [longer(30 + 3 * t, 300) for t in range(90)] == pytest.approx(after, rel=1e-12)
    assert [longer(3 * t + 2, 300) for t in range(10)] == pytest.approx(course(part, 100)[:10], rel=1e-12)
    assert part.rescaled(1.0) == part and part.rescaled(0.25).warmup == 2


def test_a_recipe_takes_its_schedule_along():
    shorter = Recipe(steps=1000, schedule=CosineDecay(warmup=100, horizon=1.5)).rescaled(250)
    assert (shorter.steps, shorter.schedule) == (250, CosineDecay(warmup=25, horizon=1.5))


def test_electras_rate():
    """(1 − t/T) · min(1, t/warmup), T = 1e6 and warm-up 1e4; theirs has a first step at 0, where ours has 1/warmup."""
    part = LinearDecay(warmup=10_000, multiplied=True)
    for t in (0, 1, 100, 9_999, 10_000, 10_001, 500_000, 999_999):
        assert part(t, 1_000_000) == pytest.approx((1 - t / 1e6) * min(1, (t + 1) / 1e4), rel=1e-13)
        assert part(t, 1_000_000) == pytest.approx((1 - t / 1e6) * min(1, t / 1e4), abs=1.0001e-4)


def test_study_twos_cosine_stops_short_of_its_period():
    """Peak 6e-4, lowest 6e-5, a period of 146,390 updates after a warm-up of 10,000, stopped at update 133,082."""
    steps, warmup, period = 133_082, 10_000, 146_390
    part = CosineDecay(warmup=warmup, floor=0.1, horizon=period / (steps - warmup))
    for t in (10_000, 50_000, 133_081):
        theirs = 6e-5 + 0.5 * (6e-4 - 6e-5) * (1 + math.cos(math.pi * (t - warmup) / period))
        assert 6e-4 * part(t, steps) == pytest.approx(theirs, rel=1e-12)
    assert 6e-4 * part(steps - 1, steps) > 6.5e-5  # the floor is not reached


def test_vaswanis_rate_in_its_own_form():
    """min(s^−½, s·w^−1½) · √w counts s from 1; ours stays at its peak for one step more."""
    w = 4000
    part = InverseSquareRoot(warmup=w)
    for step in (0, 100, 3999, 4000, 20_000):
        s = step + 1
        assert part(step, 100_000) == pytest.approx(min(s**-0.5, s * w**-1.5) * math.sqrt(w), rel=2e-4)


# What is refused: the schedule, words of the reason, and the way out it names.
REFUSED = [
    *((cls(warmup=200), "at least 0 and below steps = 200", {"schedule.warmup": 199}) for cls in SCHEDULES),
    (Constant(warmup=-1), "warmup = -1 must be at least 0", {"schedule.warmup": 0}),
    (LinearDecay(warmup=500), "below steps = 200", {"steps": 501}),
    (LinearDecay(floor=-0.1), "floor = -0.1 must lie in [0, 1]", {"schedule.floor": 0.0}),
    (CosineDecay(floor=1.5), "floor = 1.5 must lie in [0, 1]", {"schedule.floor": 1.0}),
    (WarmupStableDecay(floor=-1.0), "floor = -1.0 must lie in [0, 1]", {"schedule.floor": 0.5}),
    (LinearDecay(power=0.0), "power = 0.0 must be above 0", {"schedule.power": 0.5}),
    (CosineDecay(horizon=0.9), "horizon = 0.9 must be at least 1", {"schedule.horizon": 1.0}),
    (WarmupStableDecay(decay_share=0.0), "decay_share = 0.0 must be above 0", {"schedule.decay_share": 0.01}),
    (WarmupStableDecay(decay_share=1.1), "at most 1", {"schedule.decay_share": 1.0}),
]


@pytest.mark.parametrize(("part", "words", "way_out"), REFUSED, ids=short)
def test_what_cannot_be_is_refused_in_one_line(part, words, way_out):
    recipe = at(Recipe(steps=200), {"schedule": part})
    with pytest.raises(Mistake) as caught:
        refuse(recipe)
    line = str(caught.value)
    assert line.startswith("schedule: ") and words in line and "\n" not in line
    refuse(at(recipe, way_out))


def test_a_schedule_of_the_users_own_needs_a_course():
    class Forgotten(schedule.Schedule):
        pass

    with pytest.raises(TypeError, match=r"Forgotten must define decay\(step, steps\)"):
        Forgotten()(0, 10)
