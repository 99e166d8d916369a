import torch

from headtohead.parts.linear import Linear


def test_it_is_torchs_linear_map_with_marks(draw):
    layer = Linear(3, 5, into_residual=True, head_fan=(3, 9)).double()
    x = draw(4, 3)
    assert torch.equal(layer(x), torch.nn.functional.linear(x, layer.weight, layer.bias))
    assert isinstance(layer, torch.nn.Linear) and layer.marks == (True, (3, 9))
    plain = Linear(3, 5, False)
    assert plain.bias is None and plain.marks == (False, None)
