"""Small arms, really trained: on sentences in English or Hebrew, some tens of steps of one thread, in float64.

In float64 so that no machine's rounding decides a case.
"""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import NamedTuple

import torch

from headtohead import Characters, Constant, File, Recipe, Transformer
from headtohead.measure.likelihood import likelihood
from headtohead.objectives import Prediction
from headtohead.run import batches
from headtohead.text.cache import Tokens, prepare
from headtohead.train import Route, train

ENGLISH = (
    ("the old man", "a girl", "my brother", "the teacher", "a small dog", "the king"),
    ("sees", "looks for", "found", "loves", "wants", "sold"),
    ("the house", "a book", "the river", "bread and water", "the long road", "a red flower"),
)
HEBREW = (
    ("האיש הזקן", "ילדה", "אחי", "המורה", "כלב קטן", "המלך"),
    ("רואה את", "מחפש את", "מצא את", "אוהב את", "רוצה את", "מכר את"),
    ("הבית", "הספר", "הנהר", "הלחם והמים", "הדרך הארוכה", "הפרח האדום"),
)
LINES = 600


class Trained(NamedTuple):
    """A network at the end of its training, what it was trained on, and the mean of its training loss."""

    learner: Prediction
    tokens: Tokens
    train_loss: float
    loss: float  # of held-out text


def written(folder: Path, words: tuple[tuple[str, ...], ...] = ENGLISH) -> File:
    """Sentences as a file of its own, each line a document."""
    draw = random.Random(0)
    lines = [" ".join(draw.choice(choice) for choice in words) + "." for _ in range(LINES)]
    path = folder / ("english.txt" if words is ENGLISH else "hebrew.txt")
    path.write_text("\n".join(f"{number} {line}" for number, line in enumerate(lines)) + "\n", encoding="utf-8")
    return File(str(path), border="line")


def recipe(folder: Path, words: tuple[tuple[str, ...], ...] = ENGLISH) -> Recipe:
    """One layer of width 16."""
    return Recipe(
        model=Transformer(layers=1, heads=2, width=16),
        text=written(folder, words),
        tokenizer=Characters(),
        schedule=Constant(),
        length=32,
        batch=8,
        steps=25,
    )


def trained(arm: Recipe, seed: int) -> Trained:
    """One run."""
    tokens = _prepared(arm)
    learner = arm.learner(tokens.vocabulary.size, seed).double()
    optimizers = [torch.optim.AdamW(learner.parameters(), lr=arm.optimizer.rate)]
    steps = train(learner, optimizers, batches(arm, tokens, seed, 0), lambda step: arm.optimizer.rate, 1.0, Route())
    losses = [step.loss for step in steps]
    held_out = likelihood(learner.eval(), arm, tokens, arm.length).figures["loss"]
    return Trained(learner, tokens, sum(losses) / len(losses), held_out)


def losses(arm: Recipe, seeds: int) -> list[float]:
    """Held-out losses by seed."""
    return [trained(arm, seed).loss for seed in range(seeds)]


@cache
def _prepared(arm: Recipe) -> Tokens:
    return prepare(arm.text, arm.tokenizer, arm.split)
