"""Expected best of n trials against enumeration, and the audits of a search."""

import itertools

import numpy as np
import pytest
from printed import close

from headtohead.spec import Mistake
from headtohead.verdict.tuning import Trial, budget, curve, depends_on_budget, edge, expected_best, expected_best_drawn

V, LOSSES = [0.1, 0.2, 0.4], [3.50, 3.40, 3.38, 3.60]


def test_oracles():
    drawn = [expected_best_drawn(V, n, "higher") for n in (1, 2, 3)]
    assert all(close(value, text) for value, text in zip(drawn, (".233333", ".3", ".337037"), strict=True))
    assert all(close(value, text) for value, text in zip(curve(V, "higher"), (".233333", ".333333", ".4"), strict=True))
    assert close(expected_best_drawn(LOSSES, 2), "3.4225") and close(expected_best(LOSSES, 2), "3.406667")
    assert close(expected_best_drawn(LOSSES, 4), "3.392969") and close(expected_best(LOSSES, 4), "3.38")


@pytest.mark.parametrize("n", [1, 2, 3, 5, 6])
def test_the_expectation_is_the_mean_over_all_draws(n):
    scores = np.random.default_rng(n).normal(size=6).round(1).tolist()
    assert expected_best(scores, n) == pytest.approx(np.mean([min(s) for s in itertools.combinations(scores, n)]))
    assert expected_best_drawn(scores, n, "higher") == pytest.approx(
        np.mean([max(s) for s in itertools.product(scores, repeat=n)])
    )


def test_many_trials_do_not_overflow():
    assert expected_best(list(range(2000)), 1000) == pytest.approx(
        1000 * 1 / 1001, rel=1e-6
    )  # the first of 1000 in 2000


@pytest.mark.parametrize("n", [0, 4])
def test_a_best_of_none_or_of_more_than_there_are(n):
    with pytest.raises(Mistake, match="ask for 1 to 3"):
        expected_best(V, n)


def test_curves_that_cross_depend_on_the_budget():
    steady, wild = [3.4, 3.41, 3.42], [3.3, 3.6, 3.7]  # one trial favours the steady arm, three the wild one
    assert depends_on_budget(steady, wild) and not depends_on_budget(steady, [v - 0.2 for v in steady])
    assert not depends_on_budget(steady, steady)


def _trials(rates, scores, **more):
    return [Trial({"optimizer.rate": rate, **more}, score, 60.0) for rate, score in zip(rates, scores, strict=True)]


def test_the_best_of_a_grid_at_its_end():
    rates = [1e-4, 5e-4, 1e-3, 5e-3]
    inside, outside = edge("a", _trials(rates, [4, 2, 1, 3])), edge("a", _trials(rates, [4, 3, 2, 1]))
    assert (inside.id, inside.result) == ("A-EDGE", "pass") and "0.59 of its range" in inside.evidence
    assert (outside.result, outside.evidence) == ("fail", "optimizer.rate = 0.005")
    assert edge("a", _trials(rates, [4, 3, 2, 1]), "higher").evidence == "optimizer.rate = 0.0001"


def test_a_tenth_of_a_logarithmic_range_is_its_border():
    scores = [3, 1, 3]
    assert edge("a", _trials([1e-4, 1.5e-4, 1e-2], scores)).result == "fail"  # 0.088 of the way
    assert edge("a", _trials([1e-4, 1.7e-4, 1e-2], scores)).result == "pass"  # 0.115


def test_what_was_not_searched_has_no_border():
    assert edge("a", _trials([1e-3] * 3, [1, 2, 3], **{"schedule": "cosine"})).result == "skip"
    assert edge("a", [Trial({"model.dropout": 0.0}, 1.0), Trial({"model.dropout": 0.1}, 2.0)]).result == "skip"


def test_budgets():
    four, eight = _trials([1, 2, 3, 4], [1, 2, 3, 4]), _trials(range(1, 9), range(8))
    assert budget(four, four).result == "pass" and budget(eight, four).result == "fail"
    slower = [trial._replace(seconds=67.0) for trial in four]
    assert budget(four, slower).result == "fail"
    assert budget(four, [trial._replace(seconds=66.0) for trial in four]).result == "pass"  # 10 % and no more
    untuned = budget(four, [])
    assert untuned.result == "fail" and "baseline was tuned and the challenger was not" in untuned.sentence
    assert budget([], []).result == "skip"


