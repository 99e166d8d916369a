"""Parts and addresses: a diff is exactly what was changed, a description is the part again, a slip names its cure."""

import copy
import dataclasses
import json
import os
import random
import re
import subprocess
import sys
import typing

import pytest
from small import drawn, field_types, plain, settings, slots, variants

import headtohead
from headtohead import (
    AdamW,
    Additive,
    Custom,
    Embedding,
    File,
    Given,
    HuggingFace,
    LayerNorm,
    LowerCase,
    Model,
    MultiHead,
    Normalizer,
    Part,
    Recipe,
    Size,
    Softmax,
    SoftmaxN,
    Study,
    Text,
    Transformer,
    at,
    diff,
)
from headtohead.spec import Mistake, check, describe, fields, fingerprint, fits, get, load, misfit, short, walk


class Squared(Normalizer):
    """A user's own variant."""

    power: float = 2.0


@dataclasses.dataclass(frozen=True)
class Decorated(Normalizer):
    """One whose author did not know that no decorator is needed."""

    power: float = 2.0


class Homeless(Part):
    """Derived from no slot."""


def factory(size):
    """A user's own model."""


NEEDY = {
    Given: Given("vocab.txt"),
    LowerCase: LowerCase(File("a.txt")),
    File: File("a.txt"),
    HuggingFace: HuggingFace("a"),
    Custom: Custom(factory),
}  # the variants that have no setting of their own


def sample(cls):
    return NEEDY.get(cls) or plain(cls)


def holders():
    """Every class that has slots, plain, and the slots in it."""
    recipe = Recipe()
    for part in (recipe, recipe.model, recipe.model.attention):
        yield part, slots(type(part))


def another(value, hint):
    """A value unlike the one there that fits the field."""
    if isinstance(value, Part):
        slot = next(cls for cls in type(value).__mro__ if cls.__mro__[1] is Part)
        if hint is type(value) and hint is not slot:  # a field that takes this one variant
            return type("Own", (hint,), {})()
        others = [sample(cls) for cls in variants(slot) if cls is not type(value)]
        return others[0] if others else type("Own", (slot,), {})()
    if value is None:
        return 0.5
    if typing.get_origin(hint) is typing.Literal:
        return next(option for option in typing.get_args(hint) if option != value)
    if isinstance(value, bool):
        return not value
    if isinstance(value, tuple):
        return tuple(item + ("x" if isinstance(item, str) else 0.25) for item in value)
    return value + ("x" if isinstance(value, str) else 1 if isinstance(value, int) else 0.25)


RECIPES = {
    f"{type(holder).__name__}.{name}={cls.__name__}": (holder, name, sample(cls))
    for holder, inside in holders()
    for name, slot in inside.items()
    for cls in variants(slot)
}
HOMES = {Recipe: "", Transformer: "model", MultiHead: "model.attention"}


def with_part(holder, name, part):
    """The default recipe with one variant in its slot, and its address."""
    address = f"{HOMES[type(holder)]}.{name}".lstrip(".")
    return at(Recipe(), {address: part}), address


@pytest.mark.parametrize("case", RECIPES)
def test_a_change_of_one_field_is_the_whole_difference(case):
    """Everywhere in a recipe, for every variant in its slot: the address that was changed, and both its values."""
    recipe, place = with_part(*RECIPES[case])
    tried = 0
    for holder, part in walk(recipe, ""):
        if not holder.startswith(place) and case.partition("=")[2] != "Transformer":
            continue  # the rest is the same for every variant in this slot
        for name, value in fields(part).items():
            hint = field_types(type(part))[name]
            if callable(value) and not isinstance(value, Part):
                continue
            address, other = f"{holder}.{name}".lstrip("."), another(value, hint)
            changed = at(recipe, {address: other})
            difference = diff(recipe, changed)
            assert difference == {address: (value, other)}
            assert diff(changed, recipe) == {key: (new, old) for key, (old, new) in difference.items()}
            assert get(changed, address) == other != get(recipe, address)
            tried += 1
    assert tried >= len(fields(get(recipe, place))) - (case == "Recipe.model=Custom")
    assert diff(recipe, copy.deepcopy(recipe)) == {}


@pytest.mark.parametrize("number", range(100))
def test_a_difference_leads_from_one_to_the_other(number):
    draw = random.Random(number)
    one, other = (at(Recipe(), {"model": drawn(Transformer(), draw), "length": draw.choice((8, 9))}) for _ in range(2))
    difference = diff(one, other)
    assert at(one, {address: theirs for address, (_, theirs) in difference.items()}) == other
    assert not any(a.startswith(f"{b}.") for a in difference for b in difference)
    assert all(get(one, address) == ours != theirs for address, (ours, theirs) in difference.items())


