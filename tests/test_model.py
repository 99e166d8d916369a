"""The laws of the body: all parts combine, attention is torch's, the whole is transformers', nothing leaks sideways."""

import itertools
import random
import re

import pytest
import torch
import torch.nn.functional as F
from small import (
    SIZE,
    VOCABULARY,
    batch_of,
    choices,
    drawn,
    every,
    loss_of,
    network,
    refused,
    settings,
    slots,
    tiny,
    variants,
)
from torch import nn

from headtohead import (
    Alibi,
    Causal,
    Custom,
    Everyone,
    Grouped,
    Head,
    HeadGate,
    Initialization,
    Masking,
    MultiHead,
    Normalizer,
    Nothing,
    Objective,
    Position,
    Projection,
    Residual,
    Score,
    Shared,
    SharedQK,
    Size,
    Transformer,
    Visibility,
    at,
)
from headtohead.model import Frame
from headtohead.spec import Mistake, get, short, walk
from headtohead.study import network_of, refuse

ATTENTION = {"score": Score, "normalizer": Normalizer, "visibility": Visibility, "masking": Masking, "gate": HeadGate}


def check_learns(recipe):
    """The loss is finite and every parameter gets a finite gradient."""
    learner = recipe.learner(VOCABULARY.size, 0)
    loss = loss_of(learner, batch_of(recipe))
    loss.backward()
    assert loss.isfinite(), short(recipe)
    for name, parameter in learner.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all(), f"{name} of {short(recipe)}"


def weightless(slot):
    """The variants of a slot that train nothing."""

    def trains(part):
        module = part.build(SIZE)
        return isinstance(module, nn.Module) and any(True for _ in module.parameters())

    return [part for part in every(slot) if not trains(part)]


def product(parts):
    """Every combination that is not refused: address -> variants, in a tiny recipe."""
    for chosen in itertools.product(*parts.values()):
        recipe = tiny(dict(zip(parts, chosen, strict=True)))
        if not refused(recipe):
            yield recipe


@pytest.mark.parametrize("masking", every(Masking), ids=short)
def test_all_weightless_parts_combine(masking):
    recipe = tiny()
    homes = {f"model.attention.{name}": slot for name, slot in slots(MultiHead).items()}
    homes |= {
        f"model.{name}": slot
        for name, slot in slots(Transformer).items()
        if name in ("position", "residual", "sharing")
    }
    parts = {address: weightless(slot) or [get(recipe, address)] for address, slot in homes.items()}
    tried = 0
    for combined in product(parts | {"model.attention.masking": [masking]}):
        check_learns(combined)
        tried += 1
    assert tried >= 200


@pytest.mark.parametrize("normalizer", every(Normalizer), ids=short)
def test_all_of_attention_combines(normalizer):
    """Weighted variants too; the residual with them, since that is where their gradient comes from."""
    parts = {f"model.attention.{name}": every(slot) for name, slot in ATTENTION.items()}
    tried = 0
    for combined in product(parts | {"model.attention.normalizer": [normalizer], "model.residual": every(Residual)}):
        check_learns(combined)
        tried += 1
    assert tried >= 100


def drawn_recipe(number):
    """A recipe with a drawn part in every slot of the model, and a drawn objective; the same for the same number."""
    draw = random.Random(number)
    objectives = [part for cls in variants(Objective) for part in settings(cls)]
    while True:
        shape = {"model.layers": draw.choice((1, 2)), "model.heads": draw.choice((2, 4))}
        recipe = at(tiny(objective=draw.choice(objectives)), shape)
        recipe = at(recipe, {"model": drawn(recipe.model, draw)})
        if not refused(recipe):
            return recipe


@pytest.mark.parametrize("number", range(300))
def test_all_parts_combine(number):
    check_learns(drawn_recipe(number))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(5))
def test_many_more_combine(block):
    for number in range(1000 + 500 * block, 1500 + 500 * block):
        check_learns(drawn_recipe(number))


def test_the_drawn_recipes_have_every_variant_in_every_setting():
    recipes = [drawn_recipe(number) for number in range(300)]
    met = {part for recipe in recipes for _, part in walk(recipe.model)}
    classes = {type(part) for part in met}
    for name, slot in (slots(Transformer) | slots(MultiHead)).items():
        predicting = {cls for cls in variants(slot) if getattr(cls, "outputs", None) != "hidden"}
        assert predicting <= classes, name
    for cls in classes - {Transformer, MultiHead}:
        for field, values in choices(cls).items():
            assert {getattr(part, field) for part in met if type(part) is cls} == set(values), f"{cls.__name__}.{field}"


