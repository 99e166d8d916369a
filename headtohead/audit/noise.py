"""Can an arm predict what nothing predicts? A small copy is trained on noise; below its entropy something cheats (A-NOISE).

It needs no idea of how: a mask that leaks, targets among the inputs, labels shifted the wrong way, or a side channel of the
text's pipeline all end below ln 16.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from headtohead.audit import Finding
from headtohead.audit.synthetic import FIRST, FLOOR, batch_of, noise, small
from headtohead.files import read_json, write_json
from headtohead.objectives import Exam, Prediction
from headtohead.spec import describe
from headtohead.study import Recipe
from headtohead.text import store
from headtohead.text.cache import Tokens
from headtohead.train import Route, train

STEPS, LOOK, RATE, WARMUP = 600, 50, 3e-3, 30
TRAINING, FRESH = 200_000, 20_000  # letters
LEAST = 0.01  # nats below the floor that are never called a leak


class Heard(NamedTuple):
    """How well letters of noise were predicted."""

    loss: float
    error: float  # standard error of the loss
    letters: int
    step: int

    @property
    def below(self) -> bool:
        """Whether no honest model could do as well; what is no number shows nothing."""
        return math.isfinite(self.loss) and self.loss < FLOOR - max(5 * self.error, LEAST)


def audit(recipe: Recipe, when: str = "before") -> Finding:
    """Train the small copy for at most 600 steps, and stop as soon as it is below the floor on fresh noise."""
    if not (recipe.objective.ahead or recipe.objective.masks):
        sentence = "It predicts no tokens, so there is no entropy that it could go below."
        return Finding("A-NOISE", "fatal", when, "pass", "not an objective that predicts tokens", sentence)
    copy, tokens = small(recipe), noise(TRAINING, FRESH)
    if copy is None:
        return finding(None, when)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        learner = copy.learner(tokens.vocabulary.size, 0)
        return finding(listen(learner, copy, tokens, STEPS), when)


def audit_once(recipe: Recipe) -> Finding:
    """The same, kept beside the prepared texts: an arm made of the package's own parts alone does the same every time."""
    told = json.dumps(describe(recipe))
    if re.search(r'"(?:part|call)": "(?!headtohead\.)', told):
        return audit(recipe)  # somebody's own code, which may have changed

    def write(folder: Path) -> None:
        write_json(folder / "noise.json", audit(recipe)._asdict())

    name = store.key("noise", told, package(), torch.__version__)
    return store.kept(name, write, lambda folder: Finding(**read_json(folder / "noise.json")))


@cache
def package() -> str:
    """A hash of all of this package's code."""
    whole = hashlib.blake2b(digest_size=16)
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        whole.update(path.read_bytes())
    return whole.hexdigest()


def finding(heard: Heard | None, when: str) -> Finding:
    """What was heard, as an audit says it."""
    if heard is None:
        return Finding("A-NOISE", "fatal", when, "skip", "no letter was scored", "It does not work on noise.")
    evidence = f"{heard.loss:.4f} nats a letter after {heard.step} steps, entropy {FLOOR:.4f}, standard error {heard.error:.1e}"
    evidence += f", {heard.letters:,} fresh letters"
    if heard.below:
        sentence = "A small copy predicts pure noise better than is possible: it is shown what it has to predict."
        return Finding("A-NOISE", "fatal", when, "fail", evidence, sentence)
    return Finding(
        "A-NOISE", "fatal", when, "pass", evidence, "A small copy finds nothing in pure noise, as it should."
    )


def listen(learner: Prediction, recipe: Recipe, tokens: Tokens, steps: int = STEPS) -> Heard | None:
    """Train on noise; the first look at fresh noise that is below the floor, or the last one."""
    optimizers: list[torch.optim.Optimizer] = [torch.optim.AdamW(learner.parameters(), lr=RATE, weight_decay=0.0)]
    stream = ((i, [batch_of(recipe, tokens, i)], "") for i in range(steps))
    for step in train(learner, optimizers, stream, lambda i: RATE * min(1.0, (i + 1) / WARMUP), 1.0, Route()):
        if not math.isfinite(step.loss):
            break
        if (step.step + 1) % LOOK == 0 and step.step + 1 < steps:
            glance = hear(learner, recipe, tokens, step.step + 1, most=4)
            if glance is not None and glance.below:
                break
            learner.train()
    return hear(learner, recipe, tokens, step.step + 1)


def hear(learner: Prediction, recipe: Recipe, tokens: Tokens, step: int, most: int | None = None) -> Heard | None:
    """The mean −ln p of the letters of fresh noise, of at most so many batches; None where no letter is scored."""
    found = []
    with torch.inference_mode():
        for number, exam in enumerate(exams(recipe, tokens)):
            if number == most:
                break
            letters = (exam.batch.target >= FIRST) & (exam.batch.weight > 0)
            found.append(learner.eval().score(exam.batch)[letters].double())
    nll = torch.cat(found).numpy() if found else np.empty(0)
    if len(nll) < 2:
        return None
    return Heard(float(nll.mean()), float(nll.std(ddof=1)) / math.sqrt(len(nll)), len(nll), step)


def exams(recipe: Recipe, tokens: Tokens) -> Iterator[Exam]:
    """What is scored of the fresh noise, as held-out text is."""
    width = recipe.length + recipe.objective.ahead
    stride = max(1, recipe.length // 2 if recipe.objective.ahead else recipe.length)
    for rows in recipe.examples.held_out(tokens, width, stride, 64, recipe.objective.ahead):
        yield from recipe.objective.exams(rows, tokens.vocabulary)
