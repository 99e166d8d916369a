"""Audits of networks and their batches: every way to cheat is found, its honest neighbour is not, whatever it is called."""

import math
import re
import time
from collections.abc import Iterator

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from small import tiny
from torch import nn

from headtohead import (
    Alibi,
    CausalLM,
    Custom,
    Everyone,
    MaskedLM,
    Masking,
    MultiHead,
    Recipe,
    Size,
    SoftmaxN,
    Transformer,
    ZeroAfter,
    ZeroThenRenormalize,
    at,
)
from headtohead.audit import arm, evaluation, independence, noise, prefix, target, wiring
from headtohead.audit.synthetic import FLOOR, batch_of, small
from headtohead.audit.synthetic import noise as letters
from headtohead.objectives import Prediction
from headtohead.text.examples import Lines

BASE = Recipe(model=Transformer(layers=2, heads=4, width=64), length=32, batch=16)
MASKED = at(
    BASE,
    {
        "model.attention": MultiHead(visibility=Everyone()),
        "objective": MaskedLM(),
        "model.position": Alibi(shape="shifted"),
    },
)
TEXT = letters(30_000, 6_000)  # documents of 20 to 120 letters


class Xq(Masking):
    """Study 3's slip under another name: zero after the softmax."""

    def __call__(self, scores, allowed, normalize):
        return normalize(scores) * allowed


class Zq(Masking):
    """And its innocent neighbour, which renormalizes."""

    def __call__(self, scores, allowed, normalize):
        weights = normalize(scores) * allowed
        return weights / weights.sum(-1, keepdim=True)


class Shifted(CausalLM):
    """Targets the wrong way round: what was read last."""

    def prepare(self, rows, noise, vocabulary):
        batch = CausalLM.prepare(self, rows, noise, vocabulary)
        return batch._replace(target=batch.ids.reshape(-1))


class Told(CausalLM):
    """Its learner looks at the target: as an extra input, behind everybody's back."""

    def learner(self, model):
        return Looking(model)


class Looking(Prediction):
    def __init__(self, model) -> None:
        super().__init__(model)
        self.hint = nn.Parameter(torch.full((1,), 0.1))

    def score(self, batch):
        logits = self.model(batch.ids, batch.position, batch.document, batch.segments, batch.scored, batch.keys)
        logits = logits + self.hint * F.one_hot(batch.target, logits.shape[-1])
        return F.cross_entropy(logits, batch.target, reduction="none")


class Segmented(CausalLM):
    """The next token's parity goes in as a segment number."""

    def prepare(self, rows, noise, vocabulary):
        batch = CausalLM.prepare(self, rows, noise, vocabulary)
        return batch._replace(segments=batch.target.view(batch.ids.shape) % 2)


class Unmasked(MaskedLM):
    """It forgets to put the mask in."""

    def prepare(self, rows, noise, vocabulary):
        return MaskedLM.prepare(self, rows, noise, vocabulary)._replace(ids=torch.from_numpy(rows.ids))

    def exams(self, rows, vocabulary) -> Iterator:
        for exam in MaskedLM.exams(self, rows, vocabulary):
            yield exam._replace(batch=exam.batch._replace(ids=torch.from_numpy(rows.ids)))


# ---- noise ---------------------------------------------------------------------------------------------------------


def loss_and_step(finding):
    loss, step = re.match(r"(\S+) nats a letter after (\d+) steps", finding.evidence).groups()
    return float(loss), int(step)


def test_the_floor():
    assert round(FLOOR, 4) == 2.7726 and pytest.approx(math.log(16)) == FLOOR


@pytest.mark.parametrize(
    "recipe",
    [
        at(BASE, {"model.attention.masking": ZeroAfter()}),
        at(BASE, {"model.attention.masking": Xq()}),
        at(BASE, {"objective": Shifted()}),
        at(BASE, {"objective": Told()}),
        at(MASKED, {"objective": Unmasked()}),
    ],
    ids=["zero after", "renamed", "shifted", "told", "unmasked"],
)
def test_a_cheat_goes_below_the_entropy_of_noise(recipe):
    finding = noise.audit(recipe)
    loss, step = loss_and_step(finding)
    assert (finding.severity, finding.result) == ("fatal", "fail") and loss < 2.76 and step <= 400


@pytest.mark.parametrize(
    "recipe",
    [
        at(BASE, {"model.attention.masking": Zq()}),
        at(MASKED, {"model.attention.normalizer": SoftmaxN()}),
        at(BASE, {"examples": Lines()}),
    ],
    ids=["renormalized", "masked", "lines"],
)
def test_an_honest_arm_stays_above_it(recipe, monkeypatch):
    monkeypatch.setattr(noise, "STEPS", 200)
    finding = noise.audit(recipe)
    loss, step = loss_and_step(finding)
    assert finding.result == "pass" and step == 200 and 2.7726 - 0.01 < loss < 2.83


