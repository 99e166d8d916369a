"""Does a position's prediction depend on what comes after it? Three independent tests, on logits alone (A-CAUSAL)."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from headtohead.audit import Finding

ROWS, REPEATS, LONGEST, TOLERANCE, GRADIENT = 2, 3, 128, 1e-9, 1e-10

Logits = Callable[[Tensor], Tensor]  # ids -> batch × length × vocabulary


def audit(network: nn.Module, length: int, vocabulary: int, when: str) -> Finding:
    """The three tests on a float64 copy of a body: `network(ids, position)` gives logits of all positions."""
    double = copy.deepcopy(network).to("cpu", torch.float64).eval()

    def logits(ids: Tensor) -> Tensor:
        position = torch.arange(ids.shape[1])[None]
        return double(ids, position).unflatten(0, ids.shape)

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        length = min(length, LONGEST)
        moved = perturb(logits, length, vocabulary)
        tables = [module for module in double.modules() if isinstance(module, nn.Embedding)]
        slope = gradient(logits, tables, length, vocabulary)
        shift = prefix(logits, length, vocabulary)
    evidence = f"changed tokens move earlier logits by {moved:.1e} (allowed {TOLERANCE:.1e})"
    evidence += f", gradient {'not taken' if slope is None else f'{slope:.1e}'}, prefix alone {shift:.1e}"
    if not math.isfinite(moved):
        sentence = "Its predictions are not all numbers, so nothing shows that they leave the future alone."
        return Finding("A-CAUSAL", "fatal", when, "fail", evidence, sentence)
    if moved > TOLERANCE or (slope is not None and slope > GRADIENT):
        return Finding(
            "A-CAUSAL", "fatal", when, "fail", evidence, "It sees the future: later tokens change earlier predictions."
        )
    if shift > TOLERANCE:
        sentence = "Predictions depend on how long the text is, though not on what comes later."
        return Finding("A-CAUSAL", "warn", when, "fail", "LENGTH-DEPENDENT: " + evidence, sentence)
    return Finding("A-CAUSAL", "fatal", when, "pass", evidence, "Later tokens leave earlier predictions alone.")


def cuts(length: int) -> list[int]:
    """Where the future begins."""
    return sorted({1, length // 4, length // 2, 3 * length // 4, length - 1} & set(range(1, length)))


def perturb(logits: Logits, length: int, vocabulary: int) -> float:
    """The largest move of an earlier logit when every later token is another one."""
    moved = 0.0
    with torch.no_grad():
        for _ in range(REPEATS):
            ids = torch.randint(vocabulary, (ROWS, length))
            before = logits(ids)
            for cut in cuts(length):
                other = ids.clone()
                other[:, cut:] = (
                    ids[:, cut:] + torch.randint(1, max(vocabulary, 2), (ROWS, length - cut))
                ) % vocabulary
                moved = max(moved, gap(logits(other)[:, :cut], before[:, :cut]))
    return moved


def gap(one: Tensor, other: Tensor) -> float:
    """The largest difference of two logits as a share of 1 + their own size.

    A bound that grew with the largest logit would be none where a model rules a token out by a logit of −1e30. Infinite
    where anything is no number, none where a token is ruled out (−∞) in both.
    """
    ruled_out = (one == -math.inf) & (other == -math.inf)
    size = 1 + torch.minimum(one.abs(), other.abs()).nan_to_num(0.0, 0.0)
    return float(((one - other).abs().masked_fill(ruled_out, 0.0).nan_to_num(math.inf, math.inf) / size).max())


def gradient(logits: Logits, tables: list[nn.Embedding], length: int, vocabulary: int) -> float | None:
    """The largest gradient of earlier logits, randomly weighted, at a later embedding, over the largest anywhere.

    None where no table looks the ids up as they are: then there is nothing to take a gradient at.
    """
    worst, taken = 0.0, False
    for cut in cuts(length):
        ids = torch.randint(vocabulary, (ROWS, length))
        with _looked_up(tables, ids) as caught:
            out = logits(ids)
        if not caught or not out.requires_grad:
            continue
        (out[:, :cut] * torch.randn_like(out[:, :cut])).sum().backward()
        taken, size = True, caught[0].grad
        if size is None or float(size.abs().max()) == 0.0:
            continue  # nothing flows at all, as at a gate that starts at zero
        share = float(size[:, cut:].abs().max() / size.abs().max())
        worst = max(worst, share if math.isfinite(share) else math.inf)
    return worst if taken else None


@contextmanager
def _looked_up(tables: list[nn.Embedding], ids: Tensor) -> Iterator[list[Tensor]]:
    """The embeddings of `ids` as leaves, in the order of the look-ups; a table of positions is given other numbers."""
    caught: list[Tensor] = []

    def catch(module: nn.Module, given: tuple[Tensor, ...], out: Tensor) -> Tensor:
        if not given or not torch.equal(given[0], ids):
            return out
        caught.append(out.detach().requires_grad_(True))
        return caught[-1].clone()  # which the model may change in place

    handles = [table.register_forward_hook(catch) for table in tables]
    try:
        yield caught
    finally:
        for handle in handles:
            handle.remove()


def prefix(logits: Logits, length: int, vocabulary: int) -> float:
    """The largest difference between the last logits of a text cut short and the same position's in the full text."""
    worst = 0.0
    with torch.no_grad():
        ids = torch.randint(vocabulary, (ROWS, length))
        full = logits(ids)
        for cut in cuts(length):
            worst = max(worst, gap(logits(ids[:, :cut])[:, -1], full[:, cut - 1]))
    return worst


def redrawn(network: nn.Module, vectors: bool = True) -> nn.Module:
    """A copy with every parameter N(0, .2²), gates included: a start at zero may hide a leak.

    Without `vectors` only matrices: a vector may have a meaning that a random one breaks, such as a positive temperature.
    """
    double = copy.deepcopy(network)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in double.parameters():
            if vectors or parameter.dim() >= 2:
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.2)
    return double


def gives_numbers(network: nn.Module, length: int, vocabulary: int) -> bool:
    """Whether a body's predictions of a random text are numbers; −∞ rules a token out and is one."""
    ids = torch.randint(vocabulary, (ROWS, length), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        logits = copy.deepcopy(network).to("cpu", torch.float64).eval()(ids, torch.arange(length)[None])
    return not bool((logits.isnan() | logits.isposinf()).any())
