"""The audits that need files and numbers only: METHOD.md's oracles, and for each a wrong case and its honest neighbour."""

import math

import numpy as np
import pytest

from headtohead.audit import (
    comparable,
    contamination,
    epochs,
    floor,
    gap,
    majority,
    primary,
    restarts,
    sameness,
    size,
    undertrain,
    unknown,
)
from headtohead.audit import spikes as jumps
from headtohead.text.contamination import contamination as compared
from headtohead.text.overlap import Overlap


def documents(nll, tokens=None):
    """Columns as documents.npz has them."""
    nll = np.array(nll, dtype=float)
    tokens = np.full(len(nll), 10.0) if tokens is None else np.array(tokens, dtype=float)
    return {"document": np.arange(len(nll)), "nll": nll, "tokens": tokens, "bytes": tokens, "characters": tokens}


def told(finding):
    return finding.severity, finding.result


# ---- contamination -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dirty", "expected"),
    [([], ("fatal", "pass")), ([2], ("warn", "fail")), ([0], ("fatal", "fail")), ([5], ("fatal", "pass"))],
)
def test_contamination_is_fatal_from_one_in_a_hundred_and_told_from_one_in_a_thousand(dirty, expected):
    """Documents of 200, 9,700 and 100 bytes; a fourth one is not scored, so it does not count."""
    finding = contamination.audit(Overlap([200, 9_750, 50, 99], dirty, 0.0), documents([30.0, 40.0, 20.0]))
    assert told(finding) == expected
    if dirty == [0]:
        assert finding.evidence == "2.00% of 10,000 bytes, 1 of 3 documents; loss 3.0000 there, 3.0000 elsewhere"


def test_the_loss_of_clean_and_dirty_documents_is_told():
    found = contamination.audit(Overlap([50, 50], [1], 0.5), documents([30.0, 2.0]))
    assert "loss 0.2000 there, 3.0000 elsewhere" in found.evidence
    assert contamination.audit(None, documents([1.0])).result == "skip"


def test_contamination_oracle():
    words = [chr(97 + n) for n in range(26)]
    train, within = " ".join(words), " ".join(words[4:20])
    found = compared([train], [within])
    assert (found.grams, found.documents) == (1.0, (0,))
    shuffled = np.random.default_rng(0).permutation(words)
    assert compared([train], [" ".join(shuffled)]) == (0.0, 0.0, ())


# ---- text and unit -------------------------------------------------------------------------------------------------


def run(text="t1", tokens="h1", size_=1000, **more):
    return {"evaluation.text": text, "evaluation": tokens, "scored_bytes": size_, **more}


def test_bits_per_byte_oracle():
    assert comparable.bits_per_byte(250 * 3.2, 1000) == pytest.approx(1.154156, abs=5e-7)


def test_other_text_is_incomparable_in_any_unit():
    for measure in ("loss", "bits_per_byte"):
        assert comparable.evaluation_set([run()], [run(text="hebrew")]).result == "fail", measure
    assert comparable.evaluation_set([run(), run()], [run()]).result == "pass"


def test_other_tokens_need_bits_per_byte():
    pair = [run()], [run(tokens="h2")]
    assert comparable.evaluation_set(*pair).result == "pass"
    found = [
        comparable.unit(measure, *pair).result for measure in ("loss", "perplexity", "bits_per_byte", "parameters")
    ]
    assert found == ["fail", "fail", "pass", "pass"]
    assert comparable.unit("loss", [run()], [run()]).result == "pass"


def test_text_that_was_left_out_is_found():
    assert comparable.evaluation_set([run()], [run(tokens="h2", size_=990)]).result == "fail"
    assert comparable.evaluation_set([run(size_=10_000)], [run(tokens="h2", size_=9_999)]).result == "pass"


def test_runs_from_before_the_hash_are_still_compared():
    old = {"evaluation": "h1"}
    assert comparable.evaluation_set([old], [old]).result == "pass"
    assert comparable.evaluation_set([old], [{"evaluation": "h2"}]).result == "fail"
    assert comparable.evaluation_set([{}], [{}]).result == "skip"


