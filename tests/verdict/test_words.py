"""The verdict words: their order, their boundaries, their margins, and how often they are wrong."""

import math

import numpy as np
import pytest

from headtohead.spec import Mistake
from headtohead.verdict import words
from headtohead.verdict.compare import Outcome, Rule, card, compare
from headtohead.verdict.margins import KNOWN, Measure, default_margin, margin_for, measure_from
from headtohead.verdict.statistics import holm, paired
from headtohead.verdict.words import Verdict, caveats, decide

LOSS = Measure("loss", "nats per token", "lower")
ACCURACY = Measure("accuracy", "accuracy", "higher")

BASE = [3.412, 3.405, 3.421, 3.398, 3.417]
CHAL = [3.401, 3.398, 3.407, 3.391, 3.404]
THREE = [-0.011, 0.004, -0.009]


def pairs(d):
    return paired([0.0] * len(d), d)


def judged(d, margin, **more):
    pair = pairs(d)
    return decide(pair, margin, pair.p, **more)


def test_the_list_is_closed():
    said = "INVALID, UNSTABLE, IDENTICAL, UNREPLICATED, BETTER, WORSE, EQUIVALENT, NOT WORSE, NOT BETTER, INCONCLUSIVE"
    assert ", ".join(words.WORDS) == said


def test_oracles():
    pair = paired(BASE, CHAL)
    assert decide(pair, default_margin(LOSS, float(np.mean(BASE))), pair.p) == Verdict("BETTER", ("negligible",))
    assert judged(THREE, 0.0165) == Verdict("NOT WORSE")
    assert judged(THREE, 0.005) == Verdict("INCONCLUSIVE")


# sd = 1, so se = 1/sqrt(5): the 95 % interval is the mean -+ 1.242, the 90 % one the mean -+ .953
UNIT = np.array([-1.0, -1.0, 0.0, 1.0, 1.0])


@pytest.mark.parametrize(
    ("mean", "margin", "expected"),
    [
        (-3, 1.5, ("BETTER", "substantial")),
        (-3, 5.0, ("BETTER", "negligible")),
        (-3, 2.0, ("BETTER", "size uncertain")),
        (3, 1.5, ("WORSE", "substantial")),
        (3, 5.0, ("WORSE", "negligible")),
        (3, 2.0, ("WORSE", "size uncertain")),
        (0.1, 1.2, ("EQUIVALENT",)),
        (-0.5, 1.0, ("NOT WORSE",)),
        (0.5, 1.0, ("NOT BETTER",)),
        (0.1, 0.5, ("INCONCLUSIVE",)),
        (-1.2, 0.1, ("NOT WORSE",)),
        (1.2, 0.1, ("NOT BETTER",)),
    ],
)
def test_words_by_where_the_interval_lies(mean, margin, expected):
    found = judged(UNIT + mean, margin)
    assert (found.word, *found.qualifiers) == expected


def test_the_first_that_fits_wins():
    """Every case fits all words after its own that can be asked for; taking its reason away gives the next word."""
    zero, two, better = [0.0, 0.0], [-3.0, -3.1], UNIT - 3
    assert judged(zero, 5.0, invalid=["A-CAUSAL"], unstable=True) == Verdict("INVALID", ("A-CAUSAL",))
    assert judged(zero, 5.0, unstable=True) == Verdict("UNSTABLE")
    assert judged(zero, 5.0) == Verdict("IDENTICAL")
    assert judged(two, 5.0) == Verdict("UNREPLICATED")
    assert judged(better, 5.0).word == "BETTER"  # its TOST holds as well


def test_invalid_needs_no_pairs():
    assert decide(paired([], []), math.nan, 1.0, invalid=["INCOMPARABLE"]).word == "INVALID"
    assert decide(paired([], []), math.nan, 1.0, unstable=True).word == "UNSTABLE"
    assert decide(paired([], []), 1.0, 1.0).word == "UNREPLICATED"


