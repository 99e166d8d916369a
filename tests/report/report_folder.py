"""Judged studies as they lie on disk, written by hand: what a page is drawn from."""

import json
from pathlib import Path
from typing import Any

from headtohead.request import lock_of
from headtohead.verdict.judge import judge_and_write

TEXT = {
    "name": "a-text",
    "note": "pages of a book, free for all",
    "hash": "feed",
    "vocabulary": 1024,
    "train": 10_000,
    "validation": 2_000,
}
BASE = [3.412, 3.405, 3.421, 3.398, 3.417]
CHAL = [3.401, 3.398, 3.407, 3.391, 3.404]
STEPS = 8


def study(arms: list[str], seeds: int) -> dict[str, Any]:
    """study.json of a study whose challengers change the head."""
    others = arms[1:]
    return {
        "study": "smaller",
        "question": "Does a smaller head\nlose anything?\n\nIt was said to lose nothing.",
        "size": "demo",
        "baseline": "baseline",
        "primary": {"name": "loss", "unit": "nats per token", "better": "lower"},
        "margin": None,
        "alpha": 0.05,
        "seeds": list(range(seeds)),
        "claims": [{"claim": "NoWorse", "measure": "loss", "challenger": None}],
        "arms": {arm: {} for arm in arms},
        "changed": {arm: {"model.head": ["Big(beta=1.0)", f"Small(size={n})"]} for n, arm in enumerate(others)},
        "texts": {arm: TEXT for arm in arms},
        "shared": {arm: {"parameters": 1000 - 200 * (arm in others), "shared": 800} for arm in arms},
        "training": {arm: 15_000 for arm in arms},
        "operations": {arm: 6.5e11 for arm in arms},
        "price": {"dollars_per_hour": 1.212, "source": "a price list", "date": "2026-11-01"},
        "code": "c0de",
        "version": "0.1.0",
        "request": {"study": "smaller", "builtin": True, "size": "demo", "seeds": seeds, "steps": 40, "settings": []},
    }


def audit(result: str = "pass", **more: Any) -> dict[str, Any]:
    sentence = {"pass": "Later tokens leave earlier predictions alone.", "fail": "It sees the future."}
    found = {"id": "A-CAUSAL", "severity": "fatal", "when": "after", "result": result, "evidence": "moved by 0.374"}
    return found | {"sentence": sentence.get(result, "Not tried.")} | more


def write_run(folder: Path, seed: int, loss: float, small: bool, **more: Any) -> None:
    """One run. `more` replaces what status.json, measures.json, audits.json or the batches would say."""
    folder.mkdir(parents=True)
    status = {"state": "finished", "step": STEPS, "steps": STEPS, "seconds": 100.0 + 50 * small, "peak_memory": 2**29}
    measures = {
        "loss": loss,
        "perplexity": 2.718281828459045**loss,
        "scored_tokens": 2000,
        "unigram": 5.5,
        "evaluation": "text-1",
        "parameters": 1000 - 200 * small,
        "flops": 2e9,
        "tokens": 15_000,
    }
    batches = more.get("batches", [f"{seed}-{step}" for step in range(STEPS)])
    steps = [
        {"step": step, "loss": 7.0 - 0.4 * step + 0.01 * seed - 0.02 * small, "batch": mark, "seconds": 1.0}
        for step, mark in enumerate(batches)
    ]
    for name, value in (
        ("status", status | {"reason": None} | more.get("status", {})),
        ("measures", measures | more.get("measures", {})),
        ("audits", more.get("audits", [audit(when=when) for when in ("before", "after")])),
        ("environment", {"python": "3.11.7", "torch": "2.13.0", "route": {}} | more.get("environment", {})),
    ):
        (folder / f"{name}.json").write_text(json.dumps(value))
    (folder / "steps.jsonl").write_text("".join(json.dumps(step) + "\n" for step in steps))


def fail_run(folder: Path, reason: str) -> None:
    """Make a run one that failed at its third step, with a loss that is no number."""
    state = {"state": "failed", "step": 3, "steps": STEPS, "seconds": 30.0, "peak_memory": None, "reason": reason}
    (folder / "status.json").write_text(json.dumps(state))
    for name in ("measures.json", "audits.json"):
        (folder / name).unlink()
    lines = (folder / "steps.jsonl").read_text().splitlines()[:2]
    broken = {"step": 2, "loss": float("nan"), "batch": "0-2", "seconds": 1.0}
    (folder / "steps.jsonl").write_text("\n".join([*lines, json.dumps(broken)]) + "\n")


def write_study(out: Path, losses: dict[str, list[float | None]], **changes: Any) -> Path:
    """A study that is not judged yet: the losses of every arm by seed; None leaves a run out."""
    out.mkdir(parents=True)
    plan = study(list(losses), len(losses["baseline"])) | changes
    plan = {"lock": lock_of(plan)} | plan
    (out / "study.lock").write_text(json.dumps({"lock": plan["lock"]}))
    (out / "study.json").write_text(json.dumps(plan))
    route = {"device": "cpu", "threads": 1, "dtype": "float32", "compiled": False, "why": "no C++ compiler on PATH"}
    (out / "route.json").write_text(json.dumps(route))
    for arm, values in losses.items():
        for seed, loss in enumerate(values):
            if loss is not None:
                write_run(out / "arms" / arm / f"seed{seed}", seed, loss, arm != "baseline")
    return out


def judged(out: Path) -> Path:
    judge_and_write(out)
    return out
