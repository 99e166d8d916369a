"""Scores against sums written out by hand and loops over pairs."""

import dataclasses
import math

import pytest
import torch
from torch.testing import assert_close

from headtohead import Additive, Cosine, ScaledDot
from parts.made import SIZE, filled


def row(*numbers):
    return torch.tensor([[[numbers]]], dtype=torch.float64)


def test_scaled_dot_by_hand():
    """(1·.5 + 2·0 − 3·1 + 4·2) / √4."""
    assert ScaledDot()(row(1.0, 2.0, 3.0, 4.0), row(0.5, 0.0, -1.0, 2.0)).item() == 2.75


def test_scaled_dot_is_torchs_kernel(draw):
    q, k = draw(2, 3, 5, 8), draw(2, 3, 7, 8)
    eye = torch.eye(7, dtype=torch.float64).expand(2, 3, 7, 7)  # with these values attention returns its weights
    theirs = torch.nn.functional.scaled_dot_product_attention(q, k, eye)
    assert_close(ScaledDot()(q, k).softmax(-1), theirs, rtol=1e-13, atol=1e-16)


@pytest.mark.parametrize(("part", "hidden"), [(Additive(), 4), (Additive(hidden=7), 7), (Additive(shared=True), 4)])
def test_additive_is_a_two_layer_network_on_each_pair(part, hidden, draw):
    """w·tanh(W [q; k] + b), W = [W_q | W_k], one pair at a time."""
    q, k = draw(2, SIZE.heads, 5, SIZE.head_width), draw(2, SIZE.heads, 6, SIZE.head_width)
    module = filled(part.build(SIZE))
    assert module.query.shape == (1 if part.shared else SIZE.heads, hidden, SIZE.head_width)
    scores = module(q, k)
    assert scores.shape == (2, SIZE.heads, 5, 6)
    for b, h, i, j in torch.cartesian_prod(*map(torch.arange, scores.shape)):
        own = 0 if part.shared else h
        first = torch.cat([module.query[own], module.key[own]], 1)
        pair = torch.cat([q[b, h, i], k[b, h, j]])
        wanted = module.weight[own, 0] @ torch.tanh(first @ pair + module.bias[own])
        assert_close(scores[b, h, i, j], wanted, rtol=1e-12, atol=1e-13)


def test_cosine_by_hand():
    """[3, 4]·[4, 3] / 25 = .96, whatever the lengths; a query of length 0 agrees with nothing."""
    module = Cosine(scale=10).build(SIZE).double()
    assert module(row(3.0, 4.0), row(4.0, 3.0)).item() == pytest.approx(9.6, rel=1e-14)
    assert module(row(0.3, 0.4), row(4e6, 3e6)).item() == pytest.approx(9.6, rel=1e-14)
    assert module(row(0.0, 0.0), row(4.0, 3.0)).item() == 0.0


def test_cosines_start_is_the_papers():
    """log2(L² − L): 56 pairs at length 8; one number, learned."""
    assert Cosine().build(SIZE).scale.item() == pytest.approx(math.log2(56), rel=1e-7)
    longer = dataclasses.replace(SIZE, length=128)
    assert Cosine().build(longer).scale.item() == pytest.approx(math.log2(128 * 127), rel=1e-7)
    assert [p.numel() for p in Cosine().build(SIZE).parameters()] == [1]
