"""What a prepared text is like: how much, how varied, how long its lines and documents are, and how it reads back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from headtohead.spec import Mistake, short
from headtohead.text.cache import Side, Tokens
from headtohead.text.examples import Examples

CHUNK = 1 << 22  # numbers looked at at a time
SHOWN = 3  # examples decoded back


def survey(tokens: Tokens, examples: Examples, length: int, width: int) -> dict[str, Any]:
    """Distinct types, lengths, what does not fit into a row of `length` tokens, and rows of `width` decoded back."""
    train = tokens.train
    return {
        "types": _types(tokens),
        "lengths": {
            "documents": _lengths(_document_sizes(tokens)),
            "lines": _lengths(_line_sizes(train)),
        },
        "over": {
            "length": length,
            "documents": _over(_document_sizes(tokens), length),
            "lines": _over(_line_sizes(train), length),
        },
        "examples": _decoded(tokens, examples, width) | {"how": short(examples)},
    }


def counts_of(side: Side, size: int) -> np.ndarray:
    """How often each of `size` token numbers occurs."""
    total = np.zeros(size, dtype=np.int64)
    for at in range(0, len(side.ids), CHUNK):
        total += np.bincount(side.ids[at : at + CHUNK], minlength=size)
    return total


def _types(tokens: Tokens) -> dict[str, Any]:
    """Of the tokens that stand for text: how many types each side has, and how much of validation training never had."""
    size = tokens.vocabulary.size
    plain = ~np.isin(np.arange(size), tokens.vocabulary.specials)
    seen, asked = (counts_of(side, size) * plain for side in (tokens.train, tokens.validation))
    unseen = int(asked[seen == 0].sum())
    return {
        "vocabulary": size,
        "train": int((seen > 0).sum()),
        "validation": int((asked > 0).sum()),
        "unseen": unseen,
        "unseen_share": unseen / max(int(asked.sum()), 1),
    }


def _document_sizes(tokens: Tokens) -> Iterator[np.ndarray]:
    """Lengths of training's documents without what separates them, a part of them at a time."""
    borders = tokens.train.documents
    separator = int(tokens.bordered and tokens.vocabulary.separator is not None)
    for at in range(0, len(borders) - 1, CHUNK):
        yield np.diff(np.asarray(borders[at : at + CHUNK + 1]).astype(np.int64)) - separator


def _line_sizes(side: Side) -> Iterator[np.ndarray]:
    for at in range(0, len(side.lines), CHUNK):
        start, end = np.asarray(side.lines[at : at + CHUNK]).astype(np.int64).T
        yield end - start


def _lengths(parts: Iterator[np.ndarray]) -> list[list[int]]:
    """[least, most, how many] for lengths from 2^k to 2^(k + 1) − 1, the shortest that occur first."""
    total = np.zeros(64, dtype=np.int64)
    for sizes in parts:
        total += np.bincount(np.frexp(np.maximum(sizes, 1))[1], minlength=64)
    used = np.flatnonzero(total)
    return [[1 << (k - 1), (1 << k) - 1, int(total[k])] for k in range(used[0], used[-1] + 1)] if len(used) else []


def _over(parts: Iterator[np.ndarray], length: int) -> dict[str, float]:
    """The share that is longer than a row, and the share of all tokens that stand beyond the row's end."""
    number = longer = tokens = beyond = 0
    for sizes in parts:
        number += len(sizes)
        longer += int((sizes > length).sum())
        tokens += int(sizes.sum())
        beyond += int(np.maximum(sizes - length, 0).sum())
    return {"count": longer, "share": longer / max(number, 1), "tokens_beyond": beyond / max(tokens, 1)}


def _decoded(tokens: Tokens, examples: Examples, width: int) -> dict[str, Any]:
    """What becomes of the training text, and the first rows of seed 0 as text; or why there are none."""
    try:
        examples.check(tokens, width)
        rows = examples.rows(tokens, width, SHOWN, 0, 0)
    except Mistake as mistake:
        return {"refused": str(mistake), "counts": {}, "rows": []}
    real = np.broadcast_to(rows.document >= 0, rows.ids.shape)
    texts = [tokens.vocabulary.decode(ids[mask]) for ids, mask in zip(rows.ids, real, strict=True)]
    return {"counts": examples.counts(tokens, width), "rows": texts}
