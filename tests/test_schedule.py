"""Learning rates at single steps, worked out by hand."""

import math

import pytest

from headtohead import Constant, CosineDecay, InverseSquareRoot, LinearDecay, Recipe, WarmupStableDecay, at, schedule
from headtohead.spec import Mistake, short
from headtohead.study import refuse
from parts.made import changed, finals

SCHEDULES = finals(schedule)


def course(part, steps):
    return [part(step, steps) for step in range(steps)]


@pytest.mark.parametrize(
    ("part", "steps", "wanted"),
    [
        (Constant(), 4, [1, 1, 1, 1]),
        (Constant(warmup=2), 4, [1 / 2, 1, 1, 1]),
        (LinearDecay(), 4, [1, 3 / 4, 1 / 2, 1 / 4]),
        (LinearDecay(warmup=2), 6, [1 / 2, 1, 1, 3 / 4, 1 / 2, 1 / 4]),
        (LinearDecay(floor=0.2), 4, [1, 0.8, 0.6, 0.4]),
        (LinearDecay(power=2.0), 4, [1, 9 / 16, 4 / 16, 1 / 16]),
        (LinearDecay(floor=0.5, power=2.0), 2, [1, 0.5 + 0.5 / 4]),
        (CosineDecay(floor=0.0), 4, [1, (1 + math.sqrt(0.5)) / 2, 1 / 2, (1 - math.sqrt(0.5)) / 2]),
        (CosineDecay(floor=0.1), 2, [1, 0.55]),
        (CosineDecay(), 2, [1, 0.55]),
        (CosineDecay(floor=0.0, horizon=2.0), 3, [1, 3 / 4 + (math.sqrt(3) - 1) / 4 - 0.0, 3 / 4]),
        (CosineDecay(floor=0.0, warmup=4), 6, [1 / 4, 1 / 2, 3 / 4, 1, 1, 1 / 2]),
        (WarmupStableDecay(), 10, [1, 1, 1, 1, 1, 1, 1, 1, 1, 1 / 2]),
        (WarmupStableDecay(decay_share=0.5), 8, [1, 1, 1, 1, 1, 3 / 4, 1 / 2, 1 / 4]),
        (WarmupStableDecay(decay_share=0.5, floor=0.2), 4, [1, 1, 1, 0.6]),
        (WarmupStableDecay(decay_share=0.5, warmup=2), 6, [1 / 2, 1, 1, 1, 1, 1 / 2]),
        (WarmupStableDecay(decay_share=1.0), 4, [1, 3 / 4, 1 / 2, 1 / 4]),
        (InverseSquareRoot(), 9, [math.sqrt(1 / (1 + t)) for t in range(9)]),
        (InverseSquareRoot(warmup=4), 13, [1 / 4, 1 / 2, 3 / 4, *(math.sqrt(4 / (4 + t)) for t in range(-1 + 1, 1))]),
    ],
    ids=lambda value: short(value) if not isinstance(value, list | int) else "",
)
def test_by_hand(part, steps, wanted):
    assert course(part, steps)[: len(wanted)] == pytest.approx(wanted, rel=1e-14)
