"""Tokens of a text, made once and then read from disk as memory-mapped arrays."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from headtohead.files import read_json, write_json
from headtohead.spec import Mistake, describe
from headtohead.text import split as splits
from headtohead.text import store
from headtohead.text.columns import Column
from headtohead.text.corpus import Corpus, open_corpus
from headtohead.text.encode import COLUMNS, encode
from headtohead.text.source import Text
from headtohead.text.split import Split
from headtohead.text.subwords import NamedVocabulary
from headtohead.text.tokenizer import Tokenizer
from headtohead.text.vocabulary import Vocabulary, load_vocabulary

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
    """A prepared text. `fingerprint` is a hash of what decides all of it."""

    name: str
    train: Side
    validation: Side
    vocabulary: Vocabulary
    bordered: bool
    note: str
    probe: int  # documents at the start of the training side that are scored beside the held-out text
    tuning: int  # documents at its end that are held out while rates are chosen
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

    def for_tuning(self) -> Tokens:
        """The tuning slice held out in place of the validation side, and not trained on."""
        if not self.tuning:
            raise Mistake(f"{self.name} has too few documents to hold a tuning slice out of them; give more text")
        border = len(self.train.documents) - 1 - self.tuning
        return dataclasses.replace(self, train=_first(self.train, border), validation=_last(self.train, border))

    def of_training(self) -> Tokens:
        """The probe, a part of the training text, to be scored as held-out text is."""
        return dataclasses.replace(self, validation=_first(self.train, self.probe))


def prepare(text: Text, tokenizer: Tokenizer, split: Split = Split()) -> Tokens:
    """The tokens of a text; the work is done once for each content of the text, setting and version of this code."""
    corpus = open_corpus(text, split)
    code = [
        store.code(thing) for thing in (type(tokenizer), Tokenizer, Vocabulary, NamedVocabulary, Side, Column, encode)
    ]
    key = store.key("tokens", corpus.folder.name, describe(tokenizer), tokenizer.identity(), code)

    def write(folder: Path) -> None:
        _write(corpus, tokenizer.train(corpus.train), split, folder)

    # A vocabulary of the user's own class is found where the tokenizer's class is.
    return store.kept(key, write, lambda folder: _open(folder, sys.modules.get(type(tokenizer).__module__)))


def evaluated(corpus: Corpus, tokens: Tokens) -> Iterator[str]:
    """The text of each of `tokens.validation.documents`, to the character."""
    if corpus.bordered:
        return (corpus.validation[index] for index in range(len(tokens.validation.documents) - 1))
    ends = np.append(0, np.cumsum(tokens.validation.characters, dtype=np.int64))[tokens.validation.documents]
    whole = corpus.validation[0]
    return (whole[start:end] for start, end in pairwise(ends))


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


def _last(side: Side, border: int) -> Side:
    """What follows the first `border` documents, as a stream of its own; the separator before it stays with it."""
    start = int(side.documents[border]) - int(side.documents[0])
    lines = side.lines[int(np.searchsorted(side.lines[:, 0], start)) :]
    return side._replace(
        ids=side.ids[start:],
        bytes=side.bytes[start:],
        characters=side.characters[start:],
        documents=side.documents[border:] - start,
        lines=lines - np.int64(start),
    )


def _write(corpus: Corpus, vocabulary: Vocabulary, split: Split, folder: Path) -> None:
    sides = {}
    for side, documents in (("train", corpus.train), ("validation", corpus.validation)):
        counts = encode(corpus.folder, side, vocabulary, folder)
        sides[side] = {
            "unknown_rate": counts.unknown / max(counts.plain, 1),
            "unknown_bytes": counts.unknown_bytes / max(counts.bytes, 1),
            "sha256": documents.sha256(),
        }
        if not corpus.bordered:
            ends = np.load(folder / f"{side}.documents.npy")
            np.save(folder / f"{side}.documents.npy", _blocks(int(ends[0]), int(ends[-1])))
    probe, tuning = splits.ends(corpus.train.sizes if corpus.bordered else _block_sizes(folder), split)
    about = {"name": corpus.name, "bordered": corpus.bordered, "note": corpus.note, "probe": probe, "tuning": tuning}
    told = json.dumps([describe(vocabulary), about, sides])
    about["fingerprint"] = hashlib.blake2b(told.encode(), digest_size=16).hexdigest()
    vocabulary.save(folder / "tokenizer.json")
    write_json(folder / "text.json", {"about": about, "sides": sides, "files": _files(folder)})


def _block_sizes(folder: Path) -> np.ndarray:
    """Bytes of each block of the training side."""
    covered = np.load(folder / "train.bytes.npy", mmap_mode="r")
    ends = np.load(folder / "train.documents.npy")
    return np.array([int(covered[start:end].sum(dtype=np.int64)) for start, end in pairwise(ends.tolist())])


def _files(folder: Path) -> dict[str, str]:
    """A hash of each of the folder's arrays, so that one altered later is noticed."""
    found = {}
    for path in sorted(folder.glob("*.npy")):
        with open(path, "rb") as file:
            found[path.name] = hashlib.file_digest(file, "blake2b").hexdigest()[:32]
    return found


def _open(folder: Path, module: ModuleType | None) -> Tokens:
    stored = read_json(folder / "text.json")
    _check(folder, stored["files"])
    sides = {side: _mapped(folder, side, numbers) for side, numbers in stored["sides"].items()}
    vocabulary = load_vocabulary(folder / "tokenizer.json", module)
    return Tokens(train=sides["train"], validation=sides["validation"], vocabulary=vocabulary, **stored["about"])


def _check(folder: Path, files: dict[str, str]) -> None:
    """Refuse arrays that were altered: hashed anew where a file is younger than the folder's last word."""
    written = (folder / "text.json").stat().st_mtime_ns
    younger = [name for name in files if (folder / name).stat().st_mtime_ns > written]
    if younger and any(_files(folder).get(name) != files[name] for name in younger):
        raise ValueError(f"{younger} changed after they were written")


def _mapped(folder: Path, side: str, numbers: dict[str, Any]) -> Side:
    arrays = {name: np.load(folder / f"{side}.{name}.npy", mmap_mode="r") for name in COLUMNS}
    arrays["lines"] = arrays["lines"].reshape(-1, 2)
    return Side(**arrays, **numbers)


def _blocks(start: int, end: int) -> np.ndarray:
    return np.array([*range(start, max(end - BLOCK, start) + 1, BLOCK), end], dtype=np.int64)
