"""The loop: what it clips, which rate it applies, that pieces are the whole, that bits repeat, and that NaN is seen."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from small import VOCABULARY, batch_of, loss_of, network, rows, tiny
from torch import nn

from headtohead import Custom, Dropout, Everyone, File, MaskedLM, MultiHead, Muon, Recipe, Transformer, Words, at
from headtohead.objectives import cut
from headtohead.parts.dropout import row_keys
from headtohead.run import batches
from headtohead.text.cache import prepare
from headtohead.text.examples import Rows
from headtohead.train import Route, accumulate, train

EAGER = Route()
DROPOUT = Dropout(embedding=0.1, weights=0.2, attention=0.1, feedforward=0.3)


def fed(batch, steps=1):
    """The same batch again and again, as the loop takes them."""
    return ((step, [batch], f"batch {step}") for step in range(steps))


def sgd(learner):
    return [torch.optim.SGD(learner.parameters(), lr=0.0)]


def copied(learner):
    return {name: parameter.detach().clone() for name, parameter in learner.named_parameters()}


def gradient(learner, batch):
    """The gradient of the loss, by torch's own function."""
    names, parameters = zip(*learner.named_parameters(), strict=True)
    return dict(zip(names, torch.autograd.grad(loss_of(learner, batch), parameters), strict=True))


def norm(tensors):
    return math.sqrt(sum(float(tensor.double().square().sum()) for tensor in tensors))


@pytest.mark.parametrize("share", [0.5, 2.0, None])
def test_the_gradient_is_clipped_to_a_norm(share):
    """At half its norm the step is half as long, at twice its norm as long as without clipping."""
    recipe = tiny()
    learner, batch = network(recipe), batch_of(recipe)
    before, slope = copied(learner), gradient(learner, batch)
    size = norm(slope.values())
    clip = share * size if share else 0.0
    (step,) = train(learner, sgd(learner), fed(batch), lambda step: 0.1, clip, EAGER)
    assert step.norm == pytest.approx(size, rel=1e-5)
    for name, parameter in learner.named_parameters():
        expected = before[name] - 0.1 * (0.5 if share == 0.5 else 1.0) * slope[name]
        torch.testing.assert_close(parameter.detach(), expected, atol=1e-6, rtol=1e-5)


def test_each_step_has_its_rate_and_the_gradient_is_forgotten_after_it():
    recipe, rates = tiny(), [0.1, 0.0, 0.03]
    learner, by_hand, batch = network(recipe), network(recipe), batch_of(recipe)
    steps = train(learner, sgd(learner), fed(batch, 3), lambda step: rates[step], 0.0, EAGER)
    for number, step in enumerate(steps):
        loss, slope = loss_of(by_hand, batch), gradient(by_hand, batch)
        with torch.no_grad():
            for name, parameter in by_hand.named_parameters():
                parameter -= rates[number] * slope[name]
        assert (step.step, step.rate, step.batch) == (number, rates[number], f"batch {number}")
        assert step.loss == pytest.approx(loss.item(), rel=1e-6) and step.terms == {"loss": step.loss}
        for ours, theirs in zip(learner.parameters(), by_hand.parameters(), strict=True):
            torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=1e-5)
            assert ours.grad is None


def test_every_optimizer_gets_the_rate():
    learner = network(tiny())
    optimizers = Muon(rate=3.0).optimizers(learner)
    assert len(optimizers) == 2
    list(train(learner, optimizers, fed(batch_of(tiny())), lambda step: 0.0625, 1.0, EAGER))
    assert {group["lr"] for optimizer in optimizers for group in optimizer.param_groups} == {0.0625}


def test_it_trains_in_training_mode():
    learner = network(tiny()).eval()
    next(train(learner, sgd(learner), fed(batch_of(tiny())), lambda step: 0.0, 1.0, EAGER))
    assert all(module.training for module in learner.modules())


