"""Who reads the future is found, and nobody else: our own variants and models of the user's, at three kinds of weights."""

import math
import re

import pytest
import torch
import torch.nn.functional as F
from small import batch_of, every, refused, tiny
from torch import nn

from headtohead import (
    Alibi,
    Custom,
    Everyone,
    MaskedLM,
    MinusInfinity,
    MultiHead,
    Objective,
    Position,
    RelativeBuckets,
    Residual,
    ReZero,
    Rotary,
    Score,
    Sigmoid,
    SoftmaxN,
    Window,
    ZeroAfter,
    ZeroThenRenormalize,
    at,
)
from headtohead.audit.arm import audit_network, audit_start
from headtohead.audit.causality import audit, cuts, redrawn
from headtohead.spec import short
from headtohead.train import Route, train

LENGTH, VOCABULARY = 16, 10
WITH = {
    "nothing": {},
    "ReZero": {"model.residual": ReZero()},
    "SoftmaxN": {"model.attention.normalizer": SoftmaxN(n=1.0)},
    "Alibi": {"model.position": Alibi()},
    "Rotary": {"model.position": Rotary()},
    "RelativeBuckets": {"model.position": RelativeBuckets()},
    "Window": {"model.attention.visibility": Window(4)},
}
WEIGHTS = ("as they start", "redrawn", "trained")


def recipe_with(changes, **more):
    """Two layers, length 16."""
    return at(tiny({"model.layers": 2} | changes, **more), {"length": LENGTH})


def weights(recipe, kind):
    """A network of a recipe: as it starts, redrawn, or after twenty steps."""
    learner = recipe.learner(VOCABULARY, 0)
    if kind == "redrawn":
        return redrawn(learner.model)
    if kind == "trained":
        stream = ((step, [batch_of(recipe, step)], "") for step in range(20))
        list(train(learner, recipe.optimizer.optimizers(learner), stream, lambda step: 0.01, 1.0, Route()))
    return learner.model


def found(recipe, kind="redrawn"):
    return audit(weights(recipe, kind), LENGTH, VOCABULARY, "before")


def figures(finding):
    """What the evidence says: the move, what is allowed, the gradient, the prefix."""
    pattern = r"move earlier logits by (\S+) \(allowed (\S+)\), gradient (\S+), prefix alone (\S+)$"
    return [float(figure) for figure in re.search(pattern, finding.evidence).groups()]


@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("case", WITH)
@pytest.mark.parametrize("masking", [MinusInfinity(), ZeroThenRenormalize()], ids=short)
def test_honest_attention_passes(masking, case, kind):
    recipe = recipe_with(WITH[case] | {"model.attention.masking": masking})
    if refused(recipe):
        assert (masking, case) == (ZeroThenRenormalize(), "SoftmaxN")
        return
    finding = found(recipe, kind)
    assert (finding.id, finding.result, finding.when) == ("A-CAUSAL", "pass", "before"), finding
    moved, allowed, slope, prefix = figures(finding)
    assert moved < 1e-12 and slope < 1e-12 and prefix < 1e-12 and allowed >= 1e-9


@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("case", WITH)
def test_zeroing_after_the_softmax_fails_with_its_figures(case, kind):
    finding = found(recipe_with(WITH[case] | {"model.attention.masking": ZeroAfter()}), kind)
    if case == "ReZero" and kind == "as they start":
        assert finding.result == "pass"  # its gates are shut: this is why weights are redrawn
        return
    assert (finding.severity, finding.result) == ("fatal", "fail")
    assert finding.sentence == "It sees the future: later tokens change earlier predictions."
    moved, allowed, slope, prefix = figures(finding)
    assert moved > 100 * allowed and slope > 1e-6 and prefix > 100 * allowed


