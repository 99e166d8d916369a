"""Datasets of the Hugging Face Hub, or folders of them on disk, streamed by the library `datasets`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from headtohead.files import read_json, write_json
from headtohead.spec import Mistake
from headtohead.text import formats, store
from headtohead.text.digests import digests
from headtohead.text.file import below
from headtohead.text.formats import Border, Reading, missing, of_row
from headtohead.text.source import Document, Text

COMMIT = re.compile(r"[0-9a-f]{40}")
HELD_OUT = "validation"


class HuggingFace(Text):
    """A dataset of the Hub, or a folder that `datasets` can read, one row a document: hf:NAME[:CONFIG][:SPLIT][:COLUMN].

    Rows are streamed, so that no more is downloaded than is read; `first` stops after so many rows of a split, 0 reads
    all. Without a `split` the dataset's own are taken: train, and validation as the held-out side where there is one.
    `revision` is a commit, branch or tag; the commit that was read is part of the text's identity. `border` is File's.
    """

    dataset: str
    config: str = ""
    split: str = ""
    column: str = "text"
    revision: str = ""
    border: Border = "file"
    first: int = 0

    def documents(self, tally: Counter[str]) -> Iterator[Document]:
        for side, rows in self._sides():
            for value in self._values(rows, tally):
                for part in of_row(value, Reading(border=self.border), self.dataset):
                    yield part._replace(side=side)

    def identity(self) -> str:
        return store.key(self._commit(), store.code(HuggingFace), store.code(formats.Reading))

    def title(self) -> str:
        return "-".join(filter(None, [Path(self.dataset).name, self.config]))

    def note(self) -> str:
        commit = "" if self._local() else f" at commit {self._commit()[:12]}"
        return f"hf:{':'.join([self.dataset, self.config, self.split, self.column])}{commit}"

    def _local(self) -> bool:
        return Path(self.dataset).expanduser().is_dir()

    def _commit(self) -> str:
        """What decides the rows: hashes of a folder's files, or the commit of the Hub.

        Where the Hub cannot be asked, the commit that was last seen: what was prepared from it stays usable offline.
        """
        if self._local():
            folder = Path(self.dataset).expanduser().resolve()
            found = below(folder)
            known = digests(found)
            return store.key([(str(path.relative_to(folder)), known[path]) for path in found])
        if COMMIT.fullmatch(self.revision):
            return self.revision
        seen = store.root() / "hub" / f"{store.key(self.dataset, self.revision)}.json"
        hub = _library("huggingface_hub")
        try:
            commit = hub.HfApi().dataset_info(self.dataset, revision=self.revision or None).sha
        except _failures() as error:
            if seen.is_file():
                return str(read_json(seen)["commit"])
            raise self._unreadable(error) from error
        if not seen.is_file() or read_json(seen)["commit"] != commit:
            with suppress(OSError):  # only a help; that the cache cannot be written is told when it must be
                seen.parent.mkdir(parents=True, exist_ok=True)
                write_json(seen, {"dataset": self.dataset, "revision": self.revision, "commit": commit})
        return str(commit)

    def _sides(self) -> list[tuple[str, Any]]:
        """Each split that is read, with the side of its rows."""
        revision = None if self._local() else self._commit()
        place = str(Path(self.dataset).expanduser()) if self._local() else self.dataset
        load = _library("datasets").load_dataset
        try:
            splits = load(place, self.config or None, revision=revision, streaming=True)
        except _failures() as error:
            raise self._unreadable(error) from error
        wanted = self.split or "train"
        if wanted not in splits:
            raise Mistake(f"{self.dataset} has no split {wanted!r}; choose one of {', '.join(splits)}")
        if self.split or HELD_OUT not in splits:
            return [("", splits[wanted])]
        return [("train", splits["train"]), ("validation", splits[HELD_OUT])]

    def _values(self, rows: Iterable[dict[str, Any]], tally: Counter[str]) -> Iterator[str]:
        for row in islice(self._streamed(rows), self.first or None):
            if self.column not in row:
                raise missing(self.dataset, self.column, list(row))
            yield from formats.text_of(row[self.column], self.dataset, self.column, tally)

    def _streamed(self, rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """The rows, fetched as they are read: the network may go at any of them."""
        try:
            yield from rows
        except _failures() as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> Mistake:
        said = " ".join((str(error) or type(error).__name__).split())[:200]
        fix = "check the name and the network, or give files of it: --set 'text=File(path=FOLDER)'"
        return Mistake(f"cannot read the dataset {self.dataset} ({said}); {fix}")


def _failures() -> tuple[type[Exception], ...]:
    """What `datasets` and the Hub's client raise; the client lets errors of its HTTP library through.

    That is httpx or a later one. Whichever, the client's own error derives from the library's.
    """
    own = _library("huggingface_hub.errors").HfHubHTTPError
    return (OSError, ValueError, RuntimeError, *own.__bases__)


def _library(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        raise Mistake(f'a dataset of the Hub needs the package {name}: pip install "headtohead[data]"') from None


def from_address(address: str) -> HuggingFace:
    """hf:NAME[:CONFIG][:SPLIT][:COLUMN], a part of it left empty as in hf:NAME::train."""
    dataset, *more = address.removeprefix("hf:").split(":")
    if not dataset or len(more) > 3:
        raise Mistake(f"{address} names no dataset; write hf:NAME[:CONFIG][:SPLIT][:COLUMN], e.g. hf:user/books::train")
    config, split, column = [*more, "", "", ""][:3]
    return HuggingFace(dataset, config, split, column or "text")
