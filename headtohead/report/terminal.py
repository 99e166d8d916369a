"""The verdict as the terminal shows it: the answer in front, then what it rests on."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Mapping
from typing import Any

from headtohead.report import numbers
from headtohead.report.card import INCOMPARABLE, Fact, best_first, effect_scale, facts, interval, unit
from headtohead.report.glossary import VERDICTS

COLOURS = {"good": "32", "bad": "31", "refused": "1;31", "same": "36", "open": "33"}
LABEL = 14  # columns for the names of the facts


def verdict_table(verdict: Mapping[str, Any]) -> str:
    """What a study came to, readable at 80 columns; coloured only where standard output is a terminal."""
    from headtohead.verdict.sentence import sentence  # loads scipy, which nothing else here needs

    width, challengers = _width(), verdict["arms"]
    cards = {name: facts(name, verdict) for name in challengers}
    blocks = [_head(verdict, width)]
    if len(challengers) > 1:
        blocks.append(_compact(verdict, width))
    common = _common(list(cards.values()))
    blocks += [
        _block(name, verdict, [fact for fact in told if fact not in common], width) for name, told in cards.items()
    ]
    if common:
        blocks.append("\n".join(["all challengers", *(_fact(label, lines, width) for label, lines in common)]))
    quotable = [_wrapped(sentence(name, entry, verdict), width, "  ") for name, entry in challengers.items()]
    return "\n\n".join([*blocks, "\n".join(["to quote:", *quotable])])


def _common(cards: list[list[Fact]]) -> list[Fact]:
    """What is the same of all of several challengers, and so is told once."""
    return [fact for fact in cards[0] if all(fact in card for card in cards)] if len(cards) > 1 else []


def _width() -> int:
    """The terminal's, within what reads well; 80 where there is none."""
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else 80
    return max(60, min(columns, 110))


def _painted(word: str, text: str) -> str:
    """Text in the colour of a verdict's word."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return text
    return f"\x1b[{COLOURS[VERDICTS[word].tone]}m{text}\x1b[0m"


def _wrapped(text: str, width: int, indent: str, first: str | None = None) -> str:
    head = indent if first is None else first
    # A hyphen may belong to a name or an option, so no line is broken there.
    return textwrap.fill(
        " ".join(text.split()), width, initial_indent=head, subsequent_indent=indent, break_on_hyphens=False
    )


def _head(verdict: Mapping[str, Any], width: int) -> str:
    """The question, and what was measured how often."""
    primary, baseline = verdict["primary"], verdict["baseline"]
    question = verdict["question"].split("\n\n")[0]
    mean = f", {numbers.significant(baseline['mean'], 4)}" if baseline["mean"] is not None else ""
    if baseline["mean"] is not None and baseline.get("unigram"):
        mean += f", {_learnt(baseline['mean'], baseline['unigram'])}"
    measured = (
        f"{primary['name']} in{unit(primary)}, {primary['better']} is better; "
        f"baseline: {baseline['name']}{mean}; margin ±{numbers.significant(verdict['margin'], 2)}; "
        f"{numbers.plural(len(verdict['seeds']), 'seed')}"
    )
    return "\n".join([_wrapped(f"{verdict['study']}: {question}", width, ""), _wrapped(measured, width, "")])


def _learnt(mean: float, unigram: float) -> str:
    """How far the baseline is from one who knows the tokens' frequencies and no context."""
    share = numbers.significant(100 * abs(unigram - mean) / unigram, 2)
    return f"{share} % {'below' if mean < unigram else 'above'} what token frequencies alone give"


def _compact(verdict: Mapping[str, Any], width: int) -> str:
    """A line for each challenger, best first."""
    level = f"{100 * next(iter(verdict['arms'].values()))['interval_level']:.3g} % interval"
    rows = [("verdict", "challenger", "effect", level, "won", "p adj.")]
    names = best_first(verdict)
    for name in names:
        entry = verdict["arms"][name]
        effect = numbers.NOTHING if entry["effect"] is None else numbers.signed(entry["effect"], effect_scale(entry))
        won = numbers.NOTHING if INCOMPARABLE in entry["qualifiers"] else f"{entry['won']}/{entry['seeds']}"
        p = numbers.probability(entry["p_adjusted"])
        rows.append((entry["verdict"], name, effect, interval(entry) or numbers.NOTHING, won, p))
    widths = [max(len(row[column]) for row in rows) for column in range(6)]
    widths[1] = max(len("challenger"), min(widths[1], width - sum(widths) + widths[1] - 2 * 5))
    lines = [_line(row, widths) for row in rows]
    return "\n".join(
        [lines[0], *(_painted(verdict["arms"][n]["verdict"], row) for n, row in zip(names, lines[1:], strict=True))]
    )


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    """Words to the left, numbers to the right; a name that is too long loses its middle."""
    cells = [_shortened(cell, width) for cell, width in zip(row, widths, strict=True)]
    sides = (str.ljust, str.ljust, str.rjust, str.rjust, str.rjust, str.rjust)
    return "  ".join(side(cell, width) for side, cell, width in zip(sides, cells, widths, strict=True)).rstrip()


def _shortened(text: str, width: int) -> str:
    if len(text) <= width:
        return text
    front = width // 2
    return f"{text[:front]}…{text[len(text) - (width - front - 1) :]}"


def _block(name: str, verdict: Mapping[str, Any], told: list[Fact], width: int) -> str:
    """A challenger: the word, its labels, and what its report card says of it alone."""
    entry = verdict["arms"][name]
    labels = f" ({', '.join(entry['qualifiers'])})" if entry["qualifiers"] else ""
    head = _wrapped(f"{entry['verdict']} {name}{labels}", width, "  ", first="")
    head = _painted(entry["verdict"], entry["verdict"]) + head[len(entry["verdict"]) :]
    return "\n".join([head, *(_fact(label, lines, width) for label, lines in told)])


def _fact(label: str, lines: list[str], width: int) -> str:
    indent = " " * (LABEL + 2)
    told = [_wrapped(lines[0], width, indent, first=f"  {label:<{LABEL}}")]
    return "\n".join([*told, *(_wrapped(line, width, indent) for line in lines[1:])])
