"""What looking into a model came to, as the terminal shows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def audits(found: Sequence[dict[str, Any]]) -> str:
    """Every finding with its evidence below it."""
    lines = []
    for one in found:
        lines.append(f"{one['arm']:>16}  {one['id']:<10} {one['result']:<5} {one['when']}: {one['sentence']}")
        lines.append(f"{'':>16}  {one['evidence']}")
    return "\n".join(lines)


def score(found: dict[str, Any]) -> str:
    """−ln p beside every token, and what they come to."""
    pairs = zip(found["tokens"], found["nll"], strict=True)
    lines = [f"{'' if nll is None else f'{nll:.3f}':>8}  {token!r}" for token, nll in pairs]
    return "\n".join([*lines, f"{found['loss']:>8.3f}  nats per scored token, perplexity {found['perplexity']:.2f}"])
