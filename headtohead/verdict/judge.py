"""The verdict of a study, from its files alone: no model, no GPU, and the same bits whenever it is judged again.

Only "ratios" and "price" hold numbers that depend on how fast the machine was.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headtohead.files import write_json
from headtohead.verdict import words
from headtohead.verdict.bill import dollars_per_second, price_of_seeds, ratios, spent
from headtohead.verdict.claims import answers, questions
from headtohead.verdict.compare import Comparison, Outcome, Rule, Seed, card, compare, plain, whereabouts
from headtohead.verdict.fairness import different_data, objections, reservations, worst
from headtohead.verdict.folder import FAILED, Run, Runs, batches, command, outcome, read_runs, read_study
from headtohead.verdict.margins import Measure, margin_for, measure_from
from headtohead.verdict.statistics import holm
from headtohead.verdict.words import Verdict, decide

VERSION = 1
USUAL_SEEDS = 5  # what a claim takes, where the runs at hand say nothing about the spread


@dataclass(frozen=True)
class Judged:
    """A study's folder, read."""

    study: dict[str, Any]
    runs: Runs

    @property
    def baseline(self) -> Mapping[Seed, Run]:
        return self.runs[self.study["baseline"]]

    @property
    def challengers(self) -> list[str]:
        return [arm for arm in self.study["arms"] if arm != self.study["baseline"]]

    def outcomes(self, challenger: str, measure: Measure) -> tuple[Outcome, Outcome]:
        """What the baseline's and a challenger's runs came to on a measure."""
        return outcome(self.baseline, measure), outcome(self.runs[challenger], measure)


def judge_and_write(out: Path) -> dict[str, Any]:
    """Judge a study's folder and leave verdict.json in it."""
    verdict = judge(out)
    write_json(Path(out) / "verdict.json", verdict)
    return verdict


@dataclass(frozen=True)
class Case:
    """One challenger, compared."""

    name: str
    comparison: Comparison
    p_adjusted: float
    different: dict[str, int]  # seeds whose batches were not the baseline's, with the first such step


def judge(out: Path) -> dict[str, Any]:
    """The verdict on every challenger of a study, as verdict.json holds it."""
    study = read_study(Path(out))
    judged = Judged(study, read_runs(Path(out), study))
    rule = _rule(judged)
    cases = _cases(judged, rule)
    verdicts = {case.name: _verdict(judged, case) for case in cases}
    claimed = _claimed(judged, rule, verdicts)
    entries = {}
    for case in cases:
        entry = card(case.comparison, verdicts[case.name], case.p_adjusted) | _evidence(judged, case)
        entries[case.name] = entry | {"claims": claimed.get(case.name, [])} | _costs(judged, case, entry)
    return plain(_head(judged, rule) | {"arms": entries})


def _cases(judged: Judged, rule: Rule) -> list[Case]:
    compared = {name: compare(rule, *judged.outcomes(name, rule.measure)) for name in judged.challengers}
    adjusted = adjust(compared)
    seen = {seed: batches(run) for seed, run in judged.baseline.items() if run.state != FAILED}
    return [
        Case(name, each, adjusted[name], different_data(seen, judged.runs[name], each.seeds))
        for name, each in compared.items()
    ]


def _rule(judged: Judged) -> Rule:
    study = judged.study
    measure = measure_from(study["primary"])
    margin = margin_for(study.get("margin"), measure, outcome(judged.baseline, measure).mean)
    return Rule(measure, margin, study["alpha"], tuple(study["seeds"]), max(1, len(judged.challengers)))


def adjust(compared: Mapping[str, Comparison]) -> dict[str, float]:
    """Holm over all challengers; one that could not be tested counts as a test that found nothing."""
    ps = [1.0 if math.isnan(each.pair.p) else each.pair.p for each in compared.values()]
    return dict(zip(compared, holm(ps), strict=True))


def _verdict(judged: Judged, case: Case) -> Verdict:
    """The word, what qualifies it, and then the caveats."""
    baseline, own, compared = judged.baseline, judged.runs[case.name], case.comparison
    failed = bool(compared.baseline.failed or compared.challenger.failed)
    found = decide(compared.pair, compared.rule.margin, case.p_adjusted, objections(baseline, own), failed)
    unpaired = [words.UNPAIRED] if case.different else []
    caveats = [*words.caveats(compared.pair), *unpaired, *reservations(baseline, own)]
    return Verdict(found.word, (*found.qualifiers, *caveats))


def _claimed(judged: Judged, rule: Rule, verdicts: Mapping[str, Verdict]) -> dict[str, list[dict[str, Any]]]:
    refused = {name: f"the verdict is {found.word}" for name, found in verdicts.items() if found.word in words.REFUSED}
    return answers(questions(judged.study.get("claims", []), rule, judged.challengers), rule, judged.outcomes, refused)


def _evidence(judged: Judged, case: Case) -> dict[str, Any]:
    """What changed, what the audits found, and whether both arms saw the same data."""
    changed = judged.study.get("changed", {}).get(case.name, {})
    return {
        "changed": list(changed),
        "changes": changed,
        "margin_stated": judged.study.get("margin") is not None,
        "same_data": not case.different if case.comparison.seeds else None,
        "different_data": case.different,
        "audits": worst(judged.runs[case.name]),
    } | whereabouts(case.comparison)


def _costs(judged: Judged, case: Case, entry: Mapping[str, Any]) -> dict[str, Any]:
    """The ratios to the baseline, and the seeds that could settle what is still open: their price, and the command.

    An extension of a study that has been looked at cannot be repaired afterwards, so the command buys fresh seeds that
    are judged on their own, and as many as are needed if the spread is as large as it may well be.
    """
    rate = dollars_per_second(judged.study.get("price"))
    base, own = ([runs[seed] for seed in case.comparison.seeds] for runs in (judged.baseline, judged.runs[case.name]))
    counts = entry["seeds_needed"] or [USUAL_SEEDS, USUAL_SEEDS]
    confirm = command(judged.study, "--confirm", str(counts[-1]))
    return {
        "ratios": ratios(base, own, rate),
        "price": price_of_seeds(judged.runs, counts, rate),
        "command": confirm if entry["verdict"] in words.OPEN else None,
    }


def _head(judged: Judged, rule: Rule) -> dict[str, Any]:
    study, measure = judged.study, rule.measure
    return {
        "verdict version": VERSION,
        "study": study["study"],
        "question": study["question"],
        "size": study.get("size"),
        "lock": study.get("lock"),
        "primary": {"name": measure.name, "unit": measure.unit, "better": measure.better},
        "margin": rule.margin,
        "alpha": rule.alpha,
        "seeds": list(rule.seeds),
        "baseline": {
            "name": study["baseline"],
            "mean": outcome(judged.baseline, measure).mean,
            "audits": worst(judged.baseline),
        },
        "price": {**(study.get("price") or {}), **spent(judged.runs, study.get("price"))},
    }
