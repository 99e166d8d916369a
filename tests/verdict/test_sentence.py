"""The line that a person quotes."""

import json

import pytest
from study_folder import BASE, CHAL, audit

from headtohead.verdict.judge import judge
from headtohead.verdict.sentence import sentence


def line(out, name="small"):
    verdict = judge(out)
    said = sentence(name, verdict["arms"][name], verdict)
    assert "\n" not in said and "None" not in said and "nan" not in said
    return said


def test_better(write):
    assert line(write({"baseline": BASE, "small": CHAL})) == (
        "small: BETTER (negligible, untuned, single-budget): model.head Big(beta=1.0) -> Small(); "
        "loss -0.0104 nats per token [95 % -0.01448 to -0.006319], -0.30 %, better in 5 of 5 seeds; "
        "at equal tokens, ×0.80 parameters, ×1.00 FLOPs, ×1.50 time, ×1.00 memory, ×1.50 dollars."
    )


def test_inconclusive_names_its_price(write):
    out = write({"baseline": [3.4, 3.41, 3.42], "small": [3.389, 3.414, 3.411]}, margin=0.005)
    assert line(out).endswith(
        "; 3 seeds detect 0.02658, 0.005 takes 23 to 96 fresh seeds (95.8 min to 6.67 h, $1.94 to $8.08), "
        "run: h2h run smaller --confirm 96."
    )


def test_one_seed_is_not_a_method(write):
    said = line(write({"baseline": BASE[:1], "small": CHAL[:1]}, price=None))
    assert "UNREPLICATED" in said and "[95 %" not in said and "$" not in said and "dollars" not in said
    assert said.endswith("1 seed cannot speak for the method (20.8 min), run: h2h run smaller --confirm 5.")


def test_invalid_and_unstable_are_descriptive_only(write, run):
    out = write({"baseline": BASE, "small": [*CHAL[:4], None]})
    run(out, "small", 4, None, status={"state": "failed", "reason": "loss is not finite at step 1"})
    said = line(out)
    assert said.startswith("small: UNSTABLE (untuned, single-budget): ") and "descriptive only: loss -0.00975" in said
    assert "challenger seed 4 failed (loss is not finite at step 1)" in said and "--confirm" not in said
    (out / "arms/baseline/seed0/audits.json").write_text(json.dumps([audit("A-CAUSAL", "fail")]))
    assert line(out).startswith("small: INVALID (A-CAUSAL of the baseline, untuned, single-budget): ")


def test_a_challenger_that_never_finished(write, run):
    out = write({"baseline": BASE[:3], "small": [None] * 3})
    for seed in range(3):
        run(out, "small", seed, None, status={"state": "failed", "reason": "diverged"})
    assert "no pair of finished runs" in line(out)


def test_a_change_that_did_nothing(write):
    assert "loss equals the baseline's exactly over 5 seeds; the change did nothing" in line(
        write({"baseline": BASE, "small": BASE})
    )


def test_other_data_and_missing_seeds_are_said(write, run):
    out = write({"baseline": BASE, "small": [*CHAL[:3], None, None]})
    run(out, "small", 3, CHAL[3], batches=["other"])
    said = line(out)
    assert "on different batches" in said and "equal tokens" not in said and "unpaired" in said
    assert "challenger seed 4 is missing" in said


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"part": "x.y:Small", "beta": 0.5, "inner": {"part": "x:In"}}, "Small(beta=0.5, inner=In())"),
        ({"call": "x:function"}, "function"),
        ([1, 2], "(1, 2)"),
        (12, "12"),
        ("words", "words"),
    ],
)
def test_what_changed_is_written_as_a_person_would(write, value, said):
    out = write({"baseline": BASE, "small": CHAL}, changed={"small": {"model.x": [0, value]}})
    assert f"model.x 0 -> {said};" in line(out)
