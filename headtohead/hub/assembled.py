"""The network of an exported model. In an exported folder this file is written anew, with the recipe's parts in it."""

from __future__ import annotations

from headtohead.model import Network, Transformer
from headtohead.spec import Size

MODEL = Transformer()


def assemble(vocabulary: int, length: int) -> Network:
    """The network without its weights."""
    return MODEL.build(MODEL.complete(Size(vocabulary=vocabulary, length=length)))
