"""The verdict on results that were made elsewhere: a table of arm, seed and value, one row a run, or one a document."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headtohead.audit import primary
from headtohead.spec import Mistake
from headtohead.verdict import words
from headtohead.verdict.bill import COMPARED
from headtohead.verdict.companions import companions
from headtohead.verdict.compare import Comparison, Outcome, Rule, card, compare, plain, whereabouts
from headtohead.verdict.fairness import fatal
from headtohead.verdict.judge import VERSION, adjust, quoted
from headtohead.verdict.margins import margin_for, measure_from
from headtohead.verdict.new_text import of_documents
from headtohead.verdict.rows import LINE, Row, check_ends, known_as, number_of, of_metric, read_rows, same
from headtohead.verdict.words import Verdict, decide

ALPHA = 0.05
AMOUNTS = ("tokens", "parameters", "seconds")  # columns of which the ratio to the baseline is told

Documents = dict[str, dict[str, float]]  # seed -> document -> value


@dataclass(frozen=True)
class Arm:
    """What a table says of one arm."""

    outcome: Outcome
    documents: Documents
    amounts: dict[str, dict[str, float]]  # column -> seed -> number


def judge_table(path: Path, metric: str | None = None) -> dict[str, Any]:
    """The verdict on a results.csv, in the words of any other; nothing is known of how its runs were made.

    The baseline is the arm called "baseline". Lower is better and the value is a loss, unless columns `metric`, `unit`,
    `better` and `margin` say otherwise. An empty or non-finite value is a failed run. With a column `document` a run's
    value is the mean over its documents. A metric whose name says that it is of training text makes the verdict INVALID.
    """
    path = Path(path)
    rows = of_metric(read_rows(path), metric, path)
    check_ends(rows, path)
    arms = _arms(rows, path)
    if "baseline" not in arms:
        names = ", ".join(map(repr, arms))
        raise Mistake(
            f"{path} has no arm called 'baseline', only {names}; rename the one that the others are compared with"
        )
    baseline = arms.pop("baseline")
    rule = _rule(rows, baseline.outcome, len(arms), path)
    compared = {name: compare(rule, baseline.outcome, arm.outcome) for name, arm in arms.items()}
    adjusted, beside = adjust(compared), companions(compared, [])
    head = _head(path, rule, baseline.outcome) | {"grid": None}
    training = _of_training(rows[0]["metric"], rule.seeds)
    entries = {}
    for name, each in compared.items():
        told = _entry(each, baseline, arms[name], adjusted[name], training)
        entries[name] = told | {"margin_stated": bool(rows[0].get("margin"))} | beside[name]
    return quoted(plain(head | {"arms": entries}))


def _arms(rows: Sequence[Row], path: Path) -> dict[str, Arm]:
    arms: dict[str, Arm] = {}
    for row in rows:
        if not (row["arm"] and row["seed"]):
            raise Mistake(f"{path} line {row[LINE]} has no {'seed' if row['arm'] else 'arm'}; name it")
        arm = arms.setdefault(row["arm"], Arm(Outcome({}, {}), {}, {}))
        _take(arm, row, path)
    if len(arms) < 2:
        raise Mistake(f"{path} has one arm, {next(iter(arms))!r}; add the rows of the arm it is compared with")
    for arm in arms.values():
        for seed, documents in arm.documents.items():
            if seed not in arm.outcome.failed:
                arm.outcome.values[seed] = math.fsum(documents.values()) / len(documents)
    return arms


def _take(arm: Arm, row: Row, path: Path) -> None:
    """Enter a row: a run's value, or that of one of its documents."""
    seed, document = row["seed"], row.get("document", "")
    outcome, seen = arm.outcome, arm.documents.get(seed, {})
    if document in seen or (not document and (seed in outcome.values or seed in outcome.failed)):
        which = f", document {document}" if document else ""
        raise Mistake(f"{path} line {row[LINE]} repeats arm {row['arm']}, seed {seed}{which}; keep one row a run")
    whole = seed in outcome.values or (seed in outcome.failed and not seen)
    if (document and whole) or (not document and seen):
        raise Mistake(
            f"{path} line {row[LINE]}: arm {row['arm']}, seed {seed} has rows of documents and one of its own; keep one kind"
        )
    value = number_of(row, "value", path)
    if not math.isfinite(value):
        outcome.failed[seed] = f"the value is {row['value'] or 'empty'}"
    elif document:
        arm.documents.setdefault(seed, {})[document] = value
    else:
        outcome.values[seed] = value
    for name in AMOUNTS:
        if row.get(name):
            amount = number_of(row, name, path)
            if amount < 0:
                raise Mistake(f"{path} line {row[LINE]}: {name} {row[name]} is below 0; give what was spent")
            arm.amounts.setdefault(name, {})[seed] = amount


