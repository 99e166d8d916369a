"""Folders as a study leaves them, written by hand."""

import json
from pathlib import Path
from typing import Any

from headtohead.request import lock_of

STUDY: dict[str, Any] = {
    "study": "smaller",
    "question": "Does a smaller head lose anything?",
    "size": "demo",
    "baseline": "baseline",
    "primary": {"name": "loss", "unit": "nats per token", "better": "lower"},
    "margin": None,
    "alpha": 0.05,
    "seeds": [0, 1, 2, 3, 4],
    "claims": [],
    "arms": {"baseline": {}, "small": {}},
    "changed": {"small": {"model.head": [{"part": "x:Big", "beta": 1.0}, {"part": "x:Small"}]}},
    "lock": "ab12",
    "price": {"dollars_per_hour": 1.212, "source": "a price list", "date": "2026-11-01"},
}
BASE = [3.412, 3.405, 3.421, 3.398, 3.417]
CHAL = [3.401, 3.398, 3.407, 3.391, 3.404]


def audit(name: str = "A-CAUSAL", result: str = "pass", severity: str = "fatal", evidence: str = "0") -> dict[str, Any]:
    return {
        "id": name,
        "severity": severity,
        "when": "after",
        "result": result,
        "evidence": evidence,
        "sentence": f"{name} {result}",
    }


def write_run(out: Path, arm: str, seed: int, loss: Any, **more: Any) -> Path:
    """One run's folder. `more` replaces what status.json, measures.json, audits.json or the batches would say."""
    folder = out / "arms" / arm / f"seed{seed}"
    folder.mkdir(parents=True)
    small = arm != "baseline"
    status = {
        "state": "finished",
        "step": 3,
        "steps": 3,
        "seconds": 100.0 + 50 * small,
        "peak_memory": 1000,
        "reason": None,
    }
    measures = {"loss": loss, "parameters": 800 if small else 1000, "flops": 2e9, "evaluation": "text-1"}
    batches = more.get("batches", [f"{seed}-{step}" for step in range(3)])
    (folder / "status.json").write_text(json.dumps(status | more.get("status", {})))
    if loss is not None or "measures" in more:
        (folder / "measures.json").write_text(json.dumps(measures | more.get("measures", {})))
    (folder / "audits.json").write_text(json.dumps(more.get("audits", [audit()])))
    steps = [{"step": step, "loss": 3.0, "batch": hashed, "seconds": 1.0} for step, hashed in enumerate(batches)]
    (folder / "steps.jsonl").write_text("".join(json.dumps(step) + "\n" for step in steps))
    return folder


def write_study(out: Path, losses: dict[str, list[Any]], **changes: Any) -> Path:
    """A whole study: the losses of each arm by seed; None leaves a run out."""
    out.mkdir(parents=True, exist_ok=True)
    study = STUDY | {"arms": {arm: {} for arm in losses}, "seeds": list(range(len(losses["baseline"])))} | changes
    study["lock"] = changes.get("lock") or lock_of(study)
    (out / "study.lock").write_text(json.dumps({"lock": study["lock"]}))
    (out / "study.json").write_text(json.dumps(study))
    for arm, values in losses.items():
        for seed, loss in enumerate(values):
            if loss is not None:
                write_run(out, arm, seed, loss)
    return out
