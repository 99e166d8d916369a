"""From a stream of tokens to rows of a batch. Training batch i is a pure function of (data seed, i)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headtohead.spec import Mistake, Part
from headtohead.text.exam import exam_sets

if TYPE_CHECKING:
    from headtohead.text.cache import Side, Tokens
    from headtohead.text.vocabulary import Vocabulary

NOT_HELD_OUT = np.empty(0, dtype=np.int64)


class Rows(NamedTuple):
    """Rows of tokens; `position` restarts in each document, document −1 is padding. Either may have one row for all.

    `segments` tells the first from the second of two texts in a row; without rows, there is but one. What follows is
    filled in by `held_out` alone: where in the text a token comes from, and whether it is scored.
    """

    ids: np.ndarray  # rows × width, as all that follows
    position: np.ndarray
    document: np.ndarray
    source: np.ndarray = NOT_HELD_OUT  # the document in its split, −1: none
    fresh: np.ndarray = NOT_HELD_OUT  # to be scored here, as in no other row
    bytes: np.ndarray = NOT_HELD_OUT
    characters: np.ndarray = NOT_HELD_OUT
    exam: np.ndarray = NOT_HELD_OUT  # bit r: whether the masked set r takes it (exam.py); where nothing comes `ahead`
    segments: np.ndarray = NOT_HELD_OUT


class Examples(Part):
    """`rows(tokens, width, count, seed, i)` is training batch i; `held_out(...)` gives every validation token once.

    `held_out` reads windows of `width` tokens, a new one every `stride`, the last one ending with the text; a token is
    fresh in the first window that holds it after `ahead` others. Causal: width = length + 1, ahead 1, stride ≤ length,
    and the first token of all is never scored. Masked: width = stride = length, ahead 0.
    """

    def around(self, vocabulary: Vocabulary) -> tuple[int, int] | None:
        """What stands before and after a text on its own; None where nothing does."""
        return None

    def check(self, tokens: Tokens, width: int) -> None:
        """Raise a Mistake where the text cannot fill rows of this width."""
        raise TypeError(f"{type(self).__name__} must define check(tokens, width)")

    def rows(self, tokens: Tokens, width: int, count: int, seed: int, i: int) -> Rows:
        """Training batch i: `count` rows."""
        raise TypeError(f"{type(self).__name__} must define rows(tokens, width, count, seed, i)")

    def held_out(self, tokens: Tokens, width: int, stride: int, batch: int, ahead: int = 1) -> Iterator[Rows]:
        """The validation side, at most `batch` rows at a time."""
        raise TypeError(f"{type(self).__name__} must define held_out(tokens, width, stride, batch, ahead)")

    def counts(self, tokens: Tokens, width: int) -> dict[str, int]:
        """What becomes of the training text: how many rows there are, and what of it no row has."""
        return {}


class Stream(Examples):
    """Windows of the whole stream, at random places in training (study 5, nanoGPT); they read over borders."""

    def check(self, tokens: Tokens, width: int) -> None:
        for side, split in (("training", tokens.train), ("validation", tokens.validation)):
            if len(split.ids) < width:
                raise Mistake(
                    f"the {side} side of {tokens.name} has {len(split.ids)} tokens and a row needs {width}; "
                    "choose a smaller length or give more text"
                )

    def rows(self, tokens: Tokens, width: int, count: int, seed: int, i: int) -> Rows:
        self.check(tokens, width)
        starts = random_bits(f"{seed}/data", i, count) % np.uint64(len(tokens.train.ids) - width + 1)
        ids = tokens.train.ids[starts.astype(np.int64)[:, None] + np.arange(width)]
        return Rows(ids.astype(np.int64), *_one_document(width))

    def held_out(self, tokens: Tokens, width: int, stride: int, batch: int, ahead: int = 1) -> Iterator[Rows]:
        self.check(tokens, width)
        split = tokens.validation
        starts, first = windows(len(split.ids), width, stride, ahead)
        sets = exam_sets(split.documents, able(split, tokens.vocabulary, ahead))
        for at in range(0, len(starts), batch):
            place = starts[at : at + batch, None] + np.arange(width)
            yield Rows(
                split.ids[place].astype(np.int64),
                *_one_document(width),
                source=source_of(split, place),
                fresh=place >= first[at : at + batch, None],
                bytes=split.bytes[place].astype(np.int64),
                characters=split.characters[place].astype(np.int64),
                exam=sets[place],
            )

    def counts(self, tokens: Tokens, width: int) -> dict[str, int]:
        return {"windows": len(tokens.train.ids) - width + 1}


class Lines(Examples):
    """Each line of text a row between the vocabulary's marks, in an order shuffled anew every epoch (studies 1 and 3).

    In training a longer line is cut off at the width, or left out (`drop_longer`). Held out, nothing is: a longer line
    is read in windows. Blank lines are not rows; their bytes count to the line before.
    """

    drop_longer: bool = False

    def around(self, vocabulary: Vocabulary) -> tuple[int, int] | None:
        return vocabulary.marks

    def check(self, tokens: Tokens, width: int) -> None:
        if tokens.vocabulary.marks is None:
            raise Mistake(f"{tokens.name} has no line ends to mark lines with; use Characters(bare=False) or Stream()")
        for side, split in (("training", tokens.train), ("validation", tokens.validation)):
            if not len(split.lines):
                raise Mistake(f"the {side} side of {tokens.name} has only blank lines; give more text")
        if not len(_usable(tokens, width, self.drop_longer)):
            least = int(np.diff(tokens.train.lines).min()) + 2
            raise Mistake(
                f"the shortest training line of {tokens.name} has {least} tokens and a row holds {width}; "
                "choose a larger length or drop_longer = False"
            )

    def rows(self, tokens: Tokens, width: int, count: int, seed: int, i: int) -> Rows:
        self.check(tokens, width)
        usable = _usable(tokens, width, self.drop_longer)
        turn = np.arange(i * count, (i + 1) * count)
        order = np.empty(count, dtype=np.int64)
        for epoch in np.unique(turn // len(usable)):
            mine = turn // len(usable) == epoch
            order[mine] = usable[shuffled(len(usable), seed, int(epoch))[turn[mine] % len(usable)]]
        spans = tokens.train.lines[order]
        return _marked(tokens, tokens.train, spans, np.zeros(count, dtype=np.int64), width)

    def held_out(self, tokens: Tokens, width: int, stride: int, batch: int, ahead: int = 1) -> Iterator[Rows]:
        self.check(tokens, width)
        split = tokens.validation
        owner = source_of(split, split.lines[:, 0])
        sets = exam_sets(split.documents, able(split, tokens.vocabulary, ahead) & in_lines(split))
        sizes, letters = _line_counts(split, owner, split.bytes), _line_counts(split, owner, split.characters)
        parts = _line_windows(split.lines, width, stride, ahead)
        while chosen := list(islice(parts, batch)):
            line, start, first = np.array(chosen).T
            rows = _marked(tokens, split, split.lines[line], start, width)
            real, place = rows.document >= 0, start[:, None] + np.arange(width)
            yield rows._replace(
                source=np.where(real, owner[line][:, None], -1).astype(np.int32),
                fresh=real & (place >= first[:, None]),
                bytes=sizes(line, place),
                characters=letters(line, place),
                exam=_inside(sets, split.lines[line], start, width),
            )

    def counts(self, tokens: Tokens, width: int) -> dict[str, int]:
        longer = int((np.diff(tokens.train.lines) > width - 2).sum())
        dropped = longer if self.drop_longer else 0
        return {"rows": len(tokens.train.lines) - dropped, "truncated": longer - dropped, "dropped": dropped}


class Sentences(Examples):
    """Lines cut off at `max_tokens`, their marks counted, whatever a row could hold (study 3: 100); in all else Lines().

    Held out, nothing is cut off.
    """

    max_tokens: int = 100

    def around(self, vocabulary: Vocabulary) -> tuple[int, int] | None:
        return vocabulary.marks

    def check(self, tokens: Tokens, width: int) -> None:
        Lines().check(tokens, width)
        if self.max_tokens > width:
            raise Mistake(f"max_tokens = {self.max_tokens} does not fit in a row of {width}; choose a larger length")

    def rows(self, tokens: Tokens, width: int, count: int, seed: int, i: int) -> Rows:
        self.check(tokens, width)
        cut = Lines().rows(tokens, self.max_tokens, count, seed, i)
        fill = ((0, 0), (0, width - self.max_tokens))
        ids = np.pad(cut.ids, fill, constant_values=tokens.vocabulary.pad)
        return Rows(ids, np.arange(width)[None], np.pad(cut.document, fill, constant_values=-1))

    def held_out(self, tokens: Tokens, width: int, stride: int, batch: int, ahead: int = 1) -> Iterator[Rows]:
        self.check(tokens, width)
        return Lines().held_out(tokens, width, stride, batch, ahead)

    def counts(self, tokens: Tokens, width: int) -> dict[str, int]:
        return Lines().counts(tokens, self.max_tokens)


def windows(length: int, width: int, stride: int, ahead: int) -> tuple[np.ndarray, np.ndarray]:
    """Where each window starts, and the first token it scores: no token from `ahead` on is missed or scored twice."""
    if not 1 <= stride <= width - ahead:
        raise ValueError(f"stride {stride} must lie between 1 and width {width} - ahead {ahead}")
    last = max(length - width, 0)
    starts = np.minimum(np.arange(-(-last // stride) + 1) * stride, last)
    return starts, np.append(ahead, starts[:-1] + width)


def random_bits(name: str, i: int, count: int) -> np.ndarray:
    """64 random bits for each of `count`: bare Philox (Salmon et al. 2011), which no version of NumPy changes."""
    key = hashlib.blake2b(name.encode(), digest_size=16).digest()
    return np.random.Philox(key=int.from_bytes(key, "little"), counter=i << 64).random_raw(count)


def digest(*arrays: np.ndarray) -> str:
    """16 hexadecimal digits of a hash over the arrays' types, shapes and contents."""
    whole = hashlib.blake2b(digest_size=8)
    for array in arrays:
        whole.update(f"{array.dtype.str}{array.shape}".encode())
        whole.update(np.ascontiguousarray(array).data)
    return whole.hexdigest()


