"""A prepared text as a page of plain text."""

from __future__ import annotations

import textwrap
from typing import Any

WIDTH = 30  # of the longest bar


def render(found: dict[str, Any]) -> str:
    """What `h2h text show` prints."""
    over, types = found["over"], found["types"]
    blocks = [
        f"{found['name']}\n{textwrap.fill(found['note'], 100, initial_indent='  ', subsequent_indent='  ')}",
        _table(found["sides"]),
        "\n".join(
            [
                f"tokenizer   {found['tokenizer']}, {types['vocabulary']:,} types; "
                f"{types['train']:,} occur in training, {types['validation']:,} in validation",
                f"unseen      {types['unseen_share']:.3%} of the validation tokens are of a type that training never had",
                *(f"on the way  {count:,} {what}" for what, count in found["left_out"].items()),
                f"row         {over['length']} tokens: {_longer(over, 'lines')}",
                f"            {' ' * len(str(over['length']))}         {_longer(over, 'documents')}",
                f"examples    {found['examples']['how']}{_counts(found['examples'])}",
                f"hash        {found['hash']}",
                f"folder      {found['folder']}",
            ]
        ),
        _histogram("lines of training", found["lengths"]["lines"]),
        _histogram("documents of training", found["lengths"]["documents"]),
        _examples(found["examples"]),
    ]
    return "\n\n".join(filter(None, blocks))


def _table(sides: dict[str, Any]) -> str:
    names = ("documents", "lines", "tokens", "characters", "bytes")
    head = f"{'':<12}" + "".join(f"{name:>16}" for name in (*names, "unknown"))
    rows = [
        f"{side:<12}" + "".join(f"{n[name]:>16,}" for name in names) + f"{n['unknown_rate']:>16.3%}"
        for side, n in sides.items()
    ]
    return "\n".join([head, *rows])


def _longer(over: dict[str, Any], what: str) -> str:
    one = over[what]
    return f"{one['share']:.1%} of the {what} are longer, {one['tokens_beyond']:.1%} of their tokens beyond"


def _counts(examples: dict[str, Any]) -> str:
    counts = examples["counts"]
    total = max(1, counts.get("rows", 0) + counts.get("dropped", 0))
    said = [
        f"{n:,} {what}" + (f" ({n / total:.1%})" if what in ("truncated", "dropped") else "")
        for what, n in counts.items()
    ]
    return "".join(f", {part}" for part in said)


def _histogram(what: str, bins: list[list[int]]) -> str:
    if not bins:
        return ""
    most = max(count for _, _, count in bins)
    spans = [f"{least:,}" if least == top else f"{least:,}–{top:,}" for least, top, _ in bins]
    bars = ["█" * round(WIDTH * count / most) for _, _, count in bins]
    lines = [f"  {span:>19}  {n:>12,}  {bar}".rstrip() for span, (_, _, n), bar in zip(spans, bins, bars, strict=True)]
    return "\n".join([f"tokens in {what}", *lines])


def _examples(examples: dict[str, Any]) -> str:
    head = "first rows of seed 0, decoded back"
    if examples.get("refused"):
        return f"{head}: none, {examples['refused']}"
    rows = [
        f"  {n}  {textwrap.shorten(repr(row), 200, placeholder=' …')}"
        for n, row in enumerate(examples["rows"], start=1)
    ]
    return "\n".join([head, *rows])
