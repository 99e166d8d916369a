"""What the tests of models share: which variants the package has, and small recipes, rows and networks of them."""

import dataclasses
import importlib
import itertools
import pkgutil
import random
import typing
from functools import cache

import numpy as np
import torch
from torch import nn

import headtohead
from headtohead import (
    Batch,
    Everyone,
    MaskedLM,
    MultiHead,
    Part,
    PerToken,
    Recipe,
    Replaced,
    Rows,
    Size,
    Tied,
    Transformer,
    at,
)
from headtohead.audit.causality import redrawn
from headtohead.parts.dropout import row_keys
from headtohead.spec import Mistake, hints
from headtohead.study import refuse
from headtohead.text.exam import exam_sets
from headtohead.text.vocabulary import CharacterVocabulary

# A number that fits a model of width 8, length 6 and two layers, where a variant's own default does not or says little.
FITTING: dict[str, dict[str, tuple]] = {
    "Window": {"width": (1, 3)},
    "RelativeBuckets": {"buckets": (4, 8), "distance": (6,)},
    "Learned": {"padding_offset": (0, 2)},
    "Embedding": {"width": (0, 4), "segments": (0, 2)},
    "Grouped": {"key_value_heads": (1, 2)},
    "Additive": {"hidden": (0, 3)},
    "SoftmaxN": {"n": (0.0, 0.5, 1.0)},
    "ReZero": {"start": (0.0, 1.0)},
    "Cosine": {"scale": (None, 2.0)},
    "Feedforward": {"ratio": (1.0, 2.0)},
    "Dropout": dict.fromkeys(("embedding", "weights", "attention", "feedforward"), (0.0, 0.5)),
    "MaskedLM": {"rate": (0.5,)},
    "Replaced": {
        "generator": (Transformer(layers=1, heads=2, width=8, attention=MultiHead(visibility=Everyone())),),
        "masking": (MaskedLM(rate=0.5, masked=1.0, random=0.0), MaskedLM(rate=0.5, count="exact")),
    },
}
VOCABULARY = CharacterVocabulary("abcdefgh", False)
SIZE = Size(vocabulary=10, length=6, width=8, embedding_width=8, heads=2, key_value_heads=2, layers=2)


@cache
def variants(slot: type[Part]) -> list[type[Part]]:
    """The final classes of a slot, found and not listed, so that a new one is tested the day it is written."""
    for name in dir(headtohead):
        getattr(headtohead, name)
    for folder in ("parts", "objectives"):
        package = importlib.import_module(f"headtohead.{folder}")
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")
    ours = [cls for cls in _below(slot) if cls.__module__.startswith("headtohead.")]
    below = [cls for cls in ours if not cls.__module__.startswith("headtohead.studies.")]  # examples, if one is loaded
    return sorted({cls for cls in below if not _below(cls, "headtohead.")} or {slot}, key=lambda cls: cls.__name__)


def _below(cls: type, home: str = "") -> list[type]:
    direct = [sub for sub in cls.__subclasses__() if sub.__module__.startswith(home)]
    return direct + [lower for sub in direct for lower in _below(sub, home)]


@cache
def slots(holder: type[Part]) -> dict[str, type[Part]]:
    """Field -> slot of a class: the fields that hold parts."""
    own = field_types(holder)
    return {name: hint for name, hint in own.items() if isinstance(hint, type) and issubclass(hint, Part)}


def fitting(cls: type[Part]) -> dict[str, tuple]:
    """Field -> numbers from FITTING, where a class or one above it has any."""
    found = {name: values for base in reversed(cls.__mro__) for name, values in FITTING.get(base.__name__, {}).items()}
    if "outputs" in field_types(cls):  # of a head that judges a token
        found["outputs"] = (1, 2)
    return found


@cache
def choices(cls: type[Part]) -> dict[str, tuple]:
    """Field -> values worth trying: every option of a choice, both sides of a switch, and what is fitting."""
    options = {
        name: typing.get_args(hint) if typing.get_origin(hint) is typing.Literal else (False, True)
        for name, hint in field_types(cls).items()
        if typing.get_origin(hint) is typing.Literal or hint is bool
    }
    return options | fitting(cls)


def field_types(cls: type[Part]) -> dict[str, object]:
    """Field -> type of a class, constants of the class left out."""
    return {field.name: hints(cls)[field.name] for field in dataclasses.fields(cls)}


def settings(cls: type[Part]) -> list[Part]:
    """A variant in every combination of its choices."""
    tried = choices(cls)
    return [cls(**dict(zip(tried, values, strict=True))) for values in itertools.product(*tried.values())]


def plain(cls: type[Part]) -> Part:
    """A variant as published, as far as that fits a small model."""
    return cls(**{name: values[0] for name, values in fitting(cls).items()})


def every(slot: type[Part]) -> list[Part]:
    """All variants of a slot, plain."""
    return [plain(cls) for cls in variants(slot)]


def drawn(holder: Part, draw: random.Random) -> Part:
    """The same part with a drawn variant, in a drawn setting, in every slot."""
    return dataclasses.replace(holder, **{name: _one(slot, draw) for name, slot in slots(type(holder)).items()})


def _one(slot: type[Part], draw: random.Random) -> Part:
    cls = draw.choice(variants(slot))
    part = cls(**{name: draw.choice(values) for name, values in choices(cls).items()})
    return drawn(part, draw)


def refused(recipe: Recipe) -> bool:
    """Whether the package says itself that this cannot work."""
    try:
        refuse(recipe)
    except Mistake:
        return True
    return False


def tiny(changes: dict | None = None, **more: object) -> Recipe:
    """A recipe over ten tokens: one layer, two heads, width 8, length 6, and a head that suits the objective."""
    head = PerToken(outputs=1, dense=True) if isinstance(more.get("objective"), Replaced) else Tied()
    model = Transformer(layers=1, heads=2, width=8, head=head)
    return at(Recipe(model=model, length=6, batch=2, **more), changes or {})


def rows(width: int, seed: int = 0) -> Rows:
    """Two rows of letters: two documents in the first, one and padding in the second."""
    half, rest = width // 2, width - 2
    ids = np.random.default_rng(seed).integers(2, VOCABULARY.size, (2, width))
    document = np.zeros((2, width), dtype=np.int64)
    document[0, half:], document[1, rest:] = 1, -1
    position = np.tile(np.arange(width), (2, 1))
    position[0, half:] -= half
    fresh = document >= 0
    exam = exam_sets(np.array([0, fresh.size]), fresh.reshape(-1)).reshape(fresh.shape)
    return Rows(np.where(fresh, ids, VOCABULARY.pad), position, document, fresh=fresh, exam=exam)


def batch_of(recipe: Recipe, seed: int = 0) -> Batch:
    """A training batch of `rows`, with the keys of its dropout."""
    given = rows(recipe.length + recipe.objective.ahead, seed)
    batch = recipe.objective.prepare(given, np.random.default_rng(seed), VOCABULARY)
    return batch._replace(keys=row_keys(0, seed, np.arange(len(given.ids))))


def network(recipe: Recipe, seed: int = 0) -> nn.Module:
    """A recipe's learner with every parameter drawn anew: a start at zero would hide what a parameter does."""
    return redrawn(recipe.learner(VOCABULARY.size, seed))


def loss_of(learner: nn.Module, batch: Batch) -> torch.Tensor:
    """The loss as the loop takes it."""
    counts = learner.counts(batch)
    return sum(term.weight * term.sum / counts[name] for name, term in learner(batch).items())
