"""The rows of a table of results: one of each run, metric and document, whatever wrote the table."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Sequence
from pathlib import Path

from headtohead.spec import Mistake

COLUMNS = ("arm", "seed", "value")
LINE = "line of the table"  # kept with each row, so that a mistake can be told where it is
METRIC = ("metric", "measure")  # either names what the value is of
LARGEST = 1e100  # squares of it are still numbers
RUN = re.compile(r"(?P<arm>.+?)[/_.\- ]*(?:seed)?[=_\-]?(?P<seed>\d+)")  # "softmax1/seed0", "softmax1-0"

Row = dict[str, str]


def read_rows(path: Path) -> list[Row]:
    """The rows with the columns arm, seed, metric and value, and all others that the table has."""
    rows = _cells(path)
    if rows and "run" in rows[0] and not {"arm", "seed"} & rows[0].keys():
        rows = [_apart(row, path) | row for row in rows]
    absent = [name for name in COLUMNS if rows and name not in rows[0]]
    if absent or not rows:
        raise Mistake(f"{path} has no {', '.join(absent) or 'rows'}; its first line must be {','.join(COLUMNS)}")
    rows = [row | {"metric": next((row[name] for name in METRIC if row.get(name)), "")} for row in rows]
    return _last(rows, path) if "step" in rows[0] else rows


def _cells(path: Path) -> list[Row]:
    if not path.is_file():
        raise Mistake(f"{path} is no file; give a table with the columns {','.join(COLUMNS)}")
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            _check_names(reader, path)
            return [
                {(key or "").strip(): (value or "").strip() for key, value in row.items()} | {LINE: str(number)}
                for number, row in enumerate(_flat(reader, path), 2)
            ]
    except (UnicodeDecodeError, csv.Error) as error:
        raise Mistake(f"{path} cannot be read as a table ({error}); save it as UTF-8, comma separated") from None


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


def _apart(row: Row, path: Path) -> Row:
    """A run's name taken apart into arm and seed."""
    found = RUN.fullmatch(row["run"])
    if not found:
        raise Mistake(f"{path} line {row[LINE]}: run {row['run']!r} does not end in its seed, as in baseline/seed0")
    return found.groupdict()


def _last(rows: Sequence[Row], path: Path) -> list[Row]:
    """Of several steps of a run the last: a log holds them all."""
    latest: dict[tuple[str, ...], tuple[float, Row]] = {}
    for row in rows:
        key = tuple(row.get(name, "") for name in ("arm", "seed", "metric", "document"))
        step = number_of(row, "step", path)
        if key not in latest or not step <= latest[key][0]:
            latest[key] = (step, row)
    return [row for _, row in latest.values()]


def check_ends(rows: Sequence[Row], path: Path) -> None:
    """Refuse a log whose runs ended at different steps: what they came to is not comparable, or some of them failed."""
    ends: dict[tuple[str, str], float] = {}
    for row in rows if rows and "step" in rows[0] else []:
        run = (row["arm"], row["seed"])
        ends[run] = max(ends.get(run, -math.inf), number_of(row, "step", path))
    longest, shortest = max(ends, key=ends.__getitem__, default=None), min(ends, key=ends.__getitem__, default=None)
    if longest and shortest and ends[longest] != ends[shortest]:
        raise Mistake(
            f"{path}: arm {shortest[0]}, seed {shortest[1]} ends at step {ends[shortest]:g} and arm {longest[0]}, seed "
            f"{longest[1]} at {ends[longest]:g}; leave the value of a failed run empty, or take the column step out"
        )


def number_of(row: Row, name: str, path: Path) -> float:
    """A cell as a number; empty is NaN."""
    text, place = row[name], f"{path} line {row[LINE]}"
    try:
        value = float(text.replace("_", "?")) if text else math.nan  # Python would read 1_0 as 10
    except ValueError:
        raise Mistake(f"{place}: {name} {text!r} is no number; leave it empty if the run failed") from None
    if LARGEST < abs(value) < math.inf:
        raise Mistake(f"{place}: {text} is too large to compute with; change the unit")
    return value


def same(rows: Sequence[Row], name: str, path: Path) -> str | None:
    """What a column says in every row."""
    found = {row.get(name) or None for row in rows}
    if len(found) > 1:
        raise Mistake(f"{path} gives several values of {name}; write one table for each and judge them apart")
    return found.pop()


def known_as(metric: str) -> str:
    """The measure that a metric is: "val/loss" and "eval_accuracy" end in the name of one."""
    last = re.split(r"[/_.\s]+", metric)[-1].lower()
    return last if last in ("loss", "accuracy", "perplexity") else metric


def of_metric(rows: Sequence[Row], wanted: str | None, path: Path) -> list[Row]:
    """The rows of one metric: the one that was asked for, the loss, or the only one."""
    names = list(dict.fromkeys(row["metric"] for row in rows))
    chosen = wanted or ("loss" if "loss" in names else names[0])
    if wanted is None and len(names) > 1 and "loss" not in names:
        raise Mistake(f"{path} has the metrics {', '.join(names)}; say which the verdict rests on: --metric {names[0]}")
    if chosen not in names and not (wanted == "loss" and names == [""]):
        raise Mistake(f"--metric {wanted}: {path} has {', '.join(filter(None, names)) or 'no column metric'}")
    return [row for row in rows if row["metric"] == chosen or names == [""]]
