"""Two texts in a row: start, the first, stop, the second, stop, told apart by their segment."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headtohead.spec import Mistake, Size
from headtohead.text.exam import exam_sets
from headtohead.text.examples import Examples, Rows, able, in_lines, line_ends, random_bits, shuffled, source_of

if TYPE_CHECKING:
    from headtohead.text.cache import Side, Tokens
    from headtohead.text.vocabulary import Vocabulary

Two = tuple[np.ndarray, np.ndarray]  # places in a stream: of the first text, and of the second, if there is one
EVERYWHERE = "held out"  # names the one order in which held-out lines are paired, whatever the seed


class Pairs(Examples):
    """Two lines that have nothing to do with each other, each cut off at `segment` tokens (lmtuners, study 4: 64).

    [CLS] a [SEP] b [SEP]: `segment` counts [CLS] and [SEP] for both, so that a row holds 2 · segment − 1. Lines are
    shuffled and paired anew every epoch; of an odd number the last is left out. Held out, nothing is: a longer line
    comes in pieces, paired in one order for every seed. `stride` has no meaning here.
    """

    segment: int = 64

    def around(self, vocabulary: Vocabulary) -> tuple[int, int] | None:
        return vocabulary.marks

    def refuse(self, size: Size, recipe: Any) -> Iterator[str]:
        yield from _two_segments(recipe)
        if self.segment < 3:
            yield f"segment = {self.segment} holds no text between its marks; choose at least 3"

    def check(self, tokens: Tokens, width: int) -> None:
        _check(tokens)
        if width < 2 * self.segment - 1:
            raise Mistake(f"two segments of {self.segment} need a length of {2 * self.segment - 1}, not {width}")
        if len(tokens.train.lines) < 2:
            raise Mistake(f"{tokens.name} has one line to train on and a pair needs two; give more text")

    def rows(self, tokens: Tokens, width: int, count: int, seed: int, i: int) -> Rows:
        self.check(tokens, width)
        lines = tokens.train.lines
        turn, each = np.arange(i * count, (i + 1) * count), len(lines) // 2
        orders = {int(epoch): shuffled(len(lines), seed, int(epoch)) for epoch in np.unique(turn // each)}
        chosen = [orders[n // each][2 * (n % each) : 2 * (n % each) + 2] for n in turn.tolist()]
        pairs = [(self._cut(lines[a]), self._cut(lines[b])) for a, b in chosen]
        return _assembled(tokens, tokens.train, pairs, width).rows

    def _cut(self, line: np.ndarray) -> np.ndarray:
        begin, end = line.tolist()
        return np.arange(begin, min(end, begin + self.segment - 2))

    def held_out(self, tokens: Tokens, width: int, stride: int, batch: int, ahead: int = 1) -> Iterator[Rows]:
        self.check(tokens, width)
        pieces = _pieces(tokens.validation, self.segment - 2)
        order = np.argsort(random_bits(EVERYWHERE, 0, len(pieces)), kind="stable")
        together = [order[at : at + 2] for at in range(0, len(order), 2)]
        return _held_out(tokens, pieces, together, (width, batch, ahead))

    def counts(self, tokens: Tokens, width: int) -> dict[str, int]:
        lines = tokens.train.lines
        longer = int((np.diff(lines) > self.segment - 2).sum())
        return {"pairs": len(lines) // 2, "truncated": longer, "dropped": len(lines) % 2}


class ElectraPairs(Examples):
    """Text that stands together, as ELECTRA's own builder cuts it (Clark et al. 2020, build_pretraining_dataset.py).

    Lines of one document are gathered until they fill a row; a share `single` of them is one text, the others are cut in
    two after a line near the middle; a share `short` of the rows aims at a length drawn from 5 to the row's. What is too
    long is cut off. A row never reaches over the end of a document. The rows of a seed are read in a new order every epoch.
    Held out, nothing is cut off: neighbouring pieces of a document are pairs.
    """

    single: float = 0.1
    short: float = 0.05

    def around(self, vocabulary: Vocabulary) -> tuple[int, int] | None:
        return vocabulary.marks

    def refuse(self, size: Size, recipe: Any) -> Iterator[str]:
        yield from _two_segments(recipe)
        if not (0 <= self.single <= 1 and 0 <= self.short <= 1):
            yield f"single = {self.single} and short = {self.short} are shares between 0 and 1"

    def check(self, tokens: Tokens, width: int) -> None:
        _check(tokens)
        if width < 5:
            raise Mistake(f"a row of {width} tokens holds no pair; choose a length of at least 5")

    def rows(self, tokens: Tokens, width: int, count: int, seed: int, i: int) -> Rows:
        self.check(tokens, width)
        built = _built(tokens, width, self, seed)
        each = len(built.ends)
        turn = np.arange(i * count, (i + 1) * count)
        orders = {int(epoch): shuffled(each, seed, int(epoch)) for epoch in np.unique(turn // each)}
        pairs = [built.pair(tokens.train.lines, int(orders[n // each][n % each]), width) for n in turn.tolist()]
        return _assembled(tokens, tokens.train, pairs, width).rows

    def held_out(self, tokens: Tokens, width: int, stride: int, batch: int, ahead: int = 1) -> Iterator[Rows]:
        self.check(tokens, width)
        pieces = _pieces(tokens.validation, (width - 3) // 2)
        together: list[np.ndarray] = []
        for number, document in enumerate(pieces.document.tolist()):
            fits = together and len(together[-1]) == 1 and pieces.document[together[-1][0]] == document
            together[-1:] = [np.array([together[-1][0], number])] if fits else [*together[-1:], np.array([number])]
        return _held_out(tokens, pieces, together, (width, batch, ahead))


def _two_segments(recipe: Any) -> Iterator[str]:
    embedding = getattr(recipe.model, "embedding", None)
    if embedding is not None and embedding.segments == 1:
        yield "a row has two segments, and model.embedding.segments = 1; set it to 2, or to 0 to tell them apart by place"


def _check(tokens: Tokens) -> None:
    if tokens.vocabulary.marks is None:
        raise Mistake(f"{tokens.name} has no marks to put around lines; use a tokenizer with special tokens")
    for side, split in (("training", tokens.train), ("validation", tokens.validation)):
        if not len(split.lines):
            raise Mistake(f"the {side} side of {tokens.name} has only blank lines; give more text")


# ---- rows ----------------------------------------------------------------------------------------------------------


class Assembled(NamedTuple):
    """Rows of pairs, the stream's place of each token (−1: none), and the columns of the marks after either text."""

    rows: Rows
    place: np.ndarray
    stops: np.ndarray  # rows × 2, −1: there is no second text


