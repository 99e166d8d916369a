"""Steps worked out by hand and against torch's plain optimizers; what weight decay touches; every field at work."""

import dataclasses
import math

import pytest
import torch
from parts.made import changed, finals
from torch import nn
from torch.testing import assert_close

from headtohead import (
    SGD,
    AdamW,
    Additive,
    BertHead,
    Embedding,
    Gate,
    Lamb,
    MultiHead,
    Muon,
    Recipe,
    RelativeBuckets,
    RMSprop,
    Size,
    Transformer,
    at,
    optimizer,
)
from headtohead.initialize import generator_for
from headtohead.spec import Mistake, short
from headtohead.study import refuse


class Small(nn.Module):
    """A table, a matrix with its bias, a norm's gain, one number and a stack of matrices, in float64."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(5, 4)
        self.linear = nn.Linear(4, 6)
        self.gain = nn.Parameter(torch.zeros(6))
        self.factor = nn.Parameter(torch.zeros(()))
        self.stack = nn.Parameter(torch.zeros(2, 3, 4))
        self.double()
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                parameter.normal_(generator=generator_for(0, name))


def gradients(network, step):
    for name, parameter in network.named_parameters():
        parameter.grad = torch.empty_like(parameter).normal_(generator=generator_for(step, f"gradient/{name}"))


def trained(part, steps=3):
    """The parameters of a small network after some steps with drawn gradients, by name."""
    network = Small()
    made = part.optimizers(network)
    for step in range(steps):
        gradients(network, step)
        for one in made:
            one.step()
    return {name: parameter.detach() for name, parameter in network.named_parameters()}


def by_torch(make, steps=3):
    network = Small()
    theirs = make(network.parameters())
    for step in range(steps):
        gradients(network, step)
        theirs.step()
    return {name: parameter.detach() for name, parameter in network.named_parameters()}


def path(part, start, slopes):
    """Where one number goes under these gradients."""
    network = nn.Module()
    network.w = nn.Parameter(torch.tensor(start, dtype=torch.float64))
    (made,) = part.optimizers(network)
    places = []
    for slope in slopes:
        network.w.grad = torch.tensor(slope, dtype=torch.float64)
        made.step()
        places.append(network.w.item())
    return places


def test_adamw_by_hand():
    """w = 2, g = 1 and then 3, β = (.5, .75), η = .1, λ = .2, ε = 1.

    Step 1: m = .5, v = .25, both corrected to 1: w = 2 − .1(1 / 2 + .4) = 1.91.
    Step 2: m = 1.75 and v = 2.4375, corrected by 1 − .25 and 1 − .5625.
    """
    part = AdamW(rate=0.1, weight_decay=0.2, betas=(0.5, 0.75), eps=1.0)
    m, v = 1.75 / 0.75, 2.4375 / 0.4375
    second = 1.91 - 0.1 * (m / (math.sqrt(v) + 1) + 0.2 * 1.91)
    assert path(part, 2.0, [1.0, 3.0]) == pytest.approx([1.91, second], rel=1e-12)


def test_adamw_without_bias_correction_by_hand():
    """The same numbers, with m = .5 and v = .25, then m = 1.75 and v = 2.4375 as they are."""
    part = AdamW(rate=0.1, weight_decay=0.2, betas=(0.5, 0.75), eps=1.0, bias_correction=False)
    first = 2 - 0.1 * (0.5 / (0.5 + 1) + 0.4)
    second = first - 0.1 * (1.75 / (math.sqrt(2.4375) + 1) + 0.2 * first)
    assert path(part, 2.0, [1.0, 3.0]) == pytest.approx([first, second], rel=1e-12)


def test_lamb_by_hand():
    """One number: ‖w‖ / ‖u‖ · u has w's length and u's sign, so the step is η·|w|, here a tenth."""
    part = Lamb(rate=0.1, weight_decay=0.2, betas=(0.5, 0.75), eps=1.0)
    assert path(part, 2.0, [1.0, 3.0]) == pytest.approx([1.8, 1.62], rel=1e-12)
    assert path(part, -2.0, [1.0]) == pytest.approx([-1.8], rel=1e-12)  # u = .5 / 1.5 − .4: decay wins
    assert path(part, 50.0, [1.0]) == pytest.approx([49.0], rel=1e-12)  # ‖w‖ counts as 10
    assert path(part, 0.0, [1.0]) == pytest.approx([-0.1 / 3], rel=1e-12)  # no length to go by: u = .5 / 1.5 as it is
    assert path(at(part, {"weight_decay": 0.0}), 2.0, [0.0]) == [2.0]  # no step, so no ratio to it


def test_lamb_scales_each_tensor_by_its_own_norms():
    """w = (3, 4), ‖w‖ = 5; g = (1, −1): m = .1g, v = .001g², u = g·.1/√.001."""
    network = nn.Module()
    network.w = nn.Parameter(torch.tensor([3.0, 4.0], dtype=torch.float64))
    network.w.grad = torch.tensor([1.0, -1.0], dtype=torch.float64)
    (made,) = Lamb(rate=0.01, weight_decay=0.0, eps=0.0).optimizers(network)
    made.step()
    side = 0.01 * 5 / math.sqrt(2)
    assert_close(network.w.detach(), torch.tensor([3 - side, 4 + side], dtype=torch.float64), rtol=1e-12, atol=0)


def test_sgd_by_hand():
    """w = 2, g = 1 and then 3, η = .1, λ = .5, μ = .5: m = 1 + 1 = 2, w = 1.8; m = 1 + 3 + .9 = 4.9, w = 1.31."""
    assert path(SGD(rate=0.1, weight_decay=0.5, momentum=0.5), 2.0, [1.0, 3.0]) == pytest.approx([1.8, 1.31], rel=1e-12)
    assert path(SGD(rate=0.1, weight_decay=0.5), 2.0, [1.0, 3.0]) == pytest.approx([1.8, 1.41], rel=1e-12)


def test_rmsprop_by_hand():
    """w = 2, g = 1, λ = .5: v sees g + λw = 2, v = .25 · 4 = 1, w = 2 − .1 · 2 / (1 + 1) = 1.9."""
    part = RMSprop(rate=0.1, weight_decay=0.5, alpha=0.75, eps=1.0)
    second = 1.9 - 0.1 * 3.95 / (math.sqrt(0.75 + 0.25 * 3.95**2) + 1)
    assert path(part, 2.0, [1.0, 3.0]) == pytest.approx([1.9, second], rel=1e-12)


@pytest.mark.parametrize(
    ("part", "make"),
    [
        (AdamW(), lambda p: torch.optim.AdamW(p, foreach=False, fused=False)),
        (
            AdamW(rate=0.02, weight_decay=0.3, betas=(0.8, 0.95), eps=1e-3),
            lambda p: torch.optim.AdamW(p, 0.02, (0.8, 0.95), 1e-3, 0.3, foreach=False, fused=False),
        ),
        (
            SGD(rate=0.1, weight_decay=0.2, momentum=0.9),
            lambda p: torch.optim.SGD(p, 0.1, 0.9, weight_decay=0.2, foreach=False, fused=False),
        ),
        (
            RMSprop(rate=0.01, weight_decay=0.2, alpha=0.9, eps=1e-4),
            lambda p: torch.optim.RMSprop(p, 0.01, 0.9, 1e-4, 0.2, foreach=False),
        ),
    ],
    ids=lambda value: short(value) if isinstance(value, optimizer.Optimizer) else "",
)
def test_it_is_torchs_one_tensor_at_a_time(part, make):
    ours, theirs = trained(part, 5), by_torch(make, 5)
    for name in theirs:
        assert_close(ours[name], theirs[name], rtol=1e-12, atol=1e-14)


def test_adamw_without_correction_is_torchs_with_the_correction_undone():
    """m̂ = m / (1 − β₁ᵗ) and v̂ alike: at ε = 0 the rate η(1 − β₁ᵗ) / √(1 − β₂ᵗ) takes the correction back."""
    ours = trained(AdamW(rate=0.01, weight_decay=0.0, eps=0.0, bias_correction=False), 4)
    network = Small()
    theirs = torch.optim.AdamW(network.parameters(), weight_decay=0.0, eps=0.0, foreach=False, fused=False)
    for step in range(4):
        gradients(network, step)
        theirs.param_groups[0]["lr"] = 0.01 * (1 - 0.9 ** (step + 1)) / math.sqrt(1 - 0.999 ** (step + 1))
        theirs.step()
    for name, parameter in network.named_parameters():
        assert_close(ours[name], parameter.detach(), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("shape", [(32, 32), (16, 48), (48, 16)])
def test_muon_takes_an_orthogonal_step_of_adamws_size(shape):
    """U·(about 1)·Vᵀ for the gradient U·S·Vᵀ, scaled to a root mean square of .2; decay is decoupled."""
    network = nn.Linear(shape[1], shape[0], bias=False)
    network.weight.grad = torch.empty(shape).normal_(generator=generator_for(0, "gradient"))
    before, rate, decay = network.weight.detach().clone(), 0.1, 0.5
    (made,) = Muon(rate=rate, weight_decay=decay).optimizers(network)
    made.step()
    step = (before * (1 - rate * decay) - network.weight.detach()) / (rate * 0.2 * math.sqrt(max(shape)))
    values = torch.linalg.svdvals(step)
    assert values.min() > 0.6 and values.max() < 1.3  # Newton–Schulz in bfloat16 stops close to 1
    left, sizes, right = torch.linalg.svd(network.weight.grad, full_matrices=False)
    assert sizes.max() > 3 * sizes.min()  # the gradient itself is far from orthogonal
    turned = left.T @ step @ right.T
    assert (turned - turned.diag().diag()).abs().max() < 0.1  # the same directions
    assert (step * 0.2 * math.sqrt(max(shape))).square().mean().sqrt().item() == pytest.approx(0.2, rel=0.2)


def test_muons_momentum_looks_ahead():
    """Nesterov's form: b ← μb + (1−μ)g, and μb + (1−μ)g is made orthogonal; seen here from where two steps point."""
    first, second = torch.diag(torch.tensor([1.0, 0.0])), torch.diag(torch.tensor([0.0, 1.0]))

    def last_step(momentum):
        network = nn.Linear(2, 2, bias=False)
        (made,) = Muon(momentum=momentum, weight_decay=0.0).optimizers(network)
        for gradient in (first, second):
            before, network.weight.grad = network.weight.detach().clone(), gradient
            made.step()
        return (before - network.weight.detach()).diag() / (1e-3 * 0.2 * math.sqrt(2))

    without, with_momentum = last_step(0.0), last_step(0.5)
    assert without[0].abs() < 0.05 and without[1] > 0.6
    assert with_momentum.min() > 0.6  # the first gradient's direction is still there


