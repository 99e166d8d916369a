"""Going on from a prompt: the memory changes no logit and no token, and choices are transformers' own."""

import random
import statistics
import time

import pytest
import torch
from small import VOCABULARY, drawn, network, refused, tiny
from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from headtohead import (
    Alibi,
    Causal,
    Custom,
    Everyone,
    Grouped,
    Learned,
    MinusInfinity,
    MultiHead,
    RelativeBuckets,
    Rotary,
    Shared,
    Sparsemax,
    Transformer,
    Visibility,
    Window,
    ZeroAfter,
    ZeroThenRenormalize,
    at,
)
from headtohead.generation import Draw, plain, reader_of
from headtohead.generation import drawn as tokens_of
from headtohead.inspection import Trained
from headtohead.model import Network
from headtohead.spec import Mistake
from headtohead.study import Recipe


def body(changes=None, length=12, layers=2):
    recipe = at(tiny(changes), {"length": length, "model.layers": layers})
    return network(recipe).eval().model


def remembers(model, length=12):
    return not hasattr(reader_of(model, length, length), "__code__")  # the plain reader is a function


def check_equal(model, length):
    """Logits at every step, fed in pieces of any length, against the plain path."""
    torch.manual_seed(0)
    ids = torch.randint(10, (1, length))
    reader, end = reader_of(model, length, length), 0
    with torch.inference_mode():
        while end < length:
            end = min(length, end + random.Random(end).randint(1, 4))
            torch.testing.assert_close(reader(ids[:, :end]), plain(model, ids[:, :end])[-1], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    "changes",
    [
        {"model.position": Rotary()},
        {"model.position": Rotary(layout="pairs")},
        {"model.position": Alibi()},
        {"model.position": Alibi(shape="sides")},
        {"model.position": RelativeBuckets(buckets=4, distance=6)},
        {"model.position": Learned(padding_offset=2)},
        {"model.attention.projection": Grouped(1)},
        {"model.attention.visibility": Window(width=3)},
        {"model.attention.normalizer": Sparsemax()},
        {"model.sharing": Shared(1)},
    ],
    ids=str,
)
def test_a_memory_changes_no_logit(changes):
    model = body(changes)
    assert remembers(model)
    check_equal(model, 12)


def test_a_memory_changes_no_logit_in_drawn_models():
    """Any combination of parts: where the memory is used it is exact, and it is used wherever hidden keys are −∞."""
    used, draw = 0, random.Random(0)
    for _ in range(200):
        recipe = Recipe(model=Transformer(layers=2, heads=2, width=8), length=9, batch=2)
        recipe = at(recipe, {"model": drawn(recipe.model, draw)})
        recipe = at(recipe, {"model.attention.visibility": Causal()})
        if refused(recipe):
            continue
        model = network(recipe).eval().model
        check_equal(model, 9)
        if recipe.model.attention.masking == MinusInfinity():
            assert remembers(model, 9), recipe
        used += remembers(model, 9)
    assert used > 20


class Peeking(Visibility):
    """The past, and the very first query the last key too."""

    def __call__(self, query_position, key_position):
        return (key_position <= query_position) | ((query_position == 3) & (key_position == 7))


class Foreign(Network):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(10, 10)

    def forward(self, ids, position, document=None, segments=None, scored=None, keys=None):
        return self.table(ids).flatten(0, 1)


@pytest.mark.parametrize(
    "changes",
    [
        {"model.attention.masking": ZeroAfter()},
        {"model.attention.masking": ZeroThenRenormalize(), "model.attention.normalizer": Sparsemax()},
        {"model.attention": MultiHead(visibility=Everyone())},
        {"model.attention.visibility": Window(width=3, future=True)},
        {"model.attention.visibility": Peeking()},
    ],
    ids=str,
)
def test_what_looks_ahead_is_read_anew(changes):
    model = body(changes)
    assert not remembers(model)
    check_equal(model, 12)


def test_a_module_of_the_users_own_is_read_anew():
    assert not remembers(Foreign().eval())
    assert not remembers(tiny({"model": Custom(lambda size: torch.nn.Embedding(10, 10))}).learner(10, 0).model)


def test_beyond_the_context_the_last_tokens_are_read_anew():
    """Cached and uncached continuations are equal well past the context's end."""
    recipe = at(tiny(), {"length": 8, "model.layers": 2})
    run = Trained(recipe, VOCABULARY, network(recipe).eval())
    ids = run.prompt("abc")
    with torch.inference_mode():
        readers = reader_of(run.model, 8, 40), lambda ids: plain(run.model, ids[:, -8:])[-1]
        both = [
            [token for token, _ in zip(tokens_of(read, ids, Draw(), 3), range(37), strict=False)] for read in readers
        ]
    assert both[0] == both[1] and len(set(both[0])) > 3
    assert run.sample("abc", 37, seed=3) == run.tokenizer.decode(torch.tensor([*ids[0], *both[0]]).numpy())


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p"), [(1.0, 0, 1.0), (0.7, 5, 1.0), (1.3, 0, 0.6), (2.0, 7, 0.8), (0.5, 99, 0.01)]
)
def test_choices_are_transformers(temperature, top_k, top_p):
    """Its own warpers in the order in which its generate() applies them."""
    for seed in range(20):
        logits = torch.randn(30, generator=torch.Generator().manual_seed(seed)).double() * 3
        theirs = TemperatureLogitsWarper(temperature)(None, logits[None])
        theirs = TopKLogitsWarper(top_k)(None, theirs) if top_k else theirs
        theirs = TopPLogitsWarper(top_p)(None, theirs) if top_p < 1 else theirs
        weights = Draw(temperature, top_k, top_p).weights(logits)
        torch.testing.assert_close(weights / weights.sum(), theirs.softmax(-1)[0])


def test_the_likeliest_is_taken_at_temperature_zero():
    assert Draw(0.0, 3, 0.5).weights(torch.tensor([1.0, 3.0, 2.0])).tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("draw", "told"),
    [
        (Draw(top_k=-1), "top-k = -1"),
        (Draw(top_p=0.0), "top-p = 0.0"),
        (Draw(top_p=1.5), "at most 1"),
        (Draw(-1.0), "temperature -1.0"),
    ],
)
def test_what_is_no_choice_is_told(draw, told):
    with pytest.raises(Mistake, match=told):
        draw.check()


@pytest.mark.slow
def test_a_memory_is_five_times_faster_at_512_tokens():
    """Interleaved, the median of three, one thread; the prompt is one token."""
    recipe = Recipe(model=Transformer(layers=4, heads=4, width=128), length=513)
    model = recipe.learner(256, 0).eval().model
    ids, times = torch.zeros(1, 1, dtype=torch.long), {"cached": [], "plain": []}
    with torch.inference_mode():
        for _ in range(3):
            seen = []
            for name in times:
                start = time.perf_counter()
                read = reader_of(model, 513, 513) if name == "cached" else lambda ids: plain(model, ids)[-1]
                seen.append([token for token, _ in zip(tokens_of(read, ids, Draw(), 0), range(512), strict=False)])
                times[name].append(time.perf_counter() - start)
            assert seen[0] == seen[1]
    ratio = statistics.median(times["plain"]) / statistics.median(times["cached"])
    print(f"plain / cached = {ratio:.1f}")
    assert ratio >= 5
