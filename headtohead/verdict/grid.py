"""A grid of two changes with one number a cell: what each does on average, and which of its levels can be told apart.

One run a cell cannot tell what both changes do together from noise: what is left over rows and columns is called the error.
If they do something together, the error is too large and the averages describe no cell; one test looks for the usual form.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import fdtrc

from headtohead.spec import Mistake
from headtohead.verdict.claims import Outcomes
from headtohead.verdict.compare import Outcome, Rule
from headtohead.verdict.documents import mean_squares

NO_REPLICATION = "no replication"
INTERACTION = "interaction"


@dataclass(frozen=True)
class Factor:
    """One of the two changes, averaged over the other."""

    levels: tuple[str, ...]
    means: tuple[float, ...]
    f: float
    df: int
    p: float
    apart: float  # Tukey's honestly significant difference: means that differ by less cannot be told apart

    def told_apart(self) -> list[tuple[str, str]]:
        """The pairs of levels whose means differ by more, the smaller mean first."""
        ranked = sorted(zip(self.means, self.levels, strict=True))
        pairs = [(one, other) for place, one in enumerate(ranked) for other in ranked[place + 1 :]]
        return [(low[1], high[1]) for low, high in pairs if high[0] - low[0] > self.apart]


@dataclass(frozen=True)
class Grid:
    """The analysis of variance of a grid."""

    rows: Factor
    columns: Factor
    sd: float  # of what neither explains
    df: int
    p_interaction: float  # Tukey's test for one form of it: products of the two effects
    caveats: tuple[str, ...]


def grid(values: np.ndarray, rows: Sequence[str], columns: Sequence[str], alpha: float = 0.05) -> Grid:
    """Two-way analysis of variance without replication: x = mean + row + column + error.

    F = MS_factor / MS_error; levels are apart by q(levels, df) √(MS_error / cells in a mean). Fisher (1925), "Statistical
    methods for research workers"; Tukey (1949), "One degree of freedom for non-additivity", and his studentized range.
    """
    x = np.asarray(values, dtype=float)
    if x.shape != (len(rows), len(columns)) or min(x.shape) < 2 or not np.isfinite(x).all():
        raise Mistake(f"a grid of {len(rows)} × {len(columns)} needs a number in every cell, and two levels of either")
    df = (len(rows) - 1) * (len(columns) - 1)
    square_rows, square_columns, error = mean_squares(x)
    if not error > 0:
        raise Mistake("rows and columns explain every cell exactly, so there is no error to judge them by")
    p = _additive(x, error * df, df)
    return Grid(
        rows=_factor(rows, x.mean(axis=1), len(columns), (square_rows, error, df), alpha),
        columns=_factor(columns, x.mean(axis=0), len(rows), (square_columns, error, df), alpha),
        sd=float(np.sqrt(error)),
        df=df,
        p_interaction=p,
        caveats=(NO_REPLICATION, *([INTERACTION] if p < alpha else [])),
    )


def _factor(
    levels: Sequence[str], means: np.ndarray, cells: int, squares: tuple[float, float, int], alpha: float
) -> Factor:
    from scipy.stats import studentized_range

    own, error, df = squares
    f = own / error
    range_ = float(studentized_range.ppf(1 - alpha, len(levels), df))
    apart = range_ * float(np.sqrt(error / cells))
    return Factor(tuple(levels), tuple(means.tolist()), f, len(levels) - 1, float(fdtrc(len(levels) - 1, df, f)), apart)


def _additive(x: np.ndarray, left: float, df: int) -> float:
    """p of Tukey's one degree of freedom: (Σ x a b)² / Σa² Σb² of the sum of squares that is left; 1 where none can be."""
    a, b = x.mean(axis=1) - x.mean(), x.mean(axis=0) - x.mean()
    below = float((a @ a) * (b @ b))
    if df < 2 or not below:
        return 1.0
    product = float(a @ x @ b) ** 2 / below
    rest = left - product
    return float(fdtrc(1, df - 1, product * (df - 1) / rest)) if rest > 0 else 0.0


# ---- of a study ----------------------------------------------------------------------------------------------------


def grid_of(study: Mapping[str, Any], rule: Rule, outcomes: Outcomes) -> dict[str, Any] | None:
    """The analysis of a study whose arms form a grid, over each cell's mean; None where the study names no grid."""
    declared = study.get("grid")
    if not declared:
        return None
    cells = {name: tuple(place) for name, place in declared["cells"].items()}
    rows, columns = (
        list(dict.fromkeys(sorted((place[side] for place in cells.values()), key=_rank))) for side in (0, 1)
    )
    values = np.full((len(rows), len(columns)), np.nan)
    for name, (row, column) in cells.items():
        own = outcomes(name, rule.measure)[1] if name != study["baseline"] else _baseline(outcomes, study, rule)
        if len(own.values) == len(rule.seeds):  # a cell that lost a seed would be a mean of others
            values[rows.index(row), columns.index(column)] = np.mean(list(own.values.values()))
    told = {"addresses": declared["addresses"], "rows": rows, "columns": columns, "means": values.tolist()}
    try:
        found = grid(values, rows, columns, rule.alpha)
    except Mistake as mistake:
        return told | {"reason": str(mistake)}
    factors = {
        address: _told(each) for address, each in zip(declared["addresses"], (found.rows, found.columns), strict=True)
    }
    rest = {"sd": found.sd, "df": found.df, "p_interaction": found.p_interaction, "caveats": list(found.caveats)}
    return told | {"factors": factors} | rest


def _baseline(outcomes: Outcomes, study: Mapping[str, Any], rule: Rule) -> Outcome:
    """The baseline's own cell."""
    other = next(name for name in study["arms"] if name != study["baseline"])
    return outcomes(other, rule.measure)[0]


def _rank(level: str) -> tuple[float, str]:
    """Numbers by their size, words after them."""
    try:
        return float(level), ""
    except ValueError:
        return math.inf, level


def _told(factor: Factor) -> dict[str, Any]:
    plain = {name: getattr(factor, name) for name in ("f", "df", "p", "apart")}
    return plain | {"means": dict(zip(factor.levels, factor.means, strict=True)), "told_apart": factor.told_apart()}
