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
    bits = found.get("bits_per_byte")
    pseudo = found.get("pseudo_log_likelihood")
    more = f", {bits:.3f} bits per byte" if bits else ""
    more = f", pseudo-log-likelihood {pseudo:.3f}" if pseudo is not None else more
    kind = "perplexity" if pseudo is None else "pseudo-perplexity"
    return "\n".join([*lines, f"{found['loss']:>8.3f}  nats per scored token, {kind} {found['perplexity']:.2f}{more}"])


def arms(table: Sequence[dict[str, Any]]) -> str:
    """Every sentence with its loss and perplexity in each arm, the mean over the seeds."""
    lines = []
    for text in dict.fromkeys(row["text"] for row in table):
        lines += [text, f"{'':>22}{'loss':>9}{'perplexity':>12}{'bits/byte':>11}  seeds"]
        for row in (row for row in table if row["text"] == text):
            bits = "" if row["bits_per_byte"] is None else f"{row['bits_per_byte']:.3f}"
            seeds = ", ".join(f"{loss:.3f}" for loss in row["losses"])
            lines.append(f"{row['arm']:>22}{row['loss']:>9.3f}{row['perplexity']:>12.1f}{bits:>11}  {seeds}")
        lines.append("")
    return "\n".join(lines).rstrip("\n")


def imported(found: dict[str, Any]) -> str:
    """What an import came to, and what to do with it."""
    lines = [f"{found['run']}: {found['architecture']} of {found['from']}, {found['parameters']:,} parameters"]
    lines += [f"  {address}: {before} -> {after}" for address, (before, after) in found["changed"].items()]
    lines += [f"  new, at their start: {', '.join(found['new'])}"] if found["new"] else []
    if found["left_out"]:
        more = f" and {len(found['left_out']) - 4} more" if len(found["left_out"]) > 4 else ""
        lines.append(f"  left out, for nothing here uses them: {', '.join(found['left_out'][:4])}{more}")
    inside = f'it has no head that predicts; in Python: headtohead.load("{found["run"]}").attention("…")'
    return "\n".join([*lines, f'h2h score {found["run"]} --text "…"' if found["predicts"] else inside])
