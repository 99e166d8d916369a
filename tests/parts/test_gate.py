import pytest
import torch
from torch.testing import assert_close

from headtohead import Gate, NoGate
from parts.made import SIZE, filled


def test_no_gate_leaves_heads_alone(draw):
    heads = draw(2, 3, 5, 4)
    assert NoGate().build(SIZE)(draw(2, 5, 12), heads) is heads


@pytest.mark.parametrize(("bias", "opening"), [(0, 0.5), (2.0, 0.8807970779778823), (-1.0, 0.2689414213699951)])
def test_gates_start_as_open_as_their_bias_says(bias, opening, draw):
    """σ(bias) everywhere, for the weights start at 0."""
    heads = draw(2, 3, 5, 4)
    made = Gate(bias=bias).build(SIZE).double()(draw(2, 5, 12), heads)
    assert_close(made, opening * heads, rtol=1e-14, atol=0)


def test_each_head_is_opened_by_its_own_slice_of_the_input(draw):
    x, heads, module = draw(2, 5, 12), draw(2, 3, 5, 4), filled(Gate(bias=0.3).build(SIZE))
    assert {name: tuple(p.shape) for name, p in module.named_parameters()} == {"weight": (3, 1, 4), "bias": (3,)}
    made = module(x, heads)
    for h in range(3):
        opening = 1 / (1 + torch.exp(-(x[:, :, 4 * h : 4 * h + 4] @ module.weight[h, 0] + module.bias[h])))
        assert_close(made[:, h], opening[..., None] * heads[:, h], rtol=1e-13, atol=0)
