"""A run's state in one safetensors file: weights, buffers and optimizer state by name, and where in the data it stands.

There are no generators to save: batches, masks and dropout are functions of the seed and the step.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save
from torch import Tensor, nn
from torch.optim import Optimizer

from headtohead.files import write_atomically
from headtohead.spec import Mistake


def network_tensors(network: nn.Module) -> dict[str, Tensor]:
    """Every tensor that training may change, once; one with two owners under its first name."""
    kept = dict(network.named_parameters())
    seen = {id(tensor) for tensor in kept.values()}
    state = network.state_dict(keep_vars=True)
    return kept | {name: tensor for name, tensor in state.items() if id(tensor) not in seen}


@torch.no_grad()
def put_tensors(network: nn.Module, tensors: Mapping[str, Tensor], source: Path) -> None:
    """Copy saved tensors into a network that has exactly those; one that has others is left as it is."""
    own = network_tensors(network)
    if own.keys() != tensors.keys():
        odd = sorted(own.keys() ^ tensors.keys())
        raise Mistake(f"{source} does not fit this recipe: {len(odd)} tensors differ, the first is {odd[0]}")
    for name, tensor in own.items():
        if tensor.shape != tensors[name].shape:
            raise Mistake(
                f"{source} does not fit this recipe: {name} is {list(tensors[name].shape)}, not {list(tensor.shape)}"
            )
    for name, tensor in own.items():
        tensor.copy_(tensors[name])


@contextmanager
def read(path: Path, cure: str) -> Iterator[None]:
    """Tell what cannot be read, and its cure, in one line."""
    try:
        yield
    except (SafetensorError, OSError, ValueError) as error:
        kind = "cannot be read" if isinstance(error, OSError) else "is damaged"
        raise Mistake(f"{path} {kind} ({' '.join(str(error).split())}); {cure}") from None


def save_weights(path: Path, network: nn.Module) -> None:
    """The trained weights alone."""
    write_atomically(path, save({name: t.detach().cpu().contiguous() for name, t in network_tensors(network).items()}))


def load_weights(path: Path, network: nn.Module) -> None:
    """Weights from a file of save_weights."""
    with read(path, "delete its run's folder and run the study again"):
        tensors = load_file(path)
    put_tensors(network, tensors, path)


def optimizer_tensors(optimizers: list[Optimizer], network: nn.Module) -> dict[str, Tensor]:
    """All optimizer state, by optimizer, parameter name and kind."""
    names = {id(parameter): name for name, parameter in network.named_parameters()}
    return {
        f"{number}/{names[id(parameter)]}/{kind}": value
        for number, optimizer in enumerate(optimizers)
        for parameter, state in optimizer.state.items()
        for kind, value in state.items()
        if isinstance(value, Tensor)
    }


def put_optimizer_tensors(optimizers: list[Optimizer], network: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Give optimizers back their state."""
    parameters = dict(network.named_parameters())
    for place, value in tensors.items():
        number, name, kind = place.split("/")
        optimizers[int(number)].state[parameters[name]][kind] = value.clone()


def kinds(optimizers: list[Optimizer]) -> str:
    """What the optimizers are, in one word each."""
    return " ".join(type(optimizer).__name__ for optimizer in optimizers)


def save_checkpoint(path: Path, network: nn.Module, optimizers: list[Optimizer], progress: dict[str, Any]) -> None:
    """Everything that a resume needs; `progress` is plain JSON."""
    tensors = {f"network/{name}": tensor for name, tensor in network_tensors(network).items()}
    tensors |= {f"optimizer/{name}": tensor for name, tensor in optimizer_tensors(optimizers, network).items()}
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    about = {"progress": json.dumps(progress), "optimizers": kinds(optimizers)}
    write_atomically(path, save(plain, metadata=about))


def progress_of(path: Path) -> dict[str, Any] | None:
    """The progress that a checkpoint holds, without its tensors; None where the file is damaged, or no checkpoint."""
    try:
        with safe_open(path, framework="pt") as file:
            return json.loads((file.metadata() or {})["progress"])
    except (SafetensorError, OSError, ValueError, KeyError):
        return None


def load_checkpoint(path: Path, network: nn.Module, optimizers: list[Optimizer]) -> dict[str, Any]:
    """Restore what save_checkpoint wrote and return its progress."""
    cure = "delete it and its run begins anew"
    with read(path, cure), safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
        about = file.metadata() or {}
    if not {"progress", "optimizers"} <= about.keys():
        raise Mistake(f"{path} is no checkpoint; {cure}")
    if about["optimizers"] != kinds(optimizers):
        raise Mistake(f"{path} does not fit this recipe: it is of {about['optimizers']}, not {kinds(optimizers)}")
    parts: dict[str, dict[str, Tensor]] = {"network": {}, "optimizer": {}}
    for place, tensor in tensors.items():
        kind, _, name = place.partition("/")
        parts[kind][name] = tensor
    put_tensors(network, parts["network"], path)
    put_optimizer_tensors(optimizers, network, parts["optimizer"])
    return json.loads(about["progress"])
