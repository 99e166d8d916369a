"""Masked tokens: which are chosen, what becomes of them, and that held-out choices never move."""

import math
from typing import NamedTuple

import numpy as np
import pytest
import torch
from scipy.special import log_softmax
from scipy.stats import chisquare
from small import VOCABULARY, network, tiny

from headtohead import BytePairs, Embedding, MaskedLM, Rows, at
from headtohead.spec import Mistake
from headtohead.study import refuse
from headtohead.text.exam import REPLICATES, exam_sets
from headtohead.text.vocabulary import CharacterVocabulary, WordVocabulary

LETTERS = CharacterVocabulary("".join(map(chr, range(0x4E00, 0x4E00 + 500))), False)  # <pad>, <unk> and 500
WORDS = WordVocabulary(tuple(f"w{number}" for number in range(50)))  # <pad>, <UNK>, <START>, <STOP> and 50
MASK = LETTERS.size


def plain_rows(count, width, seed=0):
    ids = np.random.default_rng(seed).integers(2, LETTERS.size, (count, width))
    return Rows(ids, np.arange(width)[None], np.zeros((1, width), dtype=int))


class Counted(NamedTuple):
    """What a batch did to its rows, counted by whoever looks at it."""

    chosen: np.ndarray  # rows × width
    masked: np.ndarray
    moved: np.ndarray
    kept: np.ndarray


def counted(objective, given, seed=0, vocabulary=LETTERS):
    batch = objective.prepare(given, np.random.default_rng(seed), vocabulary)
    chosen = np.zeros(given.ids.size, dtype=int)
    np.add.at(chosen, batch.scored.numpy()[batch.weight.numpy() == 1], 1)
    assert set(batch.weight.tolist()) <= {0.0, 1.0} and chosen.max() <= 1
    chosen, ids = chosen.reshape(given.ids.shape).astype(bool), batch.ids.numpy()
    assert (ids == given.ids)[~chosen].all()
    masked = chosen & (ids == vocabulary.size)
    moved = chosen & ~masked & (ids != given.ids)
    assert (batch.target.numpy() == given.ids.reshape(-1)[batch.scored.numpy()]).all()
    return Counted(chosen, masked, moved, chosen & ~masked & ~moved)


def within(count, trials, p, errors=4.0):
    """Whether a count of independent trials is as likely as it should be."""
    return abs(count - trials * p) <= errors * math.sqrt(trials * p * (1 - p))


@pytest.mark.parametrize("count", ["independent", "exact"])
@pytest.mark.parametrize("shares", [(0.8, 0.1), (0.5, 0.3), (1.0, 0.0), (0.0, 1.0)])
def test_shares_of_masked_random_and_kept(count, shares):
    found = counted(MaskedLM(masked=shares[0], random=shares[1], count=count), plain_rows(256, 128))
    total, other = found.chosen.sum(), (LETTERS.size - 1 - 1) / (LETTERS.size - 1)  # a random one may be the same again
    assert within(found.masked.sum(), total, shares[0])
    assert within(found.moved.sum(), total, shares[1] * other)
    assert within(found.kept.sum(), total, 1 - shares[0] - shares[1] * other)
    assert found.masked.sum() + found.moved.sum() + found.kept.sum() == total


@pytest.mark.parametrize("rate", [0.15, 0.4])
def test_independent_counts_are_binomial(rate):
    found = counted(MaskedLM(rate=rate), plain_rows(2000, 64)).chosen
    counts, variance = found.sum(1), 64 * rate * (1 - rate)
    assert within(found.sum(), found.size, rate)
    assert abs(counts.var() / variance - 1) < 4 * math.sqrt(2 / 2000)
    for pairs in (found[:, 1:] & found[:, :-1], found[1:] & found[:-1]):  # neighbours know nothing of each other
        assert within(pairs.sum(), pairs.size, rate**2, 5.0)


@pytest.mark.parametrize(
    ("rate", "width", "quota"), [(0.15, 64, 10), (0.15, 3, 1), (0.4, 7, 3), (0.5, 9, 4), (0.01, 64, 1)]
)
def test_exact_counts_are_exact_and_every_place_is_as_likely(rate, width, quota):
    """round(rate · n), at least one; .15 · 64 = 9.6, .4 · 7 = 2.8, .5 · 9 = 4.5 to the even one."""
    found = counted(MaskedLM(rate=rate, count="exact"), plain_rows(1500, width)).chosen
    assert set(found.sum(1)) == {quota}
    # of a draw without replacement: the statistic is smaller by 1 − quota / width than that of independent ones
    statistic = chisquare(found.sum(0)).statistic * (width - 1) / (width - quota)
    assert statistic < width - 1 + 5 * math.sqrt(2 * (width - 1))