def test_the_slip_of_study_3_as_far_as_it_goes():
    """METHOD.md: 2.657 at step 100, .189 at 200, .088 at 600; renormalized 2.7738. Its own script is not there: the order."""
    torch.manual_seed(0)
    tokens, found = letters(noise.TRAINING, 6_000), {}
    for name, part in (("slip", ZeroAfter()), ("renormalized", ZeroThenRenormalize())):
        recipe = small(at(BASE, {"model.attention.masking": part}))
        learner = recipe.learner(tokens.vocabulary.size, 0)
        optimizers = [torch.optim.AdamW(learner.parameters(), lr=noise.RATE, weight_decay=0.0)]
        stream = ((i, [batch_of(recipe, tokens, i)], "") for i in range(350))
        list(noise.train(learner, optimizers, stream, lambda i: noise.RATE * min(1, (i + 1) / 30), 1.0, noise.Route()))
        found[name] = noise.hear(learner, recipe, tokens, 350).loss
        exam = target.probability(recipe, tokens, next(noise.exams(recipe, tokens)).batch)
        assert exam == pytest.approx(1.0, abs=1e-4)  # neither knows which token it is asked for
        alone = prefix.audit(learner, recipe, tokens)
        assert alone.result == ("fail" if name == "slip" else "pass"), alone
    assert found["slip"] < FLOOR - 0.5 and found["renormalized"] > 2.77


# ---- targets -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("recipe", "evidence"),
    [
        (at(BASE, {"objective": Shifted()}), "held out, 100% of the targets stand in the very place among the inputs"),
        (at(BASE, {"objective": Told()}), "add up to"),
        (at(BASE, {"objective": Segmented(), "model.embedding.segments": 2}), "the input segments changed"),
        (at(MASKED, {"objective": Unmasked()}), "stand in the very place"),
    ],
    ids=["shifted", "told", "segments", "unmasked"],
)
def test_a_target_among_the_inputs_is_found(recipe, evidence):
    finding = target.audit(recipe, TEXT)
    assert (finding.severity, finding.result) == ("fatal", "fail") and evidence in finding.evidence, finding


@pytest.mark.parametrize(
    "recipe",
    [
        BASE,
        MASKED,
        at(MASKED, {"objective.count": "exact"}),
        at(BASE, {"examples": Lines()}),
        at(MASKED, {"objective.random": 0.2}),
    ],
)
def test_an_honest_batch_shows_no_target(recipe):
    finding = target.audit(recipe, TEXT)
    assert finding.result == "pass", finding


# ---- neighbours ----------------------------------------------------------------------------------------------------


class Over(nn.Module):
    """A user's model with something across the batch."""

    def __init__(self, size, norm) -> None:
        super().__init__()
        self.table, self.out, self.norm = nn.Embedding(size.vocabulary, 12), nn.Linear(12, size.vocabulary), norm

    def forward(self, ids):
        x = self.table(ids)
        return self.out(self.norm(x.transpose(1, 2)).transpose(1, 2))


def batch_statistics(size):
    return Over(size, nn.BatchNorm1d(12, track_running_stats=False))


def running_statistics(size):
    return Over(size, nn.BatchNorm1d(12))


def nothing_across(size):
    return Over(size, nn.Identity())


@pytest.mark.parametrize(
    ("factory", "told"),
    [
        (batch_statistics, ("fatal", "fail")),
        (running_statistics, ("warn", "fail")),
        (nothing_across, ("fatal", "pass")),
    ],
)
def test_what_mixes_a_batch(factory, told):
    network = tiny({"model": Custom(factory)}).learner(10, 0).model
    finding = independence.audit(network, 6, 10, "after")
    assert (finding.id, finding.severity, finding.result) == ("A-CAUSAL", *told), finding


def test_documents_that_share_a_row_are_apart_and_a_model_that_joins_them_is_found():
    honest = BASE.learner(18, 0).model
    assert independence.audit(honest, 16, 18, "before", packed=True).result == "pass"
    joined = at(BASE, {"model": Custom(summing)}).learner(18, 0).model  # it is not told of documents
    finding = independence.audit(joined, 16, 18, "before", packed=True)
    assert (finding.severity, finding.result) == ("fatal", "fail") and "Documents share a row" in finding.sentence
    assert independence.audit(joined, 16, 18, "before", packed=False).result == "pass"


def summing(size):
    return Over(size, Summing())


class Summing(nn.Module):
    def forward(self, x):
        return x.cumsum(-1)


# ---- honest loss, evaluation mode, wiring --------------------------------------------------------------------------


