"""Replaced tokens: transformers' own losses, tensors that are truly shared, draws of the right law, figures by hand."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from small import FITTING, VOCABULARY, batch_of, loss_of, network, rows, tiny
from theirs import put as copied
from theirs import shaken

from headtohead import (
    Alibi,
    Custom,
    Embedding,
    MaskedLM,
    PerToken,
    Recipe,
    Replaced,
    Rows,
    Shared,
    Study,
    Tied,
    albert,
    at,
    electra,
    electra_generator,
)
from headtohead.checkpoint import load_weights, network_tensors, save_weights
from headtohead.objectives import cut
from headtohead.objectives.replaced import auc, draw, put
from headtohead.spec import Mistake
from headtohead.study import refuse, validate

(SMALL,) = FITTING["Replaced"]["generator"]
HALF, OFFICIAL = FITTING["Replaced"]["masking"]


def objective(**changes) -> Replaced:
    return at(Replaced(generator=SMALL, masking=HALF), changes)


# ---- the losses -----------------------------------------------------------------------------------------------------


def electras(judge: transformers.PreTrainedModel, **more):
    """A small ELECTRA of ours with the weights of two of transformers', a batch, and both of those."""
    shared = {"vocab_size": 10, "embedding_size": 6, "max_position_embeddings": 6, "num_hidden_layers": 2}
    big = {"hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 32}
    small = {"hidden_size": 4, "num_attention_heads": 1, "intermediate_size": 16}
    generator = shaken(transformers.ElectraForMaskedLM(transformers.ElectraConfig(**shared, **small)), 1)
    discriminator = shaken(judge(transformers.ElectraConfig(**shared, **big)), 2)
    recipe = Recipe(
        model=at(electra(2, 2, 8, 6), more),
        objective=Replaced(generator=electra_generator(2, 1, 4, 6), masking=HALF, tie="nothing"),
        length=6,
        batch=2,
    )
    learner = recipe.learner(VOCABULARY.size - 1, 0).eval()  # ten rows with the mask's
    copied(generator, learner.generator)
    copied(discriminator, learner.model)
    given = rows(6)._replace(document=np.array([[0] * 6, [0] * 4 + [-1] * 2]), position=np.arange(6)[None])
    letters = type(VOCABULARY)("abcdefg", False)
    ids = np.where(given.ids >= letters.size, 2, given.ids)
    batch = recipe.objective.prepare(given._replace(ids=ids), np.random.default_rng(1), letters)
    return learner, batch, generator, discriminator


@torch.no_grad()
def test_the_losses_are_transformers():
    """Of ElectraForMaskedLM and ElectraForPreTraining on the same batch and the same drawn tokens, to 1e-5."""
    learner, batch, generator, discriminator = electras(transformers.ElectraForPreTraining)
    terms, played = learner(batch), learner.play(batch)
    real = (batch.document >= 0).long()
    counts = batch.weight > 0
    labels = torch.full((12,), -100)
    labels[batch.scored[counts]] = batch.target[counts]
    theirs = generator(batch.ids, attention_mask=real, labels=labels.view(2, 6)).loss
    assert 2 <= counts.sum() < 10
    assert abs(terms["generator"].sum / terms["generator"].count - theirs) < 1e-5
    corrupted = put(batch, played.drawn)
    fake = (corrupted != put(batch, batch.target)).long()
    assert fake.sum() > 0
    theirs = discriminator(corrupted, attention_mask=real, labels=fake).loss
    term = terms["discriminator"]
    assert abs(term.sum / term.count - theirs) < 1e-5 and term.weight == 50.0 and term.count == 10
    assert torch.equal(fake.bool(), played.fake)
    assert loss_of(learner, batch) == pytest.approx(
        float(terms["generator"].sum / terms["generator"].count + 50 * theirs), rel=1e-5
    )


@torch.no_grad()
def test_two_outputs_are_study_fours_two_labels():
    """ElectraForTokenClassification's softmax over two labels, at every real token."""
    learner, batch, _, discriminator = electras(
        transformers.ElectraForTokenClassification, **{"head": PerToken(outputs=2)}
    )
    played, real = learner.play(batch), batch.document >= 0
    logits = discriminator(put(batch, played.drawn), attention_mask=real.long()).logits
    theirs = F.cross_entropy(logits[real], played.fake[real].long())
    term = learner(batch)["discriminator"]
    assert abs(term.sum / term.count - theirs) < 1e-5


# ---- what is shared -------------------------------------------------------------------------------------------------

TIES = {"nothing": 0, "tokens": 1, "embeddings": 2, "projection": 2, "encoder": 20}  # tensors of the small networks


@pytest.mark.parametrize("tie", TIES)
def test_a_tied_tensor_is_one_and_its_gradient_is_the_sum(tie):
    """Against two separate networks that start with equal values: study 4 had those, and called them tied."""
    tied = network(tiny(objective=objective(tie=tie))).double()
    apart = tiny(objective=objective(tie="nothing")).learner(VOCABULARY.size, 0).double()
    names = {name for name, _ in apart.named_parameters() if name.startswith("generator.")} - {
        name for name, _ in tied.named_parameters()
    }
    with torch.no_grad():
        state = tied.state_dict()
        for name, parameter in apart.named_parameters():
            parameter.copy_(state[name])
    batch = batch_of(tiny(objective=objective()))
    for learner in (tied, apart):
        loss_of(learner, batch).backward()
    assert len(names) >= TIES[tie] and (not names) == (tie == "nothing")
    for name in names:
        judged = name.replace("generator.", "model.", 1)
        assert tied.get_parameter(name) is tied.get_parameter(judged)
        total = apart.get_parameter(name).grad + apart.get_parameter(judged).grad
        assert apart.get_parameter(name).grad.abs().max() > 1e-8 or "key.bias" in name
        torch.testing.assert_close(tied.get_parameter(judged).grad, total, rtol=1e-10, atol=1e-12)
    for name in {name for name, _ in tied.named_parameters()} - {n.replace("generator.", "model.", 1) for n in names}:
        torch.testing.assert_close(tied.get_parameter(name).grad, apart.get_parameter(name).grad)


def test_what_each_setting_ties():
    def tied_names(tie):
        learner = Recipe(
            model=at(albert(4, 2, 16, 8), {"head": PerToken(outputs=1)}),
            objective=Replaced(generator=albert(2, 1, 16, 8), tie=tie),
            length=8,
        ).learner(10, 0)
        own = {name for name, _ in learner.named_parameters()}
        every = {f"generator.{name}" for name, _ in learner.generator.named_parameters()}
        return {".".join(name.split(".")[1:3]) for name in every - own}

    tokens = {"embedding.token"}
    embeddings = tokens | {"embedding.segment", "embedding.norm", "position.table"}
    projection = embeddings | {"embedding.projection"}
    assert [tied_names(tie) for tie in ("nothing", "tokens", "embeddings", "projection", "encoder")] == [
        set(),
        tokens,
        embeddings,
        projection,
        projection | {"blocks.0"},
    ]


def test_a_tied_tensor_keeps_the_models_name_and_start(tmp_path):
    """So that an arm with another generator starts as the baseline does, and a file holds it once."""
    tied, apart = (tiny(objective=objective(tie=tie)).learner(VOCABULARY.size, 3) for tie in ("embeddings", "nothing"))
    start = dict(apart.named_parameters())
    assert all(torch.equal(parameter, start[name]) for name, parameter in tied.named_parameters())
    assert "generator.embedding.token.weight" not in network_tensors(tied)
    assert not torch.equal(start["generator.embedding.token.weight"], start["model.embedding.token.weight"])
    save_weights(tmp_path / "weights", network(tiny(objective=objective(tie="embeddings"))))
    load_weights(tmp_path / "weights", tied)
    assert torch.equal(tied.generator.embedding.token.weight, tied.model.embedding.token.weight)


def test_a_generator_starts_as_its_own_model_says():
    from headtohead import Normal

    wide = tiny(objective=objective(generator=at(SMALL, {"initialization": Normal(std=2.0)}), tie="nothing"))
    learner = wide.learner(VOCABULARY.size, 0)
    assert learner.generator.blocks[0].feedforward.up.weight.std() > 1.0
    assert learner.model.blocks[0].feedforward.up.weight.std() < 0.1


# ---- the draw -------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 70), st.floats(0.2, 5.0), st.integers(0, 999))
def test_a_draw_is_the_inverse_of_the_distribution_function(vocabulary, temperature, seed):
    """The token whose share of [0, 1) holds the uniform number, worked out in float64; at a border either neighbour."""
    given_ = np.random.default_rng(seed)
    logits, uniform = given_.normal(0, 3, (20, vocabulary)), given_.random(20)
    drawn = draw(torch.from_numpy(logits), torch.from_numpy(uniform), temperature).numpy()
    weights = np.exp((logits - logits.max(1, keepdims=True)) / temperature)
    ends = (weights / weights.sum(1, keepdims=True)).cumsum(1)
    for token, u, end in zip(drawn, uniform, ends, strict=True):
        low = end[token - 1] if token else 0.0
        assert low - 1e-5 <= u <= end[token] + 1e-5


def test_draws_have_their_frequencies():
    logits = torch.linspace(-2, 2, 37)
    drawn = draw(logits.expand(60_000, -1), torch.from_numpy(np.random.default_rng(0).random(60_000)), 1.5)
    wanted = torch.softmax(logits.double() / 1.5, 0).numpy() * 60_000
    assert chisquare(np.bincount(drawn, minlength=37), wanted).pvalue > 1e-3


@pytest.mark.parametrize("vocabulary", [2, 5, 16, 17])
def test_a_token_without_a_chance_is_never_drawn(vocabulary):
    """Nor one past the end, at the very ends of [0, 1)."""
    logits = torch.full((vocabulary, vocabulary), -math.inf)
    logits.fill_diagonal_(0.0)
    for u in (0.0, 0.5, 1 - 2**-24, 1.0):
        assert draw(logits, torch.full((vocabulary,), u)).tolist() == list(range(vocabulary))


# ---- batches --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("masking", [HALF, OFFICIAL, at(OFFICIAL, {"masked": 0.85, "random": 0.0})])
def test_only_masked_places_that_count_are_filled_in(masking):
    recipe = tiny(objective=objective(masking=masking))
    given_ = rows(6)
    batch = recipe.objective.prepare(given_, np.random.default_rng(0), VOCABULARY)
    played = network(recipe).play(batch)
    chosen = batch.scored[batch.weight > 0]
    corrupted, flat = put(batch, played.drawn), given_.ids.reshape(-1)
    assert torch.equal(put(batch, batch.target), torch.from_numpy(given_.ids))  # what was masked is put back
    others = np.setdiff1d(np.arange(12), chosen)
    assert (corrupted.view(-1).numpy()[others] == flat[others]).all() and len(chosen)
    assert torch.equal(corrupted.view(-1)[chosen], played.drawn[batch.weight > 0])
    assert torch.equal(played.fake, corrupted != torch.from_numpy(given_.ids))


def test_a_hit_is_an_original():
    batch = batch_of(tiny(objective=objective()))
    sure = torch.full((len(batch.target), VOCABULARY.size + 1), -50.0).scatter(1, batch.target[:, None], 50.0)
    learner = network(tiny(objective=objective()))
    learner.guess = lambda _: sure
    played = learner.play(batch)
    assert torch.equal(played.drawn, batch.target) and not played.fake.any()


def test_the_two_settings_of_the_mask():
    """Study 4: all of them masked, their number binomial; official: 85 in 100, their number round(.15 n)."""
    ids = np.random.default_rng(0).integers(2, VOCABULARY.size, (400, 64))
    given_ = Rows(ids, np.arange(64)[None], np.zeros((1, 64), dtype=int))
    official = MaskedLM(masked=0.85, random=0.0, count="exact")
    shares, counts = [], []
    for masking in (Replaced().masking, official):
        batch = Replaced(masking=masking).prepare(given_, np.random.default_rng(0), VOCABULARY)
        chosen = batch.scored[batch.weight > 0]
        fate = batch.ids.view(-1)[chosen]
        shares.append(float((fate == VOCABULARY.size).float().mean()))
        counts.append(torch.bincount(chosen // 64, minlength=400))
        kept = fate != VOCABULARY.size
        assert torch.equal(fate[kept], batch.target[batch.weight > 0][kept])
    assert shares[0] == 1.0 and abs(shares[1] - 0.85) < 4 * math.sqrt(0.85 * 0.15 / 4000)
    assert counts[0].unique().numel() > 3 and set(counts[1].tolist()) == {10}


def test_a_place_has_its_number_whatever_else_is_masked():
    """The uniform number is a function of the batch's noise and of the place: another rate moves none."""
    found = []
    for rate in (0.3, 0.9):
        batch = objective(**{"masking.rate": rate}).prepare(rows(6), np.random.default_rng(4), VOCABULARY)
        counts = batch.weight > 0
        found.append(dict(zip(batch.scored[counts].tolist(), batch.uniform[counts].tolist(), strict=True)))
    both = found[0].keys() & found[1].keys()
    assert len(both) >= 2 and all(found[0][place] == found[1][place] for place in both)
    assert len(set(found[1].values())) == len(found[1])


@torch.no_grad()
def test_pieces_of_a_batch_add_up():
    recipe = tiny(objective=objective())
    learner, batch = network(recipe).double(), batch_of(recipe)
    whole, parts = learner(batch), [learner(piece) for piece in cut(batch, 2)]
    for name, term in whole.items():
        assert float(sum(part[name].sum for part in parts)) == pytest.approx(float(term.sum), rel=1e-12)
        assert float(sum(part[name].count for part in parts)) == float(term.count) == float(learner.counts(batch)[name])


def test_each_network_has_dropout_of_its_own():
    learner, batch = network(tiny(objective=objective())), batch_of(tiny(objective=objective()))
    keys = []
    for module in (learner.generator, learner.model):
        module.register_forward_pre_hook(lambda module, given: keys.append(given[5]))
    learner(batch)
    learner(batch)
    assert torch.equal(keys[1], batch.keys) and torch.equal(keys[0], keys[2])
    assert not (keys[0] == keys[1]).any()


def test_both_networks_are_compiled():
    learner = network(tiny(objective=objective()))
    learner.accelerate()
    assert all(block._compiled_call_impl for body in (learner.model, learner.generator) for block in body.blocks)


def test_no_gradient_runs_through_the_draw():
    learner = network(tiny(objective=objective(tie="nothing")))
    learner(batch_of(tiny(objective=objective())))["discriminator"].sum.backward()
    assert all(p.grad is None for p in learner.generator.parameters())
    assert all(p.grad is not None for p in learner.model.parameters())


# ---- measures -------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=30))
def test_auc_is_the_share_of_pairs(told):
    score, positive = np.array([s for s, _ in told], float), np.array([p for _, p in told], bool)
    pairs = [(a > b) + (a == b) / 2 for a in score[positive] for b in score[~positive]]
    assert auc(score, positive) == pytest.approx(np.mean(pairs) if pairs else 0.5)


@torch.no_grad()
def test_measures_are_counts_over_all_real_tokens():
    """Worked out from what the networks made of each exam."""
    recipe = tiny(objective=objective())
    learner = network(recipe).eval()
    given_ = rows(6)._replace(source=np.zeros((2, 6), int), bytes=np.ones((2, 6), int), characters=np.ones((2, 6), int))
    exams = list(recipe.objective.exams(given_, VOCABULARY))
    found, told = learner.measures(exams), []
    for exam in exams:
        played, masked = learner.play(exam.batch), set(exam.batch.scored.tolist())
        for place in np.flatnonzero(given_.document.reshape(-1) >= 0):
            row = played.verdict.view(-1)[place], played.fake.view(-1)[place]
            told.append((*map(float, row), place in masked))
    verdict, fake, masked = np.array(told).T
    fake, masked, called = fake > 0, masked > 0, verdict > 0
    chance = 1 / (1 + np.exp(-verdict))
    assert found["auc"] == pytest.approx(auc(verdict, fake))
    assert found["auc.masked"] == pytest.approx(auc(verdict[masked], fake[masked]))
    assert found["discriminator.accuracy"] == pytest.approx((called == fake).mean())
    assert found["discriminator.precision"] == pytest.approx((called & fake).sum() / max(1, called.sum()))
    assert found["discriminator.recall"] == pytest.approx((called & fake).sum() / fake.sum())
    assert found["discriminator.loss"] == pytest.approx(-np.log(np.where(fake, chance, 1 - chance)).mean(), rel=1e-5)
    assert found["replaced"] == pytest.approx(fake.mean()) and 0 < found["replaced"] < masked.mean() + 1e-9
    assert found["generator.sampled"] == pytest.approx(1 - fake[masked].mean())
    likeliest = [learner.guess(exam.batch).argmax(-1) == exam.batch.target for exam in exams]
    assert found["generator.accuracy"] == pytest.approx(float(torch.cat(likeliest).float().mean()))
    assert set(found) == {*Replaced.measured, "evaluation"}
    nll = torch.cat([learner.score(exam.batch) for exam in exams])
    assert torch.allclose(
        nll[:2], -torch.log_softmax(learner.guess(exams[0].batch), -1)[[0, 1], exams[0].batch.target[:2]]
    )


@torch.no_grad()
def test_exams_do_not_depend_on_batches():
    recipe = tiny(objective=objective())
    learner = network(recipe).double().eval()
    ids = np.random.default_rng(0).integers(2, VOCABULARY.size, (7, 6))
    more = {name: np.ones((7, 6), int) for name in ("source", "bytes", "characters")}
    document = np.zeros((7, 6), dtype=int)
    document[3, 4:] = -1
    given_ = Rows(ids, np.tile(np.arange(6), (7, 1)), document, fresh=document >= 0, **more)

    def figures(size):
        pieces = [Rows(*(column[first : first + size] for column in given_)) for first in range(0, 7, size)]
        found = learner.measures(exam for piece in pieces for exam in recipe.objective.exams(piece, VOCABULARY))
        return {name: value for name, value in found.items() if name != "evaluation"}

    assert figures(7) == pytest.approx(figures(2), rel=1e-9)


# ---- what cannot be -------------------------------------------------------------------------------------------------


class Guesses(torch.nn.Module):
    """Frequencies alone."""

    def __init__(self, size):
        super().__init__()
        self.level = torch.nn.Parameter(torch.zeros(size.vocabulary))

    def forward(self, ids):
        return self.level.expand(*ids.shape, -1)


def test_any_model_may_be_a_generator():
    recipe = tiny(objective=objective(generator=Custom(Guesses), tie="nothing"))
    refuse(recipe)
    learner = recipe.learner(VOCABULARY.size, 0)
    loss_of(learner, batch_of(recipe)).backward()
    assert learner.generator.inner.level.grad.abs().max() > 0


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"objective.weight": -1.0}, "objective: needs weight ≥ 0 and temperature > 0, got -1.0 and 1.0"),
        ({"objective.temperature": 0.0}, "objective: needs weight ≥ 0 and temperature > 0, got 50.0 and 0.0"),
        (
            {"model.head": Tied()},
            "objective: judges each token, which model.head = Tied() cannot; take PerToken(outputs=1, dense=True)",
        ),
        (
            {"objective.generator.head": PerToken()},
            "objective: predicts tokens and objective.generator.head = PerToken() gives 2 values; take Tied() or BertHead()",
        ),
        (
            {"objective.generator.width": 16},
            "objective: tie = 'embeddings' shares embedding.token.weight, which is [3, 8] in model and [3, 16] in its generator",
        ),
        (
            {"model.position": Alibi()},
            "objective: tie = 'embeddings' shares position.table.weight, which is missing in model and [6, 8] in its generator",
        ),
        (
            {"objective.tie": "encoder", "model.layers": 2, "model.sharing": Shared(), "objective.generator.layers": 2},
            "objective: tie = 'encoder' shares blocks.1.attention.output.bias, which is missing in model and [8] in its generator",
        ),
        (
            {"objective.generator.heads": 3},
            "objective.generator: width = 8 is not divisible by model.heads = 3; the nearest width is 9",
        ),
        (
            {"objective.generator.embedding": Embedding(width=-1)},
            "objective.generator.embedding: width = -1 must be 0 (the model's) or more",
        ),
        ({"objective.masking.rate": 1.5}, "objective.masking: rate = 1.5 must lie between 0 and 1"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(changes, reason):
    refuse(tiny(objective=objective()))
    with pytest.raises(Mistake) as raised:
        refuse(at(tiny(objective=objective()), changes))
    assert str(raised.value) == reason


def test_an_objective_of_tokens_refuses_a_head_that_judges():
    for other in (MaskedLM(), Recipe().objective):
        with pytest.raises(Mistake, match=r"predicts tokens and model\.head = PerToken"):
            refuse(tiny({"model.head": PerToken()}, objective=other))


# ---- a study --------------------------------------------------------------------------------------------------------

STUDY = '''
"""Does it matter what a generator and a discriminator share?"""
from headtohead import Constant, File, MaskedLM, Recipe, Replaced, Study, Words, at, bert, electra, electra_generator

baseline = Recipe(model=electra(1, 2, 16, 8), objective=Replaced(generator=electra_generator(1, 1, 8, 8)), text=File(TEXT),
                  tokenizer=Words(minimum_count=1), length=16, batch=8, accumulate=2, steps=12,
                  schedule=Constant(), held_out=2000)
study = Study(baseline=baseline, seeds=3, primary="auc", better="higher", challengers={
    "untied": at(baseline, {"objective.tie": "nothing"}),
    "bert": at(baseline, {"model": bert(1, 2, 16), "objective": MaskedLM()})})
'''


def test_a_study_on_auc(tmp_path, prose):
    """Judged on AUC; a model that detects nothing is incomparable, and says so instead of ending the study."""
    path = tmp_path / "tying.py"
    path.write_text(STUDY.replace("TEXT", repr(str(prose))), encoding="utf-8")
    line = "from headtohead.cli import main; main()"
    words = [sys.executable, "-c", line, "run", str(path), "--out", str(tmp_path / "out")]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=600)
    assert ended.returncode == 1, ended.stderr  # for what is INVALID
    verdict = json.loads((tmp_path / "out/verdict.json").read_text())
    assert verdict["primary"] == {"name": "auc", "unit": "fraction", "better": "higher"} and verdict["margin"] == 0.01
    assert (verdict["arms"]["bert"]["verdict"], verdict["arms"]["bert"]["qualifiers"][0]) == ("INVALID", "INCOMPARABLE")
    assert verdict["arms"]["untied"]["verdict"] != "INVALID" and verdict["arms"]["untied"]["seeds"] == 3
    measures = json.loads((tmp_path / "out/arms/baseline/seed0/measures.json").read_text())
    assert {*Replaced.measured} < measures.keys() and 0 < measures["auc"] < 1
    assert json.loads((tmp_path / "out/arms/bert/seed0/measures.json").read_text())["auc"] is None
    step = json.loads((tmp_path / "out/arms/baseline/seed0/steps.jsonl").read_text().splitlines()[-1])
    assert step["loss"] == pytest.approx(step["loss.generator"] + step["loss.discriminator"])


def test_a_measure_that_the_baseline_has_not_is_refused():
    with pytest.raises(Mistake, match="primary names the measure 'auc', which the baseline's CausalLM has not"):
        validate(Study(baseline=tiny(), challengers={"deep": tiny({"model.layers": 2})}, primary="auc"))
