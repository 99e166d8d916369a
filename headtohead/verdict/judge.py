"""The verdict of a study, from its files alone: no model, no GPU, and the same bits whenever it is judged again.

Only "ratios", "price" and the "sentence" that quotes them depend on how fast the machine was.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from headtohead.files import write_json
from headtohead.request import as_locked
from headtohead.verdict import tuning, words
from headtohead.verdict.bill import COMPARED, cost_outcome, dollars_per_second, price_of_seeds, ratios, spent
from headtohead.verdict.claims import answers, questions
from headtohead.verdict.companions import companions
from headtohead.verdict.compare import Comparison, Outcome, Rule, Seed, card, compare, plain, whereabouts
from headtohead.verdict.crossing import crossing, late_differences
from headtohead.verdict.descriptors import noise
from headtohead.verdict.earlier import read_earlier
from headtohead.verdict.fairness import different_data, objections, reservations, worst
from headtohead.verdict.folder import (
    FAILED,
    Log,
    Run,
    Runs,
    command,
    fresh_seeds,
    outcome,
    read_log,
    read_runs,
    read_study,
)
from headtohead.verdict.grid import grid_of
from headtohead.verdict.ledger import abandoned
from headtohead.verdict.looks import Look, looks_of, reached
from headtohead.verdict.margins import Measure, margin_for, measure_from
from headtohead.verdict.new_text import new_text
from headtohead.verdict.pairs import of_pair, refuse_unit, times_compare
from headtohead.verdict.sentence import sentence
from headtohead.verdict.statistics import FEWEST, holm
from headtohead.verdict.words import Verdict, decide

VERSION = 1
USUAL_SEEDS = 5  # what a claim takes, where the runs at hand say nothing about the spread

# Of arms that were not scored on the same tokens of the same text nothing is subtracted.
NUMBERS = (
    "effect", "interval", "relative", "perplexity_ratio", "p", "p_adjusted", "p_tost", "sign_flip", "better_probability",
    "interval_simultaneous", "interval_tost", "dz", "sd", "correlation", "pairing_gain", "skew", "power",
    "detectable", "seeds_needed", "new_text", "pooled", "moderated", "posterior",
)  # fmt: skip
WITHHELD: dict[str, Any] = dict.fromkeys(NUMBERS) | {"won": 0, "paired_seeds": []}


@dataclass(frozen=True)
class Judged:
    """A study's folder, read."""

    out: Path
    study: dict[str, Any]
    runs: Runs
    look: Look | None  # of several that were planned
    abandoned: list[str]  # challengers that the study once had; they count in its family
    as_locked: bool  # whether what the folder declares is what was locked before its first run

    @property
    def baseline(self) -> Mapping[Seed, Run]:
        return self.runs[self.study["baseline"]]

    @property
    def challengers(self) -> list[str]:
        return [arm for arm in self.study["arms"] if arm != self.study["baseline"]]

    @property
    def copies(self) -> list[str]:
        """Challengers that are the baseline itself with its own seeds: nothing is tested of them."""
        changed, fresh = self.study.get("changed", {}), self.study.get("fresh", {})
        return [name for name in self.challengers if changed.get(name) == {} and name not in fresh]

    @property
    def family(self) -> int:
        """Challengers that are tested together."""
        return max(1, len(self.challengers) - len(self.copies) + len(self.abandoned))

    def outcomes(self, challenger: str, measure: Measure) -> tuple[Outcome, Outcome]:
        """What the baseline's and a challenger's runs came to on a measure."""
        return outcome(self.baseline, measure), outcome(self.runs[challenger], measure)

    def claimed(self, challenger: str, measure: Measure) -> tuple[Outcome, Outcome]:
        """The same for what a claim names, which may be a cost."""
        if measure.name not in COMPARED:
            refuse_unit(measure.name, self.baseline, self.runs[challenger])
            return self.outcomes(challenger, measure)
        rate = dollars_per_second(self.study.get("price"))
        base, own = (cost_outcome(self.runs[arm], measure.name, rate) for arm in (self.study["baseline"], challenger))
        return base, own


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
    different: dict[str, int]  # seeds whose batches were not the baseline's, with the first such step
    audits: list[dict[str, Any]]  # of the pair; those of its runs lie with the runs
    unfair: list[str]  # what makes the comparison INVALID
    p_adjusted: float = 1.0

    @property
    def failed(self) -> bool:
        """Whether a run of either arm failed."""
        return bool(self.comparison.baseline.failed or self.comparison.challenger.failed)


