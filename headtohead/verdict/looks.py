"""Looks at the results that were planned before the first run. Adding seeds until p < .05 is wrong one time in six."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from headtohead.request import ended, folders
from headtohead.spec import Mistake
from headtohead.verdict import words
from headtohead.verdict.statistics import FEWEST

# What ends a study before its last look: more seeds would answer nothing that was asked.
SETTLED = (words.INVALID, words.UNSTABLE, words.IDENTICAL, words.BETTER, words.WORSE, words.EQUIVALENT)


class Look(NamedTuple):
    """A verdict on the first `seeds` seeds, at its own level."""

    number: int  # from 1
    seeds: int
    alpha: float


def planned(looks: Sequence[int], alpha: float, open_ended: bool = False) -> list[Look]:
    """Each look with its share of α: an equal one, or 6α / (π² k²) where the number of looks is left open.

    Either way the shares add up to at most α, so that by Bonferroni's inequality all looks together err as rarely as one.
    """
    if any(later <= earlier for earlier, later in pairwise(looks)):
        raise Mistake(f"looks = {tuple(looks)} must rise, as in (3, 5, 8): each adds seeds to those before")
    if looks and looks[0] < FEWEST:
        raise Mistake(f"looks = {tuple(looks)}: there is no verdict below {FEWEST} seeds; begin with {FEWEST}")
    shares = [share(k, alpha) if open_ended else alpha / len(looks) for k in range(1, len(looks) + 1)]
    return [Look(k, seeds, part) for k, (seeds, part) in enumerate(zip(looks, shares, strict=True), 1)]


def share(k: int, alpha: float) -> float:
    """What look k may spend where nobody says how many there will be: Σ 1 / k² = π² / 6."""
    return 6 * alpha / (math.pi * k) ** 2


def looks_of(study: Mapping[str, Any]) -> list[Look]:
    """The looks that a study planned; none where it judges all its seeds at once."""
    return planned(study.get("looks") or (), study["alpha"], study.get("open_ended", False))


def reached(out: Path, study: Mapping[str, Any]) -> Look | None:
    """The last look whose runs have all ended, or else the first: that one is still to be finished."""
    looks = [look for look in looks_of(study) if look.seeds <= len(study["seeds"])]
    seen = [(look, folders(out, {**study, "seeds": study["seeds"][: look.seeds]})) for look in looks]
    done = [look for look, runs in seen if all(ended(folder) for _, _, folder in runs)]
    return (done or looks[:1])[-1] if looks else None


def settled(verdicts: Iterable[str]) -> bool:
    """Whether no challenger is left open, so that the seeds of the next look need not be paid for."""
    return all(word in SETTLED for word in verdicts)
