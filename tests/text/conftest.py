from pathlib import Path

import pytest

from headtohead.text.corpus import open_corpus
from headtohead.text.source import Document, Text
from headtohead.text.split import Split

DATA = Path(__file__).parents[2] / "../shared/data"


class Given(Text):
    """A text that a test writes out."""

    train: tuple[str, ...]
    validation: tuple[str, ...]

    def documents(self, tally):
        for side in ("train", "validation"):
            for text in getattr(self, side):
                yield Document(text, side=side)

    def title(self):
        return "given"


def write(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def both(text: Text, split: Split = Split()) -> tuple[list[str], list[str]]:
    """The documents of either side."""
    corpus = open_corpus(text, split)
    return [corpus.train[i] for i in range(len(corpus.train))], [
        corpus.validation[i] for i in range(len(corpus.validation))
    ]


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
