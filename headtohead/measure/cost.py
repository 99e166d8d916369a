"""What an arm costs: parameters, operations, memory. Seconds and dollars come from the run's status and the price."""

from __future__ import annotations

import contextlib
import resource
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from headtohead.objectives import Prediction


def parameters(network: nn.Module) -> dict[str, int]:
    """Parameters, and those that are not tables of vectors; a tied tensor counts once."""
    tables = {id(p) for module in network.modules() if isinstance(module, nn.Embedding) for p in module.parameters()}
    every = list(network.parameters())
    return {
        "parameters": sum(p.numel() for p in every),
        "parameters.not_embedding": sum(p.numel() for p in every if id(p) not in tables),
    }


def operations(recipe: Any, network: Prediction, vocabulary: int) -> dict[str, float]:
    """Operations of training on one token (three times the forward pass; a multiply-add is two).

    `flops` is by formula where the model has one, attention counted dense; `flops.counted` is torch's own count of the
    matrix products, and `flops.elementwise` what the formula counts beside them. Every network that trains is counted.
    """
    matrix = elementwise = total = 0.0
    for name, (model, share) in recipe.objective.networks(recipe.model).items():
        counted = counted_forward(network.get_submodule(name), recipe.length, share)
        formula = model.flops(replace(recipe, model=model).size(vocabulary), share) or (counted, 0.0)
        matrix, elementwise, total = matrix + formula[0], elementwise + formula[1], total + counted
    return {"flops": 3 * (matrix + elementwise), "flops.counted": 3 * total, "flops.elementwise": 3 * elementwise}


def counted_forward(network: nn.Module, length: int, share: float) -> float:
    """torch's count for one token of a full row, `share` of it scored, on a network without weights.

    Under the MATH backend, because torch 2.13 counts nothing for fused attention on a CPU.
    """
    ids = torch.zeros(1, length, dtype=torch.long, device="meta")
    position = torch.arange(length, device="meta")[None]
    where: Tensor | None = torch.zeros(round(share * length), dtype=torch.long, device="meta")
    counter = FlopCounterMode(display=False)
    with sdpa_kernel(SDPBackend.MATH), counter:
        network(ids, position, scored=where)
    return counter.get_total_flops() / length


def reset_peak_memory() -> None:
    """Forget the process's peak so far, where the system can (Linux)."""
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    with contextlib.suppress(OSError):  # elsewhere the peak is the process's own, over all its runs
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory() -> int:
    """Bytes at the peak: the device's where there is one, else the process's resident set."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated()
    try:
        line = next(row for row in Path("/proc/self/status").read_text().splitlines() if row.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    except (OSError, StopIteration):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
