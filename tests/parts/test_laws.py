"""Laws over all variants, found and not listed: every field does something, every variant has a test, mistakes are told."""

import ast
import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from headtohead import (
    Additive,
    Alibi,
    BertHead,
    Clap,
    ClippedSoftmax,
    Cosine,
    Dropout,
    Embedding,
    Everyone,
    Gate,
    Gelu,
    Grouped,
    LayerNorm,
    Learned,
    LearnedSink,
    MaskedLM,
    MultiHead,
    Normal,
    PerToken,
    Pooled,
    Recipe,
    RelativeBuckets,
    ReluSquared,
    ReZero,
    RMSNorm,
    Rotary,
    ScaledNormal,
    Separate,
    Shared,
    SharedQK,
    SharedQKV,
    Sinusoidal,
    SoftmaxN,
    Sparsemax,
    SwiGlu,
    Tied,
    Transformer,
    Untied,
    Window,
    Xavier,
    ZeroThenRenormalize,
    at,
)
from headtohead.initialize import generator_for
from headtohead.parts.dropout import row_keys
from headtohead.spec import Mistake, Part, Size, hints, short
from headtohead.study import refuse
from parts.made import MODULES, changed, finals

# Everyone sees all: to a causal model the shapes of Alibi are one and the same.
SMALL = Transformer(layers=2, heads=4, width=16, attention=MultiHead(visibility=Everyone()))
WORDS, LENGTH = 10, 16

# For every field of every variant two settings that differ in it alone.
PAIRS = [
    (Additive(), Additive(hidden=3)),
    (Additive(), Additive(shared=True)),
    (Cosine(scale=4.0), Cosine(scale=None)),
    (SoftmaxN(n=1.0), SoftmaxN(n=0.5)),
    (LearnedSink(), LearnedSink(start=1.0)),
    (ClippedSoftmax(), ClippedSoftmax(high=1.1)),
    (ClippedSoftmax(), ClippedSoftmax(low=-0.1)),
    (Sparsemax(), Sparsemax(steps=1)),
    (Window(width=3), Window(width=5)),
    (Window(width=3), Window(width=3, future=True)),
    (Learned(), Learned(padding_offset=2)),
    (Sinusoidal(), Sinusoidal(base=100.0)),
    (Sinusoidal(), Sinusoidal(layout="halves")),
    (Rotary(), Rotary(base=100.0)),
    (Rotary(), Rotary(layout="pairs")),
    (Alibi(), Alibi(shape="shifted")),
    (Alibi(shape="shifted"), Alibi(shape="sides")),
    (RelativeBuckets(buckets=8, distance=32), RelativeBuckets(buckets=16, distance=32)),
    (RelativeBuckets(buckets=8, distance=32), RelativeBuckets(buckets=8, distance=5)),
    (RelativeBuckets(buckets=8, distance=32), RelativeBuckets(buckets=8, distance=32, both_sides=False)),
    (Separate(), Separate(bias=False)),
    (SharedQK(), SharedQK(bias=False)),
    (SharedQKV(), SharedQKV(bias=False)),
    (Grouped(), Grouped(bias=False)),
    (Grouped(), Grouped(key_value_heads=1)),
    (Gate(), Gate(bias=1.0)),
    (ReZero(), ReZero(start=1.0)),
    (LayerNorm(), LayerNorm(eps=1.0)),
    (LayerNorm(), LayerNorm(bias=False)),
    (RMSNorm(), RMSNorm(eps=1.0)),
    (Gelu(), Gelu(ratio=2.0)),
    (Gelu(), Gelu(bias=False)),
    (Gelu(), Gelu(approximation="tanh")),
    (ReluSquared(), ReluSquared(ratio=2.0)),
    (ReluSquared(), ReluSquared(bias=False)),
    (SwiGlu(), SwiGlu(ratio=2.0)),
    (SwiGlu(), SwiGlu(bias=True)),
    (Shared(), Shared(groups=2)),
    (Embedding(), Embedding(width=6)),
    (Embedding(), Embedding(normalize=True)),
    (Embedding(), Embedding(scale=True)),
    (Embedding(), Embedding(norm=True)),
    (Embedding(norm=True), Embedding(norm=True, norm_eps=1.0)),
    (Embedding(), Embedding(segments=2)),
    (Embedding(), Embedding(mask="zero")),
    (Tied(), Tied(bias=True)),
    (Untied(), Untied(bias=False)),
    (BertHead(), BertHead(eps=1.0)),
    (BertHead(), BertHead(dense=False)),
    (BertHead(), BertHead(gelu="none")),
    (BertHead(), BertHead(norm=False)),
    (BertHead(), BertHead(bias=False)),
    (Clap(), Clap(beta=2.0)),
    (Pooled(), Pooled(outputs=3)),
    (PerToken(), PerToken(outputs=3)),
    (PerToken(), PerToken(dense=True)),
    (Dropout(), Dropout(embedding=0.5)),
    (Dropout(), Dropout(weights=0.5)),
    (Dropout(), Dropout(attention=0.5)),
    (Dropout(), Dropout(feedforward=0.5)),
    (Normal(), Normal(std=0.2)),
    (Xavier(), Xavier(gain=2.0)),
    (Xavier(), Xavier(per_head=False)),
    (ScaledNormal(), ScaledNormal(std=0.2)),
]


