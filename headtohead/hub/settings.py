"""Settings from a family's config.json to our addresses and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headtohead.hub.families import Family, Pairs, Top
from headtohead.model import Transformer
from headtohead.spec import Mistake, at, diff, get

GELU = {"gelu": "exact", "gelu_new": "tanh", "gelu_pytorch_tanh": "tanh"}
UNJUDGED = ("dropout", "initialization")  # what a model computes in evaluation does not depend on them


def _gelu(value: str, width: int) -> str:
    if value not in GELU:
        raise Mistake(f"its activation {value!r} is none of {', '.join(GELU)}, which we have as parts")
    return GELU[value]


def _named(value: str, width: int) -> str:
    return next((theirs for theirs, ours in GELU.items() if ours == value), value)


Turn = Callable[[Any, int], Any]
# by the last word of an address: from theirs to ours and back, given the model's width; the rest stay as they are
TURNED: dict[str, tuple[Turn, Turn]] = {
    "ratio": (lambda value, width: (value or 4 * width) / width, lambda ratio, width: round(ratio * width)),
    "approximation": (_gelu, _named),
    "gelu": (_gelu, _named),
    "padding_offset": (lambda pad, width: pad + 1, lambda offset, width: offset - 1),
}


def _turn(address: str, value: Any, width: int, back: bool) -> Any:
    if address == "embedding.width":  # 0 is the model's own
        return (value or width) if back else (0 if value == width else value)
    turned = TURNED.get(address.rpartition(".")[2])
    return turned[back](value, width) if turned else value


def model_of(config: Any, family: Family, top: Top | None) -> Transformer:
    """The parts that a configuration stands for."""
    settings: Pairs = (*family.settings, *(top.settings if top else ()))
    model = at(family.template, {"head": top.head}) if top else family.template
    width = getattr(config, next(theirs for theirs, ours in settings if ours == "width"))
    return at(model, {ours: _turn(ours, getattr(config, theirs), width, False) for theirs, ours in settings})


def settings_of(model: Transformer, family: Family, top: Top) -> dict[str, Any] | None:
    """config.json's settings for a model, or None where this family has no way to say it.

    They say it if reading them back gives the same parts; what only training knows of may differ.
    """
    found: dict[str, Any] = dict((*family.fixed, *top.fixed))
    found.pop("position_embedding_type", None)  # all that is left of it in transformers is its one value
    try:
        for theirs, ours in (*family.settings, *top.settings):
            found[theirs] = _turn(ours, get(model, ours), model.width, True)
        again = model_of(_Settings(found), family, top)
    except Mistake:
        return None
    differs = [address for address in diff(again, model) if address.partition(".")[0] not in UNJUDGED]
    return None if differs else found


class _Settings:
    """Settings as attributes, as a configuration of transformers has them."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.__dict__.update(settings)
