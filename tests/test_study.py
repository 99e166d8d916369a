"""What is asked: refused before it costs anything, shrunk with its schedule, and the same size for every part of it."""

import re

import pytest
import torch
from small import tiny
from torch import nn

from headtohead import (
    Better,
    Characters,
    Constant,
    CosineDecay,
    Custom,
    Embedding,
    Equivalent,
    Grouped,
    MaskedLM,
    MultiHead,
    NoWorse,
    Recipe,
    SoftmaxN,
    Study,
    Transformer,
    at,
)
from headtohead.spec import Mistake, Size, diff
from headtohead.study import network_of, refuse, validate

BASELINE = tiny()
ONE = {"n": at(BASELINE, {"model.attention.normalizer": SoftmaxN()})}


def told(study):
    with pytest.raises(Mistake) as raised:
        validate(study)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_a_sound_study_is_not_refused():
    assert validate(Study(baseline=BASELINE, challengers=ONE, claims=(Better(challenger="n"), NoWorse()))) is None


def wide(width):
    return at(BASELINE, {"model.width": width, "model.heads": 6})


BAD = {
    "a margin of nothing": (
        Study(BASELINE, ONE, claims=(NoWorse("loss", margin=-1.0),)),
        "NoWorse('loss'): margin = -1.0 settles nothing",
    ),
    "a margin in words": (
        Study(BASELINE, ONE, claims=(Equivalent("loss", margin="x"),)),
        "margin: takes float or None, got 'x'",
    ),
    "no margin at all": (
        Study(BASELINE, ONE, claims=(NoWorse("loss", margin=float("nan")),)),
        "margin: takes float or None, got nan",
    ),
    "no direction": (Study(BASELINE, ONE, claims=(NoWorse("tokens", margin=1.0),)), "which way is 'tokens' better?"),
    "no challengers": (Study(BASELINE, {}), "the study has no challengers; add one, e.g. challengers="),
    "a list of them": (Study(BASELINE, [BASELINE]), "challengers: takes dict, got ["),
    "no recipe": (
        Study(BASELINE, {"n": SoftmaxN()}),
        "challenger 'n' must be a Recipe, e.g. at(baseline, {...}), got SoftmaxN(",
    ),
    "changes alone": (Study(BASELINE, {"n": {"model.layers": 2}}), "challenger 'n' must be a Recipe"),
    "a blank": (Study(BASELINE, {"two words": BASELINE}), "'two words' cannot name a challenger; use letters, digits"),
    "a way out": (Study(BASELINE, {"../n": BASELINE}), "'../n' cannot name a challenger"),
    "another in other letters": (
        Study(BASELINE, {"n": ONE["n"], "N": ONE["n"]}),
        "'n' and 'N' would share a folder on some disks",
    ),
    "hidden": (Study(BASELINE, {".n": BASELINE}), "'.n' cannot name a challenger"),
    "no name": (Study(BASELINE, {"": BASELINE}), "'' cannot name a challenger"),
    "a line end": (Study(BASELINE, {"n\n": BASELINE}), "'n\\n' cannot name a challenger"),
    "a number": (Study(BASELINE, {3: BASELINE}), "3 cannot name a challenger"),
    "the baseline's name": (Study(BASELINE, {"baseline": ONE["n"]}), "'baseline' cannot name a challenger"),
    "the baseline itself": (Study(BASELINE, {"baseline": BASELINE}), "'baseline' cannot name a challenger"),
    "zero seeds": (
        Study(BASELINE, ONE, seeds=0),
        "seeds = 0: a study needs at least 1 seed, and 3 for a verdict; use --seeds 3",
    ),
    "seeds in words": (Study(BASELINE, ONE, seeds="3"), "seeds: takes int, got '3' (str)"),
    "alpha in percent": (Study(BASELINE, ONE, alpha=5), "alpha = 5 must lie between 0 and 1"),
    "no margin": (Study(BASELINE, ONE, margin=0.0), "margin = 0.0 settles nothing; state a number above 0"),
    "better": (Study(BASELINE, ONE, better="smaller"), "better: takes 'lower' or 'higher', got 'smaller' (str)"),
    "a class for a claim": (Study(BASELINE, ONE, claims=(Better,)), "claims: takes tuple["),
    "whose claim": (
        Study(BASELINE, ONE, claims=(Better(challenger="m"),)),
        "the challenger 'm', which there is not; did you mean 'n'?",
    ),
    "baseline of no recipe": (Study(SoftmaxN(), ONE), "baseline: takes Recipe, got SoftmaxN, which is a Normalizer"),
    "width": (
        Study(BASELINE, {"wide": wide(32)}),
        "arm wide: model: width = 32 is not divisible by model.heads = 6; the nearest width is 30",
    ),
    "width above": (Study(BASELINE, {"wide": wide(35)}), "the nearest width is 36"),
    "a type inside": (Study(BASELINE, {"n": Recipe(clip="1")}), "arm n: clip: takes float, got '1' (str)"),
    "baseline's width": (Study(wide(32), ONE), "arm baseline: model: width = 32"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_run_is_told_with_its_cure(name):
    study, expected = BAD[name]
    assert expected in told(study)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"length": 0}, "length = 0 must be at least 1"),
        ({"batch": 0}, "batch = 0 must be at least 1"),
        ({"steps": 0}, "steps = 0 must be at least 1"),
        ({"accumulate": 0}, "accumulate = 0 must be at least 1"),
        ({"accumulate": 3}, "accumulate = 3 must divide batch = 2"),
        ({"clip": -1.0}, "clip = -1.0 and held_out = 0 must be at least 0"),
        ({"held_out": -1}, "clip = 1.0 and held_out = -1 must be at least 0"),
        (
            {"steps": 50},
            "schedule: warmup = 100 must be at least 0 and below steps = 50; write schedule=CosineDecay(warmup=5) in the recipe, or --set schedule.warmup=5",
        ),
        ({"optimizer.rate": 0.0}, "optimizer: needs rate > 0 and weight_decay ≥ 0, got 0.0 and 0.01"),
        ({"model.dropout.weights": 1.0}, "model.dropout: weights = 1.0 must lie in [0, 1)"),
    ],
)
def test_numbers_that_cannot_be_are_refused(changes, reason):
    with pytest.raises(Mistake, match=f"^{re.escape(reason)}$"):
        refuse(at(tiny(), changes))