def _rule(rows: Sequence[Row], baseline: Outcome, challengers: int, path: Path) -> Rule:
    about = {name: same(rows, name, path) for name in ("metric", "unit", "better", "margin")}
    unit = about["unit"] or ("" if about["metric"] else "unit not stated")
    measure = measure_from({"name": known_as(about["metric"] or "loss"), "unit": unit, "better": about["better"]})
    stated = number_of(rows[0], "margin", path) if about["margin"] else None
    seeds = tuple(dict.fromkeys(row["seed"] for row in rows))
    return Rule(measure, margin_for(stated, measure, baseline.mean), ALPHA, seeds, challengers)


def _of_training(metric: str, seeds: Sequence[str | int]) -> list[dict[str, Any]]:
    """A-TRAINLOSS, where the metric's name says that it is of the text that was trained on."""
    found = primary.audit(metric)
    return [found._asdict() | {"seeds": list(seeds)}] if found.result == "fail" else []


def _entry(
    comparison: Comparison, baseline: Arm, own: Arm, p_adjusted: float, audits: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    failed = bool(comparison.baseline.failed or comparison.challenger.failed)
    unlike = _unlike(comparison, baseline, own)
    invalid = fatal(audits) + ([words.INCOMPARABLE] if unlike else [])
    found = decide(comparison.pair, comparison.rule.margin, p_adjusted, invalid, failed)
    verdict = Verdict(found.word, (*found.qualifiers, *words.caveats(comparison.pair), words.UNAUDITED))
    ratios = {name: _ratio(comparison, baseline, own, name) for name in AMOUNTS}
    unknown: dict[str, Any] = {
        "changed": [],
        "changes": {},
        "same_data": None,
        "different_data": {},
        "audits": list(audits),
        "claims": [],
        "new_text": None if unlike else _new_text(comparison, baseline, own),
        "match": None if ratios["tokens"] is None else {"by": "tokens", "tokens": ratios["tokens"]},
        "tuning": None,
        "noise": None,
        "ratios": {name: ratios.get(name) for name in COMPARED},
        "price": None,
        "command": None,
    }
    return card(comparison, verdict, p_adjusted) | unknown | whereabouts(comparison)


def _unlike(comparison: Comparison, baseline: Arm, own: Arm) -> bool:
    """Whether the paired runs were scored on different documents."""
    sets = [set(arm.documents.get(str(seed), {})) for arm in (baseline, own) for seed in comparison.seeds]
    return any(documents != sets[0] for documents in sets)


def _new_text(comparison: Comparison, baseline: Arm, own: Arm) -> dict[str, Any] | None:
    """What the documents say of other text; every document counts alike."""
    if not comparison.seeds or not baseline.documents:
        return None
    seeds = [str(seed) for seed in comparison.seeds]
    names = list(baseline.documents[seeds[0]])
    rows = [[own.documents[seed][name] - baseline.documents[seed][name] for name in names] for seed in seeds]
    sign = 1 if comparison.rule.measure.better == "lower" else -1
    found = of_documents(comparison, sign * np.array(rows), np.ones(len(names)))
    return found if sign == 1 else _turned(found)


def _turned(found: dict[str, Any]) -> dict[str, Any]:
    """The same of a measure of which more is better: differences as the reader knows them."""
    told = dict(found)
    if "effect" in found:
        told |= {"effect": -found["effect"], "interval": sorted(-end for end in found["interval"])}
    if "checkpoints" in found:
        told["checkpoints"] = [_turned(each) | {"interval_resampled": None} for each in found["checkpoints"]]
    return told


def _ratio(comparison: Comparison, baseline: Arm, own: Arm, name: str) -> float | None:
    """Challenger over baseline, each the mean over the paired seeds; None where a run does not say."""
    sums = []
    for arm in (own, baseline):
        told = arm.amounts.get(name, {})
        if not comparison.seeds or any(str(seed) not in told for seed in comparison.seeds):
            return None
        sums.append(math.fsum(told[str(seed)] for seed in comparison.seeds))
    return sums[0] / sums[1] if sums[1] else None


def _head(path: Path, rule: Rule, baseline: Outcome) -> dict[str, Any]:
    measure = rule.measure
    return {
        "verdict version": VERSION,
        "study": path.stem,
        "question": f"the results in {path.name}",
        "size": None,
        "lock": None,
        "primary": {"name": measure.name, "unit": measure.unit, "better": measure.better},
        "margin": rule.margin,
        "alpha": rule.alpha,
        "look": None,
        "abandoned": [],
        "seeds": list(rule.seeds),
        "baseline": {"name": "baseline", "mean": baseline.mean, "audits": []},
        "price": None,
    }