def test_the_honest_loss_by_hand():
    """Each place of each row alone, for a model whose loss is honest and one whose loss is not."""
    for part, same in ((ZeroThenRenormalize(), True), (ZeroAfter(), False)):
        recipe = at(BASE, {"model.attention.masking": part})
        learner = recipe.learner(18, 0).eval()
        torch.nn.init.normal_(learner.model.blocks[0].attention.projection.query.weight, std=0.5)
        batch = prefix._rows(recipe, TEXT)
        full, alone, count = prefix.honest(learner, batch)
        drawn, by_hand = np.random.default_rng(0).permutation(32)[:16], []
        for place in drawn.tolist():
            ids = batch.ids[:, : place + 1]
            logits = learner.model(ids, torch.arange(place + 1)[None]).view(*ids.shape, -1)[:, -1]
            by_hand.append(
                F.cross_entropy(logits.detach(), batch.target.view(batch.ids.shape)[:, place], reduction="none")
            )
        assert count == 64 * 16 and alone == pytest.approx(float(torch.cat(by_hand).mean()), abs=1e-6)
        assert (abs(full - alone) < 1e-5) == same


class Noisy(nn.Module):
    """Dropout that evaluation does not switch off."""

    def __init__(self, size, always) -> None:
        super().__init__()
        self.table, self.always = nn.Embedding(size.vocabulary, size.vocabulary), always

    def forward(self, ids):
        return F.dropout(self.table(ids), 0.1, training=self.always or self.training)


@pytest.mark.parametrize("always", [True, False])
def test_dropout_in_evaluation_is_found(always):
    network = tiny({"model": Custom(lambda size: Noisy(size, always))}).learner(10, 0).eval().model
    finding = evaluation.audit(network, 6, 10)
    assert (finding.id, finding.severity, finding.result) == ("A-TRAINLOSS", "fatal", "fail" if always else "pass")


def test_dropout_signature_oracle():
    for before, after in ((0, 0.3333), (0.74, 1.1556), (1.96, 2.5111)):
        assert round(evaluation.dropped(before, 0.1), 4) == after
    study_1 = evaluation.signature([0.74, 1.96], [1.15, 2.51], 0.1)
    assert study_1.result == "fail" and "training mode" in study_1.sentence
    assert evaluation.signature([0.74, 1.96], [0.74, 1.96], 0.1).result == "pass"
    assert evaluation.signature([], [], 0.1).result == "skip"


def test_kurtosis_oracles():
    ten = torch.tensor([0.0] * 9 + [10.0])
    assert evaluation.excess_kurtosis(torch.arange(1.0, 6.0)) == pytest.approx(-1.3)
    assert round(evaluation.excess_kurtosis(ten), 4) == 5.1111
    assert evaluation.excess_kurtosis(torch.tensor([1.0, -1.0])) == pytest.approx(-2)
    assert math.isnan(evaluation.excess_kurtosis(torch.ones(4)))


@pytest.mark.parametrize(("training", "result"), [(True, "fail"), (False, "pass")])
def test_kurtosis_that_is_taken_with_dropout_on_is_found(training, result):
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Dropout(0.1), nn.Linear(64, 64), nn.Dropout(0.1)).train(
        training
    )
    inputs = [torch.randn(512, 64) for _ in range(4)]
    finding = evaluation.dropout_signature(network, inputs)
    assert finding.result == result and "×1.1111 is expected" in finding.evidence


def test_a_change_that_is_not_wired_in():
    tokens = letters(3_000, 1_000)
    same = wiring.noop(BASE, at(BASE, {"model.norm.eps": BASE.model.norm.eps}), tokens)
    assert (same.severity, same.result) == ("warn", "fail") and "not wired in" in same.sentence
    assert wiring.noop(BASE, at(BASE, {"model.attention.normalizer": SoftmaxN()}), tokens).result == "pass"
    dropped = wiring.noop(BASE, at(BASE, {"model.dropout.attention": 0.1}), tokens)
    assert dropped.result == "pass" and "0.0e+00 at the start" in dropped.evidence  # it shows after a step
    assert wiring.noop(BASE, at(BASE, {"model.layers": 3}), tokens).result == "pass"
    assert "optimizer.rate" in wiring.noop(BASE, at(BASE, {"optimizer.rate": 1e-4}), tokens).evidence


class Copied(Prediction):
    """Two tables that start alike; `tied` says whether they are one."""

    def __init__(self, model, tied) -> None:
        super().__init__(model)
        table = model.embedding.token
        self.other = table if tied else nn.Embedding.from_pretrained(table.weight.detach().clone(), freeze=False)

    def score(self, batch):
        x = self.other(batch.ids).flatten(0, 1)
        logits = self.model(batch.ids, batch.position, batch.document, batch.segments, batch.scored, batch.keys)
        return F.cross_entropy(logits + x @ self.other.weight.T, batch.target, reduction="none")