# ---- unknown text --------------------------------------------------------------------------------------------------


def test_an_arm_that_says_unknown_more_often_is_refused_unless_it_is_charged():
    for same, charged, result in ((False, False, "fail"), (True, False, "pass"), (False, True, "pass")):
        assert told(unknown.compare([0.03], [0.032], same, charged)) == ("fatal", result)
    assert unknown.compare([0.03], [0.0305], same=False, charged=False).result == "pass"


def test_unknown_words_are_charged_for_their_bytes():
    assert unknown.spelled(8.0, 5) == pytest.approx(8.0 + 5 * math.log(256))
    assert told(unknown.audit(0.02, 0.03, 3.0, 3.5)) == ("warn", "fail")
    assert unknown.audit(0.01, 0.03, 3.0, 3.5).result == "pass"


def test_samples_of_unknown_words_are_degenerate():
    varied = [[4, 5, 6, 7, 1, 8]] * 20
    poor = [[1, 1, 4, 4, 5, 6]] * 20
    assert unknown.degenerate(varied, 1).result == "pass"
    assert "DEGENERATE" in unknown.degenerate(poor, 1).sentence and "67%" in unknown.degenerate(poor, 1).evidence


# ---- training text -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["train_loss", "loss.probe", "train/loss", "training loss", "Train_Perplexity"])
def test_a_measure_of_training_text_is_no_evidence(name):
    assert told(primary.audit(name)) == ("fatal", "fail")


@pytest.mark.parametrize(
    "name", ["loss", "loss.windows", "bits_per_byte", "strain", "eval_loss", "restraint", "accuracy"]
)
def test_a_measure_of_held_out_text_is(name):
    assert primary.audit(name).result == "pass"


def test_held_out_text_that_is_easier_than_training_text_is_odd():
    probe = documents([30.0, 31.0, 29.0, 30.5])
    assert gap.audit(documents([20.0, 21.0, 19.0, 20.5]), probe).result == "fail"
    assert gap.audit(documents([29.9, 30.9, 28.9, 30.4]), probe).result == "pass"
    assert gap.audit(documents([5.0]), probe).result == "pass"  # one document says nothing of the spread


def test_the_error_of_a_loss_is_the_linearised_one():
    """METHOD.md 1.4's oracle, with the differences as sums."""
    mean, error = gap.loss({"nll": np.array([-1, -1, 0.5, -6]), "tokens": np.array([10.0, 20, 5, 40])})
    assert (mean, error) == (pytest.approx(-0.1), pytest.approx(0.0377124, abs=5e-8))


# ---- learning ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "result", "word"),
    [
        ({}, "pass", "better"),
        ({"loss": 5.2}, "fail", "nothing"),
        ({"loss": 4.5}, "fail", "little"),
        ({"loss": 4.5, "bigram": 4.6}, "pass", "better"),
        ({"loss": 0.5, "bits_per_byte": 0.4}, "fail", "too good"),
        ({"loss": 0.5, "bits_per_byte": 0.4, "parameters": 10**9}, "pass", "better"),
    ],
)
def test_a_loss_below_the_floors_and_not_too_far(change, result, word):
    measures = {"loss": 4.0, "unigram": 5.2, "bigram": 4.5, "bits_per_byte": 1.8, "parameters": 10**6}
    found = floor.audit(measures | change)
    assert found.result == result and word in found.sentence


def test_epochs():
    assert epochs.audit(400, 100, 10).result == "pass"
    assert told(epochs.audit(401, 100, 10)) == ("warn", "fail")
    assert told(epochs.audit(100, 100, 0)) == ("fatal", "fail")
    study_5 = epochs.audit(3_200_000 * 128, 1_100_000, 1)
    assert study_5.result == "fail" and "372.36 epochs" in study_5.evidence


