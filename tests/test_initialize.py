"""What a whole network starts from: each matrix by its role and name alone, vectors as their modules set them."""

import hashlib
import math

import pytest
import torch
from torch import nn

from headtohead import (
    Additive,
    Alibi,
    BertHead,
    Clap,
    Custom,
    Embedding,
    Everyone,
    Gate,
    Gelu,
    Grouped,
    LearnedSink,
    MaskedLM,
    Normal,
    PostNorm,
    Recipe,
    RelativeBuckets,
    ReZero,
    ScaledNormal,
    Shared,
    SharedQK,
    SwiGlu,
    Transformer,
    Untied,
    Xavier,
    at,
)
from headtohead.initialize import generator_for, initialize

WORDS = 60
RECIPE = Recipe(model=Transformer(layers=2, heads=4, width=64), length=16)


def start(changes=None, seed=0):
    """Every parameter of a learner before its first step, by name."""
    learner = at(RECIPE, changes or {}).learner(WORDS, seed)
    return {name: parameter.detach() for name, parameter in learner.named_parameters()}


def test_a_generator_is_a_hash_of_seed_and_name():
    digest = hashlib.blake2b(b"init/5/model.head.out.weight", digest_size=8).digest()
    assert generator_for(5, "model.head.out.weight").initial_seed() == int.from_bytes(digest, "little") // 2


def test_a_matrix_is_drawn_from_its_own_name_and_nothing_else():
    for name, parameter in start(seed=7).items():
        if parameter.dim() == 2:
            wanted = torch.empty(parameter.shape).normal_(0.0, 0.02, generator=generator_for(7, name))
            assert torch.equal(parameter, wanted), name


@pytest.mark.parametrize(
    "changes",
    [
        {"model.layers": 4},
        {"model.attention.normalizer": LearnedSink()},
        {"model.attention.gate": Gate()},
        {"model.attention.score": Additive()},
        {"model.attention.projection": SharedQK()},
        {"model.position": RelativeBuckets()},
        {"model.position": Alibi()},
        {"model.embedding": Embedding(norm=True, segments=2)},
        {"model.head": BertHead()},
        {"model.head": Untied()},
        {"model.residual": ReZero()},
        {"model.residual": PostNorm()},
        {"model.sharing": Shared()},
        {"model.attention.visibility": Everyone(), "model.head": Clap()},
        {"optimizer.rate": 1.0, "steps": 7, "schedule.warmup": 0},
    ],
    ids=lambda changes: " ".join(f"{address}={value}" for address, value in changes.items()),
)
def test_arms_share_the_start_of_all_they_share(changes):
    baseline, arm = start(), start(changes)
    named = baseline.keys() & arm.keys()
    shared = {name for name in named if baseline[name].shape == arm[name].shape}
    assert len(shared) >= 17  # one block and the token table at the least
    assert named - shared <= {"model.position.table.weight"}  # positions and T5's buckets are different tables
    for name in shared:
        assert torch.equal(baseline[name], arm[name]), name


def test_another_objectives_arm_has_the_same_names():
    """A mask adds a row to the table; all that does not know the vocabulary stays."""
    baseline, arm = start(), start({"objective": MaskedLM()})
    assert baseline.keys() == arm.keys()
    same = [name for name in baseline if baseline[name].shape == arm[name].shape]
    assert set(baseline) - set(same) == {"model.embedding.token.weight"}
    assert all(torch.equal(baseline[name], arm[name]) for name in same)


def test_seeds_differ_and_torchs_own_generator_does_not_matter():
    torch.manual_seed(1)
    one = start(seed=3)
    torch.manual_seed(2)
    again, other = start(seed=3), start(seed=4)
    assert all(torch.equal(one[name], again[name]) for name in one)
    assert not any(torch.equal(one[name], other[name]) for name in one if one[name].dim() == 2)


PUBLISHED = {
    "model.attention.normalizer": LearnedSink(start=0.5),
    "model.attention.gate": Gate(bias=2),
    "model.attention.score": Additive(),
    "model.residual": ReZero(start=0.25),
    "model.embedding": Embedding(norm=True),
    "model.head": Clap(beta=3),
}
STARTS = {"normalizer.sink": 0.5, "gate.bias": 2.0, "residual.alpha": 0.25, "norm.weight": 1.0, "head.beta": 3.0}


@pytest.mark.parametrize("initialization", [Normal(std=1.0), Xavier(), ScaledNormal(std=1.0)], ids=str)
def test_vectors_keep_their_published_start(initialization):
    """Biases are 0, norms 1, gates, sinks and factors what their part says; no matrix is left at 0."""
    for name, parameter in start(PUBLISHED | {"model.initialization": initialization}).items():
        if parameter.dim() < 2 or name.endswith("bias"):
            value = next((value for ending, value in STARTS.items() if name.endswith(ending)), 0.0)
            assert value or name.endswith("bias"), name
            assert (parameter == value).all(), name
        else:
            assert parameter.std() > 0.01, name


def bounds(changes):
    """The largest number of every matrix that is no table, with the layer's number taken out of its name."""
    found = {}
    for name, parameter in start(changes | {"model.initialization": Xavier()}).items():
        if parameter.dim() >= 2 and "embedding.token" not in name and "table" not in name and "bias" not in name:
            found[name.removeprefix("model.")] = parameter.abs().max().item()
    return {name.removeprefix("blocks.0."): value for name, value in found.items() if "blocks.1." not in name}