def test_the_figures_are_those_of_the_model():
    """The largest move by hand, over all the future's tokens one at a time, is of the size that the audit gives."""
    network = weights(recipe_with({"model.attention.masking": ZeroAfter()}), "redrawn")
    moved, allowed = figures(audit(network, LENGTH, VOCABULARY, "before"))[:2]
    double = network.double().eval()
    ids = torch.randint(VOCABULARY, (8, LENGTH), generator=torch.Generator().manual_seed(9))
    position = torch.arange(LENGTH)[None]
    by_hand = 0.0
    with torch.no_grad():
        before = double(ids, position).view(8, LENGTH, -1)
        for shift in range(1, VOCABULARY):
            other = torch.cat([ids[:, :4], (ids[:, 4:] + shift) % VOCABULARY], 1)
            by_hand = max(by_hand, float((double(other, position).view(8, LENGTH, -1) - before)[:, :4].abs().max()))
    assert moved / 5 < by_hand < 5 * moved
    assert allowed == 1e-9


def test_what_looks_at_no_other_key_may_be_zeroed_after():
    """A sigmoid of each score knows nothing of the others: the same slip, and no leak."""
    for kind in WEIGHTS:
        recipe = recipe_with({"model.attention.masking": ZeroAfter(), "model.attention.normalizer": Sigmoid()})
        assert found(recipe, kind).result == "pass"


def test_no_mask_at_all_fails():
    assert found(recipe_with({"model.attention.visibility": Everyone()}), "as they start").result == "fail"


@pytest.mark.parametrize("slot", [Position, Score, Residual, Objective])
def test_no_variant_is_accused(slot):
    home = {Position: "model.position", Score: "model.attention.score", Residual: "model.residual"}
    if slot is Objective:
        recipes = [recipe_with({"model.attention": MultiHead(visibility=Everyone())}, objective=MaskedLM())]
    else:
        recipes = [recipe_with({home[slot]: part}) for part in every(slot)]
    for recipe in recipes:
        for finding in audit_start(recipe, VOCABULARY, 0):
            assert finding.result == "pass", short(recipe)


class Sequence(nn.Module):
    """A user's own model: embeddings, something over the sequence, logits."""

    def __init__(self, size):
        super().__init__()
        self.table = nn.Embedding(size.vocabulary, 12)
        self.mix = nn.Linear(12, 12)
        self.out = nn.Linear(12, size.vocabulary)

    def forward(self, ids):
        return self.out(torch.tanh(self.mix(self.over(self.table(ids)))))

    def over(self, x):
        return x


class MeanOfAll(Sequence):
    def over(self, x):
        return x + x.mean(1, keepdim=True)


class NextToken(Sequence):
    """The target in the input: off by one."""

    def over(self, x):
        return x + torch.cat([x[:, 1:], x[:, :1] * 0], 1)


class FaintMean(Sequence):
    def over(self, x):
        return x + 1e-5 * x.mean(1, keepdim=True)


class FainterMean(Sequence):
    def over(self, x):
        return x + 2e-9 * x.mean(1, keepdim=True)


class BareTable(MeanOfAll):
    """It looks up by hand, where no hook sees it."""

    def forward(self, ids):
        return self.out(self.over(F.embedding(ids, self.table.weight)))


class RunningMean(Sequence):
    def over(self, x):
        return x.cumsum(1) / torch.arange(1, x.shape[1] + 1)[:, None]


class SumOverLength(Sequence):
    """Of the past alone, but divided by how long the whole is."""

    def over(self, x):
        return x.cumsum(1) / x.shape[1]


class Recurrent(Sequence):
    def __init__(self, size):
        super().__init__(size)
        self.cell = nn.GRU(12, 12, num_layers=2, batch_first=True, dropout=0.5)

    def over(self, x):
        return self.cell(x)[0]


class BothWays(Sequence):
    def __init__(self, size):
        super().__init__(size)
        self.cell = nn.GRU(12, 6, batch_first=True, bidirectional=True)

    def over(self, x):
        return self.cell(x)[0]


