import dataclasses

import pytest

from headtohead import Distinct, Shared, Transformer, at
from parts.made import SIZE


def test_distinct_layers_have_a_block_each():
    assert Distinct().groups_of(4) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("groups", "layers", "blocks"),
    [
        (1, 4, [0, 0, 0, 0]),
        (2, 4, [0, 0, 1, 1]),
        (2, 5, [0, 0, 0, 1, 1]),
        (3, 12, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]),
        (4, 4, [0, 1, 2, 3]),
    ],
)
def test_shared_blocks_serve_contiguous_runs(groups, layers, blocks):
    assert Shared(groups=groups).groups_of(layers) == blocks


@pytest.mark.parametrize("layers", range(1, 13))
def test_all_groups_serve_and_none_serves_twice_as_much_as_it_must(layers):
    for groups in range(1, layers + 1):
        blocks = Shared(groups=groups).groups_of(layers)
        assert blocks == sorted(blocks) and set(blocks) == set(range(groups))
        served = [blocks.count(group) for group in range(groups)]
        assert max(served) - min(served) <= 1


def test_a_model_has_the_parameters_of_its_groups():
    """Gates and sinks go with their block: whatever a layer has, a shared model has once a group."""
    size = dataclasses.replace(SIZE, layers=4)

    def count(sharing):
        model = at(Transformer(layers=4, heads=3, width=12), {"sharing": sharing})
        return sum(p.numel() for p in model.build(model.complete(size)).parameters())

    block = count(Shared(groups=2)) - count(Shared(groups=1))
    assert block == 2 * 2 * 12 + (4 * 12 * 12 + 4 * 12) + (2 * 12 * 48 + 48 + 12)  # norms, attention, feed-forward
    assert count(Distinct()) == count(Shared(groups=1)) + 3 * block
