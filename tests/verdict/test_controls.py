"""The baseline against itself, arms of another length, matched arms, and claims on what a run cost."""

import math

import numpy as np
import pytest

from headtohead.verdict.judge import judge
from headtohead.verdict.statistics import paired

BASE = [3.412, 3.405, 3.421, 3.398, 3.417]
AGAIN = [3.409, 3.414, 3.401, 3.405, 3.411]
CHAL = [3.401, 3.398, 3.407, 3.391, 3.404]
CONTROLS = {"changed": {"itself": {}, "other-seeds": {}}, "fresh": {"other-seeds": 5}}


def test_the_same_seeds_are_identical_and_other_seeds_tell_the_noise(write):
    arms = judge(write({"baseline": BASE, "itself": BASE, "other-seeds": AGAIN}, **CONTROLS))["arms"]
    assert arms["itself"]["verdict"] == "IDENTICAL" and arms["itself"]["noise"] is None
    noise = arms["other-seeds"]["noise"]
    sd = np.std(np.subtract(AGAIN, BASE), ddof=1)
    assert noise["sd"] == pytest.approx(sd) and noise["run"] == pytest.approx(sd / math.sqrt(2)) and noise["upper"] > sd
    # the copy is no test, so the other one is judged at the full level: wrong in 5 % of cases, not in 2.5
    assert arms["other-seeds"]["p_adjusted"] == arms["other-seeds"]["p"] == pytest.approx(paired(BASE, AGAIN).p)


def test_a_challenger_that_changes_something_always_counts(write):
    arms = judge(write({"baseline": BASE, "small": CHAL, "other": AGAIN}))["arms"]
    assert arms["small"]["p_adjusted"] == pytest.approx(2 * arms["small"]["p"])


def short(write, run, batches):
    """A challenger of two steps against a baseline of three."""
    changed = {"small": {"steps": ["3", "2"]}}
    out = write({"baseline": BASE, "small": [None] * 5}, changed=changed, training={"baseline": 300, "small": 200})
    for seed, loss in enumerate(CHAL):
        run(out, "small", seed, loss, batches=[f"{seed}-{step}" for step in batches])
    return judge(out)["arms"]["small"]


def test_an_arm_of_another_length_shares_the_batches_that_both_saw(write, run):
    entry = short(write, run, range(2))
    assert entry["same_data"] and "unpaired" not in entry["qualifiers"]
    assert entry["match"] == {"by": "tokens", "tokens": pytest.approx(2 / 3)}
    assert "tokens ×0.667" in entry["sentence"] and "at equal tokens" not in entry["sentence"]


def test_other_batches_are_other_batches_at_any_length(write, run):
    entry = short(write, run, (0, 7))
    assert entry["different_data"]["0"] == 1 and "unpaired" in entry["qualifiers"]


@pytest.mark.parametrize(
    ("match", "said"),
    [("parameters", "at equal parameters"), ("flops", "at equal FLOPs"), ("wallclock", "planned at equal time")],
)
def test_what_was_matched_is_said(write, match, said):
    out = write({"baseline": BASE, "small": CHAL}, match=match, training={"baseline": 300, "small": 200})
    assert f"; {said}, tokens ×0.667, ×0.80 parameters" in judge(out)["arms"]["small"]["sentence"]


def claim(kind, measure, **more):
    return {"claim": kind, "challenger": None, "measure": measure, **more}


def test_claims_on_costs_are_answered(write):
    """The runs of study_folder: 100 seconds and 1,000 parameters against 150 and 800, at 1.212 dollars an hour."""
    claims = [
        claim("Lower", "parameters"),
        claim("Lower", "seconds"),
        claim("Higher", "dollars"),
        claim("Equivalent", "memory", margin=1.0),
        claim("NoWorse", "seconds", margin=60.0),
        claim("Lower", "flops"),
    ]
    found = judge(write({"baseline": BASE, "small": CHAL}, claims=claims))["arms"]["small"]["claims"]
    assert [each["answer"] for each in found] == ["yes", "no", "yes", "yes", "yes", "not enough evidence"]
    assert found[1]["effect"] == pytest.approx(50) and found[2]["effect"] == pytest.approx(50 * 1.212 / 3600)


def test_a_claim_on_dollars_needs_a_price(write):
    out = write({"baseline": BASE, "small": CHAL}, claims=[claim("Lower", "dollars")], price=None)
    told = judge(out)["arms"]["small"]["claims"][0]
    assert told["answer"] == "not enough evidence" and "dollars" in told["reason"]


def test_the_sentence_has_all_that_a_quotation_needs(write):
    found = judge(write({"baseline": BASE, "small": CHAL}, training={"baseline": 300, "small": 300}))
    entry = found["arms"]["small"]
    parts = ["small: BETTER (negligible, untuned", "model.head Big(beta=1.0) -> Small()", "loss -0.0104 nats per token"]
    parts += ["[95 % -0.01448 to -0.006319]", "-0.30 %", "better in 5 of 5 seeds", "at equal tokens", "×1.50 time"]
    assert all(part in entry["sentence"] for part in parts), entry["sentence"]
    assert all(label in entry["sentence"] for label in entry["qualifiers"])


def test_a_control_is_none_of_the_studys_challengers(write):
    """The study's own challengers stand in the ledger beside it, and are not what is tested here."""
    out = write({"baseline": BASE, "itself": BASE, "other-seeds": AGAIN}, **CONTROLS)
    line = '{"study": "smaller", "challenger": "small", "change": "ff", "lock": "cd"}\n'
    (out / "ledger.jsonl").write_text(line)
    found = judge(out)
    assert found["abandoned"] == [] and found["arms"]["other-seeds"]["p_adjusted"] == found["arms"]["other-seeds"]["p"]