class PlacesFirst(Sequence):
    """Its first table is of positions, and what that gives has no rows; it also adds in place."""

    def __init__(self, size):
        super().__init__(size)
        self.places = nn.Embedding(size.length, 12)
        self.table = self._modules.pop("table")  # and put it behind

    def over(self, x):
        x += self.places(torch.arange(x.shape[1]))
        return x


class Constants(Sequence):
    """The same logits everywhere, and no gradient at all."""

    def forward(self, ids):
        return self.out.bias.detach().expand(*ids.shape, -1)


def custom(factory):
    return recipe_with({"model": Custom(factory)})


@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("factory", [MeanOfAll, NextToken, FaintMean, BareTable, BothWays])
def test_a_leak_in_a_model_of_the_users_own_is_found(factory, kind):
    finding = found(custom(factory), kind)
    assert (finding.severity, finding.result) == ("fatal", "fail"), finding
    assert ("gradient not taken" in finding.evidence) == (factory is BareTable)


def test_the_gradient_sees_what_moves_too_little():
    finding = found(custom(FainterMean))
    moved, allowed, slope, _ = figures(finding)
    assert finding.result == "fail" and moved < allowed and slope > 1e-10


@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("factory", [Sequence, Recurrent, RunningMean, PlacesFirst])
def test_an_honest_model_of_the_users_own_passes(factory, kind):
    finding = found(custom(factory), kind)
    assert finding.result == "pass", finding
    assert figures(finding)[2] < 1e-12  # a gradient was taken


@pytest.mark.parametrize("kind", WEIGHTS)
def test_what_depends_on_length_is_warned_of_and_not_accused(kind):
    finding = found(custom(SumOverLength), kind)
    assert (finding.severity, finding.result) == ("warn", "fail")
    assert finding.evidence.startswith("LENGTH-DEPENDENT: ") and "length" not in finding.id
    moved, allowed, slope, prefix = figures(finding)
    assert moved <= allowed and slope < 1e-12 and prefix > 100 * allowed


def test_a_model_without_gradients_is_still_looked_at():
    finding = found(custom(Constants), "as they start")
    assert finding.result == "pass" and "gradient not taken" in finding.evidence


@pytest.mark.parametrize("odd", [math.nan, math.inf])
def test_predictions_that_are_no_numbers_prove_nothing(odd):
    network = custom(Sequence).learner(VOCABULARY, 0).model
    network.inner.out.bias.data[3] = odd
    finding = audit(network, LENGTH, VOCABULARY, "after")
    assert (finding.severity, finding.result) == ("fatal", "fail") and "not all numbers" in finding.sentence


class RulesOut(Recurrent):
    """Two tokens that never come have a logit of −∞."""

    def forward(self, ids):
        logits = super().forward(ids)
        return torch.cat([torch.full_like(logits[..., :2], -math.inf), logits[..., 2:]], -1)


class RulesOutAhead(Sequence):
    """It rules a token out where that token is not the next one: a leak in what is infinite alone."""

    def forward(self, ids):
        logits = super().forward(ids)
        ahead = torch.cat([ids[:, 1:], torch.zeros_like(ids[:, :1])], 1)
        return logits.masked_fill((ahead != 3)[..., None] & (torch.arange(logits.shape[-1]) == 3), -math.inf)


@pytest.mark.parametrize("kind", WEIGHTS)
def test_a_token_ruled_out_is_no_reason_to_accuse(kind):
    assert found(custom(RulesOut), kind).result == "pass"
    assert found(custom(RulesOutAhead), kind).result == "fail"


@pytest.mark.parametrize("length", [1, 2, 3])
def test_the_shortest_texts(length):
    for factory, result in ((Recurrent, "pass"), (NextToken, "fail" if length > 1 else "pass")):
        network = custom(factory).learner(VOCABULARY, 0).model
        assert audit(network, length, VOCABULARY, "before").result == result