def _assembled(tokens: Tokens, split: Side, pairs: list[Two], width: int) -> Assembled:
    """[CLS] a [SEP] and, where there is a second text, b [SEP]; filled up as segment 1, as lmtuners does."""
    before, after = tokens.vocabulary.marks or (0, 0)
    shape = len(pairs), width
    index, stops = np.full(shape, -1), np.full((len(pairs), 2), -1)
    marks, document, segments = np.full(shape, tokens.vocabulary.pad), np.full(shape, -1), np.ones(shape, np.int64)
    for row, (first, second) in enumerate(pairs):
        end = len(first) + 2
        index[row, 1 : end - 1], segments[row, :end] = first, 0
        marks[row, 0], marks[row, end - 1], stops[row, 0] = before, after, end - 1
        if len(second):
            index[row, end : end + len(second)] = second
            end += len(second) + 1
            marks[row, end - 1], stops[row, 1] = after, end - 1
        document[row, :end] = 0
    ids = np.where(index >= 0, split.ids[index], marks).astype(np.int64)
    return Assembled(Rows(ids, np.arange(width)[None], document, segments=segments), index, stops)


# ---- held out ------------------------------------------------------------------------------------------------------


class Pieces(NamedTuple):
    """Lines, the long ones in pieces of equal right: spans of the stream, whether a line ends, its document."""

    begin: np.ndarray
    end: np.ndarray
    line: np.ndarray
    closes: np.ndarray
    document: np.ndarray

    def __len__(self) -> int:
        return len(self.begin)