def course(tokens=2000, rates=None, losses=None):
    draw = np.random.default_rng(0)
    rates = np.linspace(1, 0, 400) if rates is None else rates
    losses = 3.0 + 0.02 * draw.standard_normal(400) if losses is None else losses
    return undertrain.Course(tokens, 100, list(rates), list(losses))


def test_training_that_stopped_early():
    assert undertrain.audit(course()).result == "pass"
    assert "4.99 tokens" in undertrain.audit(course(tokens=499)).evidence
    assert "ended at 50%" in undertrain.audit(course(rates=np.linspace(1, 0.5, 400))).evidence
    falling = course(losses=np.append(np.full(360, 3.0), np.full(40, 2.9)))
    assert "fell by 3.3%" in undertrain.audit(falling).evidence
    few = undertrain.Course(2000, 100, [1.0, 0.0], [3.0, 1.0])
    assert undertrain.audit(few).result == "pass"  # two steps show no fall


# ---- spikes --------------------------------------------------------------------------------------------------------

STEPS = np.arange(100)
BEFORE = list(np.linspace(4, 3.9, 100) + 0.01 * np.sin(STEPS))


def test_spike_oracle():
    """A hundred points from 4 to 3.9 with a ripple of .01, then 5.2: z = 33.8."""
    assert round(jumps.judged(BEFORE, 5.2).z, 1) == 33.8
    (spike,) = jumps.spikes([*BEFORE, 5.2, 3.9, 3.9])
    assert (spike.step, spike.back) == (100, 101) and round(spike.z, 1) == 33.8


def test_the_window_is_the_last_hundred_steps_before():
    draw = np.random.default_rng(1)
    losses = list(4 + 0.05 * draw.standard_normal(400))
    detector = jumps.Detector()
    for step, loss in enumerate(losses):
        found = detector.judge(loss)
        if step >= 100:
            window = np.array(losses[step - 100 : step])
            mad = 1.4826 * np.median(np.abs(window - np.median(window)))
            assert found.z == pytest.approx((loss - np.median(window)) / max(mad, 1e-3 * np.median(window)))
        assert detector.add(loss) is None


@pytest.mark.parametrize(
    ("after", "count"),
    [([4.4], 0), ([4.4, 4.4, 3.9], 0), ([4.4, 4.4, 4.4], 1), ([5.3], 1), ([3.0] * 5, 0)],
)
def test_three_steps_of_ten_deviations_or_one_of_thirty(after, count):
    assert len(list(jumps.spikes([*BEFORE, *after, 3.9]))) == count


def test_diverged():
    level = [3.9 + 0.01 * math.sin(n) for n in range(300)]
    assert jumps.diverged([*BEFORE, *level], 400) is None
    assert "not over after 200" in jumps.diverged([*BEFORE, *[5.2] * 300], 400)
    assert jumps.diverged([*BEFORE, *[5.2] * 150, *level], 550) is None
    creeping = [*BEFORE, *level, *np.linspace(3.9, 9.0, 2000)]
    assert "times its best" in jumps.diverged(creeping, len(creeping))
    assert jumps.diverged([*BEFORE, math.nan], 400) == "step 100: the loss is nan"
    blind = [2.9 + 0.01 * math.sin(n) for n in range(300)]
    assert "above ln 16" in jumps.diverged(blind, 300, vocabulary=16)
    honest = [2.7738 + 0.01 * math.sin(n) for n in range(300)]  # pure noise, of which nothing can be learnt
    assert jumps.diverged(honest, 300, vocabulary=16) is None
    assert jumps.diverged([9.0, 9.0, 9.0], 3, vocabulary=2) is None  # three steps


def test_a_spike_is_told():
    assert jumps.audit(BEFORE + [3.9] * 20, 120).result == "pass"
    assert "step 100 (z = 33.8)" in jumps.audit([*BEFORE, 5.2, *[3.9] * 20], 121).evidence
    assert jumps.audit(BEFORE[:50], 50).result == "skip"


