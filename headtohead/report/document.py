"""What a page is made of, whichever way it is written: sections of text, facts, tables and figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Rows = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Text:
    """A paragraph. `tone` is "" or "warning"."""

    text: str
    tone: str = ""
    kind: str = "text"


@dataclass(frozen=True)
class Facts:
    """Names and what is to be said of each; several lines where there are several things to say."""

    rows: Sequence[tuple[str, Sequence[str]]]
    kind: str = "facts"


@dataclass(frozen=True)
class Table:
    """The first cell of a row names it. The columns of `words` hold text, all others numbers."""

    caption: str
    columns: Sequence[str]
    rows: Rows
    words: frozenset[int] = frozenset({0})
    kind: str = "table"


@dataclass(frozen=True)
class Figure:
    """A Vega-Lite specification; `alternative` says in words what it shows."""

    name: str
    spec: dict[str, Any]
    caption: str
    alternative: str
    kind: str = "figure"


@dataclass(frozen=True)
class Code:
    """A command or a line to be copied."""

    text: str
    kind: str = "code"


Block = Text | Facts | Table | Figure | Code


@dataclass(frozen=True)
class Section:
    """`badge` is a verdict's word, shown beside the title; a folded section opens when it is touched."""

    title: str
    blocks: Sequence[Block]
    badge: str = ""
    folded: bool = False
    within: bool = False  # one of several that belong to the section before them

    @property
    def warns(self) -> bool:
        """Whether something in it must be known before the verdict is believed."""
        return any(isinstance(block, Text) and block.tone for block in self.blocks)


@dataclass(frozen=True)
class Answer:
    """A verdict's word, and what it says in sentences."""

    word: str
    text: str


@dataclass(frozen=True)
class Document:
    title: str
    question: Sequence[str]  # paragraphs
    answers: Sequence[Answer]
    sections: Sequence[Section]
