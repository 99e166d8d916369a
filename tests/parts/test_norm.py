"""Norms against torch's own, and by hand."""

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from headtohead import LayerNorm, RMSNorm
from parts.made import SIZE, filled


@pytest.mark.parametrize("eps", [1e-5, 1e-12, 0.1])
def test_layer_norm_is_torchs(eps, draw):
    x, module = 3 * draw(2, 5, 12) + 1, filled(LayerNorm(eps=eps).build(SIZE))
    theirs = F.layer_norm(x, (12,), module.weight, module.bias, eps)
    assert_close(module(x), theirs, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("eps", [1e-6, 0.1])
def test_rms_norm_is_torchs(eps, draw):
    x, module = 3 * draw(2, 5, 12) + 1, filled(RMSNorm(eps=eps).build(SIZE))
    assert_close(module(x), F.rms_norm(x, (12,), module.weight, eps), rtol=1e-13, atol=1e-14)


def test_by_hand():
    """[1, 3, 8]: mean 4, variance 26/3; mean square 74/3."""
    x = torch.tensor([[1.0, 3.0, 8.0]], dtype=torch.float64)
    size = type(SIZE)(vocabulary=2, length=2, width=3)
    layer = LayerNorm(eps=1 / 3).build(size)(x)
    assert_close(
        layer, torch.tensor([[-1.0, -1 / 3, 4 / 3]], dtype=torch.float64), rtol=1e-14, atol=0
    )  # 26/3 + 1/3 = 9
    root = RMSNorm(eps=1 / 3).build(size)(x)
    assert_close(root, torch.tensor([[0.2, 0.6, 1.6]], dtype=torch.float64), rtol=1e-14, atol=0)  # 74/3 + 1/3 = 25


def test_parameters_and_their_start():
    starts = {
        LayerNorm(): {"weight": 1.0, "bias": 0.0},
        LayerNorm(bias=False): {"weight": 1.0},
        RMSNorm(): {"weight": 1.0},
    }
    for part, wanted in starts.items():
        found = dict(part.build(SIZE).named_parameters())
        assert {name: p.unique().item() for name, p in found.items()} == wanted
        assert all(p.shape == (12,) for p in found.values())


@pytest.mark.parametrize("part", [LayerNorm(), RMSNorm()], ids=str)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64], ids=str)
def test_narrow_states_are_computed_in_float32_and_come_back_narrow(part, dtype, draw):
    module, x = filled(part.build(SIZE)).float(), (100 * draw(2, 5, 12) + 300).to(dtype)
    made = module(x)
    assert made.dtype == dtype
    assert torch.equal(made, module(x.to(torch.promote_types(dtype, torch.float32))).to(dtype))
    if dtype is torch.float64:
        assert_close(made, module.double()(x), rtol=1e-15, atol=0)
