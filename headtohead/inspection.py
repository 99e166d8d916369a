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
from headtohead.objectives import Prediction
from headtohead.plan import arms_of
from headtohead.request import file_hash, plan_of
from headtohead.spec import Mistake
from headtohead.spec import load as part_from
from headtohead.study import Recipe
from headtohead.text.vocabulary import Vocabulary, load_vocabulary


class Trained:
    """A trained network in evaluation mode, its recipe and its tokenizer."""

    def __init__(self, recipe: Recipe, vocabulary: Vocabulary, learner: Prediction) -> None:
        self.recipe, self.tokenizer, self.learner = recipe, vocabulary, learner

    @property
    def model(self) -> nn.Module:
        """The body: called as (ids, position) -> logits of all positions, row by row."""
        return self.learner.model

    def encode(self, text: str) -> Tensor:
        """Token ids, 1 × length, cut to the context length."""
        ids = self.tokenizer.encode(text).ids.astype(np.int64)
        if not len(ids):
            raise Mistake("the text is empty; give at least one character")
        return torch.from_numpy(ids[: self.recipe.length])[None]

    @torch.inference_mode()
    def logits(self, ids: Tensor) -> Tensor:
        """Logits of every position, rows × length × vocabulary."""
        return self.model(ids, torch.arange(ids.shape[1])[None]).unflatten(0, ids.shape)

    def attention(self, text: str) -> Tensor:
        """Attention weights, layers × heads × queries × keys."""
        with _watched(self.model) as caught:
            self.logits(self.encode(text))
        if not caught:
            raise Mistake("this model has no attention of ours to look at; a Custom model shows its own")
        return torch.cat(caught)

    @torch.inference_mode()
    def score(self, text: str) -> dict[str, Any]:
        """−ln p of each token of a text and their mean; a masked model has each token masked in turn.

        The first token of a causal model has nothing before it and no score.
        """
        ids = self.encode(text)
        if self.recipe.objective.ahead:
            nll = [None, *F.cross_entropy(self.logits(ids)[0, :-1], ids[0, 1:], reduction="none").tolist()]
        else:
            masked = ids.repeat(ids.shape[1], 1)
            masked.fill_diagonal_(self.tokenizer.size)
            logits = torch.diagonal(self.logits(masked)).T
            nll = F.cross_entropy(logits, ids[0], reduction="none").tolist()
        scored = [value for value in nll if value is not None]
        if not scored:
            raise Mistake("a single token has nothing before it to be predicted from; give a longer text")
        loss = sum(scored) / len(scored)
        tokens = [self.tokenizer.decode(ids[0, i : i + 1].numpy()) for i in range(ids.shape[1])]
        return {"tokens": tokens, "nll": nll, "loss": loss, "perplexity": math.exp(loss)}

    @torch.inference_mode()
    def sample(self, prompt: str, tokens: int = 100, temperature: float = 1.0, seed: int = 0) -> str:
        """A continuation of a prompt, drawn token by token from the softmax at that temperature."""
        if not self.recipe.objective.ahead:
            raise Mistake("this model fills in masked tokens and does not continue a text; sample a CausalLM run")
        if temperature <= 0:
            raise Mistake(f"temperature {temperature} must be above 0")
        generator = torch.Generator().manual_seed(seed)
        ids = torch.from_numpy(self.tokenizer.encode(prompt).ids.astype(np.int64))[None]
        if not ids.shape[1]:
            raise Mistake("the prompt is empty; give at least one character")
        for _ in range(tokens):
            last = self.logits(ids[:, -self.recipe.length :])[0, -1, : self.tokenizer.size]
            drawn = torch.multinomial(torch.softmax(last / temperature, 0), 1, generator=generator)
            ids = torch.cat([ids, drawn[None]], 1)
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
    folder = Path(run)
    if not (folder / "model.safetensors").is_file():
        raise Mistake(f"{folder} is not the folder of a finished run; those are <study>/arms/<arm>/seed<k>")
    recipe = _recipe(folder, Path(study) if study else None, trust_study)
    vocabulary = load_vocabulary(folder / "tokenizer.json")
    learner = recipe.learner(vocabulary.size, 0)
    load_weights(folder / "model.safetensors", learner)
    return Trained(recipe, vocabulary, learner.eval())


def _recipe(folder: Path, study: Path | None, trusted: bool) -> Recipe:
    out = folder.parent.parent.parent
    plan = plan_of(out)
    if plan is None or plan["request"]["builtin"]:
        return part_from(read_json(folder / "recipe.json"))
    named = plan["code"] if trusted else (file_hash(study) if study else None)
    return arms_of(out, plan, named)[folder.parent.name]