def test_muon_leaves_all_but_flat_hidden_matrices_to_adamw():
    part = Muon(rate=0.02, weight_decay=0.3, betas=(0.8, 0.9), eps=1e-4)
    ours = trained(part)
    theirs = by_torch(lambda p: torch.optim.AdamW(p, 0.02, (0.8, 0.9), 1e-4, 0.3, foreach=False, fused=False))
    for name in theirs:
        if name == "linear.weight":
            assert (ours[name] - theirs[name]).abs().max() > 1e-3
        else:
            assert_close(ours[name], theirs[name], rtol=1e-12, atol=1e-14)


# For every field of every optimizer two settings that differ in it alone.
SHARED = {"rate": 0.1, "weight_decay": 0.5, "decay": "matrices"}
OWN = {
    AdamW: {"betas": (0.5, 0.9), "eps": 0.1, "bias_correction": False},
    Lamb: {"betas": (0.5, 0.9), "eps": 0.1},
    SGD: {"momentum": 0.5},
    RMSprop: {"alpha": 0.5, "eps": 0.1},
    Muon: {"momentum": 0.5, "betas": (0.5, 0.9), "eps": 0.1},
}
PAIRS = [(cls(), cls(**{name: value})) for cls, own in OWN.items() for name, value in (SHARED | own).items()]
# one moment's β at a time, and the third kind of decay
PAIRS += [(cls(), cls(betas=betas)) for cls in (AdamW, Lamb, Muon) for betas in ((0.5, cls().betas[1]), (0.9, 0.5))]
PAIRS += [(cls(decay=decay), cls(decay="matrices and tables")) for cls in OWN for decay in ("all", "matrices")]


