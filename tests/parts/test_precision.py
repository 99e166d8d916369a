import pytest
import torch

from headtohead.parts.precision import widen

WIDENED = [(torch.float16, torch.float32), (torch.bfloat16, torch.float32), (torch.float32, torch.float32)]


@pytest.mark.parametrize(("given", "computed"), [*WIDENED, (torch.float64, torch.float64)])
def test_narrow_numbers_are_computed_in_float32_and_wide_ones_stay(given, computed):
    x = torch.tensor([0.1, -3.0, float("-inf")], dtype=given)
    assert widen(x).dtype == computed
    assert torch.equal(widen(x).to(given), x)
