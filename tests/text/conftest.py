from pathlib import Path

import pytest

from headtohead.text.source import Corpus, Text

DATA = Path(__file__).parents[2] / "../shared/data"


class Given(Text):
    """A text that a test writes out."""

    train: tuple[str, ...]
    validation: tuple[str, ...]
    bordered: bool = True

    def read(self):
        return Corpus("given", list(self.train), list(self.validation), self.bordered, "written by a test")


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory):
    """Every test of this folder prepares its texts in one temporary place."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("H2H_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def real():
    """The path of one of the real texts, which are not part of the project."""

    def path(name: str) -> str:
        found = DATA / name / f"{name}.txt"
        if not found.exists():
            pytest.skip(f"{name}.txt lies in ../shared/data, which is not here")
        return str(found)

    return path