def test_every_field_of_every_optimizer_is_in_the_table():
    wanted = {(cls, field.name) for cls in finals(optimizer) for field in dataclasses.fields(cls)}
    assert {changed(one, other) for one, other in PAIRS} == wanted


@pytest.mark.parametrize(("one", "other"), PAIRS, ids=short)
def test_no_field_is_ignored(one, other):
    first, again, second = trained(one), trained(one), trained(other)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert max((first[name] - second[name]).abs().max().item() for name in first) > 1e-6
    assert all(second[name].isfinite().all() for name in second)


@pytest.mark.parametrize("cls", finals(optimizer))
def test_the_schedule_has_the_rate_in_its_hands(cls):
    """Groups all take their rate from outside: at 0 nothing moves."""
    network = Small()
    before = {name: p.detach().clone() for name, p in network.named_parameters()}
    made = cls(rate=0.1, weight_decay=0.5).optimizers(network)
    assert {group["lr"] for one in made for group in one.param_groups} == {0.1}
    for one in made:
        for group in one.param_groups:
            group["lr"] = 0.0
    gradients(network, 0)
    for one in made:
        one.step()
    assert all(torch.equal(before[name], p) for name, p in network.named_parameters())


@pytest.mark.parametrize("cls", finals(optimizer))
def test_what_has_no_gradient_stays(cls):
    network = Small()
    before = network.linear.weight.detach().clone()
    made = cls(rate=0.1, weight_decay=0.5).optimizers(network)
    gradients(network, 0)
    network.linear.weight.grad = None
    for one in made:
        one.step()
    assert torch.equal(network.linear.weight, before)


