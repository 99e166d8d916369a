"""How gradients move weights. Each part builds torch optimizers over named parameters; all state is tensors by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.optim import Optimizer as TorchOptimizer

from headtohead.spec import Part, Size, fields

Named = list[tuple[str, nn.Parameter]]


class Optimizer(Part):
    """`build(named)` -> torch optimizers that together hold each parameter once; `rate` is the schedule's peak.

    `decay` says what weight decay touches: "all"; "matrices", which leaves out biases, norms, embeddings and every other
    vector (minGPT, ELECTRA); or "matrices and tables", which leaves out vectors alone (nanoGPT).
    """

    rate: float = 1e-3
    weight_decay: float = 0.01
    decay: Literal["all", "matrices", "matrices and tables"] = "all"

    def refuse(self, size: Size, recipe: Any) -> Iterator[str]:
        if self.rate <= 0 or self.weight_decay < 0:
            yield f"needs rate > 0 and weight_decay ≥ 0, got {self.rate} and {self.weight_decay}"
        for name, value in fields(self).items():
            shares = value if isinstance(value, tuple) else (value,)
            if name in ("betas", "momentum", "alpha") and not all(0 <= share < 1 for share in shares):
                yield f"{name} = {value} must lie in [0, 1)"
            if name == "eps" and value < 0:
                yield f"eps = {value} must be at least 0"

    def optimizers(self, network: nn.Module) -> list[TorchOptimizer]:
        """The torch optimizers of a network."""
        tables = {id(module.weight) for module in network.modules() if isinstance(module, nn.Embedding)}
        named = list(network.named_parameters())
        hidden = [(name, p) for name, p in named if p.dim() >= 2 and not name.endswith("bias") and id(p) not in tables]
        return self.make(named, hidden)

    def make(self, named: Named, hidden: Named) -> list[TorchOptimizer]:
        """Optimizers over all parameters; `hidden` are the matrices that are no tables."""
        raise TypeError(f"{type(self).__name__} must define make(named, hidden)")

    def groups(self, named: Named, hidden: Named) -> list[dict[str, Any]]:
        """Parameters in two groups where decay spares some; every group has at least one."""
        wide = [(name, p) for name, p in named if p.dim() >= 2 and not name.endswith("bias")]
        chosen = {"all": named, "matrices": hidden, "matrices and tables": wide}[self.decay]
        decayed = {name for name, _ in chosen}
        split = [
            {"params": [p for name, p in named if name in decayed], "weight_decay": self.weight_decay},
            {"params": [p for name, p in named if name not in decayed], "weight_decay": 0.0},
        ]
        return [group for group in split if group["params"]]


class AdamW(Optimizer):
    """Adam with decoupled weight decay (Loshchilov & Hutter 2019).

    m ← β₁m + (1−β₁)g, v ← β₂v + (1−β₂)g², w ← w − η(m̂/(√v̂ + ε) + λw). Without `bias_correction` m̂ = m and v̂ = v
    (BERT's and ELECTRA's optimizer).
    """

    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    bias_correction: bool = True

    def make(self, named: Named, hidden: Named) -> list[TorchOptimizer]:
        groups = self.groups(named, hidden)
        if self.bias_correction:
            return [torch.optim.AdamW(groups, lr=self.rate, betas=self.betas, eps=self.eps, fused=True)]
        return [Moments(groups, self.rate, self.betas, self.eps, plain_step)]


class Lamb(Optimizer):
    """AdamW's step u without bias correction, scaled for each tensor by ‖w‖ / ‖u‖ (You et al. 2020; study 4's optimizer).

    The ratio is 1 where either norm is 0, and ‖w‖ counts as at most 10, as in study 4's implementation.
    """

    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-6

    def make(self, named: Named, hidden: Named) -> list[TorchOptimizer]:
        return [Moments(self.groups(named, hidden), self.rate, self.betas, self.eps, trusted_step)]


class SGD(Optimizer):
    """w ← w − ηm, m ← μm + g + λw: decay is a part of the gradient."""

    momentum: float = 0.0

    def make(self, named: Named, hidden: Named) -> list[TorchOptimizer]:
        return [torch.optim.SGD(self.groups(named, hidden), lr=self.rate, momentum=self.momentum)]


class RMSprop(Optimizer):
    """w ← w − η·g/(√v + ε), v ← αv + (1−α)g² (Tieleman & Hinton 2012); λw is a part of g, so that v sees the decay."""

    alpha: float = 0.99
    eps: float = 1e-8

    def make(self, named: Named, hidden: Named) -> list[TorchOptimizer]:
        return [torch.optim.RMSprop(self.groups(named, hidden), lr=self.rate, alpha=self.alpha, eps=self.eps)]


class Muon(Optimizer):
    """Momentum made orthogonal by Newton–Schulz for the hidden matrices (Jordan 2024), AdamW for all the rest.

    The step is scaled to AdamW's size (0.2·√max(rows, columns), Liu et al. 2025), so that one `rate` serves both. An untied
    head's matrix counts as hidden here.
    """

    momentum: float = 0.95
    betas: tuple[float, float] = (0.9, 0.95)
    eps: float = 1e-8

    def make(self, named: Named, hidden: Named) -> list[TorchOptimizer]:
        # torch's Muon takes two dimensions only; stacked matrices, one a head, go to AdamW
        flat = {name for name, p in hidden if p.dim() == 2}
        rest = self.groups([(n, p) for n, p in named if n not in flat], [(n, p) for n, p in hidden if n not in flat])
        made: list[TorchOptimizer] = []
        if flat:
            muon = torch.optim.Muon(
                [p for name, p in named if name in flat],
                lr=self.rate,
                weight_decay=self.weight_decay,
                momentum=self.momentum,
                adjust_lr_fn="match_rms_adamw",
            )
            made.append(muon)
        if rest:
            made.append(torch.optim.AdamW(rest, lr=self.rate, betas=self.betas, eps=self.eps, fused=True))
        return made


def plain_step(weight: Tensor, update: Tensor) -> Tensor:
    """The update as it is."""
    return update


def trusted_step(weight: Tensor, update: Tensor) -> Tensor:
    """The update in proportion to the weight's own norm."""
    ours, theirs = weight.norm().clamp_max(10.0), update.norm()
    return update * torch.where((ours > 0) & (theirs > 0), ours / theirs, 1.0)


class Moments(TorchOptimizer):
    """Adam without bias correction and decoupled decay; `shape` has the last word on each tensor's step."""

    def __init__(
        self,
        groups: list[dict[str, Any]],
        rate: float,
        betas: tuple[float, float],
        eps: float,
        shape: Callable[[Tensor, Tensor], Tensor],
    ) -> None:
        self.shape = shape
        super().__init__(groups, {"lr": rate, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            first, second = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(p), torch.zeros_like(p)
                state["exp_avg"].lerp_(p.grad, 1 - first)
                state["exp_avg_sq"].mul_(second).addcmul_(p.grad, p.grad, value=1 - second)
                update = state["exp_avg"] / (state["exp_avg_sq"].sqrt() + group["eps"]) + group["weight_decay"] * p
                p.sub_(group["lr"] * self.shape(p, update))
