"""Joining a sub-layer 10x to the stream, with a norm that halves: every order has a number of its own."""

import pytest
import torch

from headtohead import NoResidual, PostNorm, PreNorm, ReZero
from parts.made import SIZE

X = torch.tensor([4.0, -2.0])


@pytest.mark.parametrize(
    ("part", "factor"),
    [
        (PreNorm(), 1 + 10 / 2),
        (PostNorm(), (1 + 10) / 2),
        (NoResidual(), 10 / 2),
        (ReZero(), 1.0),
        (ReZero(start=1), 1 + 10),
        (ReZero(start=0.5), 1 + 5),
    ],
    ids=str,
)
def test_by_hand(part, factor):
    joined = part.build(SIZE)(X, lambda x: x / 2, lambda x: 10 * x)
    assert torch.equal(joined, factor * X)


def test_rezeros_share_is_learned():
    """y = x + α·10x, so the gradient of Σy in α is 10·Σx = 20."""
    module = ReZero(start=0.5).build(SIZE)
    module(X, lambda x: x / 2, lambda x: 10 * x).sum().backward()
    assert module.alpha.grad.item() == 20.0


def test_which_norms_a_body_has():
    """ReZero has none at all; PostNorm ends on its last block's."""
    parts = (PreNorm(), PostNorm(), NoResidual(), ReZero())
    assert [part.normed for part in parts] == [True, True, True, False]
    assert [part.final_norm for part in parts] == [True, False, True, False]
