"""Was held-out text scored without dropout? The same input must give the same prediction twice (A-TRAINLOSS, A-DROPSIG)."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from headtohead.audit import Finding
from headtohead.audit.causality import LONGEST, gap

CLOSE = 0.02  # of 1 / (1 − p)


def audit(network: nn.Module, length: int, vocabulary: int, when: str = "after") -> Finding:
    """Whether a network as it is scored predicts alike each time, whatever torch's generator says."""
    once = copy.deepcopy(network).to("cpu", torch.float32)
    training = [name for name, module in once.named_modules() if module.training]
    ids = torch.randint(vocabulary, (2, min(length, LONGEST)), generator=torch.Generator().manual_seed(0))
    position = torch.arange(ids.shape[1])[None]
    with torch.random.fork_rng(devices=[]), torch.inference_mode():
        outs = []
        for seed in (1, 2):
            torch.manual_seed(seed)
            outs.append(once(ids, position))
    moved = gap(*outs)
    evidence = f"{len(training)} modules in training mode, the same text twice differs by {moved:.1e}"
    if training or moved:
        sentence = "Held-out text was scored with something random switched on, as in training."
        return Finding("A-TRAINLOSS", "fatal", when, "fail", evidence, sentence)
    return Finding("A-TRAINLOSS", "fatal", when, "pass", evidence, "Held-out text was scored in evaluation mode.")


def dropped(excess: float, rate: float) -> float:
    """The excess kurtosis of what dropout leaves of numbers with mean zero: (excess + 3) / (1 − p) − 3."""
    return (excess + 3) / (1 - rate) - 3


def excess_kurtosis(x: Tensor) -> float:
    """m4 / m2² − 3 over all entries, biased moments; a constant has none."""
    centred = x.double().flatten() - x.double().mean()
    spread = float((centred**2).mean())
    return float((centred**4).mean()) / spread**2 - 3 if spread else math.nan


def signature(before: Sequence[float], after: Sequence[float], rate: float, when: str = "after") -> Finding:
    """A-DROPSIG: excess kurtosis at sites before and behind dropout; the ratio 1 / (1 − p) says that dropout was on."""
    pairs = [(b + 3, a + 3) for b, a in zip(before, after, strict=True) if math.isfinite(b) and math.isfinite(a)]
    if not pairs or not rate:
        return Finding("A-DROPSIG", "warn", when, "skip", "no dropout to look behind", "There is no dropout in it.")
    ratio = sum(a for _, a in pairs) / sum(b for b, _ in pairs)
    expected = 1 / (1 - rate)
    evidence = f"Pearson kurtosis behind dropout is ×{ratio:.4f} of that before it, at rate {rate:g} ×{expected:.4f} is expected"
    if abs(ratio / expected - 1) <= CLOSE:
        sentence = "The kurtosis was taken in training mode: it is dropout that makes it larger."
        return Finding("A-DROPSIG", "warn", when, "fail", evidence, sentence)
    return Finding("A-DROPSIG", "warn", when, "pass", evidence, "The kurtosis does not bear the mark of dropout.")


def dropout_signature(network: nn.Module, inputs: Sequence[Tensor], when: str = "after") -> Finding:
    """A-DROPSIG of a network as it stands, training or not: its dropout modules watched while it reads the inputs."""
    caught: dict[float, list[tuple[float, float]]] = {}
    modules = [module for module in network.modules() if isinstance(module, _DropoutNd) and module.p]

    def watch(module: Any, given: tuple[Tensor, ...], out: Tensor) -> None:
        caught.setdefault(float(module.p), []).append((excess_kurtosis(given[0]), excess_kurtosis(out)))

    handles = [module.register_forward_hook(watch) for module in modules]
    try:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(0)
            for given in inputs:
                network(given)
    finally:
        for handle in handles:
            handle.remove()
    found = [signature([b for b, _ in pairs], [a for _, a in pairs], rate, when) for rate, pairs in caught.items()]
    worst = [finding for finding in found if finding.result == "fail"]
    return (worst or found or [signature([], [], 0.0, when)])[0]
