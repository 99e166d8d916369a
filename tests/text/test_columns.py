import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headtohead.text import columns
from headtohead.text.columns import Column, pieces


@given(st.lists(st.lists(st.integers(0, 2**40), max_size=9), max_size=9))
def test_what_is_appended_is_read_back_in_the_smallest_type(tmp_path_factory, parts):
    path = tmp_path_factory.mktemp("column") / "numbers.npy"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "CHUNK", 4)
        with Column(path) as column:
            for part in parts:
                column.append(np.array(part, dtype=np.int64))
        found = np.load(path, mmap_mode="r")
        whole = [number for part in parts for number in part]
        assert found.tolist() == whole and found.dtype == np.min_scalar_type(max(whole, default=0))
        assert [number for piece in pieces(path) for number in piece.tolist()] == whole
    assert [entry.name for entry in path.parent.iterdir()] == ["numbers.npy"]


def test_an_error_leaves_no_header(tmp_path):
    with pytest.raises(KeyError), Column(tmp_path / "numbers.npy") as column:
        column.append(np.arange(3))
        raise KeyError
    with pytest.raises(ValueError):
        np.load(tmp_path / "numbers.npy")