@lru_cache(maxsize=2)
def shuffled(count: int, seed: int, epoch: int) -> np.ndarray:
    """The order of `count` examples in one epoch."""
    return np.argsort(random_bits(f"{seed}/data/order", epoch, count), kind="stable")


@lru_cache(maxsize=4)
def _usable(tokens: Tokens, width: int, drop_longer: bool) -> np.ndarray:
    start, end = tokens.train.lines.T
    return np.flatnonzero(end - start + 2 <= width) if drop_longer else np.arange(len(start))


def _one_document(width: int) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(width)[None], np.zeros((1, width), dtype=np.int64)


def source_of(split: Side, place: np.ndarray) -> np.ndarray:
    """The document that each place of the stream is in."""
    return (np.searchsorted(split.documents, place, side="right") - 1).astype(np.int32)


def able(split: Side, vocabulary: Vocabulary, ahead: int) -> np.ndarray:
    """Which tokens could be masked: none where the next one is what is asked for."""
    return np.zeros(len(split.ids), dtype=bool) if ahead else ~np.isin(split.ids, vocabulary.specials)


def in_lines(split: Side) -> np.ndarray:
    """Which tokens belong to a line."""
    edges = np.zeros(len(split.ids) + 1, dtype=np.int8)
    edges[split.lines[:, 0]] += 1
    edges[split.lines[:, 1]] -= 1
    return np.cumsum(edges[:-1], dtype=np.int8).astype(bool)


