"""Which documents are held out: drawn by the hash of their content, so a function of the set and never of its order."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from headtohead.spec import Part, Size

LARGE = 100  # a document of more than one part in a hundred is held out last: many voices, not one


class Split(Part):
    """Shares of the text, in bytes: whole documents, never windows.

    `validation` is what verdicts rest on. `tuning` is the end of the training side, left out of training and scored
    in its place while rates are chosen; `probe` is its beginning, scored as seen text beside the held-out text. A text
    without borders is cut: its last part is validation. Files that are given for validation take the draw's place.
    Documents that are equal but for case and spaces are kept once, unless `twins`.
    """

    validation: float = 0.1
    tuning: float = 0.05
    probe: float = 0.02
    twins: bool = False

    def refuse(self, size: Size, recipe: Any) -> Iterator[str]:
        for name in ("validation", "tuning", "probe"):
            if not 0 < getattr(self, name) < 0.5:
                yield f"{name} = {getattr(self, name)} is a share of the text; choose one between 0 and .5"


class Drawn(NamedTuple):
    """Numbers of documents, in the order in which each side is stored."""

    train: np.ndarray
    validation: np.ndarray


def draw(hashes: np.ndarray, sizes: np.ndarray, share: float) -> Drawn:
    """About `share` of the bytes, in documents with the smallest hashes; the large ones only where the small give out.

    Both sides keep the order of the hashes; what is large stands in the middle of training, away from either end.
    """
    order = np.argsort(hashes, kind="stable")
    total = int(sizes.sum())
    large = sizes[order] * LARGE > total
    small, giants = order[~large], order[large]
    room = math.floor(total * share)
    count = int(np.searchsorted(np.cumsum(sizes[small]), room, side="right"))
    chosen, rest = list(small[:count]), small[count:]
    room -= int(sizes[chosen].sum()) if chosen else 0
    left: list[np.intp] = []
    for giant in giants:
        fits = sizes[giant] <= room
        room -= int(sizes[giant]) if fits else 0
        (chosen if fits else left).append(giant)
    if not chosen:
        least = order[np.argmin(sizes[order])]
        chosen, left = [least], [giant for giant in left if giant != least]
        rest = rest[rest != least]
    half = len(rest) // 2
    train = np.concatenate([rest[:half], np.array(left, dtype=order.dtype), rest[half:]])
    return Drawn(train, np.array(chosen, dtype=order.dtype))


def ends(sizes: np.ndarray, split: Split) -> tuple[int, int]:
    """How many documents of the training side, in its order, are the probe at its start and the tuning slice at its end.

    Each has at least one where there are three; with fewer both are all there is, and tuning then sees its own text.
    """
    total = int(sizes.sum())
    upward = np.cumsum(sizes)
    downward = np.cumsum(sizes[::-1])
    probe = max(1, int(np.searchsorted(upward, total * split.probe, side="right")))
    tuning = max(1, int(np.searchsorted(downward, total * split.tuning, side="right")))
    return (probe, tuning) if len(sizes) > 2 else (len(sizes), 0)
