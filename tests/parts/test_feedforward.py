"""Feed-forward networks with their activations written out."""

import math

import pytest
import torch
from torch.testing import assert_close

from headtohead import Gelu, ReluSquared, SwiGlu
from headtohead.spec import Size
from parts.made import SIZE, filled


def linear(layer, x):
    return x @ layer.weight.T + (0 if layer.bias is None else layer.bias)


ACTIVATIONS = [
    (Gelu(), lambda x: x * (1 + torch.erf(x / math.sqrt(2))) / 2),
    (
        Gelu(approximation="tanh", bias=False),
        lambda x: x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
    ),
    (ReluSquared(ratio=3.0), lambda x: torch.where(x > 0, x * x, 0.0)),
]


@pytest.mark.parametrize(("part", "activation"), ACTIVATIONS, ids=lambda value: str(value)[:20])
def test_two_layers_with_an_activation_between(part, activation, draw):
    x, module = draw(2, 5, 12), filled(part.build(SIZE))
    assert_close(module(x), linear(module.down, activation(linear(module.up, x))), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("part", [SwiGlu(), SwiGlu(bias=True, ratio=2.0)], ids=str)
def test_swiglu_is_two_maps_up_one_of_them_through_silu(part, draw):
    x, module = draw(2, 5, 12), filled(part.build(SIZE))
    gate = linear(module.gate, x)
    wanted = linear(module.down, gate / (1 + torch.exp(-gate)) * linear(module.up, x))
    assert_close(module(x), wanted, rtol=1e-12, atol=1e-13)


def test_by_hand():
    """Width 1, inner width 1, W_1 = 2, b_1 = −1, W_2 = 3, b_2 = 5 at x = 2: the activation sees 3."""
    size = Size(vocabulary=2, length=2, width=1)
    for part, value in ((Gelu(ratio=1.0), 3 * 0.9986501019683699), (ReluSquared(ratio=1.0), 9.0)):  # Φ(3) from tables
        module = part.build(size).double()
        with torch.no_grad():
            for parameter, number in zip(module.parameters(), (2.0, -1.0, 3.0, 5.0), strict=True):
                parameter.fill_(number)
        made = module(torch.tensor([[2.0]], dtype=torch.float64)).item()
        assert made == pytest.approx(3 * value + 5, rel=1e-12)


@pytest.mark.parametrize(
    ("part", "shapes"),
    [
        (Gelu(), {"up.weight": (48, 12), "up.bias": (48,), "down.weight": (12, 48), "down.bias": (12,)}),
        (Gelu(ratio=2.5, bias=False), {"up.weight": (30, 12), "down.weight": (12, 30)}),
        (ReluSquared(bias=False), {"up.weight": (48, 12), "down.weight": (12, 48)}),
        (SwiGlu(), {"gate.weight": (32, 12), "up.weight": (32, 12), "down.weight": (12, 32)}),
    ],
    ids=str,
)
def test_parameters(part, shapes):
    """SwiGlu's 8/3 of the width has the three matrices of Gelu's ratio 4: 3 · 32 · 12 = 2 · 48 · 12."""
    assert {name: tuple(p.shape) for name, p in part.build(SIZE).named_parameters()} == shapes
