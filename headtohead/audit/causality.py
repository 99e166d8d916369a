"""Does a position's prediction depend on what comes after it? Three independent tests, on logits alone (A-CAUSAL)."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn

from headtohead.audit import Finding

ROWS, REPEATS, TOLERANCE, GRADIENT = 2, 3, 1e-9, 1e-10

Logits = Callable[[Tensor], Tensor]  # ids -> batch × length × vocabulary


def audit(network: nn.Module, length: int, vocabulary: int, when: str) -> Finding:
    """The three tests on a float64 copy of a body: `network(ids, position)` gives logits of all positions."""
    double = copy.deepcopy(network).to("cpu", torch.float64).eval()

    def logits(ids: Tensor) -> Tensor:
        position = torch.arange(ids.shape[1])[None]
        return double(ids, position).unflatten(0, ids.shape)

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        length = min(length, 32)
        moved, scale = perturb(logits, length, vocabulary)
        slope = gradient(logits, first_table(double), length, vocabulary)
        shift = prefix(logits, length, vocabulary)
    bound = TOLERANCE * (1 + scale)
    evidence = f"changed tokens move earlier logits by {moved:.1e} (allowed {bound:.1e})"
    evidence += f", gradient {'not taken' if slope is None else f'{slope:.1e}'}, prefix alone {shift:.1e}"
    if moved > bound or (slope is not None and slope > GRADIENT):
        return Finding(
            "A-CAUSAL", "fatal", when, "fail", evidence, "It sees the future: later tokens change earlier predictions."
        )
    if shift > bound:
        sentence = "Predictions depend on how long the text is, though not on what comes later."
        return Finding("A-CAUSAL", "warn", when, "fail", "LENGTH-DEPENDENT: " + evidence, sentence)
    return Finding("A-CAUSAL", "fatal", when, "pass", evidence, "Later tokens leave earlier predictions alone.")


def cuts(length: int) -> list[int]:
    """Where the future begins."""
    return sorted({1, length // 4, length // 2, 3 * length // 4, length - 1} - {0})


def perturb(logits: Logits, length: int, vocabulary: int) -> tuple[float, float]:
    """The largest move of an earlier logit when every later token is another one, and the largest logit."""
    moved, scale = 0.0, 0.0
    with torch.no_grad():
        for _ in range(REPEATS):
            ids = torch.randint(vocabulary, (ROWS, length))
            before = logits(ids)
            scale = max(scale, float(before.abs().max()))
            for cut in cuts(length):
                other = ids.clone()
                other[:, cut:] = (
                    ids[:, cut:] + torch.randint(1, max(vocabulary, 2), (ROWS, length - cut))
                ) % vocabulary
                moved = max(moved, float((logits(other) - before)[:, :cut].abs().max()))
    return moved, scale


def gradient(logits: Logits, table: nn.Module | None, length: int, vocabulary: int) -> float | None:
    """The largest gradient of earlier logits, randomly weighted, at a later embedding, over the largest anywhere."""
    if table is None:
        return None
    caught: list[Tensor] = []
    handle = table.register_forward_hook(lambda module, args, out: _catch(caught, out))
    worst = 0.0
    try:
        for cut in cuts(length):
            caught.clear()
            out = logits(torch.randint(vocabulary, (ROWS, length)))
            (out[:, :cut] * torch.randn_like(out[:, :cut])).sum().backward()
            size = caught[0].grad
            if size is None or float(size.abs().max()) == 0.0:
                continue  # nothing flows at all, as at a gate that starts at zero
            worst = max(worst, float(size[:, cut:].abs().max() / size.abs().max()))
    finally:
        handle.remove()
    return worst


def _catch(caught: list[Tensor], out: Tensor) -> Tensor:
    leaf = out.detach().requires_grad_(True)
    caught.append(leaf)
    return leaf


def first_table(network: nn.Module) -> nn.Module | None:
    """The module that looks tokens up: the first embedding table."""
    return next((module for module in network.modules() if isinstance(module, nn.Embedding)), None)


def prefix(logits: Logits, length: int, vocabulary: int) -> float:
    """The largest difference between the last logits of a text cut short and the same position's in the full text."""
    worst = 0.0
    with torch.no_grad():
        ids = torch.randint(vocabulary, (ROWS, length))
        full = logits(ids)
        for cut in cuts(length):
            worst = max(worst, float((logits(ids[:, :cut])[:, -1] - full[:, cut - 1]).abs().max()))
    return worst


def redrawn(network: nn.Module) -> nn.Module:
    """A copy with every parameter N(0, .2²), gates included: a start at zero may hide a leak."""
    double = copy.deepcopy(network)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in double.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.2)
    return double
