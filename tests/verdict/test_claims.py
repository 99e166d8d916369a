"""Claims: what is answered yes, what no, and what is left open."""

import math

import numpy as np
import pytest
from scipy import stats

from headtohead.spec import Mistake
from headtohead.verdict.claims import answers, questions
from headtohead.verdict.compare import Outcome, Rule
from headtohead.verdict.margins import Measure
from headtohead.verdict.statistics import holm

SEEDS = (0, 1, 2, 3, 4)
LOSS = Rule(Measure("loss", "nats per token", "lower"), 1.0, 0.05, SEEDS)
# se = 1/sqrt(5), so a one-sided limit is .953 away from the mean
UNIT = np.array([-1.0, -1.0, 0.0, 1.0, 1.0])


def arms(**of):
    """Outcomes of arms by measure: arms(small={"loss": d}) against a baseline that is 0 everywhere."""

    def outcomes(name, measure):
        values = of[name].get(measure.name, {})
        values = values if isinstance(values, dict) else dict(zip(SEEDS, values, strict=False))
        return Outcome(dict.fromkeys(SEEDS, 0.0)), Outcome(values)

    return outcomes


def ask(claims, outcomes, challengers=("small",), refused=None, primary=LOSS):
    return answers(questions(claims, primary, challengers), primary, outcomes, refused or {})


def one(kind, d, margin=1.0, better="lower"):
    claim = {"claim": kind, "measure": "x", "challenger": None, "margin": margin, "better": better, "unit": "units"}
    return ask([claim], arms(small={"x": d}))["small"][0]["answer"]


@pytest.mark.parametrize(
    ("kind", "mean", "answer"),
    [
        ("NoWorse", 0.0, "yes"),
        ("NoWorse", 0.04, "yes"),
        ("NoWorse", 0.06, "not enough evidence"),
        ("NoWorse", 1.94, "not enough evidence"),
        ("NoWorse", 1.96, "no"),
        ("Better", -0.96, "yes"),
        ("Better", -0.94, "not enough evidence"),
        ("Better", 0.94, "not enough evidence"),
        ("Better", 0.96, "no"),
        ("Lower", -0.96, "yes"),
        ("Lower", 0.96, "no"),
        ("Higher", 0.96, "yes"),
        ("Higher", -0.96, "no"),
        ("Equivalent", 0.04, "yes"),
        ("Equivalent", -0.04, "yes"),
        ("Equivalent", 0.06, "not enough evidence"),
        ("Equivalent", 2.1, "no"),
        ("Equivalent", -2.1, "no"),
    ],
)
def test_answers_by_where_the_one_sided_limit_lies(kind, mean, answer):
    assert one(kind, UNIT + mean) == answer
    if kind in ("NoWorse", "Better"):
        assert one(kind, -UNIT - mean, better="higher") == answer
    if kind in ("Lower", "Higher"):
        assert one(kind, UNIT + mean, better="higher") == answer  # they speak of the number, not of its worth


def test_the_tests_are_scipys():
    d = UNIT - 0.3
    claims = [{"claim": kind, "measure": "loss", "challenger": "small"} for kind in ("NoWorse", "Better")]
    for claim, limit in zip(claims, (1.0, 0.0), strict=True):
        (found,) = ask([claim], arms(small={"loss": d}))["small"]
        assert found["p_yes"] == pytest.approx(stats.ttest_1samp(d, limit, alternative="less").pvalue)
        assert found["p_no"] == pytest.approx(stats.ttest_1samp(d, limit, alternative="greater").pvalue)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_larger_difference_counts_both_tails(sign):
    claim = {"claim": "Equivalent", "measure": "loss", "margin": 0.3}
    (found,) = ask([claim], arms(small={"loss": sign * (UNIT + 0.5)}))["small"]
    tails = stats.t.sf(math.sqrt(5) * 0.2, 4) + stats.t.sf(math.sqrt(5) * 0.8, 4)
    assert found["p_no"] == pytest.approx(tails)


def test_a_difference_at_the_margin_is_called_larger_as_often_as_alpha():
    random = np.random.default_rng(0)
    said = [one("Equivalent", d, margin=0.3) for d in random.normal(0.3, 1.0, size=(2000, 5))]
    assert 0.035 * 2000 < said.count("no") < 0.066 * 2000
    assert said.count("yes") < 0.066 * 2000


