"""Normalizers against closed forms, appended logits, an independent sort, and known Jacobians."""

import math

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from headtohead import ClippedSoftmax, LearnedSink, Sigmoid, Softmax, SoftmaxN, Sparsemax
from headtohead.parts import normalizer
from headtohead.spec import short
from parts.made import SIZE, finals

INF = math.inf
NORMALIZERS = [cls() for cls in finals(normalizer)]
ROW = [1.0, 3.0, 6.0]  # the exponentials of a row of scores
AMOUNTS = [0.0, 1.0, 4.0, 1e-3, 1e-6, 0.5, 2.5]

every = pytest.mark.parametrize("part", NORMALIZERS, ids=short)


def weigh(part, scores):
    """Weights of scores whose second axis is the head."""
    return part.build(SIZE)(scores)


def with_gradient(part, scores, upstream):
    """Weights, and what flows back to the scores from `upstream`."""
    leaf = scores.detach().clone().requires_grad_()
    weights = weigh(part, leaf)
    weights.backward(upstream)
    return weights.detach(), leaf.grad


@every
def test_rows_without_a_key_are_zero_and_so_is_their_gradient(part, draw):
    scores = draw(2, SIZE.heads, 4, 6)
    scores[0, 1, 2] = -INF
    weights, gradient = with_gradient(part, scores, draw(2, SIZE.heads, 4, 6))
    assert torch.equal(weights[0, 1, 2], torch.zeros(6, dtype=torch.float64))
    assert torch.equal(gradient[0, 1, 2], torch.zeros(6, dtype=torch.float64))
    assert weights.isfinite().all() and gradient.isfinite().all()
    whole, _ = with_gradient(part, torch.full_like(scores, -INF), torch.ones_like(scores))
    assert torch.equal(whole, torch.zeros_like(scores))


@every
def test_a_hidden_key_is_as_good_as_no_key(part, draw):
    """Its weight and gradient are 0, the others' those of the row without it."""
    scores, upstream = draw(1, SIZE.heads, 5, 7), draw(1, SIZE.heads, 5, 7)
    shown, hidden = [0, 2, 3, 6], [1, 4, 5]
    scores[..., hidden] = -INF
    weights, gradient = with_gradient(part, scores, upstream)
    alone, alone_gradient = with_gradient(part, scores[..., shown], upstream[..., shown])
    assert torch.equal(weights[..., hidden], torch.zeros(1, SIZE.heads, 5, 3, dtype=torch.float64))
    assert torch.equal(gradient[..., hidden], torch.zeros(1, SIZE.heads, 5, 3, dtype=torch.float64))
    assert_close(weights[..., shown], alone, rtol=1e-13, atol=1e-15)
    assert_close(gradient[..., shown], alone_gradient, rtol=1e-12, atol=1e-15)


@every
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64], ids=str)
def test_narrow_scores_are_computed_in_float32_and_come_back_narrow(part, dtype, draw):
    scores = (3 * draw(1, SIZE.heads, 4, 50)).to(dtype)
    weights = weigh(part, scores)
    assert weights.dtype == dtype
    wide = scores.to(torch.promote_types(dtype, torch.float32))
    assert torch.equal(weights, weigh(part, wide).to(dtype))
    exact = weigh(part, scores.double())
    # n float32 additions of numbers up to 1, then one rounding to the type asked for
    tolerance = 1e-15 if dtype is torch.float64 else 2e-6 + torch.finfo(dtype).eps
    assert (weights.double() - exact).abs().max() <= tolerance


@every
def test_the_softmax_is_left_when_rows_are_renormalized_where_it_says_so(part, draw):
    """`scales_softmax` is what ZeroThenRenormalize is refused by."""
    scores = draw(1, SIZE.heads, 5, 7)
    weights = weigh(part, scores)
    renormalized = weights / weights.sum(-1, keepdim=True)
    if not isinstance(part, Softmax):  # which has no factor that could be lost
        assert part.scales_softmax == torch.allclose(renormalized, scores.softmax(-1), rtol=1e-12)
    assert not Softmax().scales_softmax and not SoftmaxN(n=0).scales_softmax and SoftmaxN(n=1e-3).scales_softmax


def test_softmax_is_exponentials_over_their_sum():
    weights = Softmax()(torch.tensor([1.0, 3.0, 6.0], dtype=torch.float64).log())
    assert_close(weights, torch.tensor([0.1, 0.3, 0.6], dtype=torch.float64), rtol=1e-15, atol=0)


