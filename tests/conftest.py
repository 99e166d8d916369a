"""What every test has around it: one thread, and texts prepared in a temporary place, never in the user's cache."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

# Small matrices on many threads are slower than on one, ten times so where the machine has other work. Set before torch
# is imported, here and in every process that a test starts.
os.environ["OMP_NUM_THREADS"] = "1"


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One cache for the whole session."""
    with pytest.MonkeyPatch.context() as patch:
        place = tmp_path_factory.mktemp("cache")
        patch.setenv("H2H_CACHE", str(place))
        yield place


@pytest.fixture(scope="session")
def prose(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of about 12 kB: sentences of thirty words, drawn from a fixed seed."""
    import numpy as np

    words = (
        "the a cat dog old new house river runs sees finds and or but not in on by with from red blue one two day night"
    )
    draw = np.random.default_rng(7)
    lines = [" ".join(draw.choice(words.split(), size=draw.integers(3, 9))) for _ in range(400)]
    path = tmp_path_factory.mktemp("prose") / "prose.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
