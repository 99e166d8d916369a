"""Leave and take up again, with every optimizer and kind of tensor: the bits are those of a run that never stopped."""

import json

import pytest
import torch
from small import VOCABULARY, tiny, variants
from test_train import DROPOUT, EAGER, eight_rows
from torch import nn

from headtohead import SGD, AdamW, Custom, Lamb, MaskedLM, Muon, Optimizer, RMSprop, Untied, at
from headtohead.checkpoint import load_checkpoint, load_weights, network_tensors, save_checkpoint, save_weights
from headtohead.objectives import cut
from headtohead.parts.dropout import row_keys
from headtohead.restart import furthest
from headtohead.spec import Mistake, short
from headtohead.train import train

OPTIMIZERS = [
    AdamW(),
    AdamW(bias_correction=False),
    Lamb(),
    SGD(momentum=0.9, decay="matrices"),
    SGD(),
    RMSprop(),
    Muon(),
]


class Odd(nn.Module):
    """A user's own: one matrix with two owners, buffers that training moves, a whole number among them."""

    def __init__(self, size):
        super().__init__()
        self.table = nn.Embedding(size.vocabulary, 8)
        self.norm = nn.BatchNorm1d(8)
        self.out = nn.Linear(8, size.vocabulary)
        self.out.weight = self.table.weight
        self.register_buffer("halves", torch.full((3,), 0.5, dtype=torch.bfloat16))

    def forward(self, ids):
        return self.out(self.norm(self.table(ids).transpose(1, 2)).transpose(1, 2))


def fresh(recipe):
    learner = recipe.learner(VOCABULARY.size, 0)
    return learner, recipe.optimizer.optimizers(learner)


def steps(recipe, learner, optimizers, first, last):
    """Train from one step to another, each on its own batch in two pieces."""

    def stream():
        for step in range(first, last):
            yield step, cut(eight_rows(recipe)._replace(keys=row_keys(0, step, range(8))), 2), ""

    return [step.loss for step in train(learner, optimizers, stream(), lambda step: 0.01 / (1 + step), 1.0, EAGER)]


def taken_up(recipe, path):
    """5 steps, a save, fresh objects, a load, 5 more."""
    learner, optimizers = fresh(recipe)
    losses = steps(recipe, learner, optimizers, 0, 5)
    save_checkpoint(path, learner, optimizers, {"steps": 5, "seconds": 1.25})
    learner, optimizers = fresh(recipe)
    with torch.no_grad():
        for tensor in network_tensors(learner).values():
            tensor.zero_()  # nothing may be left of the start
    assert load_checkpoint(path, learner, optimizers) == {"steps": 5, "seconds": 1.25}
    return learner, optimizers, losses + steps(recipe, learner, optimizers, 5, 10)


def state(optimizers, learner):
    """All that the optimizers keep, by the name of its parameter."""
    names = {parameter: name for name, parameter in learner.named_parameters()}
    return [
        (names[parameter], kind, value)
        for optimizer in optimizers
        for parameter, kept in optimizer.state.items()
        for kind, value in kept.items()
    ]


def check_taken_up(recipe, path):
    straight, optimizers = fresh(recipe)
    losses = steps(recipe, straight, optimizers, 0, 10)
    learner, others, again = taken_up(recipe, path)
    assert again == losses and len(set(losses)) == 10
    ours, theirs = network_tensors(learner), network_tensors(straight)
    assert ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)
    kept, wanted = (
        {(name, kind): value for name, kind, value in state(*pair)}
        for pair in ((others, learner), (optimizers, straight))
    )
    assert kept.keys() == wanted.keys()
    for key, value in kept.items():
        assert torch.equal(value, wanted[key]) and value.dtype == wanted[key].dtype, key
    return learner


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=short)
def test_the_bits_are_those_of_a_run_that_never_stopped(optimizer, tmp_path):
    recipe = at(tiny(optimizer=optimizer), {"model.dropout": DROPOUT, "model.layers": 2})
    check_taken_up(recipe, tmp_path / "checkpoint.safetensors")


def test_every_optimizer_is_tried():
    assert {type(optimizer) for optimizer in OPTIMIZERS} == set(variants(Optimizer))


@pytest.mark.parametrize("optimizer", [AdamW(), Muon(), Lamb()], ids=short)
def test_tied_tensors_and_buffers_are_kept(optimizer, tmp_path):
    recipe = tiny({"model": Custom(Odd)}, optimizer=optimizer)
    learner = check_taken_up(recipe, tmp_path / "checkpoint.safetensors")
    inner = learner.model.inner
    assert inner.out.weight is inner.table.weight
    assert int(inner.norm.num_batches_tracked) == 20 and inner.norm.running_mean.abs().max() > 0  # two pieces a step
    names = network_tensors(learner).keys()
    assert {"model.inner.norm.running_var", "model.inner.halves", "model.inner.table.weight"} <= names
    assert "model.inner.out.weight" not in names


