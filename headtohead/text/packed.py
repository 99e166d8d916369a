"""Documents or lines back to back in full rows: nothing is cut off, left out or filled up."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from headtohead.spec import Mistake
from headtohead.text.exam import exam_sets
from headtohead.text.examples import Examples, Rows, able, in_lines, line_ends, shuffled, source_of, windows

if TYPE_CHECKING:
    from headtohead.text.cache import Side, Tokens
    from headtohead.text.vocabulary import Vocabulary


class Packed(Examples):
    """Documents, or lines, one after another in an order shuffled anew every epoch; row after row is cut from that.

    `isolated`: no token sees another document than its own, and positions count from the document's, or the row's,
    start; otherwise a row is one document, and reads over the borders. `marks`: the vocabulary's marks stand before and
    after each, which Words has in any case; without, no special token shows where one begins, and when isolated a
    document's first token has nothing to be predicted from. What does not fit goes on in the next row, an epoch's end too.
    """

    unit: Literal["documents", "lines"] = "documents"
    isolated: bool = True
    marks: bool = True

    def around(self, vocabulary: Vocabulary) -> tuple[int, int] | None:
        return vocabulary.marks if self.marks else None

    def check(self, tokens: Tokens, width: int) -> None:
        if self.unit == "documents" and not tokens.bordered:
            raise Mistake(f"{tokens.name} is one document; pack its lines with Packed(unit='lines'), or use Stream()")
        if self.marks and tokens.vocabulary.marks is None:
            raise Mistake(f"{tokens.name} has no special tokens to mark borders with; use Packed(marks=False)")
        for side, split in (("training", tokens.train), ("validation", tokens.validation)):
            total = _items(tokens, split is tokens.train, self.unit, self.marks).total
            if total < width:
                raise Mistake(
                    f"the {side} side of {tokens.name} has {total} tokens and a row needs {width}; "
                    "choose a smaller length or give more text"
                )

    def rows(self, tokens: Tokens, width: int, count: int, seed: int, i: int) -> Rows:
        self.check(tokens, width)
        items = _items(tokens, True, self.unit, self.marks)
        at = np.arange(i * count * width, (i + 1) * count * width).reshape(count, width)
        item, inside = np.empty_like(at), np.empty_like(at)
        for epoch in np.unique(at // items.total):
            mine = at // items.total == epoch
            order, starts = _laid(tokens, self.unit, self.marks, seed, int(epoch))
            slot = np.searchsorted(starts, at[mine] % items.total, side="right") - 1
            item[mine], inside[mine] = order[slot], at[mine] % items.total - starts[slot]
        index = items.places(item, inside)
        ids = items.ids(tokens.train, index, inside, tokens.vocabulary.marks)
        return Rows(ids, *self._places(inside))

    def _places(self, inside: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Position and document of each token."""
        column = np.broadcast_to(np.arange(inside.shape[1]), inside.shape)
        if not self.isolated:
            return column[:1].copy(), np.zeros_like(column[:1])
        begins = inside == 0
        start = np.maximum.accumulate(np.where(begins, column, 0), axis=1)
        begins[:, 0] = False
        return column - start, np.cumsum(begins, axis=1)

    def held_out(self, tokens: Tokens, width: int, stride: int, batch: int, ahead: int = 1) -> Iterator[Rows]:
        self.check(tokens, width)
        split, items = tokens.validation, _items(tokens, False, self.unit, self.marks)
        shown = able(split, tokens.vocabulary, ahead)
        sets = exam_sets(split.documents, shown & in_lines(split) if self.unit == "lines" else shown)
        begins = np.cumsum(items.lengths) - items.lengths
        starts, first = windows(items.total, width, stride, ahead)
        for at in range(0, len(starts), batch):
            place = starts[at : at + batch, None] + np.arange(width)
            item = np.searchsorted(begins, place, side="right") - 1
            inside = place - begins[item]
            index, last = items.places(item, inside), inside == items.lengths[item] - 1
            real = index >= 0
            yield Rows(
                items.ids(split, index, inside, tokens.vocabulary.marks),
                *self._places(inside),
                source=items.owner[item].astype(np.int32),
                fresh=(place >= first[at : at + batch, None]) & (inside >= ahead * self.isolated),
                bytes=np.where(real, split.bytes[index], 0).astype(np.int64) + last * items.bytes[item],
                characters=np.where(real, split.characters[index], 0).astype(np.int64) + last * items.characters[item],
                exam=np.where(real, sets[index], 0),
            )

    def counts(self, tokens: Tokens, width: int) -> dict[str, int]:
        return {"rows": _items(tokens, True, self.unit, self.marks).total // width}


class Items(NamedTuple):
    """What is packed: spans of a stream, with a mark on either side or without."""

    begin: np.ndarray
    lengths: np.ndarray  # in tokens, marks counted
    marked: bool
    owner: np.ndarray  # the document of each
    bytes: np.ndarray  # of text beside the tokens: the end of a line
    characters: np.ndarray
    total: int

    def places(self, item: np.ndarray, inside: np.ndarray) -> np.ndarray:
        """Where in the stream a token of an item is; −1 for its marks."""
        place = inside - self.marked
        real = (place >= 0) & (place < self.lengths[item] - 2 * self.marked)
        return np.where(real, self.begin[item] + place, -1)

    def ids(self, split: Side, index: np.ndarray, inside: np.ndarray, marks: tuple[int, int] | None) -> np.ndarray:
        """The tokens at these places."""
        before, after = marks or (0, 0)
        return np.where(index >= 0, split.ids[index], np.where(inside == 0, before, after)).astype(np.int64)


@lru_cache(maxsize=8)
def _items(tokens: Tokens, train: bool, unit: str, marks: bool) -> Items:
    split = tokens.train if train else tokens.validation
    if unit == "lines":
        begin, end = split.lines.astype(np.int64).T  # on disk they have the smallest unsigned type
        owner = source_of(split, begin)
        rest = [line_ends(split, owner, column) for column in (split.bytes, split.characters)]
        total = int((end - begin).sum()) + 2 * marks * len(begin)
        return Items(begin, end - begin + 2 * marks, marks, owner, rest[0], rest[1], total)
    borders, separated = split.documents.astype(np.int64), tokens.vocabulary.separator is not None
    begin, lengths = borders[:-1], np.diff(borders) - separated
    nothing = np.zeros_like(lengths)
    marked = marks and separated
    total = int(lengths.sum()) + 2 * marked * len(begin)
    return Items(begin, lengths + 2 * marked, marked, np.arange(len(begin)), nothing, nothing, total)


@lru_cache(maxsize=4)
def _laid(tokens: Tokens, unit: str, marks: bool, seed: int, epoch: int) -> tuple[np.ndarray, np.ndarray]:
    """The order of an epoch, and where in it each begins."""
    items = _items(tokens, True, unit, marks)
    order = shuffled(len(items.begin), seed, epoch)
    return order, np.cumsum(items.lengths[order]) - items.lengths[order]
