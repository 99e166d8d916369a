"""Drawn matrices against the distribution they are said to have: moments, bounds and a Kolmogorov–Smirnov test."""

import math

import pytest
import scipy.stats
import torch

from headtohead import Normal, ScaledNormal, Xavier
from headtohead.parts.initialization import Role

PLAIN = Role(embedding=False, fan=(200, 300), head_fan=None, into_residual=False, layers=8)
TABLE = PLAIN._replace(embedding=True)
PER_HEAD = PLAIN._replace(head_fan=(200, 60))
OUT = PLAIN._replace(into_residual=True)


def drawn(part, role, seed=0):
    tensor = torch.full((300, 200), float("nan"), dtype=torch.float64)
    part(tensor, role, torch.Generator().manual_seed(seed))
    return tensor


@pytest.mark.parametrize(
    ("part", "role", "std"),
    [
        (Normal(), PLAIN, 0.02),
        (Normal(), TABLE, 0.02),
        (Normal(std=0.5), OUT, 0.5),
        (ScaledNormal(), PLAIN, 0.02),
        (ScaledNormal(), TABLE, 0.02),
        (ScaledNormal(), OUT, 0.02 / 4),  # √(2 · 8 layers)
        (ScaledNormal(std=0.1), OUT._replace(layers=2), 0.05),
        (Xavier(), TABLE, 0.02),
        (Xavier(gain=5.0), TABLE, 0.02),
    ],
    ids=str,
)
def test_normals(part, role, std):
    values = drawn(part, role).flatten()
    assert abs(values.mean()) < 4 * std / math.sqrt(values.numel())
    assert values.std().item() == pytest.approx(std, rel=4 / math.sqrt(2 * values.numel()))  # four standard errors
    assert scipy.stats.kstest(values.numpy(), "norm", (0, std)).pvalue > 1e-3


@pytest.mark.parametrize(
    ("part", "role", "bound"),
    [
        (Xavier(), PLAIN, math.sqrt(6 / 500)),
        (Xavier(gain=2.0), PLAIN, 2 * math.sqrt(6 / 500)),
        (Xavier(), PER_HEAD, math.sqrt(6 / 260)),
        (Xavier(), PLAIN._replace(head_fan=(192, 96)), 0.14433756729740643),  # study 5's 192 to 3 · 32: 1 / √48
        (Xavier(per_head=False), PER_HEAD, math.sqrt(6 / 500)),
        (Xavier(), OUT, math.sqrt(6 / 500)),
    ],
    ids=str,
)
def test_uniforms(part, role, bound):
    values = drawn(part, role).flatten()
    assert values.abs().max() <= bound
    assert values.abs().max().item() == pytest.approx(bound, rel=1e-3)
    assert scipy.stats.kstest(values.numpy(), "uniform", (-bound, 2 * bound)).pvalue > 1e-3


@pytest.mark.parametrize("part", [Normal(), Xavier(), ScaledNormal()], ids=str)
def test_all_chance_is_the_generators(part):
    assert torch.equal(drawn(part, PLAIN), drawn(part, PLAIN))
    assert not torch.equal(drawn(part, PLAIN), drawn(part, PLAIN, seed=1))
