"""Runs in a folder as `h2h run` leaves them, trained and measured by the lab's own code in this process.

Left out is what a run does before its first step: the audits of its arm, which other cases are about and which take seconds.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from headtohead import Recipe
from headtohead.audit.arm import audit_trained
from headtohead.audit.record import Scored, audit_record, read_steps
from headtohead.run import Run, Terms
from headtohead.spec import diff, short
from headtohead.train import Route
from headtohead.verdict.judge import judge

SEEDS = 3


def finished(folder: Path, arm: Recipe, seed: int, primary: str = "loss") -> tuple[Run, Scored]:
    """One run, with all that is measured and audited at its end."""
    folder.mkdir(parents=True)
    run = Run(folder, arm, seed, Route(), Terms(primary=primary))
    failure, steps, seconds = run.train()
    assert failure is None, failure
    scored = run.measure(run.learner.eval())
    findings = audit_trained(arm, run.learner, run.tokens) + audit_record(arm, run.tokens, scored, read_steps(folder))
    (folder / "audits.json").write_text(json.dumps([finding._asdict() for finding in findings]))
    run.finish("finished", steps, seconds, 0, None)
    return run, scored


def judged(out: Path, arms: dict[str, Recipe], primary: str = "loss") -> dict[str, Any]:
    """The verdict on the one challenger of a study of three seeds."""
    base = arms["baseline"]
    for name, arm in arms.items():
        for seed in range(SEEDS):
            finished(out / "arms" / name / f"seed{seed}", arm, seed, primary)
    changed = {
        name: {address: [short(one), short(other)] for address, (one, other) in diff(base, arm).items()}
        for name, arm in arms.items()
        if name != "baseline"
    }
    study = {
        "study": out.name,
        "question": "Is the other one better?",
        "size": "demo",
        "baseline": "baseline",
        "primary": {"name": primary, "unit": base.objective.unit, "better": "lower"},
        "margin": None,
        "alpha": 0.05,
        "seeds": list(range(SEEDS)),
        "claims": [],
        "arms": {name: {} for name in arms},
        "changed": changed,
        "lock": "",
    }
    (out / "study.json").write_text(json.dumps(study))
    (entry,) = judge(out)["arms"].values()
    return entry
