"""What there is, read from the source without importing it: studies with their questions, parts with their fields."""

from __future__ import annotations

import ast
import difflib
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from headtohead.request import BUILTIN, builtin_studies
from headtohead.spec import Mistake

HOME = Path(__file__).parent
PLACES = ("parts/*.py", "model.py", "objectives/*.py", "optimizer.py", "schedule.py", "text/*.py", "study.py")


class Entry(NamedTuple):
    """A part as its file has it."""

    name: str
    slot: str  # "" where the class is a slot itself
    module: str
    text: str
    fields: dict[str, str]


def entries(what: str, name: str | None) -> list[dict[str, Any]]:
    """All of a kind, or the one of that name."""
    if what == "studies":
        found = [{"name": study, "kind": "study", **_study(study)} for study in builtin_studies()]
    elif what == "parts":
        found = _parts(name)
    elif what == "texts":
        texts = [part for part in parts().values() if part.slot == "Text" and part.name not in _bases()]
        found = [{**part._asdict(), "kind": "text"} for part in texts]
    else:
        raise Mistake(f"h2h list {what}: choose studies, parts or texts")
    if name is None:
        return found
    chosen = [entry for entry in found if name.lower() in (entry["name"].lower(), entry["kind"].lower())]
    if not chosen:
        known = {word.lower(): word for entry in found for word in (entry["name"], entry["kind"])}
        near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.0)[0]
        raise Mistake(f"h2h list {what}: there is no {name!r}; did you mean {known[near]!r}?")
    return chosen


def _parts(name: str | None) -> list[dict[str, Any]]:
    """The variants of every slot; where one name is asked for, the slots too, and what holds them all."""
    where = addresses()
    return [
        {**part._asdict(), "kind": part.slot or "slot", "address": where.get(part.slot or part.name, "")}
        for part in parts().values()
        if part.slot or name is not None
    ]


def _study(name: str) -> dict[str, str]:
    return {"text": ast.get_docstring(ast.parse((BUILTIN / f"{name}.py").read_text(encoding="utf-8"))) or ""}


@cache
def parts() -> dict[str, Entry]:
    """Every part class of the package by name, slots included."""
    classes = {node.name: (module, node) for module, node in _classes()}
    found: dict[str, Entry] = {}
    for name, (module, node) in classes.items():
        line = list(_ancestors(name, classes))
        if "Part" not in line:
            continue
        slot = line[line.index("Part") - 1] if line.index("Part") else ""
        fields: dict[str, str] = {}
        for ancestor in [*reversed(line[: line.index("Part")]), name]:
            fields |= _fields(classes[ancestor][1])
        found[name] = Entry(name, slot, module, ast.get_docstring(node) or "", fields)
    return found


def addresses() -> dict[str, str]:
    """Slot -> its address in a recipe made of the default parts."""
    found: dict[str, str] = {}

    def look(name: str, address: str) -> None:
        for field, kind in parts()[name].fields.items():
            slot, _, default = kind.partition(" = ")
            if slot in parts() and slot not in found:
                found[slot] = f"{address}.{field}".lstrip(".")
                look(default.partition("(")[0], found[slot])

    look("Recipe", "")
    return found


def _classes() -> Iterator[tuple[str, ast.ClassDef]]:
    for pattern in PLACES:
        for path in sorted(HOME.glob(pattern)):
            module = "headtohead." + ".".join(path.relative_to(HOME).with_suffix("").parts).removesuffix(".__init__")
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef):
                    yield module, node


@cache
def _bases() -> set[str]:
    """Classes from which others derive."""
    return {base.id for _, node in _classes() for base in node.bases if isinstance(base, ast.Name)}


def _ancestors(name: str, classes: dict[str, tuple[str, ast.ClassDef]]) -> Iterator[str]:
    while name in classes and classes[name][1].bases:
        base = classes[name][1].bases[0]
        name = base.id if isinstance(base, ast.Name) else ""
        yield name


def _fields(node: ast.ClassDef) -> dict[str, str]:
    found = {}
    for line in node.body:
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
            kind = ast.unparse(line.annotation)
            if not kind.startswith("ClassVar"):
                found[line.target.id] = kind + (f" = {ast.unparse(line.value)}" if line.value else "")
    return found


def render(found: list[dict[str, Any]]) -> str:
    """One line each, or the whole of a single one."""
    if len(found) == 1:
        return _whole(found[0])
    contract = [_whole(entry) for entry in found if entry["kind"] == "slot"]
    if contract:
        return "\n\n".join([*contract, render([entry for entry in found if entry["kind"] != "slot"])])
    width = max(len(entry["name"]) for entry in found)
    lines, kind = [], None
    for entry in sorted(found, key=lambda entry: entry["kind"]):
        if entry["kind"] != kind and entry["kind"] not in ("study", "text"):
            kind = entry["kind"]
            lines += ["", f"{kind}, {entry['address']}" if entry["address"] else kind]
        first = " ".join(entry["text"].split("\n\n")[0].split())
        lines.append(f"  {entry['name']:<{width}}  {textwrap.shorten(first, 100 - width, placeholder=' …')}")
    return "\n".join(lines).strip("\n")


def _whole(entry: dict[str, Any]) -> str:
    kind = {"slot": ""}.get(entry["kind"], f" ({entry['kind']})")
    head = entry["name"] if entry["kind"] == "study" else f"{entry['name']}{kind}, {entry['module']}"
    head += f", address {entry['address']}" if entry.get("address") else ""
    fields = "".join(f"\n  {name}: {kind}" for name, kind in entry.get("fields", {}).items())
    use = f"\n\nh2h show {entry['name']}\nh2h run {entry['name']}" if entry["kind"] == "study" else ""
    return f"{head}\n\n{textwrap.indent(entry['text'], '  ')}{chr(10) + fields if fields else ''}{use}"