# ---- in a study ----------------------------------------------------------------------------------------------------

BASE = [3.412, 3.405, 3.421, 3.398, 3.417]
CHAL = [3.401, 3.398, 3.407, 3.391, 3.404]
RATES = (1e-3, 2e-3, 4e-3, 8e-3)


def tuned(own=(3.6, 3.4, 3.3, 3.5), seconds=10.0, **more):
    """What a tuning folder holds: four rates in either arm, the challenger's with scores of its own."""
    scores = {"baseline": (3.5, 3.4, 3.38, 3.6), "small": own}
    arms = {
        arm: {
            "recipe": "aa",
            "trials": [
                {"values": {"optimizer.rate": rate}, "score": score, "seconds": seconds if arm == "small" else 10.0}
                for rate, score in zip(RATES, of, strict=True)
            ],
            "best": {"optimizer.rate": 4e-3},
        }
        for arm, of in scores.items()
    }
    primary = {"name": "loss", "unit": "nats per token", "better": "lower"}
    return {
        "study": "smaller",
        "primary": primary,
        "seeds": [1_000_000],
        "address": "optimizer.rate",
        "arms": arms,
    } | more


def judged(write, tuning):
    from headtohead.verdict.judge import judge

    found = judge(write({"baseline": BASE, "small": CHAL}, tuning=tuning))
    return found, found["arms"]["small"]


def test_a_tuned_study_is_not_called_untuned(write):
    found, entry = judged(write, tuned())
    assert "untuned" not in entry["qualifiers"] and "untuned-challenger" not in entry["qualifiers"]
    results = {audit["id"]: audit["result"] for audit in entry["audits"]}
    assert results["A-BUDGET"] == results["A-EDGE"] == "pass"
    assert found["price"]["tuning"]["seconds"] == 80 and found["price"]["tuning"]["dollars"] == pytest.approx(
        80 * 1.212 / 3600
    )
    assert found["price"]["spent"]["seconds"] == 5 * 250  # and is no part of the runs' own


def test_the_oracle_of_the_curve_reaches_the_verdict(write):
    entry = judged(write, tuned())[1]
    assert entry["tuning"]["curve"]["baseline"][1] == pytest.approx(3.406667, abs=1e-6)
    assert entry["tuning"]["curve"]["baseline"][3] == 3.38
    # one trial says the baseline (3.47 against 3.45), all four the challenger: it is ahead for every n here
    assert entry["tuning"]["depends_on_budget"] is False
    crossing = judged(write, tuned(own=(3.9, 3.9, 3.3, 3.9)))[1]
    assert crossing["tuning"]["depends_on_budget"] is True


@pytest.fixture
def write(tmp_path):
    from itertools import count

    from study_folder import write_study

    number = count()
    return lambda losses, **changes: write_study(tmp_path / f"study{next(number)}", losses, **changes)


def test_unequal_budgets_and_a_best_at_the_border_are_told(write):
    slow = judged(write, tuned(seconds=12.0))[1]
    assert "untuned-challenger" in slow["qualifiers"]
    none = tuned()
    del none["arms"]["small"]
    only = judged(write, none)[1]
    assert {"untuned", "untuned-challenger"} <= set(only["qualifiers"])  # the baseline's rate was found for it alone
    edge = judged(write, tuned(own=(3.6, 3.5, 3.4, 3.3)))[1]
    assert [audit["evidence"] for audit in edge["audits"] if audit["id"] == "A-EDGE" and audit["result"] == "fail"] == [
        "optimizer.rate = 0.008"
    ]


def test_a_trial_that_failed_was_paid_for_and_found_nothing(write):
    entry = judged(write, tuned(own=(3.6, 3.4, 3.3, None)))[1]
    assert entry["tuning"]["trials"] == {"baseline": 4, "small": 4}
    assert entry["tuning"]["curve"]["small"][0] == pytest.approx((3.6 + 3.4 + 3.3 + 3.6) / 4)
