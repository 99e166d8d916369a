"""Where a text comes from, and which part of it is held out."""

from __future__ import annotations

import hashlib
import platform
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple

from headtohead.files import read_json, write_json
from headtohead.spec import Mistake, Part
from headtohead.text import contamination, documentation, store
from headtohead.text.contamination import normalized

HELD_OUT = 10  # one part in ten, by characters, is validation
LARGE = 100  # a document of more than one part in a hundred is held out last: many voices, not one


class Corpus(NamedTuple):
    """A text in two parts that share no document."""

    name: str
    train: list[str]
    validation: list[str]
    bordered: bool  # False: one long document, cut in two
    note: str  # where it came from, its licence, what it depends on


class Text(Part):
    """`read()` gives the text as documents, already split; `identity()` changes whenever what it would give changes.

    The split never depends on the order of files, and no window of the validation side overlaps the training side.
    """

    def read(self) -> Corpus:
        """The text, split."""
        raise TypeError(f"{type(self).__name__} must define read()")

    def identity(self) -> str:
        """What decides whether earlier work on this text may be used again; by default all of the text itself."""
        return store.key(*self.read())


class PythonDocs(Text):
    """The documentation inside every Python: help topics and the standard library's docstrings, about 2 MB of English.

    It needs no download. It differs a little between Python versions, so the note names the version. What was read is
    kept in the cache folder.
    """

    def read(self) -> Corpus:
        def write(folder: Path) -> None:
            write_json(folder / "corpus.json", self._fresh()._asdict())

        return store.kept(self.identity(), write, lambda folder: Corpus(**read_json(folder / "corpus.json")))

    def identity(self) -> str:
        root = documentation.library()
        stamps = [(str(path), (stat := path.stat()).st_size, stat.st_mtime_ns) for path in documentation.files(root)]
        code = [store.code(thing) for thing in (PythonDocs, documentation.files, contamination.contamination)]
        return store.key(platform.python_version(), stamps, code)

    def _fresh(self) -> Corpus:
        documents = documentation.documents(documentation.library())
        note = (
            f"pydoc_data.topics and the standard library's docstrings in Python {platform.python_version()}, "
            f"{len(documents)} documents, paragraphs that occur twice kept once; Python Software Foundation License 2"
        )
        return Corpus("python-docs", *split(documents), True, note)


class File(Text):
    """A .txt file, or a folder of .txt files (recursive), each file a document; UTF-8.

    One document: its first 90 % of characters train, the rest is held out (nanoGPT's split of Shakespeare). Several:
    whole documents are held out. A relative path counts from the current folder.
    """

    path: str

    def read(self) -> Corpus:
        place = self._place()
        texts = [text for file in _files(place) if (text := _read(file)).strip()]
        documents = list({normalized(text): text for text in sorted(texts)}.values())
        if not documents:
            raise Mistake(f"{place} holds no text; give a file with words in it")
        bordered = len(documents) > 1
        train, validation = split(documents) if bordered else cut(documents[0])
        if not train[0].strip() or not validation[0].strip():
            raise Mistake(f"{place} is too short to hold out a tenth of it; give more text")
        twins = len(texts) - len(documents)
        count = f"{len(documents)} documents" if bordered else "one document"
        note = f"{self.path}, {count}" + (f", {twins} left out as equal to another" if twins else "")
        return Corpus(place.stem, train, validation, bordered, note)

    def identity(self) -> str:
        digests = []
        for file in _files(self._place()):
            with _open(file) as stream:
                digests.append(hashlib.file_digest(stream, "blake2b").hexdigest())
        place = self._place()
        return store.key(self.path, place.stem, sorted(digests), store.code(File), store.code(normalized))

    def _place(self) -> Path:
        return Path(self.path).expanduser().resolve()


def split(documents: list[str]) -> tuple[list[str], list[str]]:
    """Whole documents for training and for validation, drawn by the hash of their content: a function of the set."""
    drawn = sorted(documents, key=lambda document: hashlib.blake2b(document.encode()).digest())
    total = sum(map(len, drawn))
    room, chosen = total // HELD_OUT, set()
    for document in sorted(drawn, key=lambda document: len(document) * LARGE > total):
        if len(document) <= room:
            room -= len(document)
            chosen.add(document)
    chosen = chosen or {min(drawn, key=len)}
    train = [document for document in drawn if document not in chosen]
    return train, [document for document in drawn if document in chosen]


def cut(text: str) -> tuple[list[str], list[str]]:
    """One document: its first nine tenths for training, the rest for validation."""
    border = len(text) * (HELD_OUT - 1) // HELD_OUT
    return [text[:border]], [text[border:]]


def _files(place: Path) -> list[Path]:
    if place.is_dir():
        found = sorted(path for path in place.rglob("*") if path.suffix.lower() == ".txt" and path.is_file())
        if not found:
            raise Mistake(f"no .txt file in {place}; name a folder that holds some, or one file")
        return found
    if not place.exists():
        raise Mistake(f"no text at {place}; give a .txt file or a folder of them, e.g. --set text.path=FILE")
    if place.suffix.lower() != ".txt":
        raise Mistake(f"{place} is not a .txt file; save its text as {place.with_suffix('.txt').name}")
    return [place]


def _open(file: Path) -> BufferedReader:
    try:
        return open(file, "rb")
    except OSError as error:
        raise Mistake(f"cannot read {file} ({error.strerror}); make it readable or name another") from error


def _read(file: Path) -> str:
    """The file's characters as they are; only a byte order mark, which is no part of the text, is taken off."""
    with _open(file) as stream:
        raw = stream.read()
    try:
        return raw.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise Mistake(f"{file} is not UTF-8 at byte {error.start}; save it as UTF-8") from error