def test_strangers_are_uniform_over_plain_tokens():
    given = plain_rows(400, 64)
    batch = MaskedLM(rate=0.9, masked=0.0, random=1.0).prepare(given, np.random.default_rng(0), LETTERS)
    scored = batch.scored[batch.weight > 0]
    drawn = np.bincount(batch.ids.view(-1)[scored].numpy(), minlength=LETTERS.size + 1)
    assert drawn[0] == drawn[MASK] == 0
    assert chisquare(drawn[1:MASK]).pvalue > 1e-3


def lines():
    """START words STOP and padding, in rows of 12; the last row is padding alone."""
    ids = np.zeros((6, 12), dtype=int)
    for row, length in enumerate((12, 9, 5, 3, 2)):
        ids[row, :length] = [2, *(4 + np.arange(length - 2) % 50), 3]
    document = np.where(ids == 0, -1, 0)
    return Rows(ids, np.arange(12)[None], document)


@pytest.mark.parametrize("count", ["independent", "exact"])
def test_specials_and_padding_are_never_chosen_nor_drawn(count):
    given, plain = lines(), lines().ids >= 4
    met = np.zeros(given.ids.shape, dtype=bool)
    for seed in range(200):
        objective = MaskedLM(rate=0.5, masked=0.4, random=0.5, count=count)
        found = counted(objective, given, seed, WORDS)
        assert not (found.chosen & ~plain).any()
        met |= found.chosen
        ids = objective.prepare(given, np.random.default_rng(seed), WORDS).ids.numpy()[found.moved]
        assert ((ids >= 4) & (ids < WORDS.size)).all()
        if count == "exact":
            assert found.chosen.sum(1).tolist() == [5, 4, 2, 1, 0, 0]  # .5 · 7 = 3.5 and .5 · 3 = 1.5 to the even one
    assert (met == plain).all()


def test_padding_is_told_by_its_document_and_not_by_its_id():
    given = plain_rows(50, 20)
    document = np.where(np.arange(20) < 13, 0, -1) * np.ones((50, 1), dtype=int)
    found = counted(MaskedLM(rate=0.9), given._replace(document=document))
    assert not found.chosen[:, 13:].any() and found.chosen[:, :13].mean() > 0.8


@pytest.mark.parametrize("count", ["independent", "exact"])
def test_a_batch_is_a_function_of_its_noise_alone(count):
    given, objective = plain_rows(8, 32), MaskedLM(count=count)
    batches = [objective.prepare(given, np.random.default_rng(5), LETTERS)]
    np.random.seed(1)
    torch.manual_seed(1)
    states = np.random.get_state()[1].copy(), torch.get_rng_state()
    batches.append(objective.prepare(given, np.random.default_rng(5), LETTERS))
    assert (np.random.get_state()[1] == states[0]).all() and torch.equal(torch.get_rng_state(), states[1])
    assert all(torch.equal(*pair) for pair in zip(*batches, strict=True) if pair[0] is not None)
    other = objective.prepare(given, np.random.default_rng(6), LETTERS)
    assert not torch.equal(other.ids, batches[0].ids)


class Lowest:
    """Noise under which every token is chosen, however low the rate."""

    def random(self, shape):
        return np.zeros(shape)

    def integers(self, low, high, shape):
        return np.full(shape, low)


def test_shapes_stay_put_and_nothing_chosen_is_lost():
    for count in ("independent", "exact"):
        objective = MaskedLM(count=count)
        found = [objective.prepare(plain_rows(8, 32, seed), np.random.default_rng(seed), LETTERS) for seed in range(50)]
        assert len({batch.scored.shape for batch in found}) == 1
    assert MaskedLM(rate=0.01).prepare(plain_rows(8, 32), Lowest(), LETTERS).weight.sum() == 8 * 32


@torch.no_grad()
@pytest.mark.parametrize("count", ["independent", "exact"])
def test_the_loss_is_the_mean_over_the_chosen(count):
    objective = MaskedLM(rate=0.4, count=count)
    learner = network(tiny(objective=objective)).double()
    ids = np.random.default_rng(3).integers(2, 10, (5, 6))
    document = np.array([[0] * 6, [0, 0, 1, 1, 1, 1], [0, 0, 0, -1, -1, -1], [0] * 6, [-1] * 6])
    given = Rows(ids, np.arange(6)[None], document)
    batch = objective.prepare(given, np.random.default_rng(0), VOCABULARY)
    where = batch.scored[batch.weight > 0].numpy()
    assert 0 < len(where) < len(batch.scored)
    logits = learner.model(batch.ids, batch.position, batch.document).numpy()[where]
    by_hand = -log_softmax(logits, axis=-1)[np.arange(len(where)), ids.reshape(-1)[where]].sum()
    term = learner(batch)["loss"]
    assert float(term.sum) == pytest.approx(by_hand, rel=1e-12) and float(term.count) == len(where)