class Stacked(nn.Module):
    """torch's own stack of layers, which starts with so many copies of one."""

    def __init__(self, size) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.table, self.out = nn.Embedding(size.vocabulary, 16), nn.Linear(16, size.vocabulary)
        self.layers = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)

    def forward(self, ids):
        hidden = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        return self.out(self.layers(self.table(ids), mask=hidden, is_causal=True))


def stacked(size):
    return Stacked(size)


class Twice(CausalLM):
    tied: bool

    def learner(self, model):
        return Copied(model, self.tied)


def test_weights_that_were_only_copied_are_not_tied():
    tokens = letters(3_000, 1_000)
    finding = wiring.tied(at(BASE, {"objective": Twice(False)}), tokens)
    assert (finding.severity, finding.result) == ("warn", "fail"), finding
    assert re.fullmatch(
        r"model.*token.weight and other.weight start equal and differ by \S+ after one step", finding.evidence
    )
    assert wiring.tied(at(BASE, {"objective": Twice(True)}), tokens).result == "pass"
    for recipe in (
        BASE,
        MASKED,
        at(BASE, {"model": Custom(stacked)}),
        at(BASE, {"model.position": Alibi(), "model.layers": 3}),
    ):
        assert wiring.tied(recipe, tokens).result == "pass"  # norms, biases and layers that start alike are no copies


class Gated(nn.Module):
    """A gate that is used, or only made."""

    def __init__(self, size, used) -> None:
        super().__init__()
        self.table, self.out, self.used = nn.Embedding(size.vocabulary, 12), nn.Linear(12, size.vocabulary), used
        self.gate = nn.Parameter(torch.zeros(12))

    def forward(self, ids):
        x = self.table(ids)
        return self.out(x * (1 + self.gate) if self.used else x)


@pytest.mark.parametrize("used", [True, False])
def test_a_parameter_that_never_learns(used):
    recipe = at(BASE, {"model": Custom(lambda size: Gated(size, used))})
    base = at(BASE, {"model": Custom(nothing_across)})
    tokens = letters(3_000, 1_000)
    finding = wiring.active(recipe.learner(tokens.vocabulary.size, 0), base, recipe, tokens)
    assert (finding.severity, finding.result) == ("warn", "pass" if used else "fail"), finding
    assert used or "gate: zero in 3 evaluations" in finding.evidence
    assert "no parameter of its own" in wiring.active(base.learner(18, 0), base, base, tokens).evidence


# ---- all of it -----------------------------------------------------------------------------------------------------


def test_an_arms_audits_are_made_once_for_all_its_seeds(tmp_path, monkeypatch):
    monkeypatch.setattr(noise, "STEPS", 20)
    recipe, tokens = tiny(), letters(3_000, 1_000)
    first = arm.kept_with_arm(tmp_path, recipe, tokens, None, "lock")
    monkeypatch.setattr(arm, "audit_arm", lambda *given: 1 / 0)
    assert arm.kept_with_arm(tmp_path, recipe, tokens, None, "lock") == first
    assert [one.id for one in first] == ["A-CAUSAL", "A-CAUSAL", "A-CAUSAL", "A-NOISE", "A-TARGET", "A-TIED"]
    with pytest.raises(ZeroDivisionError):
        arm.kept_with_arm(tmp_path, recipe, tokens, None, "another lock")


def test_the_audits_of_an_arm_of_the_demo_cost_less_than_fifteen_seconds():
    """Of one core's own time, whatever else the machine does."""
    from headtohead.studies.softmax_one import demo

    torch.set_num_threads(1)
    recipe = at(demo, {"length": 32})
    began = time.process_time()
    arm.audit_arm(recipe, letters(20_000, 4_000), at(recipe, {"model.attention.normalizer": SoftmaxN()}))
    assert time.process_time() - began < 15


class Counting(nn.Module):
    """Keeps counts of float32 while it trains, as a module may that was never meant for float64."""

    def __init__(self, size):
        super().__init__()
        self.embedding, self.out = nn.Embedding(size.vocabulary, 4), nn.Linear(4, size.vocabulary)
        self.register_buffer("counts", torch.zeros(size.vocabulary))

    def forward(self, ids):
        if self.training and ids.device.type != "meta":
            with torch.no_grad():
                self.counts.index_put_((ids.flatten(),), torch.ones(()), accumulate=True)
        return self.out(self.embedding(ids))


def test_a_module_that_cannot_train_in_float64_breaks_no_run():
    network = Custom(Counting).build(Size(vocabulary=9, length=8))
    with pytest.raises(RuntimeError):
        network.double().train()(torch.zeros(2, 8, dtype=torch.long), torch.arange(8)[None])
    finding = independence.audit(network.float().eval(), 8, 9, "after")
    assert finding.result == "pass" and "not tried in training mode" in finding.evidence
