"""From the documents that every run was scored on to what they say of new text, and to what should be bought."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from headtohead.verdict.compare import Comparison, Seed
from headtohead.verdict.documents import (
    FEWEST_DOCUMENTS,
    FEWEST_RESAMPLED,
    checkpoints,
    crossed,
    effects_by_document,
    resampled,
)
from headtohead.verdict.folder import Run
from headtohead.verdict.statistics import FEWEST

BITS = 1 / math.log(2)
SCORED = {"loss": ("tokens", 1.0), "bits_per_byte": ("bytes", BITS), "bits_per_character": ("characters", BITS)}

Columns = Mapping[str, np.ndarray]


def new_text(
    comparison: Comparison, baseline: Mapping[Seed, Run], challenger: Mapping[Seed, Run]
) -> dict[str, Any] | None:
    """Both questions that documents answer: new seeds and new text, or, below three seeds, these checkpoints on new text.

    None where the measure is no mean over documents, or where the runs left none.
    """
    name = comparison.rule.measure.name
    if name not in SCORED or not comparison.seeds:
        return None
    pairs = [(_documents(baseline[seed]), _documents(challenger[seed])) for seed in comparison.seeds]
    whole = [(base, chal) for base, chal in pairs if base is not None and chal is not None]
    if len(whole) < len(pairs):
        return None
    unit, scale = SCORED[name]
    first = whole[0][0]
    if any(not _alike(first, columns, unit) for pair in whole for columns in pair):
        return {"reason": "the runs were not scored on the same documents"}
    scored = first[unit] > 0
    z = np.array([scale * (chal["nll"] - base["nll"])[scored] for base, chal in whole])
    return of_documents(comparison, z, first[unit][scored].astype(float))


def of_documents(comparison: Comparison, z: np.ndarray, n: np.ndarray) -> dict[str, Any]:
    """The answer of seeds × documents, z the differences of sums and n the units that each document holds."""
    answer = _of_checkpoints if len(z) < FEWEST else _of_both
    return answer(comparison, z, n)


def _documents(run: Run) -> Columns | None:
    path = run.folder / "documents.npz"
    if not path.exists():
        return None
    with np.load(path) as columns:
        return {name: columns[name] for name in columns.files}


def _alike(one: Columns, other: Columns, unit: str) -> bool:
    return all(np.array_equal(one[name], other[name]) for name in ("document", unit))


def _of_checkpoints(comparison: Comparison, z: np.ndarray, n: np.ndarray) -> dict[str, Any]:
    """Each pair of trained networks on its own: no seed stands for another."""
    alpha, told = comparison.rule.alpha, []
    for seed, differences in zip(comparison.seeds, z, strict=True):
        found = checkpoints(differences, n, alpha)
        again = list(resampled(differences, n, alpha)) if len(n) >= FEWEST_RESAMPLED else None
        told.append(
            {
                "seed": seed,
                "effect": found.effect,
                "interval": list(found.interval),
                "interval_resampled": again,
                "p": found.p,
            }
        )
    return {"question": "E_ckpt", "documents": len(n), "checkpoints": told}


def _of_both(comparison: Comparison, z: np.ndarray, n: np.ndarray) -> dict[str, Any]:
    if len(n) < FEWEST_DOCUMENTS:
        return {"reason": f"{len(n)} documents, of the {FEWEST_DOCUMENTS} that an answer on new text needs"}
    found = crossed(effects_by_document(z, n), comparison.rule.alpha)
    return {
        "question": "E_both",
        "documents": found.documents,
        "effect": found.effect,
        "interval": list(found.interval),
        "se": found.se,
        "df": found.df,
        "p": found.p,
        "variances": dict(zip(("seed", "document", "seed × document"), found.variances, strict=True)),
        "share_seed": found.share_seed,
        "advice": found.advice,
    }