def exam_rows(count=23, width=20):
    """Held-out rows of different lengths, each token with figures of its own; some are not to be scored here."""
    draw = np.random.default_rng(8)
    ids = draw.integers(4, WORDS.size, (count, width))
    ids[:, 0] = 2
    document = np.where(np.arange(width) < draw.integers(1, width + 1, (count, 1)), 0, -1)
    fresh = (document >= 0) & (np.arange(width) >= draw.integers(0, 4, (count, 1)))
    numbers = np.arange(count * width).reshape(count, width)
    able = fresh & (ids >= 4)
    exam = exam_sets(np.append(0, np.cumsum([7 * width, width, 0, (count - 8) * width])), able.reshape(-1))
    figures = (numbers, fresh, numbers + 1, numbers + 2, exam.reshape(count, width))
    return Rows(ids, np.tile(np.arange(width), (count, 1)), document, *figures)


def sat(given, batch, objective=None):
    """(replicate, number of the token) of all that is scored, batch by batch."""
    found = []
    for first in range(0, len(given.ids), batch):
        part = Rows(*(column[first : first + batch] for column in given))
        sets = range(REPLICATES)
        for replicate, exam in zip(sets, (objective or MaskedLM()).exams(part, WORDS), strict=True):
            found += [(replicate, int(number)) for number in exam.source]
            where, original = exam.batch.scored.numpy(), part.ids.reshape(-1)
            ids = exam.batch.ids.numpy().reshape(-1)
            assert (ids[where] == WORDS.size).all() and (np.delete(ids, where) == np.delete(original, where)).all()
            assert (exam.batch.target.numpy() == original[where]).all() and (exam.batch.weight == 1).all()
            assert (exam.bytes == exam.source + 1).all() and (exam.characters == exam.source + 2).all()
    return sorted(found)


def test_an_exam_masks_what_its_set_says_and_nothing_else():
    given = exam_rows()
    marked = [
        (replicate, number)
        for replicate in range(4)
        for number in np.flatnonzero(given.exam.reshape(-1) >> replicate & 1)
    ]
    assert sat(given, 23) == marked and len(marked) > 4 * 25
    sets = [frozenset(number for which, number in marked if which == replicate) for replicate in range(4)]
    assert len(set(sets)) == 4
    unseen = given._replace(fresh=given.fresh & (np.arange(20) % 2 == 0))
    assert sat(unseen, 23) == [(replicate, number) for replicate, number in marked if number % 2 == 0]


def test_an_exam_is_the_same_however_rows_are_batched_and_whatever_is_trained():
    given = exam_rows()
    whole = sat(given, 23)
    assert all(sat(given, batch) == whole for batch in (1, 2, 5, 22))
    assert sat(given, 23, MaskedLM(rate=0.4, masked=0.1, random=0.7, count="exact")) == whole


OWN = BytePairs(300, specials=("<s>", "<pad>", "</s>", "<unk>", "<mask>")).train(["ab"])


def test_a_mask_among_the_vocabularys_own_tokens_is_used():
    given = Rows(np.full((4, 50), 9), np.arange(50)[None], np.zeros((1, 50), dtype=int))
    batch = MaskedLM(masked=0.5, random=0.5).prepare(given, np.random.default_rng(0), OWN)
    changed = batch.ids.reshape(-1)[batch.scored[batch.weight > 0]]
    assert OWN.mask == 4 and (changed == 4).sum() > 5
    assert set(np.unique(batch.ids.numpy())) <= {4, *range(5, OWN.size)}


def test_a_model_has_no_second_mask():
    recipe = tiny(objective=MaskedLM(), tokenizer=BytePairs(300, specials=("<s>", "<pad>", "</s>", "<mask>")))
    assert recipe.size(300).vocabulary == 300
    assert at(recipe, {"tokenizer": BytePairs(300)}).size(300).vocabulary == 301
    with pytest.raises(Mistake, match=r"model\.embedding: a zero mask vector is no token of the vocabulary"):
        refuse(at(recipe, {"model.embedding": Embedding(mask="zero")}))


@pytest.mark.parametrize(
    ("objective", "reason"),
    [
        (MaskedLM(rate=0.0), "objective: rate = 0.0 must lie between 0 and 1"),
        (MaskedLM(rate=1.0), "objective: rate = 1.0 must lie between 0 and 1"),
        (
            MaskedLM(masked=0.9, random=0.2),
            "objective: masked = 0.9 and random = 0.2 must be shares that add up to at most 1",
        ),
        (MaskedLM(random=-0.1), "objective: masked = 0.8 and random = -0.1 must be shares that add up to at most 1"),
    ],
)
def test_rates_that_cannot_be_are_refused(objective, reason):
    with pytest.raises(Mistake) as raised:
        refuse(tiny(objective=objective))
    assert str(raised.value) == reason