def judge(out: Path) -> dict[str, Any]:
    """The verdict on every challenger of a study, as verdict.json holds it."""
    judged = _read(Path(out))
    rule = _rule(judged)
    cases = _cases(judged, rule)
    refused = [case.name for case in cases if case.unfair or case.failed]
    beside = companions({case.name: case.comparison for case in cases}, read_earlier(judged.out), refused)
    verdicts = {case.name: _verdict(judged, case) for case in cases}
    claimed = _claimed(judged, rule, verdicts)
    entries = {}
    for case in cases:
        entry = (
            card(case.comparison, verdicts[case.name], case.p_adjusted) | _evidence(judged, case) | beside[case.name]
        )
        entry |= WITHHELD if words.INCOMPARABLE in entry["qualifiers"] else {}
        entries[case.name] = entry | {"claims": claimed.get(case.name, [])} | _costs(judged, case, entry)
    return quoted(plain(_head(judged, rule) | {"grid": grid_of(judged.study, rule, judged.outcomes), "arms": entries}))


def quoted(verdict: dict[str, Any]) -> dict[str, Any]:
    """The verdict with each challenger's in one sentence."""
    arms = {name: entry | {"sentence": sentence(name, entry, verdict)} for name, entry in verdict["arms"].items()}
    return verdict | {"arms": arms}


def _read(out: Path) -> Judged:
    """The folder, as far as the last planned look that its runs have reached."""
    study = read_study(out)
    look = reached(out, study)
    seen = study | {"seeds": study["seeds"][: look.seeds]} if look else study
    gone = [] if study.get("fresh") else abandoned(out, study)  # a control tests none of the study's challengers
    return Judged(out, seen, read_runs(out, seen), look, gone, as_locked(out, study))


def _cases(judged: Judged, rule: Rule) -> list[Case]:
    """Every challenger, compared. A test that no verdict may rest on found nothing: it makes no other p value smaller."""
    compared = {name: compare(rule, *judged.outcomes(name, rule.measure)) for name in judged.challengers}
    seen = {seed: read_log(run) for seed, run in judged.baseline.items() if run.state != FAILED}
    cases = [_case(judged, rule, name, each, seen) for name, each in compared.items()]
    tested = {case.name: case.comparison for case in cases if not (case.unfair or case.failed)}
    adjusted = adjust({name: each for name, each in tested.items() if name not in judged.copies}, rule.family)
    return [replace(case, p_adjusted=adjusted.get(case.name, 1.0)) for case in cases]


def _case(judged: Judged, rule: Rule, name: str, compared: Comparison, seen: Mapping[Seed, Log]) -> Case:
    baseline, own = judged.baseline, judged.runs[name]
    logs = [(seed, seen[seed], read_log(own[seed])) for seed in compared.seeds]
    different = different_data(logs, "steps" in judged.study.get("changed", {}).get(name, {}))
    audits = of_pair(judged.study, rule.measure.name, baseline, own, compared.seeds)
    audits.append(_crossing(judged, name, logs, different) | {"seeds": list(compared.seeds)})
    audits += tuning.audits(judged.study.get("tuning"), name)
    return Case(name, compared, different, audits, objections(baseline, own, audits))


def _crossing(
    judged: Judged, name: str, logs: Sequence[tuple[Seed, Log, Log]], different: Mapping[str, int]
) -> dict[str, Any]:
    """A-CROSS, where both arms' training losses are of the same batches and mean the same."""
    changed = judged.study.get("changed", {}).get(name, {})
    unlike = any(address.startswith("objective") or "dropout" in address for address in changed)
    curves = [] if different or unlike else [late_differences(base.losses, own.losses) for _, base, own in logs]
    return crossing(curves)._asdict()


def _rule(judged: Judged) -> Rule:
    study = judged.study
    measure = measure_from(study["primary"])
    margin = margin_for(study.get("margin"), measure, outcome(judged.baseline, measure).mean)
    alpha = judged.look.alpha if judged.look else study["alpha"]
    return Rule(measure, margin, alpha, tuple(study["seeds"]), judged.family)


def adjust(compared: Mapping[str, Comparison], family: int = 0) -> dict[str, float]:
    """Holm over all challengers; one that could not be tested, or was abandoned, counts as a test that found nothing."""
    ps = [1.0 if math.isnan(each.pair.p) else each.pair.p for each in compared.values()]
    return dict(zip(compared, holm(ps + [1.0] * (family - len(ps))), strict=False))


