"""The built-in studies at both sizes: each can run, differs where it says, and has the model that was published."""

import importlib
import math
from itertools import pairwise

import numpy as np
import pytest
import torch

from headtohead import Clap, Recipe, Rows, Study, Tied, at, diff
from headtohead.parts.dropout import row_keys
from headtohead.request import builtin_studies
from headtohead.study import network_of, validate
from headtohead.text.vocabulary import CharacterVocabulary
from headtohead.train import Route, train


def study_of(name: str) -> Study:
    return importlib.import_module(f"headtohead.studies.{name}").study


def sizes(name: str) -> dict[str, Study]:
    study = study_of(name)
    return {"demo": study, **({"paper": study.paper} if isinstance(study.paper, Study) else {})}


EVERY = [(name, size) for name in builtin_studies() for size in sizes(name)]


@pytest.mark.parametrize(("name", "size"), EVERY)
def test_every_study_can_run_at_every_size(name, size):
    study = sizes(name)[size]
    validate(study)
    for arm, recipe in study.challengers.items():
        assert diff(study.baseline, recipe), arm
        assert sum(p.numel() for p in network_of(recipe, 99).parameters()) > 0
    assert len({repr(recipe) for recipe in study.arms().values()}) == len(study.arms())


def numbers(recipe: Recipe, vocabulary: int) -> dict[str, int]:
    """Parameters of each network by itself, the head left out, and with it."""
    found = {}
    for name, network in network_of(recipe, vocabulary).named_children():
        found[name] = sum(p.numel() for p in network.parameters())
        found[f"{name} without head"] = found[name] - sum(p.numel() for p in network.head.parameters())
    return found


def test_study_one_has_the_84_million():
    paper = study_of("softmax_one").paper
    assert numbers(paper.baseline, 52_032)["model"] == 83_529_024  # <mask> is one of the tokenizer's own
    assert {*diff(*paper.arms().values())} == {"model.attention.normalizer"}
    assert paper.baseline.steps * paper.baseline.batch == 4_574_384 and paper.baseline.schedule.warmup == 0


def test_study_three_has_the_nano_model():
    """1,410,960 with 1,024 positions, of which lines of 100 use 100; the head, not counted, is its own."""
    paper = study_of("score_sharing_mask").paper
    assert numbers(paper.baseline, 26_602)["model without head"] == 1_410_960 - (1024 - 100) * 48
    assert {*paper.challengers} == {"additive", "shared-qk", "shared-qkv", "zero-after", "zero-renormalized"}


def test_study_four_has_its_networks():
    """17 million against 4.8 with the pooler, 65,792, which no arm has; the generators as they are."""
    arms = study_of("electra_small").paper.arms()
    own = numbers(arms["untied"], 30_521)
    assert own["model without head"] == 17_324_544
    assert numbers(arms["alectra"], 30_521)["model without head"] == 4_812_288 - 65_792
    assert numbers(arms["mixed"], 30_521)["model without head"] == 4_812_288 - 65_792
    assert own["generator without head"] == 17_324_544 - 9 * 789_760 - 3 * 2 * 256 * 768 - 3 * 768
    whole = sum(p.numel() for p in network_of(arms["baseline"], 30_521).parameters())
    apart = sum(p.numel() for p in network_of(arms["untied"], 30_521).parameters())
    assert apart - whole == 30_522 * 256 + 128 * 256 + 2 * 256 + 2 * 256  # tokens, positions, segments and the norm


def test_study_twos_arms_change_one_thing_or_say_so():
    study = study_of("position_and_clap")
    changed = {name: {*diff(study.baseline, recipe)} for name, recipe in study.challengers.items()}
    head = {"model.head", "model.embedding.normalize"}
    confounded = {"model.dropout.embedding", "model.dropout.attention", "model.dropout.feedforward"}
    assert changed["learned-clap"] == head
    assert changed["learned-clap-published"] == head | confounded | {"model.embedding.norm"}
    assert changed["no-dropout"] == confounded and changed["no-embedding-norm"] == {"model.embedding.norm"}
    assert changed["zero-clap"] == head | {"model.position", "model.embedding.mask"}
    choices = study_of("position_and_clap_choices")
    assert all(len(diff(choices.baseline, recipe)) == 1 for recipe in choices.challengers.values())
    assert [type(claim).__name__ for claim in choices.claims] == ["Equivalent"] and len(choices.challengers) == 5


@torch.no_grad()
def test_the_ladder_ends_at_clap_and_its_bare_step_is_the_tied_head():
    study = study_of("position_and_clap_ladder")
    arms = list(study.arms().values())
    steps = [{*diff(one, other)} for one, other in pairwise(arms)]
    assert [len(step) for step in steps] == [1] * 6
    assert arms[-1] == at(study.baseline, {"model.head": Clap(), "model.embedding.normalize": True})
    bare, tied = (r.learner(50, 0).model for r in (arms[4], at(study.baseline, {"model.head": Tied()})))
    ids, position = torch.arange(64)[None] % 50, torch.arange(64)[None]
    assert torch.equal(bare(ids, position), tied(ids, position))


# ---- twenty steps at the published width -----------------------------------------------------------------------------

WIDTH = 64  # of a row; the tables have their published length


def trained(recipe: Recipe, tokens: int, rows: int = 1) -> list[float]:
    """The loss of twenty steps on one batch of random letters, by the arm's own optimizer at a constant rate."""
    plain = tokens - recipe.tokenizer.has_mask  # a letter's mask comes after all of them
    vocabulary = CharacterVocabulary("".join(map(chr, range(0x10000, 0x10000 + plain - 2))), False)
    assert vocabulary.size == plain
    learner = recipe.learner(tokens, 0)
    width = min(WIDTH, recipe.length) + recipe.objective.ahead
    ids = np.random.default_rng(0).integers(2, plain, (rows, width))
    given = Rows(ids, np.arange(width)[None], np.zeros((1, width), dtype=int))
    batch = recipe.objective.prepare(given, np.random.default_rng(0), vocabulary)

    def same():
        for step in range(20):
            yield step, [batch._replace(keys=row_keys(0, step, np.arange(rows)))], ""

    steps = train(learner, recipe.optimizer.optimizers(learner), same(), lambda step: 5e-4, recipe.clip, Route())
    found = [sum(step.terms.values()) for step in steps]
    assert all(map(math.isfinite, found)) and len(found) == 20
    return found


TOKENS = {
    "softmax_one": 52_032,
    "position_and_clap": 50_257,
    "score_sharing_mask": 26_602,
    "electra_small": 30_521,
    "residual_dropout_rate": 67,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TOKENS)
def test_twenty_steps_at_paper_size(name):
    """One batch is learned, by the baseline and by the last challenger."""
    arms = list(study_of(name).paper.arms().values())
    for recipe in (arms[0], arms[-1]):
        losses = trained(recipe, TOKENS[name])
        assert np.mean(losses[-3:]) < losses[0]


@pytest.mark.slow
def test_twenty_steps_of_one_layer_of_the_large_model():
    """Study 2's zero-clap at the Pile's large size: width 1024, 16 heads, rows of 2,048 allowed."""
    base = study_of("position_and_clap").paper.challengers["zero-clap"]
    large = {"model.layers": 1, "model.width": 1024, "model.heads": 16, "length": 2048}
    losses = trained(at(base, large), 50_257)
    assert np.mean(losses[-3:]) < losses[0]
