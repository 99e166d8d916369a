"""Next tokens: which of them count, what each costs, and that every one is scored once."""

import numpy as np
import pytest
import torch
from scipy.special import log_softmax
from small import VOCABULARY, network, rows, tiny

from headtohead import CausalLM, Rows
from headtohead.spec import Mistake
from headtohead.study import refuse

NOISE = np.random.default_rng(0)
DOCUMENTS = np.array(
    [[0, 0, 0, 1, 1, 1, 1], [0, 0, 0, -1, -1, -1, -1], [0, 1, 2, 2, -1, -1, -1], [0, 0, 0, 0, 0, 0, 0]]
)
WEIGHTS = [[1, 1, 0, 1, 1, 1], [1, 1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0], [1, 1, 1, 1, 1, 1]]


def four_rows(width=7):
    ids = np.random.default_rng(1).integers(2, 10, (4, width))
    return Rows(ids, np.arange(width)[None], DOCUMENTS)


def test_a_target_counts_if_it_continues_its_document():
    given = four_rows()
    batch = CausalLM().prepare(given, NOISE, VOCABULARY)
    assert batch.weight.view(4, 6).tolist() == WEIGHTS
    assert batch.target.view(4, 6).tolist() == given.ids[:, 1:].tolist()
    assert batch.ids.tolist() == given.ids[:, :-1].tolist()
    assert batch.position.tolist() == [[0, 1, 2, 3, 4, 5]] and batch.document.tolist() == DOCUMENTS[:, :-1].tolist()
    assert batch.scored is None and batch.segments is None


def test_one_document_needs_no_document_numbers():
    ids = np.arange(14).reshape(2, 7) % 8 + 2
    batch = CausalLM().prepare(Rows(ids, np.arange(7)[None], np.zeros((1, 7), dtype=int)), NOISE, VOCABULARY)
    assert batch.document is None and batch.weight.tolist() == [1.0] * 12


@torch.no_grad()
def test_the_loss_is_the_mean_over_what_counts():
    learner = network(tiny()).double()
    batch = CausalLM().prepare(four_rows(), NOISE, VOCABULARY)
    logits = learner.model(batch.ids, batch.position, batch.document).numpy()
    picked = log_softmax(logits, axis=-1)[np.arange(24), batch.target.numpy()].reshape(4, 6)
    by_hand = sum(-picked[r, t] for r in range(4) for t in range(6) if WEIGHTS[r][t])
    term = learner(batch)["loss"]
    assert float(term.sum) == pytest.approx(by_hand, rel=1e-12)
    assert float(term.count) == float(learner.counts(batch)["loss"]) == sum(map(sum, WEIGHTS)) == 14
    assert term.weight == 1.0


@torch.no_grad()
def test_what_does_not_count_changes_no_loss():
    learner, given = network(tiny()).double(), four_rows()
    other = given.ids.copy()
    other[:, 1:] = np.where(np.array(WEIGHTS) == 1, other[:, 1:], (other[:, 1:] + 1) % 10)
    other[DOCUMENTS >= 0] = given.ids[DOCUMENTS >= 0]  # padding alone
    assert (other != given.ids).sum() == 7
    losses = [
        learner(CausalLM().prepare(given._replace(ids=ids), NOISE, VOCABULARY))["loss"] for ids in (given.ids, other)
    ]
    assert float(losses[0].sum) == pytest.approx(float(losses[1].sum), rel=1e-12)


def held_out(fresh):
    given = four_rows()._replace(document=np.zeros((1, 7), dtype=int))
    columns = [np.arange(28).reshape(4, 7) + base for base in (100, 200, 300)]
    return given._replace(fresh=fresh, source=columns[0], bytes=columns[1], characters=columns[2])


def test_an_exam_scores_what_is_fresh():
    fresh = np.random.default_rng(2).random((4, 7)) < 0.4
    fresh[:, 0] = False
    given = held_out(fresh)
    (exam,) = CausalLM().exams(given, VOCABULARY)
    where = [(row, place) for row in range(4) for place in range(7) if fresh[row, place]]
    assert exam.batch.target.tolist() == [given.ids[spot] for spot in where]
    assert exam.batch.scored.tolist() == [row * 6 + place - 1 for row, place in where]
    for name in ("source", "bytes", "characters"):
        assert getattr(exam, name).tolist() == [getattr(given, name)[spot] for spot in where]
    assert exam.batch.weight.tolist() == [1.0] * len(where) and exam.batch.keys is None


@torch.no_grad()
def test_an_exam_costs_what_the_full_rows_cost_there():
    learner = network(tiny()).double().eval()
    (exam,) = CausalLM().exams(held_out(np.arange(28).reshape(4, 7) % 3 == 1), VOCABULARY)
    full = learner.score(CausalLM().prepare(held_out(None), NOISE, VOCABULARY))
    torch.testing.assert_close(learner.score(exam.batch), full[exam.batch.scored], rtol=1e-12, atol=0)


def test_a_batch_needs_no_noise():
    batches = [CausalLM().prepare(rows(7), np.random.default_rng(seed), VOCABULARY) for seed in (0, 1)]
    assert all(torch.equal(*pair) for pair in zip(*batches, strict=True) if pair[0] is not None)


def test_a_zero_mask_is_refused_where_nothing_is_masked():
    with pytest.raises(Mistake, match=r"^model\.embedding: a zero mask vector needs masks, and objective has none$"):
        refuse(tiny({"model.embedding.mask": "zero"}))
