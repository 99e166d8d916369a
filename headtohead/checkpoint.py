"""A run's state in one safetensors file: weights, buffers and optimizer state by name, and where in the data it stands.

There are no generators to save: batches, masks and dropout are functions of the seed and the step.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
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
    """Copy saved tensors into a network that has exactly those."""
    own = network_tensors(network)
    if own.keys() != tensors.keys():
        odd = sorted(own.keys() ^ tensors.keys())
        raise Mistake(f"{source} does not fit this recipe: {len(odd)} tensors differ, the first is {odd[0]}")
    for name, tensor in own.items():
        if tensor.shape != tensors[name].shape:
            raise Mistake(
                f"{source} does not fit this recipe: {name} is {list(tensors[name].shape)}, not {list(tensor.shape)}"
            )
        tensor.copy_(tensors[name])


def save_weights(path: Path, network: nn.Module) -> None:
    """The trained weights alone."""
    write_atomically(path, save({name: t.detach().cpu().contiguous() for name, t in network_tensors(network).items()}))


def load_weights(path: Path, network: nn.Module) -> None:
    """Weights from a file of save_weights."""
    try:
        put_tensors(network, load_file(path), path)
    except (OSError, ValueError) as error:
        raise Mistake(f"{path} cannot be read ({error}); delete its run's folder and run the study again") from None
    except Exception as error:
        if type(error).__module__.startswith("safetensors"):
            raise Mistake(f"{path} is damaged ({error}); delete its run's folder and run the study again") from None
        raise


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


def save_checkpoint(path: Path, network: nn.Module, optimizers: list[Optimizer], progress: dict[str, Any]) -> None:
    """Everything that a resume needs; `progress` is plain JSON."""
    tensors = {f"network/{name}": tensor for name, tensor in network_tensors(network).items()}
    tensors |= {f"optimizer/{name}": tensor for name, tensor in optimizer_tensors(optimizers, network).items()}
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_atomically(path, save(plain, metadata={"progress": json.dumps(progress)}))


def load_checkpoint(path: Path, network: nn.Module, optimizers: list[Optimizer]) -> dict[str, Any]:
    """Restore what save_checkpoint wrote and return its progress."""
    with safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
        progress = json.loads(file.metadata()["progress"])
    parts: dict[str, dict[str, Tensor]] = {"network": {}, "optimizer": {}}
    for place, tensor in tensors.items():
        kind, _, name = place.partition("/")
        parts[kind][name] = tensor
    put_tensors(network, parts["network"], path)
    put_optimizer_tensors(optimizers, network, parts["optimizer"])
    return progress
