"""The texts there are, by the names that people type."""

from __future__ import annotations

import difflib
import importlib
import textwrap
from pathlib import Path
from typing import Any

from headtohead.catalogue import entries
from headtohead.spec import Mistake
from headtohead.text.file import File
from headtohead.text.huggingface import from_address
from headtohead.text.named import Named
from headtohead.text.source import Text


def published() -> dict[str, type[Text]]:
    """The published texts by name."""
    classes = [getattr(importlib.import_module(entry["module"]), entry["name"]) for entry in entries("texts", None)]
    return {cls.about.name: cls for cls in classes if cls.about is not None}


def text_at(address: str) -> Text:
    """A text by what a person types: a published one's name, hf:NAME[:CONFIG][:SPLIT][:COLUMN], a file or a folder."""
    if address.startswith("hf:"):
        return from_address(address)
    known = published()
    if address in known:
        return known[address]()
    if Path(address).expanduser().exists():
        return File(address)
    near = difflib.get_close_matches(address, known, n=1, cutoff=0.0)[0]
    raise Mistake(
        f"there is no text {address!r}, no file of that name either; did you mean {near!r}? (`h2h list texts`)"
    )


def listed(name: str | None) -> list[dict[str, Any]]:
    """Every text, or one, with its size, language and license, and whether it is here."""
    known = published()
    by_class = {cls.__name__: cls for cls in known.values()}
    found = [entry | _facts(by_class.get(entry["name"])) for entry in entries("texts", None)]
    if name is None:
        return found
    by_name = {word.lower(): entry for entry in found for word in (entry["name"], entry["title"]) if word}
    if name.lower() not in by_name:
        near = difflib.get_close_matches(name.lower(), by_name, n=1, cutoff=0.0)[0]
        raise Mistake(f"h2h list texts: there is no {name!r}; did you mean {near!r}?")
    return [by_name[name.lower()]]


def _facts(cls: type[Text] | None) -> dict[str, Any]:
    if cls is None or cls.about is None:
        return {"title": None, "here": None}
    text = cls()
    _, language, size, license, fetch = cls.about
    facts = {"title": cls.about.name, "language": language, "size": size, "license": license, "fetch": fetch}
    return facts | {"here": text.here(), "place": str(text.home()) if isinstance(text, Named) else ""}


def render(found: list[dict[str, Any]]) -> str:
    """A line each, or the whole of a single one."""
    if len(found) == 1:
        return _whole(found[0])
    named = sorted((entry for entry in found if entry["title"]), key=lambda entry: (not entry["here"], entry["title"]))
    rows = [("name", "language", "size", "license", "")]
    rows += [(e["title"], e["language"], e["size"], e["license"], "here" if e["here"] else "") for e in named]
    widths = [min(60, max(len(row[column]) for row in rows)) for column in range(4)]
    lines = ["  ".join([*(_fit(row[c], widths[c]) for c in range(4)), row[4]]).rstrip() for row in rows]
    lines += ["", "Of your own: a file, a folder, or a dataset of the Hub."]
    own = [entry for entry in found if not entry["title"]]
    lines += [f"  {entry['name']:<12} {_first(entry)}" for entry in own]
    return "\n".join([*lines, "", "h2h text show NAME|FILE|FOLDER|hf:DATASET     h2h run STUDY --set text=…"])


def _fit(text: str, width: int) -> str:
    return f"{textwrap.shorten(text, width, placeholder=' …'):<{width}}"


def _first(entry: dict[str, Any]) -> str:
    return textwrap.shorten(" ".join(entry["text"].split("\n\n")[0].split()), 100, placeholder=" …")


def _whole(entry: dict[str, Any]) -> str:
    head = f"{entry['title'] or entry['name']} ({entry['module']}:{entry['name']})"
    lines = [head, "", textwrap.indent(entry["text"], "  ")]
    if entry["title"]:
        lines += [
            "",
            f"  language  {entry['language']}",
            f"  size      {entry['size']}",
            f"  license   {entry['license']}",
        ]
        lines += [f"  here      {'yes' if entry['here'] else 'no: fetch ' + entry['fetch']}"]
        lines += [f"  place     {entry['place']}"] if entry["place"] else []
    fields = [f"  {name}: {kind}" for name, kind in entry["fields"].items()]
    return "\n".join([*lines, *(["", *fields] if fields else [])])
