"""What a case of the museum is, and what a case can look with: the lab's own audits and verdicts, nothing of the museum's.

A case is a module of `cases/`. Its docstring tells who claimed what, what was wrong and what catches it; `PAIRS` has the wrong
thing and an honest neighbour that differs in one thing; `CAUGHT_BY` names what must catch the wrong one, and what its evidence
must say; `look(thing, folder)` trains or measures, and returns what the lab saw.
"""

from __future__ import annotations

import csv
import importlib
import pkgutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import torch

from headtohead import Everyone, MaskedLM, MultiHead, Recipe, Transformer, at
from headtohead.audit import Finding, noise, prefix, target
from headtohead.audit.arm import audit_neighbours, audit_network, audit_start, packs
from headtohead.audit.synthetic import noise as letters
from headtohead.audit.synthetic import small
from headtohead.verdict.table import judge_table

CAUSAL = Recipe(model=Transformer(layers=2, heads=4, width=64), length=32, batch=16)
ENCODER = at(CAUSAL, {"model.attention": MultiHead(visibility=Everyone()), "objective": MaskedLM()})
STEPS = 60  # on noise; most of what cheats is found sooner, and what is honest stays above its entropy


class Seen(NamedTuple):
    """What one component of the lab said of a thing."""

    by: str  # the id of an audit, or a word of the verdict
    caught: bool
    evidence: str


def cases() -> dict[str, ModuleType]:
    """Every case by name."""
    package = importlib.import_module("cases")
    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    return {name: importlib.import_module(f"cases.{name}") for name in names}


def visit(case: ModuleType, thing: Any) -> list[Seen]:
    """What a case sees of a thing, the place of its files left out."""
    with tempfile.TemporaryDirectory() as place:
        seen = case.look(thing, Path(place))
    return [each._replace(evidence=each.evidence.replace(f"{place}/", "")) for each in seen]


def by_audits(findings: Iterable[Finding]) -> list[Seen]:
    return [Seen(each.id, each.result == "fail", each.evidence) for each in findings]


def by_network(recipe: Recipe, steps: int = STEPS) -> list[Seen]:
    """All that is asked of an arm: at its start, redrawn and trained on noise, of its batches, and of its honest loss."""
    copy, tokens = small(recipe), letters(noise.TRAINING, noise.FRESH)
    assert copy is not None
    size = tokens.vocabulary.size
    found = [*audit_start(copy, size, 0), audit_neighbours(copy, size, packs(copy, tokens)), target.audit(recipe)]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        learner = copy.learner(size, 0)
        found.append(noise.finding(noise.listen(learner, copy, tokens, steps), "before"))
    found += [audit_network(copy, learner.model, size, "after"), prefix.audit(learner, copy, tokens)]
    return by_audits(found)


def by_table(rows: list[dict[str, Any]], folder: Path) -> dict[str, Any]:
    """The verdict of `h2h verdict results.csv` on the only challenger of a table."""
    path = folder / "results.csv"
    with open(path, "w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, fieldnames=list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    (entry,) = judge_table(path)["arms"].values()
    return entry


def by_verdict(entry: dict[str, Any], word: str) -> Seen:
    """Whether a verdict, with what qualifies it, says so."""
    return Seen(word, word in (entry["verdict"], *entry["qualifiers"]), entry["sentence"])