def test_holm_runs_over_all_claims_and_challengers():
    arm = {"small": {"loss": UNIT - 1.2, "x": UNIT - 1.0}, "tiny": {"loss": UNIT + 0.1, "x": UNIT - 2.0}}
    claims = [{"claim": "Better", "measure": "loss", "challenger": None}, {"claim": "Lower", "measure": "x"}]
    found = ask(claims, arms(**arm), ("small", "tiny"))
    order = [("small", 0), ("tiny", 0), ("small", 1), ("tiny", 1)]
    ps = [stats.ttest_1samp(arm[name]["loss" if not k else "x"], 0, alternative="less").pvalue for name, k in order]
    assert [found[name][k]["p_yes"] for name, k in order] == pytest.approx(holm(ps))
    # On its own the first claim would have been a yes.
    assert ps[0] < 0.05 < holm(ps)[0] and found["small"][0]["answer"] == "not enough evidence"
    assert found["tiny"][1]["answer"] == "yes"


def test_margin_and_direction_of_the_primary_measure_are_the_studys():
    accuracy = Rule(Measure("hits", "whatever", "higher"), 1.0, 0.05, SEEDS)
    found = ask([{"claim": "NoWorse", "measure": "hits"}], arms(small={"hits": UNIT - 0.04}), primary=accuracy)
    assert found["small"][0]["answer"] == "yes" and found["small"][0]["margin"] == 1.0
    assert found["small"][0]["effect"] == pytest.approx(-0.04)
    found = ask([{"claim": "Equivalent"}], arms(small={"hits": UNIT}), primary=accuracy)
    assert found["small"][0]["measure"] == "hits"


def test_a_known_measure_has_a_default_margin():
    def outcomes(name, measure):
        return Outcome(dict.fromkeys(SEEDS, 0.8)), Outcome(dict(zip(SEEDS, 0.8 + UNIT / 1000, strict=True)))

    (found,) = ask([{"claim": "NoWorse", "measure": "accuracy"}], outcomes)["small"]
    assert (found["answer"], found["margin"]) == ("yes", 0.01)


def test_an_equality_has_no_direction_but_needs_a_margin():
    assert ask([{"claim": "Equivalent", "measure": "x", "margin": 1.0}], arms(small={"x": UNIT}))["small"]
    (found,) = ask([{"claim": "Equivalent", "measure": "x"}], arms(small={"x": UNIT}))["small"]
    assert found["answer"] == "not enough evidence" and "state margin=" in found["reason"]
    (found,) = ask([{"claim": "NoWorse", "measure": "x", "margin": 1.0}], arms(small={"x": UNIT}))["small"]
    assert found["answer"] == "not enough evidence" and "better='lower'" in found["reason"]


@pytest.mark.parametrize(
    ("d", "refused", "reason"),
    [
        (UNIT - 9, {"small": "the verdict is INVALID"}, "the verdict is INVALID"),
        ((UNIT - 9)[:2], {}, "2 of the 3 seeds"),
        ({}, {}, "has measured loss"),
    ],
)
def test_where_nothing_may_be_said(d, refused, reason):
    (found,) = ask([{"claim": "Better", "measure": "loss"}], arms(small={"loss": d}), refused=refused)["small"]
    assert found["answer"] == "not enough evidence" and reason in found["reason"]
    assert (found["p_yes"], found["p_no"]) == (1.0, 1.0)


def test_a_failed_run_answers_nothing():
    def outcomes(name, measure):
        return Outcome(dict.fromkeys(SEEDS, 5.0)), Outcome(dict(zip(SEEDS[1:], UNIT, strict=False)), {0: "diverged"})

    assert ask([{"claim": "Better"}], outcomes)["small"][0]["reason"] == "a run failed"


def test_silent_claims_still_count_in_the_family():
    claims = [{"claim": "Better", "measure": "loss"}, {"claim": "Lower", "measure": "never"}]
    both = ask(claims, arms(small={"loss": UNIT - 1.2}))["small"]
    alone = ask(claims[:1], arms(small={"loss": UNIT - 1.2}))["small"]
    assert both[0]["p_yes"] == pytest.approx(2 * alone[0]["p_yes"])


def test_identical_arms_are_no_worse_and_not_better():
    zero = [0.0] * 5
    assert one("NoWorse", zero) == one("Equivalent", zero) == "yes"
    assert one("Better", zero) == one("Higher", zero) == "not enough evidence"


def test_mistakes():
    with pytest.raises(Mistake, match="NoWorse, Better, Lower, Higher, Equivalent"):
        ask([{"claim": "Best"}], arms(small={}))
    with pytest.raises(Mistake, match="the challengers are small"):
        ask([{"claim": "Better", "challenger": "smal"}], arms(small={}))
    assert ask([], arms(small={})) == {}