RICH = Transformer(
    layers=1,
    heads=2,
    width=8,
    embedding=Embedding(width=4, norm=True, segments=2),
    position=RelativeBuckets(),
    attention=MultiHead(score=Additive(), gate=Gate()),
    head=BertHead(),
)
TABLES = {"embedding.token.weight", "embedding.segment.weight", "position.table.weight"}
ATTENTION = {"projection.query", "projection.key", "projection.value", "output", "gate"}
MATRICES = {f"blocks.0.attention.{name}.weight" for name in ATTENTION}
MATRICES |= {f"blocks.0.attention.score.{name}" for name in ("query", "key", "weight")}
MATRICES |= {"embedding.projection.weight", "head.dense.weight"}
MATRICES |= {f"blocks.0.feedforward.{name}.weight" for name in ("up", "down")}


def rich():
    return RICH.build(RICH.complete(Size(vocabulary=10, length=6)))


@pytest.mark.parametrize("cls", finals(optimizer))
@pytest.mark.parametrize("decay", ["all", "matrices", "matrices and tables"])
def test_what_decay_touches(cls, decay):
    """Stacks of matrices are matrices, one for each head; a bias for each head is still a bias."""
    network = rich()
    names = {id(parameter): name for name, parameter in network.named_parameters()}
    groups = [group for one in cls(weight_decay=0.5, decay=decay).optimizers(network) for group in one.param_groups]
    held = [names[id(p)] for group in groups for p in group["params"]]
    assert sorted(held) == sorted(names.values())  # each once
    decayed = {names[id(p)] for group in groups if group["weight_decay"] for p in group["params"]}
    wanted = {"all": set(names.values()), "matrices": MATRICES, "matrices and tables": MATRICES | TABLES}[decay]
    assert decayed == wanted
    assert {group["weight_decay"] for group in groups} <= {0.0, 0.5} and all(group["params"] for group in groups)


def test_muon_takes_flat_matrices_and_adamw_the_rest():
    network = rich()
    names = {id(parameter): name for name, parameter in network.named_parameters()}
    muon, adam = Muon().optimizers(network)
    taken = {names[id(p)] for group in muon.param_groups for p in group["params"]}
    stacks = {"blocks.0.attention.gate.weight", *(f"blocks.0.attention.score.{n}" for n in ("query", "key", "weight"))}
    assert isinstance(muon, torch.optim.Muon) and isinstance(adam, torch.optim.AdamW)
    assert taken == MATRICES - stacks


def test_a_tied_table_is_held_once_and_is_a_table():
    network = nn.Module()
    network.table, network.out = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)
    network.out.weight = network.table.weight
    (made,) = AdamW(weight_decay=0.5, decay="matrices").optimizers(network)
    (group,) = made.param_groups
    assert len(group["params"]) == 1 and group["weight_decay"] == 0.0


# What is refused: the optimizer, words of the reason, and the way out it names.
REFUSED = [
    (AdamW(rate=0.0), "rate > 0", {"optimizer.rate": 1e-3}),
    (SGD(rate=-1.0), "rate > 0", {"optimizer.rate": 1.0}),
    (Lamb(weight_decay=-0.1), "weight_decay ≥ 0", {"optimizer.weight_decay": 0.0}),
    (AdamW(betas=(0.9, 1.0)), "betas = (0.9, 1.0) must lie in [0, 1)", {"optimizer.betas": (0.0, 0.5)}),
    (Lamb(betas=(-0.1, 0.9)), "betas = (-0.1, 0.9) must lie in [0, 1)", {"optimizer.betas": (0.1, 0.9)}),
    (SGD(momentum=1.0), "momentum = 1.0 must lie in [0, 1)", {"optimizer.momentum": 0.0}),
    (Muon(momentum=-0.5), "momentum = -0.5 must lie in [0, 1)", {"optimizer.momentum": 0.5}),
    (RMSprop(alpha=1.5), "alpha = 1.5 must lie in [0, 1)", {"optimizer.alpha": 0.5}),
    (RMSprop(eps=-1e-8), "eps = -1e-08 must be at least 0", {"optimizer.eps": 0.0}),
]


@pytest.mark.parametrize(("part", "words", "way_out"), REFUSED, ids=short)
def test_what_cannot_be_is_refused_in_one_line(part, words, way_out):
    recipe = at(Recipe(steps=200), {"optimizer": part})
    with pytest.raises(Mistake) as caught:
        refuse(recipe)
    line = str(caught.value)
    assert line.startswith("optimizer: ") and words in line and "\n" not in line
    refuse(at(recipe, way_out))


def test_an_optimizer_of_the_users_own_needs_to_make_something():
    class Forgotten(optimizer.Optimizer):
        pass

    with pytest.raises(TypeError, match=r"Forgotten must define make\(named, hidden\)"):
        Forgotten().optimizers(nn.Linear(2, 2))
