"""Parameters and operations: the formula is torch's count, both are those worked out by hand, a tied tensor is one."""

import gc
import os

import pytest
import torch
from small import every, refused, settings, slots, tiny, variants
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from headtohead import (
    Additive,
    BertHead,
    CausalLM,
    Clap,
    Custom,
    Embedding,
    Gelu,
    Grouped,
    MaskedLM,
    MultiHead,
    Objective,
    PerToken,
    Pooled,
    Shared,
    SharedQK,
    SharedQKV,
    SwiGlu,
    Tied,
    Transformer,
    Untied,
    at,
)
from headtohead.measure.cost import counted_forward, operations, parameters, peak_memory, reset_peak_memory
from headtohead.spec import short
from headtohead.study import network_of

VOCABULARY, LENGTH, WIDTH = 40, 16, 32
SHAPE = {"model.width": WIDTH, "model.heads": 4, "model.layers": 2, "length": LENGTH}
BASE = at(tiny(), SHAPE)
SLOTS = {f"model.{name}": slot for name, slot in slots(Transformer).items()}
SLOTS |= {f"model.attention.{name}": slot for name, slot in slots(MultiHead).items()}


def operations_of(recipe):
    return operations(recipe, network_of(recipe, VOCABULARY), VOCABULARY)


def matrix(recipe):
    """Of the formula, what is matrix products, forward."""
    found = operations_of(recipe)
    return (found["flops"] - found["flops.elementwise"]) / 3


@pytest.mark.parametrize("address", SLOTS)
def test_the_formula_is_torchs_count_for_every_variant(address):
    """Within 2 % on the matrix products; half of the tokens scored, or all; every network of the objective."""
    tried = set()
    for objective in [at(part, {"tie": "nothing"} if hasattr(part, "tie") else {}) for part in every(Objective)]:
        for part in [part for cls in variants(SLOTS[address]) for part in settings(cls)]:
            recipe = at(tiny(objective=objective), SHAPE | {"model.layers": 1, address: part})
            if refused(recipe):
                continue
            counted = operations_of(recipe)["flops.counted"] / 3
            assert matrix(recipe) == pytest.approx(counted, rel=0.02), (short(objective), short(part))
            tried.add(objective)
    assert len(tried) == len(variants(Objective))


def test_a_generator_is_counted_too():
    """Both networks: the generator's head on half of the positions, the other's on all."""
    objective = at(every(Objective)[-1], {"tie": "nothing"})
    both = at(tiny(objective=objective), SHAPE)
    alone = at(BASE, {"model": both.model, "objective": CausalLM()})
    generator = at(BASE, {"model": objective.generator, "objective": MaskedLM(rate=0.5)})
    assert matrix(both) == pytest.approx(matrix(alone) + matrix(generator), rel=1e-12)
    assert operations_of(both)["flops.counted"] == pytest.approx(3 * matrix(both), rel=1e-12)


COMBINED = {
    "a wide ALBERT": {"model.embedding": Embedding(width=16), "model.sharing": Shared(groups=1), "model.head": Clap()},
    "factorized BERT": {"model.embedding": Embedding(width=16), "model.head": BertHead()},
    "additive, grouped": {"model.attention.score": Additive(hidden=3), "model.attention.projection": Grouped(2)},
    "one for all": {"model.attention.projection": SharedQKV(), "model.attention.output": False},
    "a gated feed-forward": {"model.feedforward": SwiGlu(), "model.head": Untied()},
    "a narrow feed-forward": {"model.feedforward": Gelu(ratio=0.5), "model.attention.projection": SharedQK()},
}


@pytest.mark.parametrize("name", COMBINED)
@pytest.mark.parametrize("objective", [None, MaskedLM(rate=0.25)])
def test_combinations_are_torchs_count(name, objective):
    recipe = at(BASE, COMBINED[name] | ({} if objective is None else {"objective": objective}))
    assert matrix(recipe) == pytest.approx(operations_of(recipe)["flops.counted"] / 3, rel=1e-12)


BODY = 2 * (8 * WIDTH**2 + 4 * LENGTH * WIDTH + 16 * WIDTH**2)  # two layers of 8d² + 4Td + 16d²


