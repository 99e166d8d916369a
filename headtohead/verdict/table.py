"""The verdict on results that were made elsewhere: a table of arm, seed and value, one row a run."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headtohead.spec import Mistake
from headtohead.verdict import words
from headtohead.verdict.bill import COMPARED
from headtohead.verdict.companions import companions
from headtohead.verdict.compare import Comparison, Outcome, Rule, card, compare, plain, whereabouts
from headtohead.verdict.judge import VERSION, adjust, quoted
from headtohead.verdict.margins import margin_for, measure_from
from headtohead.verdict.words import Verdict, decide

COLUMNS = ("arm", "seed", "value")
ABOUT = ("measure", "unit", "better", "margin")  # optional, and the same in every row
ALPHA = 0.05
LARGEST = 1e100  # squares of it are still numbers

Row = dict[str, str]


def judge_table(path: Path) -> dict[str, Any]:
    """The verdict on a results.csv, in the words of any other; nothing is known of how its runs were made.

    The baseline is the arm called "baseline". Lower is better and the value is a loss, unless columns `measure`, `unit`,
    `better` and `margin` say otherwise. An empty or non-finite value is a failed run.
    """
    rows = _rows(Path(path))
    arms = _outcomes(rows, Path(path))
    baseline = "baseline"
    if baseline not in arms:
        names = ", ".join(map(repr, arms))
        raise Mistake(
            f"{path} has no arm called 'baseline', only {names}; rename the one that the others are compared with"
        )
    rule = _rule(rows, arms, baseline, Path(path))
    compared = {name: compare(rule, arms[baseline], arm) for name, arm in arms.items() if name != baseline}
    adjusted, stated = adjust(compared), bool(rows[0].get("margin"))
    beside = companions(compared, [])
    entries = {name: _entry(each, adjusted[name], stated) | beside[name] for name, each in compared.items()}
    return quoted(plain(_head(Path(path), rule, baseline, arms[baseline]) | {"arms": entries}))


def _rows(path: Path) -> list[Row]:
    if not path.is_file():
        raise Mistake(f"{path} is no file; give a table with the columns {','.join(COLUMNS)}")
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            _check_names(reader, path)
            rows = [
                {(key or "").strip(): (value or "").strip() for key, value in row.items()}
                for row in _flat(reader, path)
            ]
    except (UnicodeDecodeError, csv.Error) as error:
        raise Mistake(f"{path} cannot be read as a table ({error}); save it as UTF-8, comma separated") from None
    absent = [name for name in COLUMNS if rows and name not in rows[0]]
    if absent or not rows:
        raise Mistake(f"{path} has no {', '.join(absent) or 'rows'}; its first line must be {','.join(COLUMNS)}")
    return rows


def _check_names(reader: csv.DictReader[str], path: Path) -> None:
    names = [name.strip() for name in reader.fieldnames or []]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise Mistake(f"{path} names the column {twice[0]!r} twice; keep one of them")
    if len(names) == 1 and ";" in names[0]:
        raise Mistake(f"{path} is separated by semicolons; save it with commas")


def _flat(reader: csv.DictReader[str], path: Path) -> Sequence[dict[str, str]]:
    rows = list(reader)
    for number, row in enumerate(rows, 2):
        if None in row:
            raise Mistake(
                f"{path} line {number} has more cells than the first line names; add the columns' names there"
            )
    return rows


def _outcomes(rows: Sequence[Row], path: Path) -> dict[str, Outcome]:
    arms: dict[str, Outcome] = {}
    for number, row in enumerate(rows, 2):
        if not (row["arm"] and row["seed"]):
            raise Mistake(f"{path} line {number} has no {'seed' if row['arm'] else 'arm'}; name it")
        arm = arms.setdefault(row["arm"], Outcome({}, {}))
        if row["seed"] in arm.values or row["seed"] in arm.failed:
            raise Mistake(f"{path} line {number} repeats arm {row['arm']}, seed {row['seed']}; keep one row a run")
        value = _value(row["value"], path, number)
        if math.isfinite(value):
            arm.values[row["seed"]] = value
        else:
            arm.failed[row["seed"]] = f"the value is {row['value'] or 'empty'}"
    if len(arms) < 2:
        raise Mistake(f"{path} has one arm, {next(iter(arms))!r}; add the rows of the arm it is compared with")
    return arms


def _value(text: str, path: Path, number: int) -> float:
    try:
        value = float(text.replace("_", "?")) if text else math.nan  # Python would read 1_0 as 10
    except ValueError:
        raise Mistake(f"{path} line {number}: value {text!r} is no number; leave it empty if the run failed") from None
    if LARGEST < abs(value) < math.inf:
        raise Mistake(f"{path} line {number}: {text} is too large to compute with; change the unit")
    return value


def _rule(rows: Sequence[Row], arms: Mapping[str, Outcome], baseline: str, path: Path) -> Rule:
    about = {name: _same(rows, name, path) for name in ABOUT}
    unit = about["unit"] or ("" if about["measure"] else "unit not stated")
    measure = measure_from({"name": about["measure"] or "loss", "unit": unit, "better": about["better"]})
    stated = _value(about["margin"], path, 2) if about["margin"] else None
    seeds = tuple(dict.fromkeys(row["seed"] for row in rows))
    return Rule(measure, margin_for(stated, measure, arms[baseline].mean), ALPHA, seeds, len(arms) - 1)


def _same(rows: Sequence[Row], name: str, path: Path) -> str | None:
    found = {row.get(name) or None for row in rows}
    if len(found) > 1:
        raise Mistake(f"{path} gives several values of {name}; write one table for each and judge them apart")
    return found.pop()


def _entry(comparison: Comparison, p_adjusted: float, stated: bool) -> dict[str, Any]:
    failed = bool(comparison.baseline.failed or comparison.challenger.failed)
    found = decide(comparison.pair, comparison.rule.margin, p_adjusted, unstable=failed)
    verdict = Verdict(found.word, (*found.qualifiers, *words.caveats(comparison.pair), words.UNAUDITED))
    unknown: dict[str, Any] = {
        "changed": [],
        "changes": {},
        "same_data": None,
        "different_data": {},
        "audits": [],
        "claims": [],
        "new_text": None,
        "margin_stated": stated,
    }
    unknown |= {"ratios": dict.fromkeys(COMPARED), "price": None, "command": None}
    return card(comparison, verdict, p_adjusted) | unknown | whereabouts(comparison)


def _head(path: Path, rule: Rule, baseline: str, outcome: Outcome) -> dict[str, Any]:
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
        "baseline": {"name": baseline, "mean": outcome.mean, "audits": []},
        "price": None,
    }
