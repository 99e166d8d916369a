"""Tokens of a text, made once and then read from disk as memory-mapped arrays."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sys
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from headtohead.files import read_json, write_json
from headtohead.spec import Mistake, describe
from headtohead.text import examples, store
from headtohead.text.source import Corpus, Text
from headtohead.text.tokenizer import Tokenizer
from headtohead.text.vocabulary import Encoded, Vocabulary, load_vocabulary

BLOCK = 2048  # tokens; a text without borders is evaluated in blocks of this length, the last one longer


class Side(NamedTuple):
    """One side of a text as a stream: separator, document, separator, document, …, separator (where there is one).

    `documents[d] : documents[d + 1]` is document d with the separator after it. A text without borders is one document
    in the stream, and here blocks of it.
    """

    ids: np.ndarray
    bytes: np.ndarray  # UTF-8 bytes of text that each token covers
    characters: np.ndarray
    documents: np.ndarray
    lines: np.ndarray  # start and end of each line that is not blank, its line end not counted
    unknown_rate: float  # <unk> among the tokens that are not special
    unknown_bytes: float  # and the bytes it covers, of all
    sha256: str  # of the text itself, whatever the tokenizer


@dataclasses.dataclass(frozen=True, eq=False)
class Tokens:
    """A prepared text. `fingerprint` is a hash of all of it."""

    name: str
    train: Side
    validation: Side
    vocabulary: Vocabulary
    bordered: bool
    note: str
    fingerprint: str

    def at_most(self, size: int, width: int) -> Tokens:
        """The same text with only its first validation documents: whole ones, as many as have at most `size` bytes.

        At least one stays, and enough for a row of `width` tokens.
        """
        side = self.validation
        ends = side.documents[1:]
        covered = np.append(0, np.cumsum(side.bytes, dtype=np.int64))[ends]
        count = max(1, int(np.searchsorted(covered, size, side="right")), int(np.searchsorted(ends, width)) + 1)
        return dataclasses.replace(self, validation=_first(side, min(count, len(ends))))


def prepare(text: Text, tokenizer: Tokenizer) -> Tokens:
    """The tokens of a text; the work is done once for each content of the text, tokenizer and version of this code."""
    identity = text.identity()
    code = [store.code(thing) for thing in (type(text), type(tokenizer), Text, Tokenizer, Vocabulary, Side)]
    key = store.key(identity, describe(text), describe(tokenizer), code)

    def write(folder: Path) -> None:
        corpus = text.read()
        if text.identity() != identity:
            raise Mistake(f"{corpus.name} changed while it was read; run again")
        _write(corpus, tokenizer.train(corpus.train), folder)

    # A vocabulary of the user's own class is found where the tokenizer's class is.
    return store.kept(key, write, lambda folder: _open(folder, sys.modules.get(type(tokenizer).__module__)))


def evaluated(corpus: Corpus, tokens: Tokens) -> list[str]:
    """The text of each of `tokens.validation.documents`, to the character."""
    if corpus.bordered:
        return corpus.validation
    ends = np.append(0, np.cumsum(tokens.validation.characters, dtype=np.int64))[tokens.validation.documents]
    return [corpus.validation[0][start:end] for start, end in pairwise(ends)]


def _first(side: Side, count: int) -> Side:
    """The first `count` documents of a side; what is said of the whole side is left as it is."""
    end = int(side.documents[count])
    return side._replace(
        ids=side.ids[:end],
        bytes=side.bytes[:end],
        characters=side.characters[:end],
        documents=side.documents[: count + 1],
        lines=side.lines[: int(np.searchsorted(side.lines[:, 0], end))],
    )


def _write(corpus: Corpus, vocabulary: Vocabulary, folder: Path) -> None:
    numbers: dict[str, dict[str, float | str]] = {"train": {}, "validation": {}}
    digests = [json.dumps(describe(vocabulary)), corpus.name, str(corpus.bordered)]
    for side, documents in (("train", corpus.train), ("validation", corpus.validation)):
        split = _split(documents, vocabulary, corpus.bordered)
        for name, value in split._asdict().items():
            if isinstance(value, np.ndarray):
                np.save(folder / f"{side}.{name}.npy", value)
                digests.append(examples.digest(value))
            else:
                numbers[side][name] = value
    fingerprint = hashlib.blake2b("\n".join(digests).encode(), digest_size=16).hexdigest()
    about = {"name": corpus.name, "bordered": corpus.bordered, "note": corpus.note, "fingerprint": fingerprint}
    vocabulary.save(folder / "tokenizer.json")
    write_json(folder / "text.json", {"about": about, "splits": numbers})


def _open(folder: Path, module: ModuleType | None) -> Tokens:
    stored = read_json(folder / "text.json")
    sides = {side: _mapped(folder, side, numbers) for side, numbers in stored["splits"].items()}
    vocabulary = load_vocabulary(folder / "tokenizer.json", module)
    return Tokens(train=sides["train"], validation=sides["validation"], vocabulary=vocabulary, **stored["about"])


def _mapped(folder: Path, side: str, numbers: dict[str, Any]) -> Side:
    names = [name for name in Side._fields if name not in numbers]
    arrays = {name: np.load(folder / f"{side}.{name}.npy", mmap_mode="r") for name in names}
    return Side(**arrays, **numbers)


def _split(documents: list[str], vocabulary: Vocabulary, bordered: bool) -> Side:
    mark = np.array([] if vocabulary.separator is None else [vocabulary.separator], dtype=np.int64)
    border = Encoded(mark, np.zeros_like(mark), np.zeros_like(mark))
    pieces, ends, whole = [border], [len(mark)], hashlib.sha256()
    for document in documents:
        encoded = vocabulary.encode(document)
        pieces += [encoded, border]
        ends.append(ends[-1] + len(encoded.ids) + len(mark))
        raw = document.encode()
        whole.update(f"{len(raw)}\n".encode() + raw)
    ids, sizes, characters = (np.concatenate(column) for column in zip(*pieces, strict=True))
    unknown = ids == vocabulary.unknown if vocabulary.unknown is not None else np.zeros(len(ids), dtype=bool)
    plain = ~np.isin(ids, vocabulary.specials)
    return Side(
        ids=ids.astype(np.uint16 if vocabulary.size < 1 << 16 else np.uint32),
        bytes=_small(sizes),
        characters=_small(characters),
        documents=np.array(ends if bordered else _blocks(ends[0], ends[-1]), dtype=np.int64),
        lines=_lines(plain & (ids != vocabulary.newline) if vocabulary.newline is not None else plain),
        unknown_rate=float(unknown.sum() / max(plain.sum(), 1)),
        unknown_bytes=float(sizes[unknown].sum() / max(sizes.sum(), 1)),
        sha256=whole.hexdigest(),
    )


def _small(counts: np.ndarray) -> np.ndarray:
    """The counts in the smallest unsigned type that holds them."""
    return counts.astype(np.min_scalar_type(int(counts.max(initial=0))))


def _blocks(start: int, end: int) -> list[int]:
    return [*range(start, max(end - BLOCK, start) + 1, BLOCK), end]


def _lines(content: np.ndarray) -> np.ndarray:
    """Start and end of each run of tokens that belong to a line."""
    edges = np.flatnonzero(np.diff(content, prepend=False, append=False))
    return edges.reshape(-1, 2).astype(np.int64)