def _verdict(judged: Judged, case: Case) -> Verdict:
    """The word, what qualifies it, and then the caveats."""
    baseline, own, compared = judged.baseline, judged.runs[case.name], case.comparison
    found = decide(compared.pair, compared.rule.margin, case.p_adjusted, case.unfair, case.failed)
    unpaired = [words.UNPAIRED] if case.different else []
    unpaired += [] if judged.as_locked else [words.EXPLORATORY]
    unpaired += [words.INCOMPLETE] if any(whereabouts(compared)["missing"].values()) else []
    tuned = tuning.both(judged.study.get("tuning"), case.name)
    caveats = [*words.caveats(compared.pair, tuned), *unpaired, *reservations(baseline, own, case.audits)]
    return Verdict(found.word, (*found.qualifiers, *caveats))


def _claimed(judged: Judged, rule: Rule, verdicts: Mapping[str, Verdict]) -> dict[str, list[dict[str, Any]]]:
    refused = {name: f"the verdict is {found.word}" for name, found in verdicts.items() if found.word in words.REFUSED}
    return answers(questions(judged.study.get("claims", []), rule, judged.challengers), rule, judged.claimed, refused)


def _evidence(judged: Judged, case: Case) -> dict[str, Any]:
    """What changed, what the audits found, and whether both arms saw the same data."""
    changed = judged.study.get("changed", {}).get(case.name, {})
    return {
        "changed": list(changed),
        "changes": changed,
        "margin_stated": judged.study.get("margin") is not None,
        "same_data": not case.different if case.comparison.seeds else None,
        "different_data": case.different,
        "audits": [*worst(judged.runs[case.name]), *case.audits],
        "new_text": new_text(case.comparison, judged.baseline, judged.runs[case.name]),
        "match": _match(judged.study, case.name),
        "tuning": tuning.beside(judged.study.get("tuning"), case.name),
        "noise": noise(case.comparison.pair) if case.name in judged.study.get("fresh", {}) else None,
    } | whereabouts(case.comparison)


def _match(study: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    """What was equal by design, and the tokens trained on as a multiple of the baseline's."""
    training, base = study.get("training", {}), study["baseline"]
    if not {name, base} <= training.keys():
        return None
    return {"by": study.get("match", "tokens"), "tokens": training[name] / training[base]}


def _costs(judged: Judged, case: Case, entry: Mapping[str, Any]) -> dict[str, Any]:
    """The ratios to the baseline, and the seeds that could settle what is still open: their price, and the command.

    An extension of a study that has been looked at cannot be repaired afterwards, so the command buys fresh seeds that
    are judged on their own, and as many as are needed if the spread is as large as it may well be.
    """
    rate = dollars_per_second(judged.study.get("price"))
    base, own = ([runs[seed] for seed in case.comparison.seeds] for runs in (judged.baseline, judged.runs[case.name]))
    # two pairs say too little of the spread to count on it
    counts = entry["seeds_needed"] if entry["seeds"] >= FEWEST and entry["seeds_needed"] else [USUAL_SEEDS] * 2
    confirm = fresh_seeds(judged.study, counts[-1])
    if judged.look and judged.look != looks_of(judged.study)[-1]:
        confirm = command(judged.study, str(judged.out))  # seeds that were planned need no fresh study
    return {
        "ratios": times_compare(ratios(base, own, rate), case.audits),
        "price": price_of_seeds(judged.runs, counts, rate),
        "command": confirm if entry["verdict"] in words.OPEN else None,
    }


def _look(judged: Judged) -> dict[str, Any] | None:
    """Which of the planned looks this is, and the level that it has."""
    if judged.look is None:
        return None
    return judged.look._asdict() | {"planned": [look.seeds for look in looks_of(judged.study)]}


def _unigram(judged: Judged, measure: Measure) -> float | None:
    """What knowing no context would give the baseline, where the primary measure is the loss."""
    found = [run.measures.get("unigram") for run in judged.baseline.values() if measure.name == "loss"]
    return found[0] if found and all(value == found[0] for value in found) else None


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
        "alpha": study["alpha"],
        "look": _look(judged),
        "abandoned": judged.abandoned,
        "seeds": list(rule.seeds),
        "baseline": {
            "name": study["baseline"],
            "mean": outcome(judged.baseline, measure).mean,
            "unigram": _unigram(judged, measure),
            "audits": worst(judged.baseline),
        },
        "price": {**(study.get("price") or {}), **spent(judged.runs, study.get("price"), study.get("tuning"))},
    }