def slot_of(part):
    """The address of the slot that takes this part, inside a model."""
    for holder, prefix in ((Transformer, ""), (MultiHead, "attention.")):
        for name, hint in hints(holder).items():
            if isinstance(hint, type) and issubclass(hint, Part) and isinstance(part, hint):
                return prefix + name
    raise LookupError(f"no slot of a Transformer takes {part}")


def outputs(part):
    """What a small model with this part in its slot says of two documents in a row, a mask among their ids."""
    model = at(SMALL, {slot_of(part): part})
    network = model.make(model.complete(Size(vocabulary=model.rows(WORDS, True), length=LENGTH)), 0)
    model.initialize(network, 0)
    ids = torch.arange(2 * LENGTH).view(2, LENGTH) * 7 % (WORDS + 1)
    position = torch.cat([torch.arange(LENGTH - 4), torch.arange(4)])[None]
    document = (torch.arange(LENGTH) >= LENGTH - 4).long().expand(2, -1)
    with torch.no_grad():
        for name, parameter in network.named_parameters():  # biases and the like start at 0 and would say nothing
            parameter += 0.1 * torch.randn(parameter.shape, generator=generator_for(1, name))
        return network(ids, position, document, document, None, row_keys(0, 0, np.arange(2)))


def test_every_field_of_every_variant_is_in_the_table():
    wanted = {(cls, field.name) for cls in finals(*MODULES) for field in dataclasses.fields(cls)}
    assert {changed(one, other) for one, other in PAIRS} == wanted


@pytest.mark.parametrize(("one", "other"), PAIRS, ids=short)
def test_no_field_is_ignored(one, other):
    first, second = outputs(one), outputs(other)
    assert torch.equal(first, outputs(one))  # so that what follows is the field's doing
    assert first.isfinite().all() and second.isfinite().all()
    assert first.shape != second.shape or (first - second).abs().max() > 1e-4


def test_every_variant_has_a_test_of_its_own():
    """A value by hand needs a person; that the variant's name occurs in its slot's tests is what a law can ask for."""
    for module in MODULES:
        path = Path(__file__).with_name(f"test_{module.__name__.rpartition('.')[2]}.py")
        tests = [node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef)]
        named = {node.id for test in tests for node in ast.walk(test) if isinstance(node, ast.Name)}
        assert {cls.__name__ for cls in finals(module)} <= named, path.name


RECIPE = Recipe(model=SMALL, objective=MaskedLM(), length=8, batch=2)

