"""A small copy of an arm, and noise for it to read: letters that nothing predicts, through the arm's own pipeline."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import torch

from headtohead.objectives import Batch
from headtohead.spec import at
from headtohead.study import Recipe, refuse
from headtohead.text.cache import Side, Tokens
from headtohead.text.vocabulary import CharacterVocabulary

LETTERS = "abcdefghijklmnop"  # V' = 16 letters
FLOOR = math.log(len(LETTERS))
FIRST = 2  # the number of the first letter: what comes before stands for no text
LAYERS, WIDTH, LENGTH, ROWS = 2, 64, 32, 16
SHORTEST, LONGEST = 20, 120  # letters of a document of noise


def small(recipe: Recipe) -> Recipe | None:
    """Two layers of width 64 over short rows, all else as it is; a model that cannot be so small is taken as it is.

    None where it does not work on a vocabulary or a length of any but its own.
    """
    # nothing of the audit follows the arm's own course of rates
    rows = {"batch": ROWS, "accumulate": 1, "held_out": 0, "schedule.warmup": 0}
    lengths = dict.fromkeys((min(recipe.length, LENGTH), recipe.length))
    for length, changes in product(lengths, _sizes(recipe)):
        try:
            copy = at(recipe, {**rows, "length": length, **changes})
            refuse(copy)
            _try(copy)
        except Exception:  # whatever a user's own code raises at another size
            continue
        return copy
    return None


def _try(recipe: Recipe) -> None:
    tokens = noise(2_000, 2_000)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        recipe.learner(tokens.vocabulary.size, 0).eval()(batch_of(recipe, tokens, 0))


def _sizes(recipe: Recipe) -> Iterator[dict[str, Any]]:
    """What to change in the model, the smallest first."""
    has = {name for name in ("layers", "heads", "width") if isinstance(getattr(recipe.model, name, None), int)}
    wanted = {"layers": min(LAYERS, getattr(recipe.model, "layers", LAYERS)), "width": WIDTH}
    heads = getattr(recipe.model, "heads", 1)
    for count in dict.fromkeys([heads, math.gcd(heads, WIDTH), 4, 2, 1]) if {"heads", "width"} <= has else [None]:
        for names in ({"layers", "width"}, {"width"}):
            found = {f"model.{name}": wanted[name] for name in names & has}
            yield found | ({"model.heads": count} if count is not None else {})
    yield {"model.layers": wanted["layers"]} if "layers" in has else {}
    yield {}


def noise(train: int, validation: int, seed: int = 0) -> Tokens:
    """So many letters on each side, each drawn alone and all alike, in documents that are also lines."""
    draw = np.random.Generator(np.random.Philox(key=seed))
    sides = [_side(draw, count) for count in (train, validation)]
    return Tokens(
        name="noise",
        train=sides[0],
        validation=sides[1],
        vocabulary=CharacterVocabulary(LETTERS, False),
        bordered=True,
        note="letters drawn at random",
        probe=1,
        tuning=1,
        fingerprint=f"noise {seed}",
    )


def _side(draw: np.random.Generator, count: int) -> Side:
    sizes = draw.integers(SHORTEST, LONGEST, 1 + count // SHORTEST)
    sizes = sizes[: 1 + int(np.searchsorted(np.cumsum(sizes), count))]
    ends = 1 + np.cumsum(sizes + 1)  # a separator opens the stream and closes each document
    ids = draw.integers(FIRST, FIRST + len(LETTERS), int(ends[-1])).astype(np.int32)
    starts = np.append(1, ends[:-1])
    ids[np.append(0, ends - 1)] = 0
    covered = (ids > 0).astype(np.int32)
    lines = np.stack([starts, ends - 1], axis=1)
    return Side(ids, covered, covered, np.append(1, ends), lines, 0.0, 0.0, "noise")


def batch_of(recipe: Recipe, tokens: Tokens, i: int) -> Batch:
    """Training batch i, as the arm's own examples and objective make it."""
    rows = recipe.examples.rows(tokens, recipe.length + recipe.objective.ahead, recipe.batch, 0, i)
    return recipe.objective.prepare(rows, np.random.Generator(np.random.Philox(key=i)), tokens.vocabulary)
