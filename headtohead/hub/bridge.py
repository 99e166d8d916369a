"""The way in for any transformers model: our normalizers and ALiBi behind its attention interface.

model = AutoModel.from_pretrained(..., attn_implementation="headtohead_softmax_n"); settings are attributes of its config:
`softmax_n` (1.0), `clipped_softmax` ((1.03, −0.03)), `alibi` ("symmetric", "shifted" or "sides"). LearnedSink's sinks are the
module's `sinks`, one a head, if it has them (gpt-oss), else 0, with which it is softmax1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from headtohead.parts.normalizer import ClippedSoftmax, LearnedSink, SoftmaxN, softmax
from headtohead.parts.position import Alibi
from headtohead.spec import Size

Normalize = Callable[[Tensor], Tensor]


def _softmax_n(module: nn.Module, scores: Tensor) -> Tensor:
    return SoftmaxN(n=float(_setting(module, "softmax_n", 1.0)))(scores)


def _clipped(module: nn.Module, scores: Tensor) -> Tensor:
    high, low = _setting(module, "clipped_softmax", (1.03, -0.03))
    return ClippedSoftmax(high=high, low=low)(scores)


def _sink(module: nn.Module, scores: Tensor) -> Tensor:
    heads = scores.shape[1]
    normalizer: Any = LearnedSink().build(Size(vocabulary=1, length=1, heads=heads)).to(scores.device)
    sinks = getattr(module, "sinks", None)
    if sinks is not None:
        normalizer.sink = sinks  # the same parameter, so that it learns
    return normalizer(scores)


def _alibi(module: nn.Module, scores: Tensor) -> Tensor:
    """Distances are between places in the row; the last query stands at the last key, as with a cache."""
    heads, queries, keys = scores.shape[1:]
    shape = _setting(module, "alibi", "symmetric")
    table: Any = Alibi(shape=shape).build(Size(vocabulary=1, length=1, heads=heads)).to(scores.device)
    place = torch.arange(keys, device=scores.device)[None]
    return softmax(scores + table.bias(place[:, keys - queries :], place).to(scores.dtype))


def _setting(module: nn.Module, name: str, usual: Any) -> Any:
    return getattr(getattr(module, "config", None), name, usual)


NORMALIZERS: dict[str, Callable[[nn.Module, Tensor], Tensor]] = {
    "headtohead_softmax_n": _softmax_n,
    "headtohead_clipped_softmax": _clipped,
    "headtohead_learned_sink": _sink,
    "headtohead_alibi": _alibi,
}


def register_all() -> list[str]:
    """Tell transformers of every name above; its masks are those of its eager attention."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask

    for name, normalize in NORMALIZERS.items():
        AttentionInterface.register(name, _attention(normalize))
        AttentionMaskInterface.register(name, eager_mask)
    return [*NORMALIZERS]


def _attention(normalize: Callable[[nn.Module, Tensor], Tensor]) -> Callable[..., tuple[Tensor, Tensor]]:
    def attend(  # noqa: PLR0913 (transformers' own signature)
        module: nn.Module,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None,
        scaling: float | None = None,
        dropout: float = 0.0,
        position_bias: Tensor | None = None,
        **more: Any,
    ) -> tuple[Tensor, Tensor]:
        served = query.shape[1] // key.shape[1]
        key, value = (x.repeat_interleave(served, dim=1) for x in (key, value))
        scores = query @ key.transpose(2, 3) * (query.shape[-1] ** -0.5 if scaling is None else scaling)
        if position_bias is not None:
            scores = scores + position_bias
        if attention_mask is not None:
            scores = _hide(scores, attention_mask)
        weights = nn.functional.dropout(normalize(module, scores).to(value.dtype), dropout, module.training)
        return (weights @ value).transpose(1, 2).contiguous(), weights

    return attend


def _hide(scores: Tensor, mask: Tensor) -> Tensor:
    """A mask's lowest number stands for −∞: with n implicit zeros in the sum it would not do."""
    hidden = ~mask if mask.dtype == torch.bool else mask <= torch.finfo(mask.dtype).min / 2
    added = scores if mask.dtype == torch.bool else scores + mask
    return added.masked_fill(hidden, -math.inf)
