import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headtohead.text.split import Split, draw, ends


def drawn(hashes, sizes, share=0.1):
    return [side.tolist() for side in draw(np.array(hashes, np.uint64), np.array(sizes), share)]


def test_by_hand():
    # of 200 bytes 20 may be held out: hashes 0, 1 and 2 are documents 3, 1 and 0, of 8, 9 and 10
    train, validation = drawn([2, 1, *range(10, 28), 0], [10, 9, *[8] * 18, 8], 0.1)
    assert validation == [20, 1] and sorted(train) == [0, *range(2, 20)]


@given(st.lists(st.integers(1, 1000), min_size=2, max_size=200), st.randoms())
def test_a_function_of_the_set(sizes, random):
    hashes = list(range(len(sizes)))
    random.shuffle(hashes)
    train, validation = drawn(hashes, sizes)
    assert sorted(train + validation) == list(range(len(sizes))) and train and validation
    assert sum(sizes[i] for i in validation) <= sum(sizes) / 10 or sizes[validation[0]] == min(sizes)
    order = list(range(len(sizes)))
    random.shuffle(order)
    again = drawn([hashes[i] for i in order], [sizes[i] for i in order])
    assert [order[i] for i in again[1]] == validation and [order[i] for i in again[0]] == train


def test_many_voices_are_held_out():
    train, validation = drawn([0, *range(1, 401)], [12_000, *[90] * 400])
    assert 0 in train and 0.095 < 90 * len(validation) / 48_000 <= 0.1
    assert 100 < train.index(0) < len(train) - 100  # neither the probe nor the tuning slice is one voice


def test_where_all_are_large_some_of_them_are_held_out():
    train, validation = drawn([3, 1, 2, 0], [50, 30, 4, 16], 0.2)
    assert validation == [3, 2] and sorted(train) == [0, 1]


@pytest.mark.parametrize(("share", "field"), [(0.3, "probe"), (0.3, "tuning")])
def test_the_ends_of_training_are_the_probe_and_the_tuning_slice(share, field):
    sizes = np.array([5, 10, 10, 20, 20, 10, 10, 15])
    assert ends(sizes, Split()) == (1, 1)
    found = ends(sizes, Split(**{field: share}))
    assert found == ((3, 1) if field == "probe" else (1, 2))
    assert ends(np.array([5, 5]), Split()) == (2, 0)
