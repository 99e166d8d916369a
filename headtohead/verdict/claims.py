"""Answers to the claims that a study made before its first run: yes, no, or not enough evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headtohead.spec import Mistake
from headtohead.verdict.compare import Comparison, Outcome, Rule, compare, unflipped
from headtohead.verdict.margins import Measure, margin_for, measure_from
from headtohead.verdict.statistics import FEWEST, Paired, above, below, holm, tost

YES = "yes"
NO = "no"
NOT_ENOUGH = "not enough evidence"

Tails = Callable[[Paired, float], tuple[float, float]]


def _no_worse(pair: Paired, margin: float) -> tuple[float, float]:
    """d < margin, or d > margin."""
    return below(pair, margin), above(pair, margin)


def _better(pair: Paired, margin: float) -> tuple[float, float]:
    """d < 0, or d > 0."""
    return below(pair, 0.0), above(pair, 0.0)


def _equivalent(pair: Paired, margin: float) -> tuple[float, float]:
    """|d| < margin (TOST), or |d| > margin: both tails, as a difference of either sign would speak against it."""
    upper = above(pair, margin) + above(pair, -margin)
    lower = below(pair, -margin) + below(pair, margin)
    return tost(pair, margin), min(1.0, upper, lower)


# Lower and Higher speak of the number itself, whichever way the measure is better.
KINDS: dict[str, Tails] = {
    "NoWorse": _no_worse,
    "Better": _better,
    "Lower": _better,
    "Higher": _better,
    "Equivalent": _equivalent,
}
DIRECTION = {"Lower": "lower", "Higher": "higher"}
WITH_MARGIN = ("NoWorse", "Equivalent")


@dataclass(frozen=True)
class Question:
    """One claim about one challenger."""

    kind: str
    described: dict[str, Any]  # the measure's name, unit and better
    challenger: str
    margin: float | None  # as stated; None is the measure's default, or not needed


Outcomes = Callable[[str, Measure], tuple[Outcome, Outcome]]  # (challenger, measure) -> the baseline's, its own


def questions(claims: Sequence[dict[str, Any]], primary: Rule, challengers: Sequence[str]) -> list[Question]:
    """The claims as questions; one that names no challenger is asked of each."""
    asked = []
    for claim in claims:
        if claim["claim"] not in KINDS:
            raise Mistake(f"{claim['claim']!r} is no claim; the claims are {', '.join(KINDS)}")
        named = claim.get("challenger")
        if named not in (None, *challengers):
            raise Mistake(f"a claim names {named!r}; the challengers are {', '.join(challengers)}")
        asked += [_question(claim, primary, name) for name in (challengers if named is None else [named])]
    return asked


def _question(claim: dict[str, Any], primary: Rule, challenger: str) -> Question:
    kind, measure = claim["claim"], primary.measure
    name = claim.get("measure") or measure.name
    own = name == measure.name
    described = {"name": name} | ({"unit": measure.unit, "better": measure.better} if own else {})
    described |= {key: claim[key] for key in ("unit", "better") if claim.get(key)}
    if kind in DIRECTION:
        described["better"] = DIRECTION[kind]
    elif kind == "Equivalent":
        described.setdefault("better", "lower")  # equality has no direction
    stated = claim.get("margin")
    return Question(kind, described, challenger, primary.margin if own and stated is None else stated)


def answers(
    asked: Sequence[Question], primary: Rule, outcomes: Outcomes, refused: Mapping[str, str]
) -> dict[str, list[dict[str, Any]]]:
    """The answers by challenger. `refused` names the challengers of which nothing may be said, and why.

    One-sided tests at alpha. Holm runs over all claims of the lock, once over the tests that would say yes and once
    over those that would say no: a false yes anywhere has probability at most alpha, and so has a false no.
    """
    evidence = [_evidence(question, primary, outcomes, refused) for question in asked]
    yes, no = (holm([found.tails[side] for found in evidence]) for side in (0, 1))
    answered: dict[str, list[dict[str, Any]]] = {}
    for question, found, p_yes, p_no in zip(asked, evidence, yes, no, strict=True):
        answer = YES if p_yes < primary.alpha else NO if p_no < primary.alpha else NOT_ENOUGH
        entry = {
            "claim": question.kind,
            "measure": question.described["name"],
            "answer": answer,
            "reason": found.reason,
        }
        entry |= {"margin": found.margin, "p_yes": p_yes, "p_no": p_no} | _shown(found.comparison)
        answered.setdefault(question.challenger, []).append(entry)
    return answered


@dataclass(frozen=True)
class Evidence:
    comparison: Comparison | None
    margin: float | None
    tails: tuple[float, float] = (1.0, 1.0)  # p that would say yes, p that would say no
    reason: str | None = None  # why there is no evidence at all


def _evidence(question: Question, primary: Rule, outcomes: Outcomes, refused: Mapping[str, str]) -> Evidence:
    try:
        return _compared(question, primary, outcomes, refused.get(question.challenger))
    except Mistake as mistake:  # a claim that cannot be answered as it stands keeps no other from its answer
        return Evidence(None, question.margin, reason=str(mistake))


def _compared(question: Question, primary: Rule, outcomes: Outcomes, refused: str | None) -> Evidence:
    measure, margin = measure_from(question.described), None
    baseline, challenger = outcomes(question.challenger, measure)
    if not (baseline.values and challenger.values):
        return Evidence(None, question.margin, reason=f"no run of both arms has measured {measure.name}")
    if question.kind in WITH_MARGIN:
        margin = margin_for(question.margin, measure, baseline.mean)
    comparison = compare(Rule(measure, margin or 0.0, primary.alpha, primary.seeds), baseline, challenger)
    reason = refused or _silence(comparison)
    if reason:
        return Evidence(comparison, margin, reason=reason)
    return Evidence(comparison, margin, KINDS[question.kind](comparison.pair, margin or 0.0))


def _silence(comparison: Comparison) -> str | None:
    """Why these pairs answer nothing, as the same pairs would earn no verdict."""
    if comparison.baseline.failed or comparison.challenger.failed:
        return "a run failed"
    if comparison.pair.n < FEWEST:
        return f"{comparison.pair.n} of the {FEWEST} seeds that an answer needs"
    return None


def _shown(comparison: Comparison | None) -> dict[str, Any]:
    """The difference, and the interval whose ends are the two one-sided limits."""
    if comparison is None:
        return {"effect": None, "interval": None}
    measure, pair = comparison.rule.measure, comparison.pair
    return {"effect": measure.shown(pair.mean), "interval": unflipped(measure, pair.interval_tost)}
