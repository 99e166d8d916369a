"""Study 5 trained thirty arms and chose the best: the smallest of thirty equal arms lies two standard deviations below them.

Here thirty arms differ from the baseline in nothing but the draw of their start, and the best of them is shown alone in a
folder of its own. The ledger remembers the other twenty-nine, and Holm's p is thirty times the plain one. The neighbour is
the same arm with the same runs, where no other was ever registered.
"""

import json
import tempfile
from functools import cache
from pathlib import Path

import torch
from exhibit import Seen
from trained import losses, recipe

from headtohead import Initialization, at
from headtohead.verdict.judge import judge
from headtohead.verdict.ledger import register

ARMS, SEEDS = 30, 3
PAIRS = {"the best of thirty": (ARMS, 1)}
CAUGHT_BY = {"HOLM": r"p = 0\.0\d+, p of Holm 0\.[1-9]|p of Holm 1\.0"}


class Otherwise(Initialization):
    """N(0, .02²) like the baseline's, drawn `turn` times: another draw, and nothing else."""

    turn: int

    def __call__(self, tensor, role, generator):
        for _ in range(1 + self.turn):
            tensor.normal_(0.0, 0.02, generator=generator)


def look(registered, folder):
    base_losses, found = thirty()
    best = min(found, key=lambda name: ratio(base_losses, found[name]))
    names = list(found) if registered == ARMS else [best]
    out = folder / "best"
    out.mkdir()
    register(out, plan(names))
    write(out, plan([best]), {"baseline": base_losses, best: found[best]})
    (entry,) = judge(out)["arms"].values()
    told = f"p = {entry['p']:.4f}, p of Holm {entry['p_adjusted']:.3f}: {entry['verdict']}"
    return [Seen("HOLM", entry["p"] < 0.05 <= entry["p_adjusted"], told)]


@cache
def thirty():
    """The held-out losses of the baseline and of every arm, trained once for the case and its neighbour."""
    with tempfile.TemporaryDirectory() as place:
        base = at(recipe(Path(place)), {"steps": 6, "batch": 4, "length": 16})
        arms = {f"arm{turn}": at(base, {"model.initialization": Otherwise(turn=turn)}) for turn in range(1, ARMS + 1)}
        return losses(base, SEEDS), {name: losses(arm, SEEDS) for name, arm in arms.items()}


def ratio(base, own):
    """t of the paired differences."""
    d = torch.tensor(own, dtype=torch.float64) - torch.tensor(base, dtype=torch.float64)
    return float(d.mean() / d.std() * SEEDS**0.5)


def plan(names):
    """study.json of these arms."""
    return {
        "study": "thirty",
        "question": "Which start is the best?",
        "size": "demo",
        "baseline": "baseline",
        "primary": {"name": "loss", "unit": "nats per token", "better": "lower"},
        "margin": None,
        "alpha": 0.05,
        "seeds": list(range(SEEDS)),
        "claims": [],
        "arms": {"baseline": {}, **{name: {} for name in names}},
        "changed": {name: {"model.initialization": ["Normal()", name]} for name in names},
        "lock": "museum",
    }


def write(out, study, values):
    """The folder of runs that were trained in this process."""
    (out / "study.json").write_text(json.dumps(study))
    for arm, row in values.items():
        for seed, loss in enumerate(row):
            run = out / "arms" / arm / f"seed{seed}"
            run.mkdir(parents=True)
            status = {"state": "finished", "step": 6, "steps": 6, "seconds": 1.0, "reason": None}
            (run / "status.json").write_text(json.dumps(status))
            (run / "measures.json").write_text(json.dumps({"loss": loss, "evaluation": "one text"}))
            (run / "audits.json").write_text("[]")
            (run / "steps.jsonl").write_text("")
