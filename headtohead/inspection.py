"""A finished run in Python: headtohead.load("h2h-runs/…/arms/baseline/seed0") gives model and tokenizer."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headtohead.checkpoint import load_weights
from headtohead.files import read_json
from headtohead.imports import find_beside
from headtohead.objectives import Prediction
from headtohead.plan import arms_of
from headtohead.request import file_hash, plan_of, run_folder
from headtohead.spec import Mistake
from headtohead.spec import load as part_from
from headtohead.study import Recipe
from headtohead.text.vocabulary import Vocabulary, load_vocabulary

ROWS = 32  # how many masked copies of a text are looked at together; no result depends on it


class Trained:
    """A trained network in evaluation mode, its recipe and its tokenizer."""

    def __init__(self, recipe: Recipe, vocabulary: Vocabulary, learner: Prediction) -> None:
        self.recipe, self.tokenizer, self.learner = recipe, vocabulary, learner

    @property
    def model(self) -> nn.Module:
        """The body: called as (ids, position) -> logits of all positions, row by row."""
        return self.learner.model

    def encode(self, text: str) -> Tensor:
        """Token ids, 1 × length."""
        try:
            text.encode()
        except UnicodeEncodeError:
            raise Mistake("the text holds bytes that are not UTF-8; give it as UTF-8") from None
        ids = self.tokenizer.encode(text).ids.astype(np.int64)
        if not len(ids):
            raise Mistake("the text is empty; give at least one character")
        return torch.from_numpy(ids)[None]

    def unknown(self, text: str) -> int:
        """How many tokens of a text have no number of their own."""
        unknown = self.tokenizer.unknown
        return 0 if unknown is None else int((self.encode(text) == unknown).sum())

    @torch.inference_mode()
    def logits(self, ids: Tensor) -> Tensor:
        """Logits of every position, rows × length × vocabulary."""
        return self._call(ids).unflatten(0, ids.shape)

    def _call(self, ids: Tensor, scored: Tensor | None = None) -> Tensor:
        return self.model(ids, torch.arange(ids.shape[1])[None], scored=scored)

    def attention(self, text: str) -> Tensor:
        """Attention weights, layers × heads × queries × keys."""
        ids = self.encode(text)
        if ids.shape[1] > self.recipe.length:
            raise Mistake(
                f"the text has {ids.shape[1]} tokens, and the model sees {self.recipe.length} at a time; give less text"
            )
        with _watched(self.model) as caught:
            self.logits(ids)
        if not caught:
            raise Mistake("this model has no attention of ours to look at; a Custom model shows its own")
        return torch.cat(caught)

    @torch.inference_mode()
    def score(self, text: str) -> dict[str, Any]:
        """−ln p of each token of a text and their mean; a masked model has each token masked in turn.

        The first token of a causal model has nothing before it and no score. A text longer than the context is taken in
        rows as held-out text is: half of a causal model's row is there only to be read.
        """
        ids = self.encode(text)
        nll: list[float | None] = self._ahead(ids[0]) if self.recipe.objective.ahead else self._each_masked(ids[0])
        scored = [value for value in nll if value is not None]
        if not scored:
            raise Mistake("a single token has nothing before it to be predicted from; give a longer text")
        loss = sum(scored) / len(scored)
        tokens = [self.tokenizer.decode(token[None].numpy()) for token in ids[0]]
        return {"tokens": tokens, "nll": nll, "loss": loss, "perplexity": math.exp(min(loss, 700.0))}

    def _ahead(self, ids: Tensor) -> list[float | None]:
        found: list[float | None] = [None]
        for first in range(0, max(1, len(ids) - 1 - self.recipe.length // 2), max(1, self.recipe.length // 2)):
            row, target = ids[None, first : first + self.recipe.length], ids[first + 1 : first + 1 + self.recipe.length]
            nll = F.cross_entropy(self.logits(row)[0, : len(target)], target, reduction="none")
            found += nll[len(found) - 1 - first :].tolist()
        return found

    def _each_masked(self, ids: Tensor) -> list[float | None]:
        found: list[float | None] = []
        for row in ids.split(self.recipe.length):
            for places in torch.arange(len(row)).split(ROWS):
                masked = row.repeat(len(places), 1)
                here = torch.arange(len(places))
                masked[here, places] = self.tokenizer.mask
                logits = self._call(masked, scored=here * len(row) + places)
                found += F.cross_entropy(logits, row[places], reduction="none").tolist()
        return found

    @torch.inference_mode()
    def sample(self, prompt: str, tokens: int = 100, temperature: float = 1.0, seed: int = 0) -> str:
        """A continuation of a prompt, drawn token by token from softmax(logits / temperature); 0 takes the likeliest."""
        if not self.recipe.objective.ahead:
            raise Mistake("this model fills in masked tokens and does not continue a text; sample a CausalLM run")
        if not 0 <= temperature < math.inf:
            raise Mistake(f"temperature {temperature} must be a number from 0 on")
        if tokens < 0:
            raise Mistake(f"tokens = {tokens} must be at least 0")
        generator = torch.Generator().manual_seed(seed)
        ids = self.encode(prompt)
        for _ in range(tokens):
            last = self.logits(ids[:, -self.recipe.length :])[0, -1, : self.tokenizer.size].double()
            likeliest = (last == last.max()).double()  # without this, a small temperature overflows
            weights = torch.softmax((last - last.max()) / temperature, 0) if temperature else likeliest
            ids = torch.cat([ids, torch.multinomial(weights, 1, generator=generator)[None]], 1)
        return self.tokenizer.decode(ids[0].numpy())


@contextmanager
def _watched(model: nn.Module) -> Iterator[list[Tensor]]:
    """What passes the attention's tap, in the order of the layers."""
    caught: list[Tensor] = []
    named = model.named_modules()
    taps = [module for name, module in named if name.endswith(".weights") and isinstance(module, nn.Identity)]
    handles = [tap.register_forward_hook(lambda module, args, out: caught.append(out.detach())) for tap in taps]
    try:
        yield caught
    finally:
        for handle in handles:
            handle.remove()


def load(run: str | Path, study: str | Path | None = None, trust_study: bool = False) -> Trained:
    """The trained model of a run's folder.

    A run whose study has parts of its own needs their code: name the study's file, or set `trust_study` to run the copy
    that lies in the study's folder.
    """
    folder = run_folder(Path(run))
    recipe = _recipe(folder, Path(study) if study else None, trust_study)
    vocabulary = load_vocabulary(folder / "vocabulary.json")
    learner = recipe.learner(vocabulary.size, 0)
    load_weights(folder / "model.safetensors", learner)
    return Trained(recipe, vocabulary, learner.eval())


def _recipe(folder: Path, study: Path | None, trusted: bool) -> Recipe:
    out = folder.parent.parent.parent
    plan = plan_of(out)
    if plan is None or plan["request"]["builtin"]:
        return part_from(read_json(folder / "recipe.json"))
    if study is not None:
        if not study.is_file():
            raise Mistake(f"there is no study file {study}; name the one that the run was made with")
        if file_hash(study) != plan["code"]:
            raise Mistake(f"{study} is not the file that {out} was run with; name that one, or trust the copy in it")
        find_beside(study.parent)
    named = plan["code"] if trusted or study is not None else None
    return arms_of(out, plan, named)[folder.parent.name]