def without_effect(recipe):
    """Parameters that cannot matter, each with the reason."""
    attention, exempt = recipe.model.attention, set()
    if type(attention.visibility).__name__ == "Window" and attention.visibility.width == 1:
        exempt |= {
            "query.weight",
            "query.bias",
            "key.weight",
            "key.bias",
        }  # one key has all the weight, whatever its score
    if type(attention.score).__name__ == "ScaledDot" and type(recipe.model.position).__name__ != "Rotary":
        exempt.add("key.bias")  # it adds the same to all of a query's scores, which only some normalizers see
    return exempt


@pytest.mark.parametrize("objective", every(Objective), ids=short)
@pytest.mark.parametrize(
    ("address", "slot"),
    [(f"model.{name}", slot) for name, slot in slots(Transformer).items()]
    + [(f"model.attention.{name}", slot) for name, slot in slots(MultiHead).items()],
)
def test_every_parameter_matters(address, slot, objective):
    """With all parameters off their start, each gets a gradient that is not zero, but for those listed above."""
    for part in [part for cls in variants(slot) for part in settings(cls)]:
        recipe = at(tiny(objective=objective), {address: part})
        if refused(recipe):
            continue
        learner = network(recipe).double()
        for seed in range(3):
            loss_of(learner, batch_of(recipe, seed)).backward()
        still = [name for name, p in learner.named_parameters() if p.grad.abs().max() < 1e-10]
        for home, (model, _) in objective.networks(recipe.model).items():
            mine = {".".join(name.split(".")[-2:]) for name in still if name.startswith(home)}
            assert mine <= without_effect(at(recipe, {"model": model})), short(part)


def attended(part, document=None, place=Nothing()):
    """What an attention of four heads gives on nine random vectors, and its queries, keys and values."""
    torch.manual_seed(0)
    model = Transformer(layers=1, heads=4, width=32, attention=part)
    size = model.complete(SIZE)
    module, table = part.assemble(size, model), place.build(size)
    x, position = torch.randn(2, 9, 32), torch.arange(9)[None]
    frame = Frame(position, document, table.bias(position, position), table.turn, None)
    return module, module(x, frame), module.projection(x)


@pytest.mark.parametrize("projection", [part for part in every(Projection) if short(part) != "Grouped()"], ids=short)
@pytest.mark.parametrize("visibility", [Causal(), Everyone()], ids=short)
def test_attention_is_torchs(visibility, projection):
    module, ours, (q, k, v) = attended(MultiHead(visibility=visibility, projection=projection))
    heads = F.scaled_dot_product_attention(q, k, v, is_causal=visibility == Causal())
    torch.testing.assert_close(ours, module.output(heads.transpose(1, 2).flatten(-2)), atol=1e-5, rtol=0)


def test_grouped_attention_is_torchs():
    module, ours, (q, k, v) = attended(MultiHead(projection=Grouped(2)))
    few = k[:, ::2], v[:, ::2]
    heads = F.scaled_dot_product_attention(q, *few, is_causal=True, enable_gqa=True)
    torch.testing.assert_close(ours, module.output(heads.transpose(1, 2).flatten(-2)), atol=1e-5, rtol=0)


@pytest.mark.parametrize("visibility", [Causal(), Everyone()], ids=short)
def test_attention_within_documents_is_torchs(visibility):
    document = torch.tensor([[0, 0, 0, 0, 1, 1, 2, 2, 2], [0, 0, 0, 0, 0, 0, 0, -1, -1]])
    module, ours, (q, k, v) = attended(MultiHead(visibility=visibility), document=document)
    same = document[:, None, :, None] == document[:, None, None, :]
    seen = same & torch.ones(9, 9, dtype=torch.bool).tril() if visibility == Causal() else same
    heads = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
    torch.testing.assert_close(ours, module.output(heads.transpose(1, 2).flatten(-2)), atol=1e-5, rtol=0)


def test_attention_with_a_bias_is_torchs():
    module, ours, (q, k, v) = attended(MultiHead(visibility=Everyone()), place=Alibi())
    distance = (torch.arange(9)[:, None] - torch.arange(9)).abs()
    bias = -torch.tensor([1 / 4, 1 / 16, 1 / 64, 1 / 256])[:, None, None] * distance
    heads = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
    torch.testing.assert_close(ours, module.output(heads.transpose(1, 2).flatten(-2)), atol=1e-5, rtol=0)


def count(recipe, vocabulary):
    return sum(p.numel() for p in network_of(recipe, vocabulary).parameters())


