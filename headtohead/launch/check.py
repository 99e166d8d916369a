"""Audits before any seed is spent, and of a run that has ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headtohead.inspection import load
from headtohead.plan import load_study, with_options
from headtohead.request import Options
from headtohead.run import audit_network, audit_start
from headtohead.text.cache import prepare


def audit_study(path: Path, options: Options) -> list[dict[str, Any]]:
    """Every arm of a study, as initialized and with every parameter redrawn."""
    found = []
    for name, recipe in with_options(load_study(path), options).arms().items():
        vocabulary = prepare(recipe.text, recipe.tokenizer, recipe.split).vocabulary.size
        found += [{"arm": name, **finding._asdict()} for finding in audit_start(recipe, vocabulary, 0)]
    return found


def audit_run(folder: Path, study: Path | None, trusted: bool) -> list[dict[str, Any]]:
    """A trained network."""
    run = load(folder, study, trusted)
    finding = audit_network(run.recipe, run.model, run.tokenizer.size, "after")
    return [{"arm": folder.parent.name, **finding._asdict()}]
