"""To and from transformers. `register()` offers our normalizers and positions to any transformers model."""

from __future__ import annotations


def register() -> list[str]:
    """Make `attn_implementation="headtohead_softmax_n"` and its like known to transformers; gives their names."""
    from headtohead.hub.bridge import register_all

    return register_all()
