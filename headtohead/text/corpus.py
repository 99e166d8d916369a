"""A text read once: all its documents back to back in one file, and which of them are held out."""

from __future__ import annotations

import hashlib
import math
import mmap
from array import array
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from headtohead.files import read_json, write_json
from headtohead.spec import Mistake, describe
from headtohead.text import store
from headtohead.text.contamination import normalized
from headtohead.text.source import SIDES, Document, Text
from headtohead.text.split import Split, draw

PAGE = 1 << 20  # bytes that are handled at a time: no document, however long, is ever whole in memory
LONGEST_LINE = 1 << 21  # bytes; a longer line is cut at a space, or where there is none anywhere
RESIDENT = 1 << 26  # bytes of the mapped file that may stay in memory
FAULT = 1 << 16  # bytes that one read maps at least
MANY = 1 << 14  # documents that are handled at a time


class Page(NamedTuple):
    """Some documents, or a piece of a long one, that ends where a line ends."""

    texts: list[str]
    ends: list[bool]  # whether a document ends with this text


class Documents:
    """One side of a corpus: byte ranges of a mapped file, read as pages of text. It can be read again and again."""

    def __init__(self, raw: mmap.mmap | bytes, ranges: np.ndarray) -> None:
        self.raw, self.ranges = raw, ranges
        self.touched = 0

    def __len__(self) -> int:
        return len(self.ranges)

    def __iter__(self) -> Iterator[str]:
        """The text in pieces that end where a line or a document ends."""
        for page in self.pages():
            yield from page.texts

    def __getitem__(self, index: int) -> str:
        start, end = self.ranges[index]
        return self._read(int(start), int(end)).decode()

    @property
    def sizes(self) -> np.ndarray:
        """Bytes of each document."""
        return self.ranges[:, 1] - self.ranges[:, 0]

    def spans(self) -> Iterator[list[tuple[int, int, bool]]]:
        """The byte ranges of each page: start, end, and whether a document ends there."""
        page: list[tuple[int, int, bool]] = []
        room = PAGE
        for start, end in self._each():
            while start < end:
                stop = end if end - start <= PAGE else self._line_end(start, end)
                page.append((start, stop, stop == end))
                room -= stop - start
                start = stop
                if room <= 0:
                    yield page
                    page, room = [], PAGE
        if page:
            yield page

    def page(self, spans: list[tuple[int, int, bool]]) -> Page:
        """The text of a page."""
        return Page([self._read(start, stop).decode() for start, stop, _ in spans], [last for _, _, last in spans])

    def pages(self) -> Iterator[Page]:
        """All pages in order."""
        return map(self.page, self.spans())

    def sha256(self) -> str:
        """Of the text itself, document by document."""
        whole = hashlib.sha256()
        for start, end in self._each():
            whole.update(b"%d\n" % (end - start))
            for at in range(start, end, PAGE):
                whole.update(self._read(at, min(at + PAGE, end)))
        return whole.hexdigest()

    def _each(self) -> Iterator[list[int]]:
        for at in range(0, len(self.ranges), MANY):
            yield from self.ranges[at : at + MANY].tolist()

    def _read(self, start: int, stop: int) -> bytes:
        self._touch(stop - start)
        return self.raw[start:stop]

    def _touch(self, size: int) -> None:
        """So much will be read: what was read before goes out of memory in time, where it would count as ours."""
        self.touched += max(size, FAULT)
        if self.touched > RESIDENT and isinstance(self.raw, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            self.raw.madvise(mmap.MADV_DONTNEED)
            self.touched = 0

    def _line_end(self, start: int, end: int) -> int:
        self._touch(min(LONGEST_LINE, end - start))
        place = self.raw.find(b"\n", start + PAGE - 1, min(start + LONGEST_LINE, end))
        if place < 0 and end - start > LONGEST_LINE:
            place = self.raw.rfind(b" ", start + 1, start + LONGEST_LINE) - 1  # a space begins the next piece
            if place < 0:
                place = start + LONGEST_LINE - 1
                while self.raw[place + 1] & 0xC0 == 0x80:  # not inside a character
                    place -= 1
        return place + 1 if place >= 0 else end


class Corpus(NamedTuple):
    """A text on disk, split."""

    name: str
    note: str
    bordered: bool  # False: one long document, cut in two
    train: Documents
    validation: Documents
    folder: Path
    source: str  # the text's identity when it was read
    left_out: dict[str, int]  # what the source and the split left out or mended, in words


def open_corpus(text: Text, split: Split) -> Corpus:
    """The documents of a text, read and split once for each content of the text, setting and version of this code."""
    identity = text.identity()
    code = [store.code(thing) for thing in (type(text), Text, Split, Documents)]
    key = store.key("corpus", identity, describe(text), describe(split), code)

    def write(folder: Path) -> None:
        _write(text, split, folder, identity)
        if text.identity() != identity:
            raise Mistake(f"{text.title()} changed while it was read; run again")

    return store.kept(key, write, _open)


def mapped(folder: Path, side: str) -> Documents:
    """One side of the corpus in a folder."""
    with open(folder / "text.utf8", "rb") as file:
        raw = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return Documents(raw, np.load(folder / f"{side}.npy", mmap_mode="r"))


def _open(folder: Path) -> Corpus:
    about = read_json(folder / "corpus.json")
    return Corpus(**about, train=mapped(folder, "train"), validation=mapped(folder, "validation"), folder=folder)


def _write(text: Text, split: Split, folder: Path, identity: str) -> None:
    tally: Counter[str] = Counter()
    with open(folder / "text.utf8", "wb") as raw:
        stops, marks, owners = _spool(text.documents(tally), raw)
    if not len(stops):
        raise Mistake(f"{text.note()} holds no text; give one with words in it")
    ranges = np.stack([np.append(0, stops[:-1]), stops], axis=1)
    if not split.twins:
        once = _once(marks, owners)
        tally["left out as equal to another"] += len(ranges) - len(once)
        ranges, marks, owners = ranges[once], marks[once], owners[once]
    sides = _sides(ranges, marks, owners, split) if len(ranges) > 1 else _cut(folder / "text.utf8", split.validation)
    given = bool((owners == SIDES.index("validation") + 1).any())
    bordered = len(ranges) > (2 if given else 1)
    for side, chosen in zip(SIDES, sides, strict=True):
        np.save(folder / f"{side}.npy", chosen)
        if not any(piece.strip() for piece in mapped(folder, side)):
            raise Mistake(f"{text.note()} is too short to hold out a part of it; give more text")
    size = f"{len(ranges):,} documents" if bordered else "one document"
    note = "; ".join([text.note(), size, *(f"{count:,} {what}" for what, count in tally.items() if count)])
    about = {"name": text.title(), "note": note, "bordered": bordered, "source": identity, "left_out": +tally}
    write_json(folder / "corpus.json", about)


def _spool(documents: Iterator[Document], raw: IO[bytes]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Write all documents that are not blank; where each ends, a hash of its words, and its side where that is given."""
    stops, marks, owners = array("q"), array("Q"), array("b")
    start = end = 0
    blank, first, several = True, "", None
    for document in documents:
        data = _utf8(document.text)
        raw.write(data)
        end += len(data)
        blank = blank and not document.text.strip()
        if document.goes_on or several:  # a long one is hashed as it is: it need not fit in memory
            several = several or hashlib.blake2b(digest_size=8)
            several.update(data)
        first = document.text
        if document.goes_on:
            continue
        if blank:
            end = start
            raw.seek(end)
            raw.truncate()
        else:
            mark = several or hashlib.blake2b(normalized(first).encode(), digest_size=8)
            stops.append(end)
            marks.append(int.from_bytes(mark.digest(), "little"))
            owners.append(SIDES.index(document.side) + 1 if document.side else 0)
        start, blank, several = end, True, None
    return np.array(stops, np.int64), np.array(marks, np.uint64), np.array(owners, np.int8)


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        letter = f"U+{ord(text[error.start]):04X}"
        raise Mistake(f"the text holds {letter}, half of a character; give it as UTF-8 without surrogates") from None


def _once(marks: np.ndarray, owners: np.ndarray) -> np.ndarray:
    """The first of the documents that are equal; a given side is compared with itself alone."""
    kept = [np.flatnonzero(owners == side)[np.unique(marks[owners == side], return_index=True)[1]] for side in range(3)]
    return np.sort(np.concatenate(kept))


def _sides(ranges: np.ndarray, marks: np.ndarray, owners: np.ndarray, split: Split) -> tuple[np.ndarray, np.ndarray]:
    """Training and validation: in the source's order where it gives validation, else drawn."""
    given = owners == SIDES.index("validation") + 1
    if given.any():
        return ranges[~given], ranges[given]
    drawn = draw(marks, ranges[:, 1] - ranges[:, 0], split.validation)
    return ranges[drawn.train], ranges[drawn.validation]


def _cut(path: Path, share: float) -> tuple[np.ndarray, np.ndarray]:
    """One document: its first characters for training, the rest for validation."""
    size = path.stat().st_size
    pages = [int(_firsts(path, at).sum()) for at in range(0, size, PAGE)]  # characters in each
    wanted = math.floor(round(sum(pages) * (1 - share), 6))
    page = int(np.searchsorted(np.cumsum(pages), wanted, side="right"))
    border = page * PAGE + int(np.flatnonzero(_firsts(path, page * PAGE))[wanted - sum(pages[:page])])
    return np.array([[0, border]]), np.array([[border, size]])


def _firsts(path: Path, at: int) -> np.ndarray:
    """Which bytes of a page are the first of a character."""
    return np.fromfile(path, np.uint8, PAGE, offset=at) & 0xC0 != 0x80