OBJECTIVES = {
    "causal": {},
    "masked": {"objective": MaskedLM(rate=0.3)},
    "masked, exactly": {"objective": MaskedLM(rate=0.3, count="exact")},
    "hardly masked": {"objective": MaskedLM(rate=0.08)},
}


def eight_rows(recipe):
    """Rows of several documents and of padding, so that every piece has another number of scored positions."""
    four = [rows(recipe.length + recipe.objective.ahead, seed) for seed in range(4)]
    given = Rows(*(np.concatenate(columns) for columns in zip(*four, strict=True)))
    order = [0, 2, 4, 6, 1, 3, 5, 7]  # padding in the second half
    given = Rows(*(column[order] for column in given[:3]))
    batch = recipe.objective.prepare(given, np.random.default_rng(0), VOCABULARY)
    return batch._replace(keys=row_keys(0, 7, np.arange(8)))


@pytest.mark.parametrize("pieces", [1, 2, 4, 8])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_pieces_add_up_to_the_whole(objective, pieces):
    recipe = at(tiny(**OBJECTIVES[objective]), {"model.dropout": DROPOUT, "model.layers": 2})
    learner, batch = network(recipe).double(), eight_rows(recipe)
    whole, slope = loss_of(learner, batch), gradient(learner, batch)
    parts = cut(batch, pieces)
    counts = {int(part.weight.sum()) for part in parts}
    assert len(counts) > 1 or pieces == 1
    if objective == "hardly masked" and pieces == 8:
        assert 0 in counts  # a piece without anything to score
    terms = accumulate(learner, parts, EAGER)
    assert terms["loss"].item() == pytest.approx(whole.item(), rel=1e-6)
    size = norm(slope.values())
    for name, parameter in learner.named_parameters():
        assert float((parameter.grad - slope[name]).abs().max()) < 1e-6 * size, name
    without = batch._replace(keys=None)
    assert loss_of(learner, without).item() != pytest.approx(whole.item(), rel=1e-6)  # dropout was on


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_pieces_score_what_the_whole_scores(objective):
    recipe = tiny(**OBJECTIVES[objective])
    batch = eight_rows(recipe)
    parts = cut(batch, 4)
    assert torch.equal(torch.cat([part.ids for part in parts]), batch.ids)
    assert torch.equal(
        torch.cat([part.target for part in parts]), batch.target[(batch.weight > 0) | (batch.scored is None)]
    )
    assert sum(part.weight.sum() for part in parts) == batch.weight.sum()
    assert torch.equal(torch.cat([part.keys for part in parts]), batch.keys)


def test_pieces_of_rows_that_share_their_positions():
    recipe = tiny()
    ids = np.random.default_rng(0).integers(2, 10, (4, 7))
    batch = recipe.objective.prepare(Rows(ids, np.arange(7)[None], np.zeros((1, 7), dtype=int)), None, VOCABULARY)
    learner = network(recipe).double()
    whole = learner(batch)["loss"].sum
    parts = [learner(piece)["loss"].sum for piece in cut(batch, 2)]
    torch.testing.assert_close(sum(parts), whole, rtol=1e-12, atol=0)


def test_a_step_with_nothing_to_score_changes_nothing():
    recipe = tiny()
    learner, batch = network(recipe), batch_of(recipe)
    before = copied(learner)
    (step,) = train(learner, sgd(learner), fed(batch._replace(weight=batch.weight * 0)), lambda step: 1.0, 1.0, EAGER)
    assert step.loss == step.norm == 0.0
    assert all(torch.equal(parameter, before[name]) for name, parameter in learner.named_parameters())


@pytest.fixture(scope="module")
def recipe(prose):
    """Both sides seen, words masked, dropout on, in two pieces a step: what of the loop could be random is in it."""
    model = Transformer(layers=2, heads=2, width=16, dropout=DROPOUT, attention=MultiHead(visibility=Everyone()))
    return Recipe(
        model=model,
        objective=MaskedLM(),
        text=File(str(prose)),
        tokenizer=Words(1),
        length=16,
        batch=8,
        accumulate=2,
        steps=20,
    )