def test_xavier_has_the_fan_of_each_matrix_and_of_the_studys_own_in_a_head():
    """Width 64, four heads: study 5's matrix of a head maps 64 to 3 · 16."""
    per_head, square, up = math.sqrt(6 / (64 + 48)), math.sqrt(6 / 128), math.sqrt(6 / (64 + 256))
    wanted = dict.fromkeys((f"attention.projection.{role}.weight" for role in ("query", "key", "value")), per_head)
    wanted |= {"attention.output.weight": square, "feedforward.up.weight": up, "feedforward.down.weight": up}
    wanted |= {"head.out.weight": math.sqrt(6 / (64 + WORDS))}
    found = bounds({"model.head": Untied()})
    assert found.keys() == wanted.keys()
    for name, bound in wanted.items():
        assert bound * 0.99 < found[name] <= bound, name


def test_xavier_without_heads_and_with_fewer_key_value_heads():
    found = bounds({"model.attention.projection": Grouped(key_value_heads=2), "model.feedforward": SwiGlu()})
    assert found["attention.projection.key.weight"] <= math.sqrt(6 / (64 + 48))
    assert found["feedforward.gate.weight"] == pytest.approx(math.sqrt(6 / (64 + 171)), rel=0.01)
    whole = start({"model.initialization": Xavier(per_head=False)})["model.blocks.0.attention.projection.query.weight"]
    assert whole.abs().max().item() == pytest.approx(math.sqrt(6 / 128), rel=0.01)


def test_tables_are_normal_under_xavier():
    found = start({"model.initialization": Xavier(), "model.position": RelativeBuckets()})
    for name in ("model.embedding.token.weight", "model.position.table.weight"):
        table = found[name]
        assert table.std().item() == pytest.approx(0.02, rel=4 / math.sqrt(2 * table.numel()))


@pytest.mark.parametrize("feedforward", [{}, {"model.feedforward": SwiGlu()}], ids=["Gelu", "SwiGlu"])
def test_scaled_normal_is_smaller_where_the_stream_is_added_to(feedforward):
    """.02 / √(2 · 8): eight layers with two sub-layers each; of 64 · 64 numbers a deviation is good to four errors of 1 %."""
    found = start({"model.initialization": ScaledNormal(), "model.layers": 8} | feedforward)
    for name, parameter in found.items():
        if parameter.dim() == 2:
            ends_in_the_stream = name.endswith(("attention.output.weight", "feedforward.down.weight"))
            wanted = 0.02 / 4 if ends_in_the_stream else 0.02
            assert parameter.std().item() == pytest.approx(wanted, rel=4 / math.sqrt(2 * parameter.numel())), name


class Twice(nn.Module):
    """Two owners of one matrix."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Embedding(5, 3), nn.Linear(3, 5)
        self.second.weight = self.first.weight


def test_a_matrix_with_two_owners_is_drawn_once_under_its_first_name():
    network, roles = Twice(), []

    def draw(tensor, role, generator):
        roles.append((role, generator.initial_seed()))
        tensor.normal_(generator=generator)

    initialize(network, draw, 0, 2)
    ((role, seed),) = roles
    assert role.embedding and role.fan == (3, 5) and role.layers == 2 and role.head_fan is None
    assert seed == generator_for(0, "first.weight").initial_seed()
    assert network.second.weight is network.first.weight
    assert torch.equal(network.first.weight, torch.empty(5, 3).normal_(generator=generator_for(0, "first.weight")))
    assert (network.second.bias == 0).all()


def test_a_tied_head_has_no_matrix_of_its_own():
    assert not any("head" in name for name in start())


def plain(size):
    return nn.Sequential(nn.Embedding(size.vocabulary, 8), nn.Linear(8, size.vocabulary))


def test_a_model_of_the_users_own_starts_from_the_runs_seed_and_keeps_its_own_numbers():
    changes = {"model": Custom(plain)}
    torch.manual_seed(1)
    one = start(changes)
    torch.manual_seed(2)
    again, other = start(changes), start(changes, seed=1)
    assert all(torch.equal(one[name], again[name]) and not torch.equal(one[name], other[name]) for name in one)
    assert one["model.inner.0.weight"].std() > 0.8  # torch's N(0, 1) for tables, not this package's .02


class Steered(Gelu):
    """A feed-forward of a user's own, which sets some of its start itself."""

    def build(self, size):
        return OwnStart(size.width)


class OwnStart(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down, self.free = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)
        self.table = nn.Embedding(3, width)
        self.own = nn.Parameter(torch.eye(width) * 0.5)
        nn.init.zeros_(self.up.weight)
        with torch.no_grad():
            self.down.bias.fill_(0.25)

    def forward(self, x):
        return self.down(self.up(x)) + self.free(x) + x @ self.own + self.table.weight.sum()


def test_what_a_users_module_sets_itself_is_kept_and_the_rest_is_drawn():
    recipe = at(Recipe(model=Transformer(layers=1, heads=2, width=8)), {"model.feedforward": Steered()})
    own = recipe.learner(10, 0).model.blocks[0].feedforward
    assert not own.up.weight.any() and torch.equal(own.own, torch.eye(8) * 0.5) and (own.down.bias == 0.25).all()
    assert not own.free.bias.any() and not own.up.bias.any()
    name = "model.blocks.0.feedforward.free.weight"
    assert torch.equal(own.free.weight, torch.empty(8, 8).normal_(0.0, 0.02, generator=generator_for(0, name)))
    assert 0.01 < own.table.weight.std() < 0.04