# ---- pairs ---------------------------------------------------------------------------------------------------------

PLACE = {"python": "3.11.7", "torch": "2.13.0", "device": "cpu", "route": {"threads": 1}}


def test_a_pair_that_was_made_otherwise_is_told():
    assert sameness.reproducible([(PLACE, PLACE)]).result == "pass"
    other = sameness.reproducible([(PLACE, PLACE | {"torch": "2.11.0"})])
    assert other.result == "fail" and other.evidence == "torch: 2.13.0 and 2.11.0"
    assert sameness.mixed([(PLACE, PLACE | {"torch": "2.11.0"})]).result == "pass"
    assert "times and costs are not compared" in sameness.mixed([(PLACE, PLACE | {"device": "H200"})]).sentence
    both = PLACE | {"device": "H200"}
    assert sameness.mixed([(PLACE, PLACE), (both, both)]).result == "pass"  # each pair on one device
    assert sameness.reproducible([({}, {})]).result == sameness.mixed([({}, {})]).result == "skip"


def test_a_larger_challenger_is_told_unless_the_study_matches_that():
    assert size.audit({"parameters": 1.02, "flops": 1.0}).result == "pass"
    assert "more parameters" in size.audit({"parameters": 17 / 14, "flops": 1.0}).sentence
    assert size.audit({"parameters": 0.5, "flops": 0.9}).result == "pass"  # a smaller one has no favour
    assert size.audit({"parameters": 1.1, "flops": 1.0}, matched="parameters").result == "pass"
    assert size.audit({"parameters": math.nan}).result == "skip"


def test_restarts_are_counted_and_must_be_repeated_in_the_pair():
    assert restarts.audit({0: 0, 1: 0}, {0: 0, 1: 0}).result == "pass"
    assert restarts.audit({0: 1}, {0: 1}).result == "pass"
    assert "more often" in restarts.audit({0: 0}, {0: 2}).sentence
    assert "did not see the same batches" in restarts.audit({0: 0}, {0: 0}, unlike=[0]).sentence


# ---- classifiers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "most", "count", "rate"), [("CoLA", 721, 1043, 69.13), ("MRPC", 279, 408, 68.38), ("RTE", 146, 277, 52.71)]
)
def test_known_majority_rates(name, most, count, rate):
    labels = np.array([1] * most + [0] * (count - most))
    assert round(100 * most / count, 2) == rate
    finding = majority.audit(np.ones(count, dtype=int), labels)
    assert told(finding) == ("fatal", "fail") and f"majority rate {rate:.2f}" in finding.evidence
    guess = np.where(np.random.default_rng(0).random(count) < 0.85, labels, 1 - labels)
    assert majority.audit(guess, labels).result == "pass"


def test_published_accuracies_of_study_2():
    rates = {69.1: 69.13, 68.4: 68.38, 52.7: 52.71}
    assert all(majority.collapsed(published / 100, rate / 100) for published, rate in rates.items())
    assert not majority.collapsed(0.809, 0.6838) and not majority.collapsed(0.639, 0.5271)


def test_matthews_correlation():
    true = np.array([1] * 3 + [1] + [0] * 2 + [0] * 2)
    guessed = np.array([1] * 3 + [0] + [1] * 2 + [0] * 2)
    assert majority.matthews(guessed, true) == pytest.approx(0.2581989, abs=5e-8)
    draw = np.random.default_rng(0)
    for _ in range(20):
        a, b = draw.integers(0, 3, (2, 50))
        assert majority.matthews(a, b) == pytest.approx(_by_hand(a, b))


def _by_hand(a, b):
    """Pearson's correlation of the indicator matrices, which is what Gorodkin's coefficient is."""
    x, y = np.eye(3)[a], np.eye(3)[b]
    x, y = x - x.mean(0), y - y.mean(0)
    return (x * y).sum() / math.sqrt((x * x).sum() * (y * y).sum())
