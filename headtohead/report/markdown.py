"""A document as Markdown, for a README or an appendix."""

from __future__ import annotations

import re
from collections.abc import Iterator

from headtohead.report.document import Block, Code, Document, Facts, Figure, Section, Table, Text

SPECIAL = re.compile(r"([\\`*|~])|(?<!\w)(_)|(_)(?!\w)|(?<=\])(\()")
OPENING = re.compile(r"^([#>+=-]|\d+(?=[.)]))")


def render(document: Document) -> str:
    """The whole document; what a user wrote is shown as it is, never as Markdown or HTML."""
    parts = [f"# {_plain(document.title)}", *(_paragraph(text) for text in document.question)]
    parts += [f"**{answer.word}** {_plain(answer.text)}" for answer in document.answers]
    warnings = ", ".join(_plain(section.title) for section in document.sections if section.warns)
    parts += [f"**Read with care: {warnings}**"] if warnings else []
    for section in document.sections:
        parts += _section(section)
    return "\n\n".join(parts) + "\n"


def _plain(text: str) -> str:
    """Text in one line that Markdown takes literally."""
    line = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return SPECIAL.sub(lambda found: "\\" + found.group(0), line)


def _paragraph(text: str) -> str:
    """A paragraph, which must not begin as a heading, a list or a quotation does."""
    line = _plain(text)
    return OPENING.sub(lambda found: f"{found[0]}\\" if found[0].isdigit() else f"\\{found[0]}", line)


def _section(section: Section) -> Iterator[str]:
    badge = f": {section.badge}" if section.badge else ""
    yield f"{'###' if section.within else '##'} {_plain(section.title)}{badge}"
    for block in section.blocks:
        yield _block(block)


def _block(block: Block) -> str:
    if isinstance(block, Text):
        return f"**{_plain(block.text)}**" if block.tone else _paragraph(block.text)
    if isinstance(block, Code):
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", block.text)), default=0))
        return f"{fence}\n{block.text}\n{fence}"
    if isinstance(block, Figure):
        return f"*{_plain(block.alternative)}*"
    if isinstance(block, Facts):
        rows = [[name, "<br>".join(map(_plain, lines))] for name, lines in block.rows]
        return _grid(["", ""], [[_plain(name), told] for name, told in rows], frozenset({0, 1}))
    return _table(block)


def _table(table: Table) -> str:
    wide = len(table.columns)
    rows = [
        [f"**{_plain(row[0])}**", *[""] * (wide - 1)] if len(row) == 1 < wide else list(map(_plain, row))
        for row in table.rows
    ]
    return f"{_paragraph(table.caption)}\n\n{_grid(list(map(_plain, table.columns)), rows, table.words)}"


def _grid(columns: list[str], rows: list[list[str]], words: frozenset[int]) -> str:
    """A table of cells that are Markdown already; numbers stand to the right."""
    rule = ["---" if place in words else "---:" for place in range(len(columns))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (columns, rule, *rows))
