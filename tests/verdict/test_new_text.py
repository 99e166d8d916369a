"""Documents in a study's folder: what the verdict says of new text, and when it says nothing."""

import math

import numpy as np
import pytest

from headtohead.verdict.documents import checkpoints, crossed, effects_by_document
from headtohead.verdict.judge import judge


def documents(out, arm, seed, nll, tokens, **columns):
    count = len(tokens)
    whole = {"document": np.arange(count), "nll": nll, "tokens": tokens, "bytes": 4.0 * tokens, "characters": tokens}
    np.savez(out / f"arms/{arm}/seed{seed}/documents.npz", **(whole | columns))


@pytest.fixture
def study(write):
    """A study whose losses are those of its documents."""

    def make(seeds=3, count=40, **changes):
        draw = np.random.default_rng(0)
        tokens = draw.integers(20, 400, size=count).astype(float)
        nll = {arm: tokens * draw.normal(3, 0.1, size=(seeds, count)) for arm in ("baseline", "small")}
        losses = {arm: (rows.sum(axis=1) / tokens.sum()).tolist() for arm, rows in nll.items()}
        out = write(losses, **changes)
        for arm, rows in nll.items():
            for seed, row in enumerate(rows):
                documents(out, arm, seed, row, tokens)
        return out, nll["small"] - nll["baseline"], tokens

    return make


def found(out):
    return judge(out)["arms"]["small"]["new_text"]


def test_seeds_and_documents_together(study):
    out, z, n = study()
    entry, by_hand = judge(out)["arms"]["small"], crossed(effects_by_document(z, n))
    said = entry["new_text"]
    assert (said["question"], said["documents"]) == ("E_both", 40)
    assert said["effect"] == pytest.approx(by_hand.effect) == pytest.approx(entry["effect"])
    assert said["interval"] == pytest.approx(by_hand.interval) and said["df"] == pytest.approx(by_hand.df)
    assert list(said["variances"].values()) == pytest.approx(by_hand.variances)
    assert said["advice"] == by_hand.advice and said["share_seed"] == pytest.approx(by_hand.share_seed)


def test_below_three_seeds_each_pair_of_checkpoints_speaks_for_itself(study):
    out, z, n = study(seeds=2)
    said = found(out)
    assert said["question"] == "E_ckpt" and [each["seed"] for each in said["checkpoints"]] == [0, 1]
    for row, each in zip(z, said["checkpoints"], strict=True):
        by_hand = checkpoints(row, n)
        assert each["effect"] == pytest.approx(by_hand.effect) and each["interval"] == pytest.approx(by_hand.interval)
        assert each["interval_resampled"] == pytest.approx(each["interval"], abs=0.3 * np.ptp(each["interval"]))


def test_few_documents_are_not_resampled_and_say_nothing_of_both(study):
    assert found(study(seeds=1, count=19)[0])["checkpoints"][0]["interval_resampled"] is None


def test_too_few_documents_for_both(study):
    assert found(study(count=29)[0]) == {"reason": "29 documents, of the 30 that an answer on new text needs"}


def test_bits_are_counted_by_bytes(study):
    out, z, n = study(primary={"name": "bits_per_byte", "unit": "bits per byte", "better": "lower"}, margin=0.01)
    for arm in ("baseline", "small"):
        for seed in range(3):
            measures = out / f"arms/{arm}/seed{seed}/measures.json"
            measures.write_text('{"bits_per_byte": 1.0, "evaluation": "text-1"}')
    assert found(out)["effect"] == pytest.approx((z.sum(axis=1) / (4 * n.sum())).mean() / math.log(2))


def test_other_documents_are_not_compared(study):
    out, _, n = study()
    documents(out, "small", 1, 3 * n, n, document=np.arange(len(n)) + 1)
    assert "same documents" in found(out)["reason"]
    documents(out, "small", 1, 3 * n, n + 1)
    assert "same documents" in found(out)["reason"]


def test_a_document_without_scored_tokens_does_not_count(study):
    out, z, n = study(count=41)
    for arm in ("baseline", "small"):
        for seed in range(3):
            path = out / f"arms/{arm}/seed{seed}/documents.npz"
            with np.load(path) as columns:
                kept = dict(columns)
            kept["nll"][0] = kept["tokens"][0] = 0.0
            np.savez(path, **kept)
    assert found(out)["effect"] == pytest.approx((z[:, 1:].sum(axis=1) / n[1:].sum()).mean())
    assert found(out)["documents"] == 40


def test_no_documents_and_a_measure_that_is_no_mean_over_them(study, write):
    out, _, _ = study()
    (out / "arms/small/seed2/documents.npz").unlink()
    assert found(out) is None