def _line_windows(lines: np.ndarray, width: int, stride: int, ahead: int) -> Iterator[tuple[int, int, int]]:
    """(line, start, first scored) of each window; a line on its own has two marks more than tokens."""
    for line, (begin, end) in enumerate(lines.tolist()):
        for start, first in zip(*windows(end - begin + 2, width, stride, ahead), strict=True):
            yield line, int(start), int(first)


def _marked(tokens: Tokens, split: Side, spans: np.ndarray, start: np.ndarray, width: int) -> Rows:
    """Lines between their marks, from token `start` of each on, filled up to the width."""
    before, after = tokens.vocabulary.marks or (tokens.vocabulary.pad,) * 2
    length, place = spans[:, 1:] - spans[:, :1], start[:, None] + np.arange(width)
    around = np.where(place == 0, before, np.where(place == length + 1, after, tokens.vocabulary.pad))
    inside = (place >= 1) & (place <= length)
    ids = np.where(inside, _inside(split.ids, spans, start, width), around).astype(np.int64)
    return Rows(ids, np.arange(width)[None], np.where(place <= length + 1, 0, -1))


def _inside(column: np.ndarray, spans: np.ndarray, start: np.ndarray, width: int) -> np.ndarray:
    """A column's values at the tokens of lines, from token `start` of each on, a mark before them; elsewhere 0."""
    place = start[:, None] + np.arange(width)
    inside = (place >= 1) & (place <= spans[:, 1:] - spans[:, :1])
    return np.where(inside, column[np.where(inside, spans[:, :1] + place - 1, 0)], 0)


def line_ends(split: Side, owner: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """How much text each line has beside its tokens: its end, the blank lines that follow, and those before the first."""
    begin, end = split.lines.T
    total = np.append(0, np.cumsum(counts, dtype=np.int64))
    opening = split.documents[owner]
    from_here = np.where(opening > np.append(-1, end[:-1]), opening, begin)
    from_here[0] = 0
    return np.diff(total[np.append(from_here, len(counts))]) - (total[end] - total[begin])


def _line_counts(split: Side, owner: np.ndarray, counts: np.ndarray) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """A function of (lines, places in them): how much text each token covers.

    The mark after a line covers its end and the blank lines that follow, and those before a document's first line.
    """
    begin, end = split.lines.T
    rest = line_ends(split, owner, counts)

    def look_up(line: np.ndarray, place: np.ndarray) -> np.ndarray:
        first, length = begin[line][:, None], (end - begin)[line][:, None]
        inside = (place >= 1) & (place <= length)
        found = counts[np.where(inside, first + place - 1, 0)].astype(np.int64)
        return np.where(inside, found, np.where(place == length + 1, rest[line][:, None], 0))

    return look_up
