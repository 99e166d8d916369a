"""A study's page: report.html, which needs nothing beside it, and report.md with the same content."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from headtohead.files import write_atomically
from headtohead.report import apart, evidence, markdown, measured, results
from headtohead.report.document import Document, Figure
from headtohead.report.figures import DARK, svg
from headtohead.report.folder import Folder, read_folder
from headtohead.report.glossary import VERDICTS

TEMPLATE = Path(__file__).with_name("page.html")
TONES = {word: meaning.tone for word, meaning in VERDICTS.items()} | {"pass": "good", "fail": "bad", "skip": "open"}


def write_report(out: Path) -> None:
    """Draw a judged study's page anew."""
    document = compose(read_folder(Path(out)))
    write_atomically(Path(out) / "report.html", html(document))
    write_atomically(Path(out) / "report.md", markdown.render(document))


def compose(folder: Folder) -> Document:
    """What the page says, before it is HTML or Markdown."""
    question = [" ".join(text.split()) for text in re.split(r"\n\s*\n", folder.verdict["question"]) if text.strip()]
    sections = [
        *apart.sections(folder),
        *results.sections(folder),
        *measured.sections(folder),
        *evidence.sections(folder),
    ]
    size = f" ({folder.study['size']})" if folder.study.get("size") else ""
    return Document(f"{folder.verdict['study']}{size}", question, results.answers(folder), sections)


def figures(document: Document) -> list[Figure]:
    """The document's figures, each with its specification."""
    return [block for section in document.sections for block in section.blocks if isinstance(block, Figure)]


def html(document: Document) -> str:
    """One file with its style and pictures inside. Every text is escaped; only our own SVG is taken as it is."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, finalize=_glued, trim_blocks=True, lstrip_blocks=True
    )
    pictures = {figure.name: Markup(svg(figure.spec)) for figure in figures(document)}
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    places = {id(section): f"s{number}" for number, section in enumerate(document.sections)}
    return template.render(document=document, pictures=pictures, tones=TONES, dark=DARK, place=lambda s: places[id(s)])


def _glued(value: Any) -> Any:
    """A number stays in one line with its per cent sign."""
    return value.replace(" %", "\N{NO-BREAK SPACE}%") if isinstance(value, str) else value