@pytest.mark.parametrize("n", AMOUNTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_softmax_n_is_the_closed_form(n, dtype):
    weights = SoftmaxN(n=n)(torch.tensor([ROW, ROW[::-1]], dtype=torch.float64).log().to(dtype))
    wanted = torch.tensor([ROW, ROW[::-1]], dtype=torch.float64) / (n + 10)
    assert_close(weights.double(), wanted, rtol=4 * torch.finfo(dtype).eps, atol=0)  # log, exp, sum and quotient round


@pytest.mark.parametrize("n", AMOUNTS)
def test_softmax_n_has_the_jacobian_of_the_softmax(n, draw):
    """p_i(δ_ij − p_j), whatever n is: the added constant has no gradient of its own."""
    scores = draw(6)
    p = scores.exp() / (n + scores.exp().sum())
    jacobian = torch.autograd.functional.jacobian(SoftmaxN(n=n), scores)
    assert_close(jacobian, torch.diag(p) - torch.outer(p, p), rtol=1e-12, atol=1e-16)


@pytest.mark.parametrize("n", [1, 2, 4])
def test_a_whole_n_is_as_many_zero_scores_that_are_dropped_again(n, draw):
    scores, upstream = 4 * draw(2, 3, 5, 9), draw(2, 3, 5, 9)
    weights, gradient = with_gradient(SoftmaxN(n=n), scores, upstream)
    leaf = scores.clone().requires_grad_()
    padded = torch.cat([torch.zeros(2, 3, 5, n, dtype=torch.float64), leaf], -1).softmax(-1)[..., n:]
    padded.backward(upstream)
    assert_close(weights, padded.detach(), rtol=1e-13, atol=1e-300)
    assert_close(gradient, leaf.grad, rtol=1e-11, atol=1e-16)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_softmax_0_is_the_softmax_to_the_bit(dtype, draw):
    scores = (10 * draw(2, 3, 40, 40)).to(dtype)
    scores[0, 0, 0] = -INF
    scores[1, :, :, 30:] = -INF
    upstream = draw(2, 3, 40, 40).to(dtype)
    for ours, theirs in zip(
        with_gradient(SoftmaxN(n=0), scores, upstream), with_gradient(Softmax(), scores, upstream), strict=True
    ):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("n", AMOUNTS)
def test_large_scores_do_not_overflow(n):
    """exp(710) is beyond float64; the row's share of the added n is e^-710."""
    weights, gradient = with_gradient(SoftmaxN(n=n), torch.tensor([12.0, 89.0, 710.0]), torch.tensor([1.0, 2.0, 3.0]))
    assert torch.equal(weights, torch.tensor([0.0, 0.0, 1.0]))
    assert torch.equal(gradient, torch.zeros(3))


@pytest.mark.parametrize("n", [1.0, 4.0, 1e-3, 1e-6])
def test_very_negative_rows_fall_silent(n):
    """The limit is 0 and not the even 1/k; a shift by the row's own maximum would give exp(200), ∞ in float32."""
    row = [-200.0, -201.0, -300.0]
    weights, gradient = with_gradient(SoftmaxN(n=n), torch.tensor([row]), torch.tensor([[1.0, -2.0, 3.0]]))
    assert torch.equal(weights, torch.zeros(1, 3)) and torch.equal(gradient, torch.zeros(1, 3))
    exact = SoftmaxN(n=n)(torch.tensor([row], dtype=torch.float64))
    wanted = torch.tensor([[math.exp(x) / n for x in row]], dtype=torch.float64)  # the sum is nothing beside n
    assert_close(exact, wanted, rtol=1e-14, atol=0)


def test_n_is_shifted_with_the_scores():
    """The copied mistake keeps "+ 1" beside shifted exponentials: [5, 5] would give 1/3 each."""
    e = math.exp(5)
    assert_close(SoftmaxN(n=1)(torch.tensor([5.0, 5.0])), torch.full((2,), e / (1 + 2 * e)))
    assert SoftmaxN(n=1)(torch.tensor([5.0, 5.0])).sum() > 0.99


def test_learned_sink_at_its_start_is_softmax_1(draw):
    scores = 5 * draw(2, SIZE.heads, 4, 6)
    assert_close(weigh(LearnedSink(), scores), SoftmaxN(n=1)(scores), rtol=1e-14, atol=0)


def test_learned_sink_is_one_score_a_head(draw):
    """exp(x_i) / (exp(s_h) + Σ exp(x_j)); its gradient in s_h is −p_i · exp(s_h) / (exp(s_h) + Σ exp(x_j))."""
    scores = draw(1, SIZE.heads, 1, 4)
    module = LearnedSink(start=2).build(SIZE).double()
    with torch.no_grad():
        module.sink += torch.tensor([0.0, -3.0, 98.0])
    weights = module(scores)
    weights[..., 0].sum().backward()
    for head, s in enumerate((2.0, -1.0, 100.0)):
        total = math.exp(s) + scores[0, head, 0].exp().sum()
        wanted = scores[0, head, 0].exp() / total
        assert_close(weights[0, head, 0], wanted, rtol=1e-13, atol=0)
        assert_close(module.sink.grad[head], -wanted[0] * math.exp(s) / total, rtol=1e-12, atol=0)


def test_learned_sink_survives_large_scores():
    module = LearnedSink(start=200.0).build(SIZE)
    rows = torch.tensor([[710.0, 12.0], [-700.0, -INF]]).expand(1, SIZE.heads, 2, 2)
    assert torch.equal(module(rows), torch.tensor([[1.0, 0.0], [0.0, 0.0]]).expand(1, SIZE.heads, 2, 2))


def test_clipped_softmax_stretches_and_clips():
    """1.06 p − .03 of p = .1, .3, .6, and of .005, .995, which leave [0, 1]."""
    rows = torch.tensor([[0.1, 0.3, 0.6], [0.005, 0.995, 0.0]], dtype=torch.float64)
    wanted = torch.tensor([[0.076, 0.288, 0.606], [0.0, 1.0, 0.0]], dtype=torch.float64)
    assert_close(ClippedSoftmax()(rows.log()), wanted, rtol=1e-14, atol=0)
    unclipped = ClippedSoftmax(high=1.0, low=0.0)(rows.log())
    assert_close(unclipped, rows, rtol=1e-14, atol=0)
    assert_close(ClippedSoftmax(high=1.5, low=-0.5)(rows.log())[0], torch.tensor([0.0, 0.1, 0.7], dtype=torch.float64))


def test_sigmoid_knows_the_recipes_length_and_not_the_rows():
    """σ(x − log 8) = e / (e + 8) for e = exp(x), in a row of 3 as in one of 5."""
    weights = Sigmoid().build(SIZE)(torch.tensor([1.0, 3.0, 6.0], dtype=torch.float64).log())
    assert_close(weights, torch.tensor([1 / 9, 3 / 11, 6 / 14], dtype=torch.float64), rtol=1e-14, atol=0)
    longer = Sigmoid().build(SIZE)(torch.tensor([1.0, 3.0, 6.0, 8.0, 24.0], dtype=torch.float64).log())
    wanted = torch.tensor([1 / 9, 3 / 11, 6 / 14, 1 / 2, 3 / 4], dtype=torch.float64)
    assert_close(longer, wanted, rtol=1e-14, atol=0)


def projection_onto_the_simplex(rows):
    """Sort, find the largest k with 1 + k·x_(k) > Σ_{j ≤ k} x_(j), take (Σ − 1) / k off (Martins & Astudillo, algorithm 1)."""
    projected = np.zeros_like(rows)
    for row, result in zip(rows, projected, strict=True):
        shown = np.isfinite(row)
        down = np.sort(row[shown])[::-1]
        sums = np.cumsum(down)
        k = max(np.flatnonzero(1 + np.arange(1, len(down) + 1) * down > sums)) + 1
        result[shown] = np.maximum(row[shown] - (sums[k - 1] - 1) / k, 0.0)
    return projected


@pytest.mark.parametrize("length", [5, 128, 2048])
@pytest.mark.parametrize("scale", [0.001, 0.1, 1.0, 10.0])
def test_sparsemax_is_the_projection_that_sorting_finds(length, scale, draw):
    scores = scale * draw(24, length)
    scores[8:16] = (4 * scores[8:16]).round() / 4  # ties, all of them where the scale is small
    scores[16:, length // 3 : length // 2] = -INF
    weights = Sparsemax()(scores)
    assert_close(weights, torch.from_numpy(projection_onto_the_simplex(scores.numpy())), rtol=0, atol=2e-14)
    assert_close(weights.sum(-1), torch.ones(24, dtype=torch.float64), rtol=0, atol=1e-13)


def test_sparsemax_by_hand():
    """[1, .8, .1]: t = (1.8 − 1) / 2 = .4; [.5, .5, .2]: t = (1.2 − 1) / 3; [3, 1, 0]: t = 2."""
    rows = torch.tensor([[1.0, 0.8, 0.1], [0.5, 0.5, 0.2], [3.0, 1.0, 0.0]], dtype=torch.float64)
    wanted = torch.tensor([[0.6, 0.4, 0.0], [13 / 30, 13 / 30, 4 / 30], [1.0, 0.0, 0.0]], dtype=torch.float64)
    assert_close(Sparsemax()(rows), wanted, rtol=1e-14, atol=1e-16)


def test_sparsemax_has_its_known_jacobian(draw):
    """diag(s) − s·sᵀ / |S|, s the indicator of the support S (Martins & Astudillo, eq. 9)."""
    for _ in range(5):
        scores = draw(9)
        jacobian = torch.autograd.functional.jacobian(Sparsemax(), scores)
        s = torch.from_numpy((projection_onto_the_simplex(scores.numpy()[None])[0] > 0).astype(float))
        assert 1 < s.sum() < 9
        assert_close(jacobian, torch.diag(s) - torch.outer(s, s) / s.sum(), rtol=0, atol=1e-15)


def test_sparsemax_in_float32_does_not_mind_a_common_offset(draw):
    """A sum of 2,048 scores near 1,000 is only good to 0.1; what is taken off first does not enter it."""
    scores = (0.01 * draw(8, 2048) * 2**14).round() / 2**14  # exact in float32 beside 1,000
    weights = Sparsemax()((scores + 1000).float())
    assert_close(weights.double(), Sparsemax()(scores), rtol=0, atol=1e-7)
    assert_close(weights.sum(-1), torch.ones(8), rtol=0, atol=2e-6)
