"""Which held-out tokens a masked model is asked for: fixed sets, the same for every arm, seed and length of context."""

from __future__ import annotations

import hashlib

import numpy as np

RATE = 15  # in a hundred of a document's tokens
REPLICATES = 4


def exam_sets(documents: np.ndarray, able: np.ndarray) -> np.ndarray:
    """For every token of a stream a number whose bit r says whether set r takes it.

    Of the n tokens of a document that are `able`, set r takes the ⌈.15 n⌉ that come first when token k is ranked by
    output k of SplitMix64 (Steele et al. 2014) with the seed blake2b("document/r"). How the stream is cut into rows,
    and so the length of the context, plays no part.
    """
    chosen = np.zeros(len(able), dtype=np.uint8)
    place, documents = np.flatnonzero(able), documents.astype(np.int64)
    document = np.searchsorted(documents, place, side="right") - 1
    inside = place - documents[document]
    counts = np.bincount(document, minlength=len(documents))
    quota, first = -(-RATE * counts // 100), np.cumsum(counts) - counts
    for replicate in range(REPLICATES):
        seeds = np.array([_seed(number, replicate) for number in range(len(documents))], dtype=np.uint64)
        order = np.lexsort((splitmix(seeds[document], inside), document))
        rank = np.arange(len(place)) - first[document]  # documents are together and in order, so theirs is the rank's
        chosen[place[order[rank < quota[document]]]] |= 1 << replicate
    return chosen


def splitmix(seeds: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Output number `count`, from 0 on, of SplitMix64 for each seed."""
    state = seeds + np.uint64(0x9E3779B97F4A7C15) * (count.astype(np.uint64) + np.uint64(1))
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


def _seed(document: int, replicate: int) -> int:
    return int.from_bytes(hashlib.blake2b(f"{document}/{replicate}".encode(), digest_size=8).digest(), "little")
