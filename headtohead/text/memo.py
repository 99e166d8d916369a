"""Byte pairs of pieces met before are looked up: a text repeats its words, and merging is what takes the time.

A piece is a run of letters, digits and signs with the whitespace before it. GPT-2's pattern never joins a character that is
no whitespace with whitespace after it, and looks only ahead, so pieces can be encoded apart: the tokens are the same.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PIECES = re.compile(r"\n|[^\S\n]*\S+|[^\S\n]+")
LINES = re.compile(r"\n|[^\n]+")
# Whitespace to Python but not to Unicode, and so not to the tokenizer: such a text is cut at its line ends alone.
UNSURE = re.compile("[\x1c-\x1f]")
MOST = 1 << 18  # pieces kept
LETTERS = 1 << 23  # and characters in them


class Places(dict[str, int]):
    """A number for each piece; one that is new gets the next, and is noted."""

    def __init__(self) -> None:
        self.new: list[str] = []

    def __missing__(self, piece: str) -> int:
        self.new.append(piece)
        return self.setdefault(piece, len(self))


class Memo:
    """A byte-level tokenizer that splits at line ends, and the pieces it has encoded so far."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self._forget()

    def encode(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """The ids of all texts one after another, and how many each text has."""
        if len(self.places) > MOST or self.letters > LETTERS:
            self._forget()
        parts = [(LINES if UNSURE.search(text) else PIECES).findall(text) for text in texts]
        number = sum(map(len, parts))
        place = np.fromiter(map(self.places.__getitem__, chain.from_iterable(parts)), np.int64, number)
        self._learn()
        stops = np.frombuffer(self.stops, np.int64)
        start, count = stops[place], stops[place + 1] - stops[place]
        ends = np.append(0, np.cumsum(count))
        where = np.arange(ends[-1]) + np.repeat(start - ends[:-1], count)
        borders = np.cumsum([0, *map(len, parts)])
        return np.frombuffer(self.ids, np.int32)[where], np.diff(ends[borders])

    def _learn(self) -> None:
        new, self.places.new = self.places.new, []
        self.letters += sum(map(len, new))
        for found in self.tokenizer.encode_batch_fast(new, add_special_tokens=False):
            self.ids.extend(found.ids)
            self.stops.append(len(self.ids))

    def _forget(self) -> None:
        self.places, self.letters = Places(), 0
        self.ids, self.stops = array("i"), array("q", [0])