PLACES = [part for cls in variants(Position) for part in settings(cls)]
DOCUMENT = torch.tensor([[0, 0, 0, 1, 1, 1], [0, 0, 0, 0, -1, -1]])
PLACE = torch.tensor([[0, 1, 2, 0, 1, 2], [0, 1, 2, 3, 4, 5]])


def logits(body, ids, document=DOCUMENT, position=PLACE):
    """Rows × length × vocabulary."""
    return body(ids, position, document).unflatten(0, ids.shape)


@torch.no_grad()
@pytest.mark.parametrize("normalizer", every(Normalizer), ids=short)
@pytest.mark.parametrize("masking", every(Masking), ids=short)
def test_padding_and_documents_stay_apart(masking, normalizer):
    """Tokens of another document, of padding and of another row change nothing, whatever else is chosen."""
    others = {"model.attention.score": every(Score), "model.attention.visibility": every(Visibility)}
    others |= {"model.attention.masking": [masking], "model.attention.normalizer": [normalizer]}
    ids = torch.randint(2, 10, (2, 6), generator=torch.Generator().manual_seed(0))
    elsewhere, padding, alone = ids.clone(), ids.clone(), ids[1:]
    elsewhere[0, :3] = (ids[0, :3] + 1) % 10
    padding[1, 4:] = (ids[1, 4:] + 1) % 10
    for recipe in product(others | {"model.position": every(Position)}):
        body = network(recipe).model.double().eval()
        before = logits(body, ids)
        assert before.isfinite().all(), short(recipe)
        assert (logits(body, elsewhere)[0, :3] - before[0, :3]).abs().max() > 1e-6, short(recipe)
        for changed, row, kept in ((elsewhere, 0, slice(3, 6)), (elsewhere, 1, slice(6)), (padding, 1, slice(4))):
            moved = (logits(body, changed)[row, kept] - before[row, kept]).abs().max()
            assert moved < 1e-12, f"{moved} in {short(recipe)}"
        by_itself = logits(body, alone, DOCUMENT[1:], PLACE[1:])[0, :4]
        assert (by_itself - before[1, :4]).abs().max() < 1e-12, short(recipe)


@torch.no_grad()
def test_a_document_in_a_row_is_the_document_alone():
    for position in PLACES:
        for visibility in every(Visibility):
            body = network(tiny({"model.position": position, "model.attention.visibility": visibility})).model.double()
            ids = torch.randint(2, 10, (2, 6), generator=torch.Generator().manual_seed(1))
            alone = logits(body, ids[:1, 3:], None, PLACE[:1, 3:])
            assert (logits(body, ids)[0, 3:] - alone[0]).abs().max() < 1e-12, short(position)


@torch.no_grad()
@pytest.mark.parametrize("number", range(40))
def test_rows_are_independent(number):
    """In every drawn recipe, dropout included: its masks belong to rows, not to a batch."""
    recipe = drawn_recipe(number)
    learner, batch = network(recipe).double(), batch_of(recipe)
    document = torch.zeros_like(batch.ids) if batch.document is None else batch.document
    whole = learner.model(batch.ids, batch.position, document, keys=batch.keys).unflatten(0, batch.ids.shape)
    for row in range(2):
        mine = slice(row, row + 1)
        alone = learner.model(batch.ids[mine], batch.position[mine], document[mine], keys=batch.keys[mine])
        assert (alone - whole[row]).abs().max() < 1e-12, short(recipe)


@torch.no_grad()
def test_scored_positions_are_those_of_all():
    for head in [part for cls in variants(Head) for part in settings(cls)]:
        body = network(tiny({"model.head": head})).model
        batch = batch_of(tiny())
        every_one = body(batch.ids, batch.position, batch.document)
        some = torch.tensor([11, 0, 4, 4])
        torch.testing.assert_close(body(batch.ids, batch.position, batch.document, scored=some), every_one[some])


# The slots that change tensors outside their own module: a narrow embedding has narrow positions, ReZero has no norms.
TOUCHED = {"embedding": ("embedding", "position"), "residual": ("norm",), "sharing": ("blocks.1",)}


def starts(recipe, seed=0):
    return dict(recipe.learner(VOCABULARY.size, seed).named_parameters())


