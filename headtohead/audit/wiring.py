"""Is the change wired in? A challenger that computes what the baseline does (A-NOOP), parts that never learn (A-ACTIVE), and
weights that are called tied and were only copied (A-TIED)."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations

import numpy as np
import torch
from torch import Tensor

from headtohead.audit import Finding
from headtohead.audit.causality import gap
from headtohead.objectives import Batch, Prediction
from headtohead.parts.dropout import row_keys
from headtohead.spec import diff
from headtohead.study import Recipe, network_of
from headtohead.text.cache import Tokens
from headtohead.train import Route, train

INPUTS, ROWS = 3, 2
EVALUATIONS = 3  # in a row


def noop(baseline: Recipe, recipe: Recipe, tokens: Tokens, when: str = "before") -> Finding:
    """A-NOOP: the logits of three inputs at the start and after one step, of the arm and of the baseline."""
    changed = diff(baseline, recipe)
    elsewhere = [address for address in changed if not address.startswith(("model", "objective"))]
    if elsewhere:
        sentence = "What changed is not the network alone, so equal networks would prove nothing."
        return Finding("A-NOOP", "warn", when, "pass", f"changed: {', '.join(elsewhere)}", sentence)
    size = tokens.vocabulary.size
    if _count(recipe, size) != _count(baseline, size):
        evidence = f"{_count(recipe, size):,} parameters, the baseline has {_count(baseline, size):,}"
        return Finding("A-NOOP", "warn", when, "pass", evidence, "It is another network than the baseline's.")
    ours, theirs = (_logits(each, tokens) for each in (recipe, baseline))
    moved = [
        float("inf") if one.shape != other.shape else gap(one, other) for one, other in zip(ours, theirs, strict=True)
    ]
    evidence = f"logits differ by {moved[0]:.1e} at the start and {moved[1]:.1e} after one step"
    if not any(moved):
        sentence = "It computes exactly what the baseline does: the change is not wired in."
        return Finding("A-NOOP", "warn", when, "fail", evidence, sentence)
    return Finding("A-NOOP", "warn", when, "pass", evidence, "It computes something else than the baseline.")


def _count(recipe: Recipe, vocabulary: int) -> int:
    return sum(p.numel() for p in network_of(recipe, vocabulary).parameters())


def _logits(recipe: Recipe, tokens: Tokens) -> list[Tensor]:
    """Of three batches, at the start and after a step of training."""
    few = replace(recipe, batch=ROWS, accumulate=1)
    batches = [_batch(few, tokens, i) for i in range(INPUTS)]
    with torch.random.fork_rng(devices=[]):
        learner = few.learner(tokens.vocabulary.size, 0)
        before = _predicted(learner, batches)
        _step(learner, few, batches[:1])
        return [before, _predicted(learner, batches)]


def _step(learner: Prediction, recipe: Recipe, batches: list[Batch]) -> None:
    """One step of training at the full rate."""
    optimizers = recipe.optimizer.optimizers(learner)
    list(train(learner, optimizers, iter([(0, batches, "")]), lambda step: recipe.optimizer.rate, 1.0, Route()))


def _batch(recipe: Recipe, tokens: Tokens, i: int) -> Batch:
    rows = recipe.examples.rows(tokens, recipe.length + recipe.objective.ahead, recipe.batch, 0, i)
    batch = recipe.objective.prepare(rows, np.random.Generator(np.random.Philox(key=i)), tokens.vocabulary)
    return batch._replace(keys=row_keys(0, i, np.arange(recipe.batch)))


def _predicted(learner: Prediction, batches: list[Batch]) -> Tensor:
    learner.eval()
    with torch.no_grad():
        return torch.cat(
            [learner.model(batch.ids, batch.position, batch.document, batch.segments) for batch in batches]
        )


def tied(recipe: Recipe, tokens: Tokens, when: str = "before") -> Finding:
    """A-TIED: tensors that start equal without being one, and after a step of training are no longer equal.

    Every tensor is drawn by its own name, so that two start equal only where one was copied; constants are no copies, and
    neither are the same tensors of two layers, which torch's own stacks begin with.
    """
    few = replace(recipe, batch=ROWS, accumulate=1)
    with torch.random.fork_rng(devices=[]):
        learner = few.learner(tokens.vocabulary.size, 0)
        pairs = list(combinations(((name, p) for name, p in learner.named_parameters() if _drawn(p)), 2))
        copies = [
            (one, other) for one, other in pairs if _place(one[0]) != _place(other[0]) and torch.equal(one[1], other[1])
        ]
        _step(learner, few, [_batch(few, tokens, 0)])
    apart = [(one, other, gap(one[1].detach(), other[1].detach())) for one, other in copies]
    apart = [found for found in apart if found[2]]
    if apart:
        (one, _), (other, _), moved = apart[0]
        evidence = f"{one} and {other} start equal and differ by {moved:.1e} after one step"
        evidence += f", and {len(apart) - 1} pairs more" if len(apart) > 1 else ""
        sentence = (
            "Tensors start as copies of one another and are trained apart: if they were to be tied, they are not."
        )
        return Finding("A-TIED", "warn", when, "fail", evidence, sentence)
    sentence = "No weights are copies of others: what is tied is one tensor."
    return Finding("A-TIED", "warn", when, "pass", "no two tensors start equal and part", sentence)


def _place(name: str) -> str:
    """A tensor's name without the numbers of its layers."""
    return re.sub(r"\d+", "", name)


def _drawn(parameter: Tensor) -> bool:
    return parameter.requires_grad and parameter.dim() >= 2 and not bool((parameter == parameter.flatten()[0]).all())


def active(learner: Prediction, baseline: Recipe, recipe: Recipe, tokens: Tokens, when: str = "after") -> Finding:
    """A-ACTIVE: the gradients, of three batches one after another, of parameters that the baseline does not have."""
    theirs = {name: p.shape for name, p in network_of(baseline, tokens.vocabulary.size).named_parameters()}
    own = {name: p for name, p in learner.named_parameters() if p.requires_grad and theirs.get(name) != p.shape}
    if not own:
        sentence = "Every parameter that it has, the baseline has too."
        return Finding("A-ACTIVE", "warn", when, "pass", "no parameter of its own", sentence)
    few = replace(recipe, batch=min(recipe.batch, 8), accumulate=1)
    still = set(own)
    device = next(learner.parameters()).device
    learner.eval()
    for i in range(EVALUATIONS):
        learner.zero_grad(set_to_none=True)
        batch = _batch(few, tokens, recipe.steps + i)._replace(keys=None)
        moved = {name: None if column is None else column.to(device) for name, column in batch._asdict().items()}
        terms = learner(Batch(**moved))  # type: ignore[arg-type]
        torch.stack([term.weight * term.sum for term in terms.values()]).sum().backward()
        still -= {name for name, p in own.items() if p.grad is not None and bool(p.grad.any())}
    learner.zero_grad(set_to_none=True)
    if still:
        told = ", ".join(sorted(still)[:3]) + (f" and {len(still) - 3} more" if len(still) > 3 else "")
        sentence = "Parameters that only this arm has never get a gradient: they are dead, or not wired in."
        return Finding("A-ACTIVE", "warn", when, "fail", f"{told}: zero in {EVALUATIONS} evaluations", sentence)
    evidence = f"{len(own)} tensors of its own, all with a gradient"
    return Finding("A-ACTIVE", "warn", when, "pass", evidence, "All that only this arm has takes part.")
