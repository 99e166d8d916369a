"""The loop: a generator of Step. Logging, checkpoints and stopping live with whoever iterates over it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import nn
from torch.optim import Optimizer as TorchOptimizer

from headtohead.objectives import Batch, Prediction, to_device


class Step(NamedTuple):
    """What one optimizer step was."""

    step: int  # 0-based
    loss: float
    terms: dict[str, float]
    rate: float
    norm: float  # of the gradient, before clipping
    batch: str  # a hash of everything the network was fed
    seconds: float


class Route(NamedTuple):
    """How tensors are computed: chosen once a study, for every arm, seed and resume."""

    device: str = "cpu"
    threads: int = 1
    dtype: str = "float32"
    compiled: bool = False


def train(
    learner: Prediction,
    optimizers: list[TorchOptimizer],
    batches: Iterator[tuple[int, list[Batch], str]],
    rate: Callable[[int], float],
    clip: float,
    route: Route,
) -> Iterator[Step]:
    """Train on `batches`: for each step its number, its micro-batches and their hash. `rate` gives the learning rate.

    A term's sum is divided by its count over all micro-batches, so that cutting a batch into pieces changes nothing.
    """
    device = torch.device(route.device)
    parameters = [p for p in learner.parameters() if p.requires_grad]
    learner.train()
    for step, pieces, digest in batches:
        began = time.perf_counter()
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate(step)
        pieces = [to_device(piece, device) for piece in pieces]
        terms = accumulate(learner, pieces, route)
        norm = nn.utils.clip_grad_norm_(parameters, clip if clip else float("inf"))
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        figures = {name: float(value) for name, value in terms.items()}
        yield Step(step, sum(figures.values()), figures, rate(step), float(norm), digest, time.perf_counter() - began)


def accumulate(learner: Prediction, pieces: list[Batch], route: Route) -> dict[str, torch.Tensor]:
    """Gradients of the loss over all pieces; returns each term's weighted value."""
    counts: dict[str, torch.Tensor] = {}
    for piece in pieces:
        for name, count in learner.counts(piece).items():
            counts[name] = counts.get(name, torch.zeros((), device=count.device)) + count
    totals: dict[str, torch.Tensor] = {}
    for piece in pieces:
        with torch.autocast(route.device, torch.bfloat16, enabled=route.dtype == "bfloat16"):
            terms = learner(piece)
        # a step without anything to score has no gradient, and is not a division by zero
        parts = {name: term.weight * term.sum / counts[name].clamp_min(1.0) for name, term in terms.items()}
        torch.stack(list(parts.values())).sum().backward()
        for name, part in parts.items():
            totals[name] = totals.get(name, torch.zeros_like(part)) + part.detach()
    return totals