@pytest.mark.parametrize(
    ("changes", "by_hand"),
    [
        ({}, BODY + 2 * WIDTH * VOCABULARY),
        ({"model.head": Untied()}, BODY + 2 * WIDTH * VOCABULARY),
        ({"model.layers": 4}, 2 * BODY + 2 * WIDTH * VOCABULARY),
        ({"model.sharing": Shared(groups=1)}, BODY + 2 * WIDTH * VOCABULARY),
        ({"model.attention.projection": SharedQK()}, BODY - 2 * 2 * WIDTH**2 + 2 * WIDTH * VOCABULARY),
        ({"model.attention.projection": SharedQKV()}, BODY - 2 * 4 * WIDTH**2 + 2 * WIDTH * VOCABULARY),
        ({"model.attention.projection": Grouped(1)}, BODY - 2 * 4 * WIDTH**2 * 3 // 4 + 2 * WIDTH * VOCABULARY),
        ({"model.attention.output": False}, BODY - 2 * 2 * WIDTH**2 + 2 * WIDTH * VOCABULARY),
        ({"objective": MaskedLM(rate=0.25)}, BODY + 0.25 * 2 * WIDTH * (VOCABULARY + 1)),
        ({"model.head": BertHead()}, BODY + 2 * WIDTH * VOCABULARY + 2 * WIDTH**2),
        ({"model.head": PerToken(outputs=3)}, BODY + 2 * WIDTH * 3),
        ({"model.head": Pooled(outputs=3)}, BODY + 2 * WIDTH**2 + 2 * WIDTH * 3),
        ({"model.embedding": Embedding(width=8)}, BODY + 2 * 8 * WIDTH * 2 + 2 * 8 * VOCABULARY),
    ],
)
def test_the_formula_by_hand(changes, by_hand):
    """One token, forward: 8d² for the projections, 4Td for scores and values, 16d² for the feed-forward, 2dV for logits."""
    assert matrix(at(BASE, changes)) == by_hand


def test_training_is_three_times_the_forward_pass():
    """torch's own count of a forward and a backward pass, every parameter trained."""
    recipe = at(BASE, {"batch": 1})
    learner = recipe.learner(VOCABULARY, 0)
    ids = torch.zeros(1, LENGTH, dtype=torch.long)
    with FlopCounterMode(display=False) as counter:
        learner.model(ids, torch.arange(LENGTH)[None]).sum().backward()
    assert operations_of(recipe)["flops"] * LENGTH == counter.get_total_flops()


def test_additive_scores_are_mostly_elementwise():
    """H·T·(a adds + a tanh + 2a), a the hidden width: an addition, tanh, and a product and sum with w."""
    recipe = at(BASE, {"model.attention.score": Additive(hidden=3)})
    assert operations_of(recipe)["flops.elementwise"] == 3 * 2 * (4 * LENGTH * 4 * 3)
    assert operations_of(BASE)["flops.elementwise"] == 0


class One(nn.Module):
    """A linear map from 64 to 256, on tokens as vectors."""

    def __init__(self, size):
        super().__init__()
        self.table, self.out = nn.Embedding(size.vocabulary, 64), nn.Linear(64, 256)

    def forward(self, ids):
        return self.out(self.table(ids))


def test_the_methods_oracle():
    """Linear(64, 256), 8 rows: 262,144 forward; 524,288 with a backward pass that needs no gradient of the input."""
    recipe = at(tiny({"model": Custom(One)}), {"length": 8})
    assert counted_forward(network_of(recipe, 30).model, 8, 1.0) * 8 == 262_144
    linear = nn.Linear(64, 256)
    with FlopCounterMode(display=False) as counter:
        linear(torch.zeros(8, 64)).sum().backward()
    assert counter.get_total_flops() == 524_288


def test_a_model_of_the_users_own_is_counted():
    recipe = at(tiny({"model": Custom(One)}), {"length": 8})
    found = operations_of(recipe)
    assert found == {"flops": 3 * 2 * 64 * 256, "flops.counted": 3 * 2 * 64 * 256, "flops.elementwise": 0}


class Fused(nn.Module):
    """Attention by torch's fused kernel, for which torch 2.13 counts nothing on a CPU by itself."""

    def __init__(self, size):
        super().__init__()
        self.table = nn.Embedding(size.vocabulary, 64)

    def forward(self, ids):
        x = self.table(ids)[:, None]
        return nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)[:, 0]


def test_fused_attention_is_counted_as_explicit_attention():
    recipe = at(tiny({"model": Custom(Fused)}), {"length": 8})
    assert operations_of(recipe)["flops.counted"] == 3 * 4 * 8 * 64


class TiedPair(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.table, self.out = nn.Embedding(size.vocabulary, 8), nn.Linear(8, size.vocabulary)
        self.out.weight = self.table.weight

    def forward(self, ids):
        return self.out(self.table(ids))


def test_a_tied_tensor_counts_once():
    recipe = tiny({"model": Custom(TiedPair)})
    assert parameters(recipe.learner(30, 0)) == {"parameters": 30 * 8 + 30, "parameters.not_embedding": 30}


def test_parameters_by_hand():
    layer = 4 * (WIDTH**2 + WIDTH) + 2 * 4 * WIDTH**2 + 4 * WIDTH + WIDTH + 2 * 2 * WIDTH
    body, tables = 2 * layer + 2 * WIDTH, (VOCABULARY + LENGTH) * WIDTH

    def of(changes):
        return tuple(parameters(at(BASE, changes).learner(VOCABULARY, 0)).values())

    assert of({}) == (body + tables, body)
    assert of({"model.head": Tied(bias=True)}) == (body + tables + VOCABULARY, body + VOCABULARY)
    head = WIDTH * VOCABULARY + VOCABULARY
    assert of({"model.head": Untied()}) == (body + tables + head, body + head)
    assert of({"model.sharing": Shared(groups=1)}) == (body + tables - layer, body - layer)
    narrow = (VOCABULARY + LENGTH) * 8
    assert of({"model.embedding": Embedding(width=8)}) == (body + narrow + 9 * WIDTH, body + 9 * WIDTH)


def test_the_peak_of_memory_is_seen_and_forgotten():
    """64 MiB that are filled and given back raise the peak by that much, and are gone after a reset."""
    gc.collect()
    reset_peak_memory()
    before = peak_memory()
    held = torch.ones(16, 1024, 1024)
    during = peak_memory()
    assert held.sum() and during - before > 50 * 2**20
    del held
    assert peak_memory() > during - 2**20  # the system counts pages a little late
    reset_peak_memory()
    if os.access("/proc/self/clear_refs", os.W_OK):
        assert peak_memory() < during - 50 * 2**20