def test_cuts_have_a_past_and_a_future():
    assert cuts(32) == [1, 8, 16, 24, 31] and cuts(2) == [1] and cuts(1) == [] and cuts(3) == [1, 2]


def test_the_network_and_torchs_generator_are_left_alone():
    network = weights(recipe_with({"model.dropout.feedforward": 0.5}), "trained")
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    grads = {name: parameter.grad for name, parameter in network.named_parameters()}
    state, hooks = torch.get_rng_state(), len(network.embedding.token._forward_hooks)
    first = audit(network, LENGTH, VOCABULARY, "after")
    assert torch.equal(torch.get_rng_state(), state) and network.training
    assert all(torch.equal(tensor, before[name]) for name, tensor in network.state_dict().items())
    assert all(parameter.grad is grads[name] for name, parameter in network.named_parameters())
    assert len(network.embedding.token._forward_hooks) == hooks
    torch.manual_seed(123)
    assert audit(network, LENGTH, VOCABULARY, "after") == first


def test_redrawn_weights_are_all_drawn_and_the_first_are_kept():
    network = weights(recipe_with({"model.residual": ReZero()}), "as they start")
    assert network.blocks[0].attention_residual.alpha.item() == 0.0
    drawn = torch.cat([parameter.detach().flatten() for parameter in redrawn(network).parameters()])
    assert (drawn != 0).all() and float(drawn.std()) == pytest.approx(0.2, rel=4 / math.sqrt(2 * len(drawn)))
    assert network.blocks[0].attention_residual.alpha.item() == 0.0


def test_a_start_is_audited_twice():
    first, second = audit_start(
        recipe_with({"model.residual": ReZero(), "model.attention.masking": ZeroAfter()}), VOCABULARY, 0
    )
    assert (first.when, first.result) == ("before", "pass")
    assert (second.when, second.result) == ("before, redrawn", "fail")


def test_an_objective_that_reads_both_sides_is_not_accused():
    recipe = recipe_with({"model.attention": MultiHead(visibility=Everyone())}, objective=MaskedLM())
    network = recipe.learner(VOCABULARY, 0).model
    finding = audit_network(recipe, network, VOCABULARY, "after")
    assert finding.result == "pass" and finding.when == "after"
    assert "both sides" in finding.sentence and "not an objective of the next token" in finding.evidence
    assert audit(network, LENGTH, VOCABULARY, "after").result == "fail"  # asked as a causal one, it would be


def test_a_part_that_a_random_vector_breaks_is_not_accused():
    """A negative temperature turns −∞ into +∞; that is no leak, so only the matrices are redrawn then."""
    from headtohead import Normalizer
    from headtohead.audit.arm import audit_start

    class Cooled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.temperature = nn.Parameter(torch.ones(2))

        def forward(self, scores: torch.Tensor) -> torch.Tensor:
            return torch.softmax(self.temperature[:, None, None] * scores, -1)

    class Temperature(Normalizer):
        def build(self, size):
            return Cooled()

    found = audit_start(tiny({"model.attention.normalizer": Temperature()}), 10, 0)
    assert [finding.result for finding in found] == ["pass", "pass"]
    assert found[1].when == "before, matrices redrawn"


class OneHuge(nn.Module):
    """A leak past every table of embeddings, beside a token that is ruled out by the usual very large number."""

    def __init__(self, leak):
        super().__init__()
        self.leak = leak

    def forward(self, ids, position=None):
        seen = F.one_hot(torch.cat([ids[:, 1:], ids[:, :1]], 1) if self.leak else ids, VOCABULARY).double()
        seen[..., 1] = torch.finfo(torch.float32).min
        return (8 * seen).flatten(0, 1)


@pytest.mark.parametrize(("leak", "result"), [(True, "fail"), (False, "pass")])
def test_one_huge_logit_hides_no_leak(leak, result):
    assert audit(OneHuge(leak), LENGTH, VOCABULARY, "before").result == result
