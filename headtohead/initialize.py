"""Draws every matrix of a network from hash(seed, its name), so that arms start alike wherever they share a name.

Vectors and everything called `bias` keep what their module set: norms 1, biases 0, β and gates their published starts.
So does what a user's module sets itself: a parameter of its own, or a map or table of torch's that it filled anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import torch
from torch import Generator, Tensor, nn

from headtohead.parts.initialization import Role
from headtohead.parts.linear import Linear


def generator_for(seed: int, name: str) -> Generator:
    """A generator of its own for every parameter: adding one module moves no other's start."""
    digest = hashlib.blake2b(f"init/{seed}/{name}".encode(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "little") >> 1)


@torch.no_grad()
def initialize(network: nn.Module, draw: Callable[[Tensor, Role, Generator], None], seed: int, layers: int) -> None:
    """Fill every parameter of `network`; a tensor with two owners is drawn once, under its first name."""
    for name, parameter in network.named_parameters():
        owner = network.get_submodule(name.rpartition(".")[0])
        if set_by_its_author(owner, parameter):
            continue
        if isinstance(owner, nn.Linear) and name.endswith("bias"):
            parameter.zero_()  # torch's own constructor draws it
        elif parameter.dim() >= 2 and not name.endswith("bias"):
            draw(parameter, role_of(owner, parameter, layers), generator_for(seed, name))


def set_by_its_author(owner: nn.Module, parameter: nn.Parameter) -> bool:
    """Whether a start was written down by hand, in code that is not the package's.

    Of torch's maps and tables the constructor makes the first change in place; one more is somebody's own.
    """
    home = type(owner).__module__.partition(".")[0]
    return home != "headtohead" and (home != "torch" or parameter._version > 1)


def role_of(owner: nn.Module, parameter: Tensor, layers: int) -> Role:
    """What an initialization may know; the marks are set by the part that made the matrix."""
    into_residual, head_fan = owner.marks if isinstance(owner, Linear) else (False, None)
    return Role(
        embedding=isinstance(owner, nn.Embedding),
        fan=(parameter.shape[-1], parameter.shape[-2]),
        head_fan=head_fan,
        into_residual=into_residual,
        layers=layers,
    )