@pytest.mark.parametrize("initialization", every(Initialization), ids=short)
def test_arms_start_alike_wherever_they_share_a_tensor(initialization):
    """Bit by bit, for every variant of every slot against the baseline."""
    baseline = tiny({"model.initialization": initialization, "model.layers": 2})
    ours, compared = starts(baseline), set()
    for holder, home in ((Transformer, "model"), (MultiHead, "model.attention")):
        for name, slot in slots(holder).items():
            if name == "initialization":
                continue
            for part in [part for cls in variants(slot) for part in settings(cls)]:
                theirs = starts(at(baseline, {f"{home}.{name}": part}))
                shared = [key for key in ours.keys() & theirs.keys() if ours[key].shape == theirs[key].shape]
                lost = ours.keys() - shared
                assert all(any(word in key for word in TOUCHED.get(name, (name,))) for key in lost), (short(part), lost)
                for key in shared:
                    assert torch.equal(ours[key], theirs[key]), f"{key} of {short(part)}"
                compared |= set(shared)
    assert compared == ours.keys()


def test_sharing_a_projection_keeps_the_others():
    baseline, shared = starts(tiny()), starts(tiny({"model.attention.projection": SharedQK()}))
    gone = {name for name in baseline if "projection.key" in name}
    assert gone == {f"model.blocks.0.attention.projection.key.{kind}" for kind in ("weight", "bias")}
    assert shared.keys() == baseline.keys() - gone
    assert all(torch.equal(shared[name], baseline[name]) for name in shared)


def test_every_tensor_has_a_start_of_its_own():
    """A query and a key that began as one would stay one for the first steps, and no other test would see it."""
    matrices = {name: p for name, p in starts(tiny({"model.layers": 2})).items() if p.dim() >= 2}
    alike = [
        (one, other)
        for one, other in itertools.combinations(matrices, 2)
        if matrices[one].shape == matrices[other].shape and torch.equal(matrices[one], matrices[other])
    ]
    assert len(matrices) > 10 and alike == []


def test_seeds_start_apart():
    one, other = starts(tiny(), 0), starts(tiny(), 1)
    drawn_ones = [name for name, p in one.items() if p.dim() >= 2]
    assert drawn_ones and not any(torch.equal(one[name], other[name]) for name in drawn_ones)


def test_a_model_of_the_users_own_starts_from_the_seed():
    recipe = tiny(
        {"model": Custom(lambda size: nn.Sequential(nn.Embedding(size.vocabulary, 4), nn.Linear(4, size.vocabulary)))}
    )
    torch.manual_seed(99)
    one = starts(recipe, 3)
    torch.manual_seed(100)
    again, other = starts(recipe, 3), starts(recipe, 4)
    assert all(torch.equal(one[name], again[name]) for name in one)
    assert not any(torch.equal(one[name], other[name]) for name in one)


def test_layers_that_share_are_one_block():
    recipe = tiny({"model.layers": 4, "model.sharing": Shared(groups=2)})
    assert count(recipe, 10) == count(tiny({"model.layers": 2}), 10)
    body, unshared = network(recipe).model, network(tiny({"model.layers": 4})).model
    for name in ("embedding", "position", "final_norm", "head"):
        getattr(unshared, name).load_state_dict(getattr(body, name).state_dict())
    for block, group in zip(unshared.blocks, (0, 0, 1, 1), strict=True):
        block.load_state_dict(body.blocks[group].state_dict())
    ids = torch.arange(6)[None]
    torch.testing.assert_close(body(ids, ids), unshared(ids, ids), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"model.layers": 0}, "model: layers = 0 must be at least 1"),
        ({"model.heads": 0}, "model: heads = 0 must be at least 1"),
        ({"model.heads": 3}, "model: width = 8 is not divisible by model.heads = 3; the nearest width is 9"),
        ({"model.width": 3}, "model: width = 3 is not divisible by model.heads = 2; the nearest width is 4"),
    ],
)
def test_shapes_that_cannot_be_are_refused(changes, reason):
    with pytest.raises(Mistake, match=f"^{re.escape(reason)}$"):
        refuse(tiny(changes))


@pytest.mark.parametrize("width", [5, 10])
def test_a_model_of_the_users_own_that_gives_too_little_is_told_what_to_give(width):
    """A model that forgot its last layer: the line names the shape that it gave and the one that is needed."""
    network = Custom(lambda size: nn.Embedding(size.vocabulary, width)).build(Size(vocabulary=10, length=4))
    ids = torch.zeros(2, 4, dtype=torch.long)
    if width == 10:
        assert network(ids, torch.arange(4)[None]).shape == (8, 10)
        return
    with pytest.raises(
        Mistake, match=r"gave \(2, 4, 5\); it must give logits, batch × length × vocabulary, \(2, 4, 10\)"
    ):
        network(ids, torch.arange(4)[None])
