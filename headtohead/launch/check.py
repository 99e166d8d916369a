"""Audits before any seed is spent, and of a run that has ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headtohead.audit.arm import audit_arm, audit_network, audit_trained
from headtohead.files import read_json
from headtohead.inspection import load
from headtohead.plan import arms_of, load_study, with_options
from headtohead.request import Options, file_hash, plan_of
from headtohead.spec import Mistake
from headtohead.study import Recipe
from headtohead.text.cache import prepare


def audit_study(path: Path, options: Options) -> list[dict[str, Any]]:
    """Every arm of a study, before it is trained."""
    found = []
    study = with_options(load_study(path), options)
    for name, recipe in study.arms().items():
        tokens = prepare(recipe.text, recipe.tokenizer, recipe.split)
        baseline = None if recipe is study.baseline else study.baseline
        found += [{"arm": name, **finding._asdict()} for finding in audit_arm(recipe, tokens, baseline)]
    return found


def audit_run(folder: Path, study: Path | None, trusted: bool) -> list[dict[str, Any]]:
    """A finished run: its trained network anew, and what was found of its batches and its record when it ended."""
    run = load(folder, study, trusted)
    baseline = _baseline(folder, study, trusted)
    try:
        tokens = prepare(run.recipe.text, run.recipe.tokenizer, run.recipe.split)
        fresh = audit_trained(run.recipe, run.learner, tokens, baseline)
    except (Mistake, OSError):  # the text is elsewhere now; the network is here
        fresh = [audit_network(run.recipe, run.model, run.tokenizer.size, "after")]
    arm, done = folder.resolve().parent.name, {(finding.id, finding.when) for finding in fresh}
    path = folder / "audits.json"
    kept = [one for one in (read_json(path, list) if path.is_file() else []) if (one["id"], one["when"]) not in done]
    return [{"arm": arm, **one} for one in [*(finding._asdict() for finding in fresh), *kept]]


def _baseline(folder: Path, study: Path | None, trusted: bool) -> Recipe | None:
    """The recipe of the study's baseline, where this run is another arm of it."""
    out = folder.resolve().parent.parent.parent
    plan = plan_of(out)
    if plan is None or folder.resolve().parent.name == plan["baseline"]:
        return None
    named = plan["code"] if trusted else (file_hash(study) if study else None)
    return arms_of(out, plan, named)[plan["baseline"]]