# What is refused: the changes, words of the reason (the other address where there is one), and the way out it names.
REFUSED = [
    (
        {"model.attention.score": Cosine(), "length": 1},
        "length of at least 2",
        {"model.attention.score": Cosine(scale=1.0)},
    ),
    (
        {"model.attention.normalizer": SoftmaxN(n=-1.0)},
        "n = -1.0 must be a finite number ≥ 0",
        {"model.attention.normalizer.n": 0.0},
    ),
    ({"model.attention.normalizer": SoftmaxN(n=float("inf"))}, "finite", {"model.attention.normalizer.n": 1e6}),
    ({"model.attention.normalizer": SoftmaxN(n=float("nan"))}, "finite", {"model.attention.normalizer.n": 1.5}),
    ({"model.attention.normalizer": ClippedSoftmax(low=0.1)}, "low ≤ 0", {"model.attention.normalizer.low": 0.0}),
    ({"model.attention.normalizer": ClippedSoftmax(high=0.9)}, "high ≥ 1", {"model.attention.normalizer.high": 1.0}),
    (
        {"model.attention.normalizer": Sparsemax(steps=0)},
        "steps = 0 must be at least 1",
        {"model.attention.normalizer.steps": 1},
    ),
    (
        {"model.attention.visibility": Window(width=0)},
        "width = 0 must be at least 1",
        {"model.attention.visibility.width": 1},
    ),
    (
        {"model.attention.masking": ZeroThenRenormalize(), "model.attention.normalizer": SoftmaxN()},
        "cancels model.attention.normalizer",
        {"model.attention.normalizer": SoftmaxN(n=0.0)},
    ),
    (
        {"model.attention.masking": ZeroThenRenormalize(), "model.attention.normalizer": LearnedSink()},
        "cancels model.attention.normalizer",
        {"model.attention.normalizer": ClippedSoftmax()},
    ),
    ({"model.position": Learned(padding_offset=-1)}, "at least 0", {"model.position.padding_offset": 0}),
    (
        {"model.position": Sinusoidal(), "model.embedding": Embedding(width=5)},
        "that of model.embedding is 5",
        {"model.embedding.width": 6},
    ),
    ({"model.position": Rotary(), "model.width": 12}, "model.width / model.heads = 3", {"model.heads": 6}),
    ({"model.position": Alibi(shape="sides"), "model.heads": 1}, "model.heads = 1", {"model.heads": 2}),
    ({"model.position": RelativeBuckets(buckets=6)}, "multiple of 4 buckets", {"model.position.buckets": 8}),
    ({"model.position": RelativeBuckets(distance=16)}, "distance > buckets / 2", {"model.position.distance": 17}),
    (
        {"model.attention.projection": Grouped(key_value_heads=3)},
        "must divide model.heads = 4",
        {"model.heads": 6, "model.width": 12},
    ),
    (
        {"model.attention.projection": Grouped(key_value_heads=0)},
        "model.heads",
        {"model.attention.projection.key_value_heads": 4},
    ),
    ({"model.feedforward": Gelu(ratio=0.01)}, "at model.width = 16", {"model.feedforward.ratio": 0.1}),
    ({"model.sharing": Shared(groups=3)}, "model.layers = 2", {"model.layers": 3}),
    ({"model.sharing": Shared(groups=0)}, "between 1 and model.layers", {"model.sharing.groups": 2}),
    ({"model.embedding": Embedding(width=-1)}, "width = -1", {"model.embedding.width": 0}),
    (
        {"model.embedding": Embedding(mask="zero"), "objective": Recipe().objective},
        "needs masks, and objective has none",
        {"objective": MaskedLM()},
    ),
    ({"model.dropout": Dropout(weights=1.0)}, "weights = 1.0 must lie in [0, 1)", {"model.dropout.weights": 0.9}),
    ({"model.dropout": Dropout(embedding=-0.1)}, "embedding = -0.1", {"model.dropout.embedding": 0.0}),
    ({"model.dropout": Dropout(attention=2.0)}, "attention = 2.0", {"model.dropout.attention": 0.2}),
    ({"model.dropout": Dropout(feedforward=1.5)}, "feedforward = 1.5", {"model.dropout.feedforward": 0.5}),
    ({"model.initialization": Normal(std=0.0)}, "std = 0.0 must be above 0", {"model.initialization.std": 1.0}),
    ({"model.initialization": ScaledNormal(std=-0.1)}, "std = -0.1 must be above 0", {"model.initialization.std": 0.1}),
    ({"model.initialization": Xavier(gain=0.0)}, "gain = 0.0 must be above 0", {"model.initialization.gain": 1.0}),
]


@pytest.mark.parametrize(
    ("changes", "words", "way_out"), REFUSED, ids=lambda value: value if isinstance(value, str) else ""
)
def test_what_cannot_be_is_refused_in_one_line(changes, words, way_out):
    address = next(iter(changes))
    with pytest.raises(Mistake) as caught:
        refuse(at(RECIPE, changes))
    line = str(caught.value)
    assert line.startswith(f"{address}: ") and words in line and "\n" not in line
    refuse(at(at(RECIPE, changes), way_out))


def test_every_variant_that_refuses_is_in_the_table():
    refusing = {cls for cls in finals(*MODULES) if cls.refuse is not Part.refuse}
    tabled = {part.refuse.__func__ for changes, _, _ in REFUSED for part in changes.values() if isinstance(part, Part)}
    assert {cls.refuse for cls in refusing} <= tabled