def test_masked_networks_too(tmp_path):
    check_taken_up(tiny(objective=MaskedLM(rate=0.3)), tmp_path / "checkpoint.safetensors")


def test_weights_alone_come_back_bit_by_bit(tmp_path):
    for recipe in (tiny(), tiny({"model": Custom(Odd)})):
        learner, optimizers = fresh(recipe)
        steps(recipe, learner, optimizers, 0, 3)
        save_weights(tmp_path / "model.safetensors", learner)
        other = recipe.learner(VOCABULARY.size, 1)
        before = {name: tensor.clone() for name, tensor in network_tensors(other).items()}
        load_weights(tmp_path / "model.safetensors", other)
        ours, theirs = network_tensors(learner), network_tensors(other)
        assert all(torch.equal(ours[name], theirs[name]) for name in ours)
        assert any(not torch.equal(before[name], theirs[name]) for name in ours)


@pytest.fixture
def checkpoint(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    learner, optimizers = fresh(tiny())
    steps(tiny(), learner, optimizers, 0, 1)
    save_checkpoint(path, learner, optimizers, {"lock": "aa", "steps": 1, "restarts": []})
    return path


def test_a_checkpoint_is_a_start_for_its_own_study_alone(checkpoint, tmp_path):
    assert furthest(tmp_path, "aa", []) == checkpoint
    assert furthest(tmp_path, "bb", []) is None
    checkpoint.write_bytes(checkpoint.read_bytes()[:-1])
    assert furthest(tmp_path, "aa", []) is None


@pytest.mark.parametrize("kept", [0, 4, 100, -1])
def test_a_file_cut_short_is_the_users_to_delete(checkpoint, kept):
    whole = checkpoint.read_bytes()
    checkpoint.write_bytes(whole[:kept])
    with pytest.raises(Mistake, match=r"checkpoint\.safetensors is damaged \(.*\); delete it") as raised:
        load_checkpoint(checkpoint, *fresh(tiny()))
    assert "\n" not in str(raised.value)
    with pytest.raises(Mistake, match=r"is damaged \(.*\); delete its run's folder and run the study again"):
        load_weights(checkpoint, fresh(tiny())[0])


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(Mistake, match=r"model\.safetensors cannot be read \(.*\); delete its run's folder"):
        load_weights(tmp_path / "model.safetensors", fresh(tiny())[0])
    with pytest.raises(Mistake, match=r"model\.safetensors cannot be read \(.*\); delete it"):
        load_checkpoint(tmp_path / "model.safetensors", *fresh(tiny()))


def test_weights_are_no_checkpoint(tmp_path):
    learner, optimizers = fresh(tiny())
    save_weights(tmp_path / "model.safetensors", learner)
    with pytest.raises(Mistake, match=r"model\.safetensors is no checkpoint; delete it"):
        load_checkpoint(tmp_path / "model.safetensors", learner, optimizers)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"model.layers": 2}, "tensors differ, the first is model.blocks.1.attention.output.bias"),
        ({"model.head": Untied()}, "2 tensors differ, the first is model.head.out.bias"),
        ({"length": 7}, "model.position.table.weight is [6, 8], not [7, 8]"),
        ({"optimizer": RMSprop()}, "it is of AdamW, not RMSprop"),
        ({"optimizer": Muon()}, "it is of AdamW, not Muon AdamW"),
        ({"optimizer": Lamb()}, "it is of AdamW, not Moments"),
    ],
)
def test_a_file_of_another_recipe_is_refused(checkpoint, changes, told):
    learner, optimizers = fresh(at(tiny(), changes))
    before = {name: tensor.clone() for name, tensor in network_tensors(learner).items()}
    with pytest.raises(Mistake, match="does not fit this recipe") as raised:
        load_checkpoint(checkpoint, learner, optimizers)
    assert told in str(raised.value) and "\n" not in str(raised.value)
    assert all(torch.equal(tensor, before[name]) for name, tensor in network_tensors(learner).items())


def test_nothing_in_the_file_is_code(checkpoint):
    """The header is JSON and the rest numbers: safetensors' own format, readable by anyone."""
    raw = checkpoint.read_bytes()
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    assert json.loads(header.pop("__metadata__")["progress"]) == {"lock": "aa", "steps": 1, "restarts": []}
    learner, _ = fresh(tiny())
    names = {f"network/{name}" for name in network_tensors(learner)}
    assert names < header.keys() and {name.partition("/")[0] for name in header} == {"network", "optimizer"}
    assert len(header) == len(names) + 3 * len(list(learner.parameters()))  # AdamW: two moments and a count each
