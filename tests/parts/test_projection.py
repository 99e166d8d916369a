"""Projections against one product for each head."""

import dataclasses

import pytest
import torch
from torch.testing import assert_close

from headtohead import Grouped, Separate, SharedQK, SharedQKV
from headtohead.spec import short
from parts.made import SIZE, filled

BIG = dataclasses.replace(SIZE, width=24, heads=6, key_value_heads=6)


def built(part):
    size = dataclasses.replace(BIG, key_value_heads=part.key_value_heads_of(BIG.heads))
    return filled(part.build(size))


def head_of(x, linear, head):
    """x W_hᵀ + b_h with the head's own rows of the matrix."""
    rows = slice(head * BIG.head_width, (head + 1) * BIG.head_width)
    made = x @ linear.weight[rows].T
    return made if linear.bias is None else made + linear.bias[rows]


CASES = [
    (Separate(), ("query", "key", "value"), 6),
    (Separate(bias=False), ("query", "key", "value"), 6),
    (SharedQK(), ("query", "query", "value"), 6),
    (SharedQK(bias=False), ("query", "query", "value"), 6),
    (SharedQKV(), ("query", "query", "query"), 6),
    (SharedQKV(bias=False), ("query", "query", "query"), 6),
    (Grouped(key_value_heads=2), ("query", "key", "value"), 2),
    (Grouped(key_value_heads=1, bias=False), ("query", "key", "value"), 1),
    (Grouped(key_value_heads=3), ("query", "key", "value"), 3),
]
every = pytest.mark.parametrize(("part", "roles", "key_value_heads"), CASES, ids=lambda value: short(value))


@every
def test_each_head_is_its_own_product(part, roles, key_value_heads, draw):
    module, x = built(part), draw(2, 5, BIG.width)
    for role, name, made in zip(("query", "key", "value"), roles, module(x), strict=True):
        assert made.shape == (2, 6, 5, 4)
        for head in range(6):
            served = head if role == "query" else head * key_value_heads // 6  # a run of query heads shares one
            wanted = head_of(x, module.get_submodule(name), served)
            assert_close(made[:, head], wanted, rtol=1e-13, atol=1e-13)


@every
def test_query_key_and_value_are_separate_parameters(part, roles, key_value_heads):
    widths = {"query": 24, "key": 4 * key_value_heads, "value": 4 * key_value_heads}
    wanted = {f"{name}.weight": (widths[name], 24) for name in roles}
    wanted |= {f"{name}.bias": (widths[name],) for name in roles if part.bias}
    assert {name: tuple(p.shape) for name, p in built(part).named_parameters()} == wanted


def test_shared_maps_share_their_results(draw):
    x = draw(2, 5, BIG.width)
    q, k, v = built(SharedQK())(x)
    assert torch.equal(q, k) and not torch.equal(q, v)
    q, k, v = built(SharedQKV())(x)
    assert torch.equal(q, k) and torch.equal(q, v)
    q, k, v = built(Separate())(x)
    assert not torch.equal(q, k) and not torch.equal(k, v)


def test_only_grouped_has_fewer_key_value_heads():
    assert [part.key_value_heads_of(6) for part in (Separate(), SharedQK(), SharedQKV(), Grouped())] == [6, 6, 6, 2]


def test_grouped_with_all_heads_is_separate(draw):
    x = draw(2, 5, BIG.width)
    for ours, theirs in zip(built(Grouped(key_value_heads=6))(x), built(Separate())(x), strict=True):
        assert torch.equal(ours, theirs)