def test_a_family_takes_the_word_back():
    pair = pairs(UNIT - 1.3)  # p = .044 alone
    assert 0.025 < pair.p < 0.05
    assert decide(pair, 3.0, pair.p) == Verdict("BETTER", ("negligible",))
    assert decide(pair, 3.0, holm([pair.p, 0.5])[0]) == Verdict("EQUIVALENT")


def test_equality_gives_the_weaker_verdict():
    pair = pairs(UNIT - 3)
    assert decide(pair, 1.0, np.nextafter(0.05, 0)).word == "BETTER"
    assert decide(pair, 1.0, 0.05).word == "NOT WORSE"
    exact = -pair.interval[1]
    assert decide(pair, exact, pair.p).qualifiers == ("size uncertain",)
    assert decide(pair, np.nextafter(exact, 0), pair.p).qualifiers == ("substantial",)


def test_not_significant_is_never_called_equal():
    assert judged(UNIT + 0.01, 0.5).word == "INCONCLUSIVE"


def test_skewed_only_below_ten_seeds():
    """One odd value among zeros: the biased skew is (n - 2) / sqrt(n - 1)."""
    for n in (5, 9):
        assert (
            caveats(pairs([0.0] * (n - 1) + [9.0])) == caveats(pairs([0.0] * (n - 1) + [-9.0])) == ("skewed", "untuned")
        )
    assert caveats(pairs([0.0] * 9 + [9.0])) == ("untuned",)
    assert caveats(pairs([0.0, 1.0, 9.0])) == ("untuned",)  # at three seeds it cannot be seen
    slight = [0.0, 0.0, 0.0, 1.0, 1.0, 2.0]
    assert 0.5 < pairs(slight).skew < 1 and caveats(pairs(slight)) == ("untuned",)


def test_an_assumed_spread_is_said():
    assert caveats(paired(BASE, [value - 0.1 for value in BASE])) == ("no spread", "untuned")


# ---- measures and margins ------------------------------------------------------------------------------------------


def test_default_margins():
    assert default_margin(LOSS, 3.4106) == pytest.approx(0.017053)
    assert default_margin(Measure("bits_per_byte", "bits per byte", "lower"), 2.0) == pytest.approx(0.01)
    assert default_margin(ACCURACY, 0.7) == 0.01
    assert default_margin(Measure("mrpc", "percent", "higher"), 70.0) == 1.0
    assert default_margin(Measure("kurtosis", "log ratio", "lower"), 9.0) == math.log(1.1)


@pytest.mark.parametrize("measure", [KNOWN["perplexity"], Measure("sinks", "share of heads", "lower")])
def test_any_other_margin_must_be_stated(measure):
    with pytest.raises(Mistake, match=f"'{measure.name}'.*state margin="):
        margin_for(None, measure, 20.0)
    assert margin_for(0.5, measure, 20.0) == 0.5


@pytest.mark.parametrize("margin", [0.0, -0.1, math.nan, math.inf])
def test_a_margin_that_settles_nothing_is_refused(margin):
    with pytest.raises(Mistake, match="above 0"):
        margin_for(margin, LOSS, 3.0)


def test_a_loss_of_zero_has_no_default_margin():
    with pytest.raises(Mistake, match="state margin="):
        default_margin(LOSS, 0.0)


def test_measures_by_name():
    assert measure_from({"name": "accuracy"}) == ACCURACY
    assert measure_from({"name": "loss", "unit": "nats per byte"}) == Measure("loss", "nats per byte", "lower")
    with pytest.raises(Mistake, match="better='lower' or better='higher'"):
        measure_from({"name": "sinks"})
    with pytest.raises(Mistake, match="no direction"):
        measure_from({"name": "loss", "better": "less"})


def compared(measure, base, chal, margin):
    seeds = tuple(range(len(base)))
    rule = Rule(measure, margin, 0.05, seeds)
    found = compare(rule, Outcome(dict(zip(seeds, base, strict=True))), Outcome(dict(zip(seeds, chal, strict=True))))
    return card(found, decide(found.pair, margin, found.pair.p), found.pair.p)