def trained(recipe, steps=5, route=EAGER, seed=0):
    """The learner after some steps on real batches, and those steps."""
    tokens = prepare(recipe.text, recipe.tokenizer)
    learner = recipe.learner(tokens.vocabulary.size, seed)
    if route.compiled:
        learner.model.accelerate()
    stream = batches(replace(recipe, steps=steps), tokens, seed, 0)
    made = list(train(learner, recipe.optimizer.optimizers(learner), stream, lambda step: 1e-2, recipe.clip, route))
    return learner, [step._replace(seconds=0.0) for step in made]


def test_the_same_seed_gives_the_same_bits(recipe):
    (one, steps), (other, again) = trained(recipe, 8), trained(recipe, 8)
    assert steps == again and len(steps) == 8 and steps[-1].loss < steps[0].loss
    assert all(torch.equal(*pair) for pair in zip(one.parameters(), other.parameters(), strict=True))
    _, elsewhere = trained(recipe, 8, seed=1)
    assert not {step.loss for step in steps} & {step.loss for step in elsewhere}
    assert not {step.batch for step in steps} & {step.batch for step in elsewhere}


def test_nothing_is_drawn_from_torchs_generator(recipe):
    torch.manual_seed(1)
    _, one = trained(recipe, 3)
    torch.manual_seed(2)
    _, other = trained(recipe, 3)
    assert one == other


@pytest.mark.parametrize("pieces", [1, 4])
def test_pieces_change_no_more_than_rounding(recipe, pieces):
    (_, whole), (_, cut_up) = trained(recipe, 5), trained(replace(recipe, accumulate=pieces), 5)
    assert [step.batch for step in whole] == [step.batch for step in cut_up]
    np.testing.assert_allclose([step.loss for step in cut_up], [step.loss for step in whole], rtol=1e-4)


def test_bfloat16_stays_close(recipe):
    (_, exact), (learner, rounded) = trained(recipe), trained(recipe, route=Route(dtype="bfloat16"))
    distance = [abs(a.loss - b.loss) for a, b in zip(exact, rounded, strict=True)]
    assert 0 < max(distance) < 0.05  # bfloat16 has 8 bits, and losses are about 4
    assert {parameter.dtype for parameter in learner.parameters()} == {torch.float32}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # torch's compiler warns of its own code
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_compiled_stays_close(recipe, dtype):
    (_, eager), (_, compiled) = (
        trained(recipe, route=Route(dtype=dtype)),
        trained(recipe, route=Route(dtype=dtype, compiled=True)),
    )
    tolerance = 1e-4 if dtype == "float32" else 0.02
    np.testing.assert_allclose([step.loss for step in compiled], [step.loss for step in eager], rtol=tolerance)
    assert [step.batch for step in compiled] == [step.batch for step in eager]


def test_a_loss_that_is_not_a_number_is_shown_and_not_repaired():
    recipe = tiny()
    learner, batch = network(recipe), batch_of(recipe)
    learner.model.embedding.token.weight.data[:, 0] = float("nan")
    steps = list(train(learner, sgd(learner), fed(batch, 2), lambda step: 0.1, 1.0, EAGER))
    assert [math.isnan(step.loss) and math.isnan(step.norm) for step in steps] == [True, True]


class Cliff(nn.Module):
    """Finite logits whose slope is infinite: √w at w = 0."""

    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(size.vocabulary))

    def forward(self, ids):
        return self.weight.sqrt().expand(*ids.shape, -1)


def test_a_gradient_that_is_infinite_is_shown():
    recipe = tiny({"model": Custom(Cliff)})
    learner = recipe.learner(VOCABULARY.size, 0)
    (step,) = train(learner, sgd(learner), fed(batch_of(recipe)), lambda step: 0.1, 1.0, EAGER)
    assert step.loss == pytest.approx(math.log(VOCABULARY.size)) and not math.isfinite(step.norm)
