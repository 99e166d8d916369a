"""How tensors are computed on this machine, chosen once a study from what its runs are expected to take."""

from __future__ import annotations

import os
import shutil
import sysconfig
from pathlib import Path
from typing import Any

import torch

from headtohead.train import Route

COMPILE_SECONDS = 25.0  # a first compilation of one arm on one thread, with an empty cache
EAGER_RATE = 5.0e10  # operations a second of an eager float32 step on one slow core
ELEMENTWISE_RATE = 1.0e9  # and of what is no matrix product


def expected_seconds(plan: dict[str, Any], arm: str, threads: int) -> float:
    """Training time of one of an arm's runs, eager and in float32, on slow cores."""
    elementwise = plan["elementwise"][arm]
    return ((plan["operations"][arm] - elementwise) / EAGER_RATE + elementwise / ELEMENTWISE_RATE) / threads


def jobs_here() -> int:
    """Runs at a time: one a core, for a second core helps a small run less than a second run does; one on a GPU."""
    return 1 if torch.cuda.is_available() else len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def compiler() -> str | None:
    """Why nothing can be compiled here, or None."""
    if not any(shutil.which(name) for name in (os.environ.get("CXX", "g++"), "clang++")):
        return "no C++ compiler on PATH"
    if not (Path(sysconfig.get_paths()["include"]) / "Python.h").is_file():
        return "no Python.h"
    return None


def choose_route(plan: dict[str, Any], jobs: int) -> tuple[Route, str]:
    """Compile where it pays back within the study, bfloat16 where compiled code has instructions for it; and why."""
    cores = os.cpu_count() or 1
    missing = compiler()
    if torch.cuda.is_available():
        dtype = "bfloat16" if torch.cuda.is_bf16_supported() else "float32"
        return Route("cuda", cores, dtype, missing is None), missing or ""
    threads = max(1, cores // jobs)
    if missing is not None:
        return Route("cpu", threads), missing
    eager = sum(expected_seconds(plan, arm, threads) for arm in plan["arms"]) * len(plan["seeds"])
    if eager / 2 < COMPILE_SECONDS * len(plan["arms"]):
        return Route("cpu", threads), "too short for compiling to pay back"
    fast = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return Route("cpu", threads, "bfloat16" if fast else "float32", True), ""