@pytest.mark.parametrize("steps", [1, 10, 333, 1000, 5000])
def test_fewer_steps_have_a_shorter_warm_up(steps):
    recipe = Recipe(steps=1000, schedule=CosineDecay(warmup=100, floor=0.2))
    shorter = recipe.rescaled(steps)
    assert shorter.steps == steps and shorter.schedule.warmup == round(steps / 10)
    assert set(diff(recipe, shorter)) <= {"steps", "schedule.warmup"}
    refuse(shorter)
    for part in (0.2, 0.5, 0.9):  # the same course over its own length
        if steps >= 333:
            ours, theirs = (r.schedule(int(part * r.steps), r.steps) for r in (shorter, recipe))
            assert ours == pytest.approx(theirs, abs=0.01)


def test_as_many_steps_are_the_same_recipe():
    recipe = Recipe(steps=1000, schedule=CosineDecay(warmup=7))
    assert recipe.rescaled(1000) == recipe
    assert Recipe(schedule=Constant()).rescaled(3) == Recipe(schedule=Constant(), steps=3)


def test_the_size_is_the_models_and_the_texts():
    recipe = tiny({"model.layers": 3, "model.attention.projection": Grouped(1), "model.embedding": Embedding(width=4)})
    size = Size(vocabulary=30, length=6, width=8, embedding_width=4, heads=2, key_value_heads=1, layers=3)
    assert recipe.size(30) == size and size.head_width == 4
    masked = at(recipe, {"objective": MaskedLM()})
    assert masked.size(30).vocabulary == 31  # a row for the mask
    assert at(masked, {"model.embedding.mask": "zero"}).size(30).vocabulary == 30
    assert tiny({"model": Custom(nn.Identity)}).size(30) == Size(vocabulary=30, length=6)


def test_arms_come_in_order_the_baseline_first():
    study = Study(BASELINE, {"z": BASELINE, "a": BASELINE})
    assert list(study.arms()) == ["baseline", "z", "a"]


def test_counting_needs_no_memory():
    """6 layers of width 12,288 would take 43 GB."""
    recipe = Recipe(model=Transformer(layers=6, heads=96, width=12_288, attention=MultiHead()), tokenizer=Characters())
    network = network_of(recipe, 50)
    assert {parameter.device for parameter in network.parameters()} == {torch.device("meta")}
    assert sum(parameter.numel() for parameter in network.parameters()) > 12 * 6 * 12_288**2