def everywhere():
    """Recipes that together have every variant in every setting."""
    for holder, name, part in RECIPES.values():
        if type(part) is not Custom:
            for setting in [part] if type(part) in NEEDY else settings(type(part)):
                yield with_part(holder, name, setting)[0]


def test_a_description_is_the_part_again():
    seen = set()
    for recipe in everywhere():
        again = load(json.loads(json.dumps(describe(recipe), allow_nan=False)))
        assert again == recipe and fingerprint(again) == fingerprint(recipe)
        check(again)
        seen |= {type(part) for _, part in walk(recipe)}
    slots_met = [slot for holder, inside in holders() for slot in inside.values()]
    assert {cls for slot in slots_met for cls in variants(slot)} - {Custom} <= seen


def test_what_is_shown_is_the_part_again():
    public = {name: getattr(headtohead, name) for name in dir(headtohead)}
    for recipe in everywhere():
        assert eval(short(recipe), public) == recipe, short(recipe)
    assert short(SoftmaxN()) == "SoftmaxN()" and short(SoftmaxN(n=2.0)) == "SoftmaxN(n=2.0)"


def test_equal_settings_have_equal_fingerprints_and_others_have_not():
    recipes = list(dict.fromkeys(everywhere()))
    assert len({fingerprint(recipe) for recipe in recipes}) == len(recipes)
    assert fingerprint(SoftmaxN(n=1)) == fingerprint(SoftmaxN(n=1.0)) != fingerprint(SoftmaxN(n=2))
    assert fingerprint(AdamW(betas=(0, 0.5))) == fingerprint(AdamW(betas=(0.0, 0.5)))


def test_fingerprints_are_the_same_in_every_process():
    recipes = (Recipe(), at(Recipe(), {"model.attention.score": Additive(hidden=3), "clip": 0}))
    shown = ", ".join(map(short, recipes))
    code = "from headtohead import Additive, MultiHead, Recipe, Transformer; from headtohead.spec import fingerprint; "
    code += f"print(*map(fingerprint, ({shown})))"
    env = os.environ | {"PYTHONHASHSEED": "1"}  # ours is another
    found = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert found.stdout.split() == [fingerprint(recipe) for recipe in recipes]


def test_only_the_packages_own_parts_are_loaded():
    for value in (Squared(), Custom(factory)):
        with pytest.raises(Mistake, match="is not one of headtohead's own parts; name the study file that defines it"):
            load(describe(value))
    for home in ("headtohead.spec:at", "headtohead.model:Transfomer", "headtohead.spec:json"):
        with pytest.raises(Mistake, match=f"headtohead has no part '{home}'"):
            load({"part": home})
    with pytest.raises(Mistake, match="has no name of its own"):
        describe(Custom(lambda size: None))


