"""The closed list of verdicts. The first that fits is the verdict; an equality never earns the stronger one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headtohead.verdict.statistics import FEWEST, Paired, above, below, tost

INVALID = "INVALID"
UNSTABLE = "UNSTABLE"
IDENTICAL = "IDENTICAL"
UNREPLICATED = "UNREPLICATED"
BETTER = "BETTER"
WORSE = "WORSE"
EQUIVALENT = "EQUIVALENT"
NOT_WORSE = "NOT WORSE"
NOT_BETTER = "NOT BETTER"
INCONCLUSIVE = "INCONCLUSIVE"

WORDS = (
    INVALID, UNSTABLE, IDENTICAL, UNREPLICATED, BETTER, WORSE, EQUIVALENT, NOT_WORSE, NOT_BETTER, INCONCLUSIVE,
)  # fmt: skip
REFUSED = (INVALID, UNSTABLE)  # the comparison was not fair or not whole: no claim rests on it
OPEN = (UNREPLICATED, NOT_WORSE, NOT_BETTER, INCONCLUSIVE)  # more seeds could say more

SUBSTANTIAL = "substantial"
NEGLIGIBLE = "negligible"
SIZE_UNCERTAIN = "size uncertain"
INCOMPARABLE = "INCOMPARABLE"

# Caveats change no verdict. A failed audit of severity warn may bring one of its own.
SKEWED = "skewed"
UNTUNED = "untuned"
UNAUDITED = "unaudited"
UNPAIRED = "unpaired"
NO_SPREAD = "no spread"
EXPLORATORY = "exploratory"
INCOMPLETE = "incomplete"
AUDIT_CAVEATS = {"A-BUDGET": "untuned-challenger", "A-CROSS": "crossing-curves", "A-UNDERTRAIN": "under-trained"}
SINGLE_BUDGET = "single-budget"  # nothing tells how the difference would go at another one: A-CROSS was skipped


@dataclass(frozen=True)
class Verdict:
    word: str
    qualifiers: tuple[str, ...] = ()


def decide(
    pair: Paired, margin: float, p_adjusted: float, invalid: Sequence[str] = (), unstable: bool = False
) -> Verdict:
    """The verdict on oriented differences (lower is better). `invalid` says what makes the comparison unfair."""
    if invalid:
        return Verdict(INVALID, tuple(invalid))
    if unstable:
        return Verdict(UNSTABLE)
    if pair.identical:
        return Verdict(IDENTICAL)
    if pair.n < FEWEST:
        return Verdict(UNREPLICATED)
    if p_adjusted < pair.alpha and pair.interval[1] < 0:
        return Verdict(BETTER, (size(pair, margin),))
    if p_adjusted < pair.alpha and pair.interval[0] > 0:
        return Verdict(WORSE, (size(pair, margin),))
    return Verdict(_undecided(pair, margin))


def _undecided(pair: Paired, margin: float) -> str:
    """The verdict where no difference was shown: how far from zero it may still be. Not corrected for being several."""
    not_worse, not_better = below(pair, margin) < pair.alpha, above(pair, -margin) < pair.alpha
    if not_worse and not_better:
        return EQUIVALENT
    return NOT_WORSE if not_worse else NOT_BETTER if not_better else INCONCLUSIVE


def size(pair: Paired, margin: float) -> str:
    """How large a shown difference is: its whole interval beyond the margin, inside it (TOST), or neither."""
    low, high = pair.interval
    if high < -margin or low > margin:
        return SUBSTANTIAL
    return NEGLIGIBLE if tost(pair, margin) < pair.alpha else SIZE_UNCERTAIN


def caveats(pair: Paired, tuned: bool = False) -> tuple[str, ...]:
    """Labels that go with any verdict on these pairs.

    The t interval of strongly skewed differences covers about .88 instead of .95 below ten seeds. Where no record of
    tuning exists, neither arm is known to have had its own best settings.
    """
    found = []
    if abs(pair.skew) > 1 and pair.n < 10:
        found.append(SKEWED)
    if pair.floored:
        found.append(NO_SPREAD)
    return tuple(found) if tuned else (*found, UNTUNED)
