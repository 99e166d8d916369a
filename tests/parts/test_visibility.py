"""What each query sees, drawn as a picture: a row is a query, x is a key it may look at."""

import pytest
import torch

from headtohead import Causal, Everyone, Window


def seen(part, query, key):
    query, key = torch.tensor(query), torch.tensor(key)
    allowed = part(query[:, None], key[None, :])
    return ["".join("x" if cell else "." for cell in row) for row in allowed.expand(len(query), len(key)).tolist()]


def test_causal_sees_the_past_and_itself():
    assert seen(Causal(), range(4), range(4)) == ["x...", "xx..", "xxx.", "xxxx"]


def test_causal_counts_positions_and_not_places_in_the_row():
    """A later query beside a longer history, as with a cache; and positions that restart with a second document."""
    assert seen(Causal(), [3, 4], range(6)) == ["xxxx..", "xxxxx."]
    assert seen(Causal(), [0, 1, 0, 1], [0, 1, 0, 1]) == ["x.x.", "xxxx", "x.x.", "xxxx"]


def test_everyone_sees_all():
    assert seen(Everyone(), range(3), range(4)) == ["xxxx"] * 3
    allowed = Everyone()(torch.zeros(2, 1, 5, 1, dtype=torch.int64), torch.zeros(1, 1, 1, 5, dtype=torch.int64))
    assert allowed.dtype == torch.bool


@pytest.mark.parametrize(
    ("part", "picture"),
    [
        (Window(width=1), ["x....", ".x...", "..x..", "...x.", "....x"]),
        (Window(width=3), ["x....", "xx...", "xxx..", ".xxx.", "..xxx"]),
        (Window(width=1, future=True), ["x....", ".x...", "..x..", "...x.", "....x"]),
        (Window(width=2, future=True), ["xx...", "xxx..", ".xxx.", "..xxx", "...xx"]),
        (Window(), ["x....", "xx...", "xxx..", "xxxx.", "xxxxx"]),
    ],
    ids=str,
)
def test_window_slides(part, picture):
    assert seen(part, range(5), range(5)) == picture


def test_the_default_window_is_256_tokens():
    assert seen(Window(), [300], [44, 45, 300, 301]) == [".xx."]