SLIPS = {
    "wrong depth": ({"model.normalizer": Softmax()}, "did you mean 'model.attention.normalizer'?"),
    "no depth": ({"normalizer": Softmax()}, "did you mean 'model.attention.normalizer'?"),
    "misspelt": ({"model.layer": 3}, "(Transformer has no field 'layer'); did you mean 'model.layers'?"),
    "misspelt above": ({"modle.layers": 3}, "(Recipe has no field 'modle'); did you mean 'model.layers'?"),
    "too deep": (
        {"model.layers.count": 3},
        "'model.layers' is 6, which has no parts inside; did you mean 'model.layers'?",
    ),
    "text for a number": ({"model.layers": "3"}, "model.layers: takes int, got '3' (str)"),
    "fraction": ({"model.layers": 3.0}, "model.layers: takes int, got 3.0 (float)"),
    "switch for a number": ({"clip": True}, "clip: takes float, got True (bool)"),
    "number for a switch": ({"model.attention.bias": 1}, "model.attention.bias: takes bool, got 1 (int)"),
    "infinite": ({"clip": float("inf")}, "clip: takes float, got inf (float)"),
    "choice": ({"model.embedding.mask": "Zero"}, "model.embedding.mask: takes 'learned' or 'zero', got 'Zero' (str)"),
    "class": ({"model.attention.normalizer": SoftmaxN}, "takes Normalizer, got the class SoftmaxN; write SoftmaxN()"),
    "other slot": ({"model.attention.normalizer": LayerNorm()}, "takes Normalizer, got LayerNorm, which is a Norm"),
    "no slot": (
        {"model.attention.normalizer": Homeless()},
        "takes Normalizer, got Homeless, which is derived from Part alone; write class Homeless(Normalizer)",
    ),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_is_told_in_one_line_with_its_cure(slip):
    changes, told = SLIPS[slip]
    with pytest.raises(Mistake, match=re.escape(told)) as raised:
        at(Recipe(), changes)
    assert "\n" not in str(raised.value) and next(iter(changes)) in str(raised.value)


def test_a_misspelt_field_names_the_nearest():
    with pytest.raises(Mistake, match=r"^Transformer has no field 'layer'; did you mean 'layers'\?$"):
        Transformer(layer=3)
    with pytest.raises(Mistake, match=r"^Softmax has no field 'n'; it has none$"):
        Softmax(n=1)


def test_types_are_checked_at_every_depth():
    check(Recipe())
    deep = Recipe(model=Transformer(attention=MultiHead(normalizer=SoftmaxN(n="1"))))
    with pytest.raises(Mistake, match=r"^model\.attention\.normalizer\.n: takes float, got '1' \(str\)$"):
        check(deep)


def test_what_fits_a_field():
    assert misfit(AdamW, "betas", (0.9, 0.95)) is None and misfit(AdamW, "betas", (0, 0.5)) is None
    assert "takes tuple[float, float]" in misfit(AdamW, "betas", (0.9,))
    assert fits((), tuple[int, ...]) and fits((1, 2), tuple[int, ...]) and not fits((1, "a"), tuple[int, ...])
    assert misfit(Study, "margin", None) is None and misfit(Study, "margin", 1) is None
    assert misfit(Study, "margin", "1") == "takes float or None, got '1' (str)"
    assert misfit(Custom, "factory", factory) is None and misfit(Custom, "factory", 3) is not None
    assert not fits(float("nan"), float) and not fits(True, int) and not fits(True, float | None)


@pytest.mark.parametrize("part", [Squared(), Decorated(), Homeless(), Embedding(), Recipe()], ids=short)
def test_parts_are_frozen(part):
    before = copy.deepcopy(part)
    for name in [*fields(part), "something_new"]:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(part, name, 1)
        with pytest.raises(dataclasses.FrozenInstanceError):
            delattr(part, name)
    assert part == before and hash(part) == hash(before)


def test_every_variant_is_frozen():
    for _, _, part in RECIPES.values():
        with pytest.raises(dataclasses.FrozenInstanceError):
            part.anything = 1


@pytest.mark.parametrize("own", [Squared, Decorated])
def test_a_part_of_the_users_own_is_a_part_like_any(own):
    recipe = at(Recipe(), {"model.attention.normalizer": own(power=3.0)})
    assert list(diff(Recipe(), recipe)) == ["model.attention.normalizer"]
    twice = at(recipe, {"model.attention.normalizer.power": 4})
    assert diff(recipe, twice) == {"model.attention.normalizer.power": (3.0, 4)}
    assert own() == own(2.0) != own(3.0) and own() != Softmax() and short(own(3.0)) == f"{own.__name__}(power=3.0)"
    with pytest.raises(Mistake, match=f"{own.__name__} has no field 'powr'; did you mean 'power'"):
        own(powr=2.0)
    assert describe(own()) == {"part": f"test_spec:{own.__name__}", "power": 2.0}


def test_a_part_without_weights_builds_itself_and_is_content_everywhere():
    assert Softmax().build(Size(vocabulary=2, length=2)) is not None
    assert Homeless().build(Size(vocabulary=2, length=2)) == Homeless()
    assert list(Squared().refuse(Size(vocabulary=2, length=2), Recipe())) == []


def test_walking_meets_every_part_once():
    met = dict(walk(Recipe()))
    assert met[""] == Recipe() and met["model.attention.normalizer"] == Softmax()
    assert all(get(Recipe(), address) is part for address, part in met.items() if address)
    held = [name for part in met.values() for name, value in fields(part).items() if isinstance(value, Part)]
    assert len(met) == 1 + len(held)


def test_the_samples_here_cover_what_needs_a_value():
    needy = {
        cls
        for slot in (Model, Text)
        for cls in variants(slot)
        if any(field.default is dataclasses.MISSING for field in dataclasses.fields(cls))
    }
    assert needy | {Given} == set(NEEDY)
