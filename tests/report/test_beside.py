"""What a card says of new text, other spreads, looks and abandoned challengers."""

import json

import numpy as np
from report_folder import BASE, CHAL, fail_run, write_study

from headtohead.report.terminal import verdict_table
from headtohead.verdict.judge import judge
from headtohead.verdict.ledger import register


def told(out):
    return " ".join(verdict_table(judge(out)).split())


def with_documents(out, count, seeds=5):
    draw = np.random.default_rng(0)
    tokens = np.full(count, 50.0)
    for seed in range(seeds):
        shared = 50 * draw.normal(3.4, 0.1, size=count)
        for arm, shift in (("baseline", 0.0), ("small", -0.01)):
            nll = shared + 50 * (shift + draw.normal(0, 0.02, size=count))
            columns = {"document": np.arange(count), "nll": nll, "tokens": tokens}
            np.savez(out / f"arms/{arm}/seed{seed}/documents.npz", **columns)
    return out


def test_new_text(tmp_path):
    arms = {"baseline": BASE, "small": CHAL}
    said = told(with_documents(write_study(tmp_path / "a", arms), 60))
    assert "over new seeds and new text: −0.0" in said and "(60 documents, p " in said
    assert "of the variance on this text is the seeds' own: to narrow it, evaluate on more text" in said
    assert "29 documents, of the 30" in told(with_documents(write_study(tmp_path / "b", arms), 29))
    one = {name: losses[:1] for name, losses in arms.items()}
    said = told(with_documents(write_study(tmp_path / "c", one), 60, seeds=1))
    assert "seed 0, these two trained models on other text: −0.0" in said and "UNREPLICATED" in said
    assert "nats per token (1 document, p –)" in told(with_documents(write_study(tmp_path / "d", one), 1, seeds=1))


def test_other_spreads(tmp_path):
    arms = {"baseline": BASE, "small": CHAL, "tiny": [3.409, 3.409, 3.417, 3.401, 3.412]}
    said = told(write_study(tmp_path / "s", arms))
    assert "with the spread of all challengers together, 8 degrees of freedom" in said
    assert (
        "read as a probability, with no prior knowledge: 0.530 % that it is better by more than the margin, 99.5 % that it is inside it, < 0.01 % that it is worse by more"
        in said
    )
    wild = {**arms, "tiny": [3.3, 3.5, 3.2, 3.6, 3.4]}
    assert "no spread pooled over the challengers: the challengers' spreads differ by a factor of" in told(
        write_study(tmp_path / "w", wild)
    )


def test_failures_are_compared(tmp_path):
    out = write_study(tmp_path / "s", {"baseline": BASE, "small": CHAL})
    fail_run(out / "arms/small/seed3", "step 2: the loss is not finite")
    said = told(out)
    assert "baseline 0 of 5 (chance to fail up to 52%), challenger 1 of 5 (chance to fail up to 72%)" in said
    assert "that both fail equally often: p 1" in said


def test_looks_and_abandoned_challengers(tmp_path):
    out = write_study(tmp_path / "s", {"baseline": BASE, "small": CHAL})
    plan = json.loads((out / "study.json").read_text())
    (out / "study.json").write_text(json.dumps(plan | {"looks": [3, 5, 8]}))
    register(out, plan | {"changed": plan["changed"] | {"tiny": {"model.head": [0, 1]}}})
    said = told(out)
    assert "look 2 of those planned at 3, 5, 8 seeds, at level 0.0167" in said
    assert "adjusted for 2 challengers, tiny abandoned among them" in said
    assert "98.3 % interval" in said
