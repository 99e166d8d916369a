"""Is what has to be predicted among what is shown? Tests of the batches and of the loss itself (A-TARGET)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice

import numpy as np
import torch

from headtohead.audit import Finding
from headtohead.audit.causality import redrawn
from headtohead.audit.noise import exams
from headtohead.audit.synthetic import FIRST, LETTERS, batch_of, noise, small
from headtohead.objectives import Batch, Prediction
from headtohead.spec import Mistake
from headtohead.study import Recipe
from headtohead.text.cache import Tokens

REACH = 8  # places on either side at which a target may stand
BATCHES, CHANGED = 12, 12
SIGMAS, LEAST = 6.0, 0.03  # more than this above chance is no chance
SUM = 1e-3  # probabilities may add up to so much more than 1


def audit(recipe: Recipe, tokens: Tokens | None = None, when: str = "before") -> Finding:
    """Where targets stand among the inputs, what changes with a target, and whether its probabilities add up to 1.

    On noise, where nothing is there by chance alone; `tokens` is the arm's own text, whose held-out batches are looked at too.
    """
    if not (recipe.objective.ahead or recipe.objective.masks):
        sentence = "It predicts no tokens of its own input."
        return Finding("A-TARGET", "fatal", when, "pass", "not an objective that predicts tokens", sentence)
    copy, told = small(recipe), noise(4_000, 4_000)
    if copy is None:
        return Finding("A-TARGET", "fatal", when, "skip", "no letter was scored", "It does not work on noise.")
    faults = list(islice(_faults(copy, told), 3))
    if tokens is not None:
        faults += _held_out_faults(recipe, tokens)
    if faults:
        sentence = "What it has to predict is among what it is shown, or is not what comes next."
        return Finding("A-TARGET", "fatal", when, "fail", "; ".join(faults), sentence)
    evidence = f"targets stand nowhere within {REACH} places more often than by chance, {CHANGED} targets changed, "
    evidence += "probabilities add up to 1"
    return Finding("A-TARGET", "fatal", when, "pass", evidence, "Nothing it is shown tells what it has to predict.")


def _faults(recipe: Recipe, tokens: Tokens) -> Iterator[str]:
    exam = [one.batch for one in islice(exams(recipe, tokens), BATCHES)]
    trained = [batch_of(recipe, tokens, i) for i in range(BATCHES)]
    both = bool(recipe.objective.masks)
    places = range(-REACH, REACH + 1) if both else range(-REACH, 1)
    yield from _seen(exam, places, "held out")
    yield from _seen(trained, [place for place in places if place or not both], "in training")
    yield from _recollated(recipe, tokens)
    total = probability(recipe, tokens, exam[0])
    if total is not None and not total <= 1 + SUM:
        yield f"the probabilities of all tokens at one place add up to {total:.3f}"


def _seen(batches: list[Batch], places: range | list[int], where: str) -> Iterator[str]:
    """The places, counted from the scored one, at which targets stand more often than chance puts them there."""
    for place in places:
        hits = np.concatenate([_hits(batch, place) for batch in batches])
        chance = 1 / len(LETTERS)
        allowed = chance + max(SIGMAS * math.sqrt(chance * (1 - chance) / max(len(hits), 1)), LEAST)
        if len(hits) and hits.mean() > allowed:
            told = "in the very place" if not place else f"{abs(place)} {'before' if place < 0 else 'after'} it"
            yield f"{where}, {hits.mean():.0%} of the targets stand {told} among the inputs (chance {chance:.0%})"


def _hits(batch: Batch, place: int) -> np.ndarray:
    """For each scored letter, whether the input so many places on is that letter."""
    rows, length = batch.ids.shape
    flat = torch.arange(rows * length) if batch.scored is None else batch.scored
    there = flat % length + place
    asked = (there >= 0) & (there < length) & (batch.weight > 0) & (batch.target >= FIRST)
    return (batch.ids.reshape(-1)[(flat + place)[asked]] == batch.target[asked]).numpy()


def _recollated(recipe: Recipe, tokens: Tokens) -> Iterator[str]:
    """Change one target in the raw text and make the batch again with the same draws: all that it may see must stay."""
    ahead, both = recipe.objective.ahead, bool(recipe.objective.masks)
    rows = recipe.examples.rows(tokens, recipe.length + ahead, recipe.batch, 0, 0)
    before = _prepared(recipe, rows, tokens)
    length = before.ids.shape[1]
    flat = torch.arange(before.ids.numel()) if before.scored is None else before.scored
    asked = ((before.weight > 0) & (before.target >= FIRST)).nonzero()[:, 0]
    chosen = np.random.default_rng(0).permutation(len(asked))[:CHANGED]
    for place in flat[asked[torch.from_numpy(chosen)]].tolist():
        row, column = divmod(place, length)
        ids = rows.ids.copy()
        ids[row, column + ahead] = FIRST + (ids[row, column + ahead] - FIRST + 1) % len(LETTERS)
        try:
            after = _prepared(recipe, rows._replace(ids=ids), tokens)
        except Mistake:
            continue
        moved = _moved(before, after, row, column, both)
        if moved:
            yield f"with the target at place {column} the {moved} changed"
            return


def _prepared(recipe: Recipe, rows: object, tokens: Tokens) -> Batch:
    return recipe.objective.prepare(rows, np.random.Generator(np.random.Philox(key=0)), tokens.vocabulary)  # type: ignore[arg-type]


def _moved(before: Batch, after: Batch, row: int, column: int, both: bool) -> str | None:
    """What differs where a target must not show: anywhere else for a model that reads both sides, else up to its place."""
    if before.ids.shape != after.ids.shape:
        return "shape of the batch"
    if before.scored is not None and (after.scored is None or not torch.equal(before.scored, after.scored)):
        return "choice of scored places"
    for name in ("ids", "position", "document", "segments"):
        one, other = getattr(before, name), getattr(after, name)
        if one is None or other is None:
            if one is not other:
                return f"input {name}"
            continue
        differs = (one != other).expand(before.ids.shape).clone()
        if both and name == "ids":
            differs[row, column] = False  # one in ten of the chosen is kept, by design
        elif not both:
            differs[row, column + 1 :] = False
        if bool(differs.any()):
            return f"input {name}"
    return None


def probability(recipe: Recipe, tokens: Tokens, batch: Batch) -> float | None:
    """The largest Σ_v exp(−score of v) over the scored places; an honest loss does not know which v it is asked for."""
    if not bool((batch.target >= FIRST).any()):
        return None  # what is scored is no letter
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        network = recipe.learner(tokens.vocabulary.size, 0)
        worst = 0.0
        for learner in (network, _redrawn(network)):
            asked = (batch._replace(target=torch.full_like(batch.target, v)) for v in range(tokens.vocabulary.size))
            total = torch.zeros_like(batch.weight, dtype=torch.float64)
            for one in asked:
                total += torch.exp(-learner.eval().score(one).double())
            worst = max(worst, float(total[batch.weight > 0].nan_to_num(0.0).max()))
    return worst


def _redrawn(network: Prediction) -> Prediction:
    copy = redrawn(network)
    assert isinstance(copy, Prediction)
    return copy


def _held_out_faults(recipe: Recipe, tokens: Tokens) -> list[str]:
    """Of the arm's own held-out batches: padding that is scored, and for a masked model targets left in their places."""
    width = recipe.length + recipe.objective.ahead
    stride = max(1, recipe.length // 2 if recipe.objective.ahead else recipe.length)
    faults: dict[str, None] = {}
    for rows in islice(recipe.examples.held_out(tokens, width, stride, 32, recipe.objective.ahead), 2):
        for exam in recipe.objective.exams(rows, tokens.vocabulary):
            batch = exam.batch
            flat = torch.arange(batch.ids.numel()) if batch.scored is None else batch.scored
            asked = batch.weight > 0
            if batch.document is not None and bool((batch.document.reshape(-1)[flat[asked]] < 0).any()):
                faults["padding of held-out text is scored"] = None
            shown = (batch.ids.reshape(-1)[flat] == batch.target)[asked]
            if recipe.objective.masks and bool(shown.any()):
                faults[f"{float(shown.double().mean()):.0%} of the held-out targets are not masked"] = None
    return list(faults)[:2]
