"""A challenger is matched to the baseline: by a value or by steps, within one in a hundred, counted by other means."""

import dataclasses

import pytest
import torch

from headtohead import (
    Additive,
    Characters,
    CosineDecay,
    File,
    Gelu,
    Recipe,
    SharedQKV,
    Study,
    SwiGlu,
    Transformer,
    at,
    diff,
)
from headtohead.matching import matched, operations
from headtohead.plan import settled
from headtohead.spec import Mistake
from headtohead.study import validate


@pytest.fixture(scope="module")
def baseline(prose):
    return Recipe(
        model=Transformer(layers=2, heads=2, width=64),
        text=File(str(prose)),
        tokenizer=Characters(),
        length=16,
        batch=4,
        steps=200,
        schedule=CosineDecay(warmup=20),
    )


def asked(baseline, changes, **how):
    return Study(baseline=baseline, challengers={"own": at(baseline, changes)}, seeds=3, **how)


def weights(recipe):
    """Trained numbers of a network that was built, counted one by one."""
    from headtohead.text.cache import prepare

    size = prepare(recipe.text, recipe.tokenizer, recipe.split).vocabulary.size
    return sum(p.numel() for p in {id(p): p for p in recipe.learner(size, 0).parameters()}.values())


def test_equal_tokens_need_nothing(baseline):
    assert matched(asked(baseline, {"model.layers": 3})) == {}


@pytest.mark.parametrize(
    "changes",
    [{"model.feedforward": SwiGlu(ratio=4.0)}, {"model.attention.projection": SharedQKV()}, {"model.layers": 3}],
)
def test_parameters_are_matched_by_the_inner_width(baseline, changes):
    study = asked(baseline, changes, match="parameters", by="model.feedforward.ratio")
    validate(study)
    own = settled(study, matched(study)).challengers["own"]
    assert weights(own) == pytest.approx(weights(baseline), rel=0.01)
    assert abs(weights(study.challengers["own"]) / weights(baseline) - 1) > 0.01  # it was not, before
    # what was solved for is a difference like any other
    places = diff(baseline, own)
    assert "model.feedforward.ratio" in places or isinstance(places["model.feedforward"][1], SwiGlu)
    assert dataclasses.replace(own.model, feedforward=Gelu()).width == baseline.model.width


def test_a_whole_number_stays_one_that_the_model_can_have(baseline):
    study = asked(baseline, {"model.attention.projection": SharedQKV()}, match="parameters", by="model.width")
    own = settled(study, matched(study)).challengers["own"]
    assert own.model.width % own.model.heads == 0 and isinstance(own.model.width, int)
    assert weights(own) == pytest.approx(weights(baseline), rel=0.01)


def test_where_no_whole_number_is_near_the_nearest_is_told(baseline):
    study = asked(baseline, {"model.feedforward.ratio": 2.2}, match="parameters", by="model.layers")
    with pytest.raises(Mistake, match=r"model.layers = 3 is nearest and leaves ×1\.\d+ .* choose another by="):
        matched(study)


def test_operations_are_matched_by_steps_with_the_schedule_rescaled(baseline):
    study = asked(baseline, {"model.layers": 3, "model.attention.score": Additive()}, match="flops")
    own = settled(study, matched(study)).challengers["own"]
    assert operations(own) == pytest.approx(operations(baseline), rel=0.01)
    share = own.steps / baseline.steps
    assert share < 0.8 and own.schedule.warmup == round(20 * share)
    assert own.schedule(own.steps - 1, own.steps) == pytest.approx(baseline.schedule(199, 200), abs=0.01)


def test_operations_may_be_matched_by_a_value(baseline):
    study = asked(baseline, {"model.layers": 3}, match="flops", by="model.feedforward.ratio")
    own = settled(study, matched(study)).challengers["own"]
    assert own.steps == baseline.steps and operations(own) == pytest.approx(operations(baseline), rel=0.01)


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({"match": "parameters"}, 'needs the address that may change, e.g. by="model.feedforward.ratio"'),
        ({"by": "model.width"}, "changes nothing with match = 'tokens'"),
        ({"match": "parameters", "by": "model.wide"}, "did you mean 'model.width'?"),
        ({"match": "parameters", "by": "model.head"}, "must be the address of a number"),
        ({"match": "bytes"}, "match: takes 'tokens' or 'parameters' or 'flops' or 'wallclock'"),
        ({"looks": (2, 3)}, "must rise from at least 3 seeds on"),
        ({"looks": (3, 5)}, "the last of looks = (3, 5) must be seeds = 3"),
        ({"grid": ("model.layers",)}, "must name two addresses"),
        ({"grid": ("model.layers", "model.heads")}, "every combination of two or more levels must be one arm"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(baseline, how, told):
    with pytest.raises(Mistake) as caught:
        validate(asked(baseline, {"model.layers": 3}, **how))
    assert told in str(caught.value) and "\n" not in str(caught.value)


def test_steps_too_few_to_match_are_refused(baseline):
    short = at(baseline, {"steps": 4, "schedule.warmup": 0})
    study = asked(short, {"model.layers": 3}, match="flops")
    with pytest.raises(Mistake, match="not within 1 % of the baseline's; train for more steps"):
        matched(study)


def test_the_counts_need_no_weights(baseline):
    """Counting a large model takes no memory: its tensors are never made."""
    large = at(baseline, {"model.width": 4096, "model.layers": 12, "model.heads": 32})
    before = torch.get_rng_state()
    assert operations(large) > 1e12 and torch.equal(torch.get_rng_state(), before)
