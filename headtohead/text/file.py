"""Files of the user's own."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

from headtohead.spec import Mistake
from headtohead.text import store
from headtohead.text.source import Document, Text


class File(Text):
    """A .txt file, or a folder of .txt files (recursive), each file a document; UTF-8.

    One document: its first 90 % of characters train, the rest is held out (nanoGPT's split of Shakespeare). Several:
    whole documents are held out. A relative path counts from the current folder.
    """

    path: str

    def documents(self, tally: Counter[str]) -> Iterator[Document]:
        for file in _files(self._place()):
            yield Document(_read(file))

    def identity(self) -> str:
        digests = []
        for file in _files(self._place()):
            with _open(file) as stream:
                digests.append(hashlib.file_digest(stream, "blake2b").hexdigest())
        return store.key(self.path, self.title(), digests, store.code(File))

    def title(self) -> str:
        return self._place().stem

    def note(self) -> str:
        return self.path

    def _place(self) -> Path:
        return Path(self.path).expanduser().resolve()


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
