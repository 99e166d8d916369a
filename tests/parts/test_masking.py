"""Three ways to hide a key, on one row whose exponentials are 1, 3, 6 with the last one hidden, and on random rows."""

import math

import pytest
import torch
from torch.testing import assert_close

from headtohead import (
    ClippedSoftmax,
    MinusInfinity,
    Sigmoid,
    Softmax,
    SoftmaxN,
    Sparsemax,
    ZeroAfter,
    ZeroThenRenormalize,
)
from headtohead.spec import Size

SCORES = torch.tensor([1.0, 3.0, 6.0], dtype=torch.float64).log()
ALLOWED = torch.tensor([True, True, False])
MASKINGS = [MinusInfinity(), ZeroAfter(), ZeroThenRenormalize()]


@pytest.mark.parametrize(
    ("part", "normalizer", "weights"),
    [
        (MinusInfinity(), Softmax(), [1 / 4, 3 / 4, 0]),
        (MinusInfinity(), SoftmaxN(n=1), [1 / 5, 3 / 5, 0]),
        (ZeroAfter(), Softmax(), [1 / 10, 3 / 10, 0]),  # the hidden 6 is still in the denominator: that is the leak
        (ZeroAfter(), SoftmaxN(n=1), [1 / 11, 3 / 11, 0]),
        (ZeroThenRenormalize(), Softmax(), [1 / 4, 3 / 4, 0]),
        (ZeroThenRenormalize(), ClippedSoftmax(), [0.076 / 0.364, 0.288 / 0.364, 0]),  # of .076, .288, .606
    ],
    ids=str,
)
def test_by_hand(part, normalizer, weights):
    assert_close(part(SCORES, ALLOWED, normalizer), torch.tensor(weights, dtype=torch.float64), rtol=1e-14, atol=0)


def causal_rows(draw):
    return 3 * draw(2, 3, 32, 32), torch.ones(32, 32, dtype=torch.bool).tril()


def test_renormalizing_a_softmax_is_minus_infinity(draw):
    scores, allowed = causal_rows(draw)
    for dtype, tolerance in ((torch.float64, 1e-14), (torch.float32, 1e-6)):
        x = scores.to(dtype)
        ours, theirs = (part(x, allowed, Softmax()) for part in (ZeroThenRenormalize(), MinusInfinity()))
        assert_close(ours, theirs, rtol=0, atol=tolerance)


@pytest.mark.parametrize("normalizer", [Sparsemax(), ClippedSoftmax(), Sigmoid().build(Size(vocabulary=2, length=32))])
def test_renormalizing_anything_else_is_not(normalizer, draw):
    scores, allowed = causal_rows(draw)
    ours, theirs = (part(scores, allowed, normalizer) for part in (ZeroThenRenormalize(), MinusInfinity()))
    assert (ours - theirs).abs().max() > 1e-3


def test_zero_after_leaves_rows_that_sum_to_less_than_1(draw):
    scores, allowed = causal_rows(draw)
    kept = ZeroAfter()(scores, allowed, Softmax()).sum(-1)
    hidden = scores.exp().masked_fill(allowed, 0.0).sum(-1) / scores.exp().sum(-1)
    assert_close(kept, 1 - hidden, rtol=1e-12, atol=1e-15)
    assert (kept[..., :-1] < 1).all()
    assert_close(kept[..., -1], torch.ones(2, 3, dtype=torch.float64), rtol=1e-14, atol=0)


@pytest.mark.parametrize("part", MASKINGS, ids=str)
@pytest.mark.parametrize("empty", ["every key is hidden", "every score is minus infinity"])
def test_a_row_without_a_key_has_no_weight(part, empty, draw):
    scores, allowed = causal_rows(draw)
    allowed = allowed.clone().expand(2, 3, 32, 32).contiguous()
    if empty == "every key is hidden":
        allowed[:, :, 5] = False
    else:
        scores[:, :, 5] = -math.inf
    leaf = scores.requires_grad_()
    weights = part(leaf, allowed, Softmax())
    (weights * torch.arange(32.0)).sum().backward()
    assert torch.equal(weights[:, :, 5], torch.zeros(2, 3, 32, dtype=torch.float64))
    assert torch.equal(leaf.grad[:, :, 5], torch.zeros(2, 3, 32, dtype=torch.float64))
    assert weights.isfinite().all() and leaf.grad.isfinite().all()


@pytest.mark.parametrize("part", MASKINGS, ids=str)
def test_hidden_keys_weigh_exactly_nothing(part, draw):
    scores, allowed = causal_rows(draw)
    assert (part(scores, allowed, Softmax())[..., ~allowed] == 0).all()
