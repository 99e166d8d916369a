"""A finished run in Python: headtohead.load("h2h-runs/…/arms/baseline/seed0") gives model and tokenizer."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from headtohead.checkpoint import load_weights
from headtohead.files import read_json
from headtohead.generation import Draw, drawn, reader_of
from headtohead.model import Body, Network
from headtohead.objectives import Prediction
from headtohead.plan import arms_of
from headtohead.request import file_hash, folders, plan_of, run_folder, state_of
from headtohead.sentences import ahead, each_masked, hidden_with, told
from headtohead.spec import Mistake
from headtohead.spec import load as part_from
from headtohead.study import Recipe
from headtohead.text.vocabulary import Encoded, Vocabulary, load_vocabulary


class Trained:
    """A trained network in evaluation mode, its recipe and its tokenizer."""

    def __init__(self, recipe: Recipe, vocabulary: Vocabulary, learner: Prediction) -> None:
        self.recipe, self.tokenizer, self.learner = recipe, vocabulary, learner

    @property
    def model(self) -> Network:
        """The body: called as (ids, position) -> logits of all positions, row by row."""
        return self.learner.model

    def encode(self, text: str) -> Tensor:
        """Token ids, 1 × length, between the marks that the rows of training had."""
        return torch.from_numpy(self._encoded(text).ids)[None]

    def _encoded(self, text: str) -> Encoded:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise Mistake("the text holds bytes that are not UTF-8; give it as UTF-8") from None
        ids, sizes, characters = (column.astype(np.int64) for column in self.tokenizer.encode(text))
        if not len(ids):
            raise Mistake("the text is empty; give at least one character")
        marks = self.recipe.examples.around(self.tokenizer)
        if marks is None or ids[0] == marks[0]:  # nothing marks a text, or its tokens hold the marks already
            return Encoded(ids, sizes, characters)
        nothing = np.zeros(1, np.int64)
        around = [np.concatenate([nothing, column, nothing]) for column in (sizes, characters)]
        return Encoded(np.array([marks[0], *ids, marks[1]]), *around)

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
    def hidden(self, ids: Tensor) -> list[Tensor]:
        """The stream before each layer and at the end, rows × length × width."""
        body, caught = self.model, list[Tensor]()
        if not isinstance(body, Body):
            raise Mistake("this model has no layers of ours to look at; a Custom model shows its own")
        handles = [block.register_forward_pre_hook(lambda block, args: caught.append(args[0])) for block in body.blocks]
        handles.append(body.final_norm.register_forward_hook(lambda norm, args, out: caught.append(out)))
        try:
            self.logits(ids)
        finally:
            for handle in handles:
                handle.remove()
        return caught

    @torch.inference_mode()
    def score(self, text: str) -> dict[str, Any]:
        """−ln p of each token of a text, their mean, and what that comes to; sentences.py says how each is asked."""
        encoded = self._encoded(text)
        ids, masked = torch.from_numpy(encoded.ids), not self.recipe.objective.ahead
        if self._call(ids[None, :1]).shape[-1] < self.tokenizer.size:
            raise Mistake("this model's head says nothing of single tokens; give it one that does, at model.head")
        if masked:
            hidden = hidden_with(text, encoded, self.tokenizer.specials)
            nll = each_masked(self._call, ids, hidden, self.tokenizer.mask, self.recipe.length)
        else:
            nll = ahead(self._call, ids, self.recipe.length)
        if all(value is None for value in nll):
            raise Mistake("a single token has nothing before it to be predicted from; give a longer text")
        tokens = [self.tokenizer.decode(token[None].numpy()) for token in ids]
        return told(tokens, nll, encoded.bytes, masked)

    @torch.inference_mode()
    def sample(
        self,
        prompt: str,
        tokens: int = 100,
        temperature: float = 1.0,
        seed: int = 0,
        top_k: int = 0,
        top_p: float = 1.0,
    ) -> str:
        """A prompt and its continuation, token by token from softmax(logits / temperature); 0 takes the likeliest."""
        if not self.recipe.objective.ahead:
            raise Mistake("this model fills in masked tokens and does not continue a text; sample a CausalLM run")
        if tokens < 0:
            raise Mistake(f"tokens = {tokens} must be at least 0")
        draw = Draw(temperature, top_k, top_p)
        draw.check()
        ids, size = self.prompt(prompt), self.tokenizer.size
        read = reader_of(self.model, self.recipe.length, ids.shape[1] + tokens)
        new = islice(drawn(lambda ids: read(ids)[:size], ids, draw, seed), tokens)
        return self.tokenizer.decode(np.array([*ids[0].tolist(), *new]))

    def prompt(self, text: str) -> Tensor:
        """The ids of a text that goes on: without the mark that would close it."""
        ids, marks = self.encode(text), self.tokenizer.marks
        closed = marks is not None and ids.shape[1] > 1 and int(ids[0, -1]) == marks[1]
        return ids[:, :-1] if closed else ids


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
    named = plan["code"] if trusted else (file_hash(study) if study else None)
    return arms_of(out, plan, named)[folder.parent.name]


def score_arms(
    out: Path, sentences: Sequence[str], study: Path | None = None, trust_study: bool = False
) -> list[dict[str, Any]]:
    """Every arm of a study on every sentence, averaged over its finished seeds."""
    plan = plan_of(out)
    assert plan is not None
    places: dict[str, list[Path]] = {}
    for arm, _, folder in folders(out, plan):
        if state_of(folder)["state"] == "finished":
            places.setdefault(arm, []).append(folder)
    if not places:
        raise Mistake(f"{out} has no finished run yet; the study's own command goes on with it")
    table = []
    for arm, runs in places.items():
        scores = [[run.score(text) for text in sentences] for run in (load(f, study, trust_study) for f in runs)]
        table += [_row(arm, text, seeds) for text, *seeds in zip(sentences, *scores, strict=True)]
    return table


def _row(arm: str, text: str, seeds: list[dict[str, Any]]) -> dict[str, Any]:
    losses = [found["loss"] for found in seeds]
    loss, bits = statistics.fmean(losses), [found["bits_per_byte"] for found in seeds if found.get("bits_per_byte")]
    mean = {"loss": loss, "perplexity": math.exp(min(loss, 700.0)), "losses": losses}
    return {"arm": arm, "text": text, **mean, "bits_per_byte": statistics.fmean(bits) if bits else None}