def _pieces(split: Side, most: int) -> Pieces:
    first, last = split.lines.astype(np.int64).T
    count = -(-(last - first) // most)
    line = np.repeat(np.arange(len(first)), count)
    number = np.arange(len(line)) - np.repeat(np.cumsum(count) - count, count)
    begin = first[line] + number * most
    return Pieces(begin, np.minimum(begin + most, last[line]), line, number + 1 == count[line], source_of(split, begin))


def _held_out(
    tokens: Tokens, pieces: Pieces, together: list[np.ndarray], shape: tuple[int, int, int]
) -> Iterator[Rows]:
    """Every token once; a mark after a line covers its end."""
    width, batch, ahead = shape
    split = tokens.validation
    sets = exam_sets(split.documents, able(split, tokens.vocabulary, ahead) & in_lines(split))
    owner = source_of(split, split.lines[:, 0])
    texts = [(column, line_ends(split, owner, column)) for column in (split.bytes, split.characters)]
    for at in range(0, len(together), batch):
        chosen = together[at : at + batch]
        spans = [[np.arange(pieces.begin[n], pieces.end[n]) for n in pair] for pair in chosen]
        pairs = [(found[0], found[1] if len(found) > 1 else found[0][:0]) for found in spans]
        rows, index, stops = _assembled(tokens, split, pairs, width)
        real = rows.document >= 0
        source = np.where(real, pieces.document[[pair[0] for pair in chosen]][:, None], -1)
        second = np.where(real & (rows.segments == 1), pieces.document[[pair[-1] for pair in chosen]][:, None], source)
        covered = [np.where(index >= 0, column[index], 0).astype(np.int64) for column, _ in texts]
        for row, pair in enumerate(chosen):
            for number, stop in zip(pair, stops[row], strict=False):
                for column, (_, ends) in zip(covered, texts, strict=True):
                    column[row, stop] = ends[pieces.line[number]] * pieces.closes[number]
        yield rows._replace(
            source=second.astype(np.int32),
            fresh=real & (np.arange(width) >= ahead),
            bytes=covered[0],
            characters=covered[1],
            exam=np.where(index >= 0, sets[index], 0),
        )


# ---- ELECTRA's builder ---------------------------------------------------------------------------------------------


class Built(NamedTuple):
    """Which lines are together in a row, and which of them are its first text."""

    ends: np.ndarray  # the line after the last of each row
    first: np.ndarray  # line -> whether it belongs to the first text

    def pair(self, lines: np.ndarray, number: int, width: int) -> Two:
        """Row `number`, cut off at the width."""
        mine = range(self.ends[number - 1] if number else 0, self.ends[number])
        places = [[np.arange(*lines[n]) for n in mine if self.first[n] == which] for which in (True, False)]
        one, two = (np.concatenate([np.empty(0, np.int64), *found]) for found in places)
        one = one[: width - 2]
        return one, two[: max(0, width - len(one) - 3)]


@lru_cache(maxsize=2)
def _built(tokens: Tokens, width: int, part: ElectraPairs, seed: int) -> Built:
    """One pass over all training lines; a function of the seed."""
    split, draw = tokens.train, _uniform(f"{seed}/data/pairs")
    owner = source_of(split, split.lines[:, 0]) if tokens.bordered else np.zeros(len(split.lines), np.int32)
    ends: list[int] = []
    first = np.zeros(len(split.lines), dtype=bool)
    gathered: list[int] = []
    target, size = width, 0
    lengths = np.diff(split.lines)[:, 0].tolist()
    closes = np.append(np.diff(owner) != 0, True).tolist()
    for line, length in enumerate(lengths):
        gathered.append(length)
        size += length
        if size < target and not closes[line]:
            continue
        room = 100_000 if next(draw) < part.single else (target - 3) // 2
        first[line + 1 - len(gathered) : line + 1] = _parted(gathered, room, draw)
        ends.append(line + 1)
        gathered, size = [], 0
        target = 5 + int(next(draw) * (width - 4)) if next(draw) < part.short else width
    return Built(np.array(ends), first)


def _parted(lengths: list[int], room: int, draw: Iterator[float]) -> list[bool]:
    """Which lines go to the first text: while it has room, and one more, at even odds, before the second has begun."""
    one = two = 0
    chosen = []
    for length in lengths:
        fits = one == 0 or one + length < room or (two == 0 and one < room and next(draw) < 0.5)
        one, two = (one + length, two) if fits else (one, two + length)
        chosen.append(fits)
    return chosen


def _uniform(name: str) -> Iterator[float]:
    """Numbers between 0 and 1, one after another."""
    block = 0
    while True:
        yield from ((random_bits(name, block, 4096) >> np.uint64(11)) * 2.0**-53).tolist()
        block += 1