def test_higher_is_better_is_judged_negated_and_shown_unflipped():
    base, chal = [0.70, 0.71, 0.69], [0.80, 0.82, 0.79]
    up = compared(ACCURACY, base, chal, 0.01)
    down = compared(
        Measure("error", "errors", "lower"), [1 - value for value in base], [1 - value for value in chal], 0.01
    )
    assert up["verdict"] == down["verdict"] == "BETTER"
    assert up["qualifiers"] == down["qualifiers"] == ["substantial"]
    assert up["effect"] == pytest.approx(0.31 / 3) and down["effect"] == pytest.approx(-0.31 / 3)
    assert up["interval"] == pytest.approx([-end for end in down["interval"][::-1]])
    assert 0 < up["interval"][0] < up["interval"][1]
    assert up["relative"] == pytest.approx(0.31 / 3 / 0.7)
    assert up["seeds_needed"] == down["seeds_needed"]
    same = ("p", "won", "better_probability", "detectable", "power", "p_tost")
    assert [up[key] for key in same] == pytest.approx([down[key] for key in same])
    assert up["won"] == 3 and up["better_probability"] > 0.9


def test_log_ratios_compare_logarithms():
    kurtosis = Measure("kurtosis", "log ratio", "lower")
    entry = compared(kurtosis, [100.0, 200.0, 400.0], [110.0, 190.0, 300.0], math.log(1.1))
    d = np.log([1.1, 0.95, 0.75])
    assert entry["effect"] == pytest.approx(d.mean())
    assert entry["relative"] == pytest.approx(math.exp(d.mean()) - 1)
    with pytest.raises(Mistake, match="not above 0"):
        compared(kurtosis, [1.0, 0.0, 2.0], [1.0, 1.0, 1.0], 0.1)


def test_perplexity_ratio_only_of_nats():
    assert compared(LOSS, BASE, CHAL, 0.01)["perplexity_ratio"] == pytest.approx(math.exp(-0.0104))
    assert compared(ACCURACY, BASE, CHAL, 0.01)["perplexity_ratio"] is None


def test_simultaneous_interval_is_bonferronis():
    seeds = tuple(range(5))
    arms = (Outcome(dict(zip(seeds, values, strict=True))) for values in (BASE, CHAL))
    found = compare(Rule(LOSS, 0.01, 0.05, seeds, family=3), *arms)
    entry = card(found, Verdict("BETTER"), 0.01)
    assert entry["interval_simultaneous"] == pytest.approx(list(paired(BASE, CHAL, alpha=0.05 / 3).interval))
    assert entry["detectable"] == pytest.approx(2.292 * found.pair.sd, rel=3e-4)


def test_sign_flips_are_shown_from_six_seeds_to_twenty():
    shown = {n: compared(LOSS, [3.0] * n, [2.0 + k / 50 for k in range(n)], 0.1)["sign_flip"] for n in (5, 6, 20, 21)}
    assert shown == {5: None, 6: 2 / 2**6, 20: 2 / 2**20, 21: None}


# ---- how often a word is wrong -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("challengers", "seeds"), [(1, 3), (1, 5), (3, 5)])
def test_no_true_difference_is_rarely_called_one(challengers, seeds):
    """In at most 6.6 % of 2,000 studies: 5 % and three standard errors. Challengers share their baseline's noise."""
    random = np.random.default_rng([challengers, seeds])
    wrong = 0
    for arms in random.normal(3.4, 0.01, size=(2000, challengers + 1, seeds)):
        pair = [paired(arms[0], challenger) for challenger in arms[1:]]
        said = [decide(one, 0.017, p).word for one, p in zip(pair, holm([one.p for one in pair]), strict=True)]
        wrong += "BETTER" in said or "WORSE" in said
    assert 0.02 * 2000 < wrong <= 0.066 * 2000


def test_a_difference_of_the_margin_is_rarely_called_equivalent():
    random = np.random.default_rng(5)
    said = [judged(d, 0.017).word for d in random.normal(0.017, 0.004, size=(2000, 5))]
    assert said.count("EQUIVALENT") <= 0.066 * 2000
    assert said.count("NOT WORSE") + said.count("BETTER") <= 0.066 * 2000
    assert said.count("WORSE") > 1900
