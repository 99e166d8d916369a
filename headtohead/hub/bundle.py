"""The source that an exported model needs, as files side by side: transformers' loader follows relative imports of
siblings, and knows no packages. `headtohead.parts.norm` becomes `parts_norm.py`, a study's own classes `own.py`.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headtohead.imports import outside
from headtohead.spec import Mistake, Part, fields, short, walk

MODELING, ASSEMBLED, OWN = "modeling_headtohead", "assembled", "own"
HERE = Path(__file__).parents[1]


def sources(model: Part) -> dict[str, str]:
    """File name -> text: the modeling file, the parts of this model, and everything that these import."""
    home = "headtohead.hub.modeling"
    files = {f"{MODELING}.py": _relative(_text(home)), f"{ASSEMBLED}.py": _assembled(model)}
    own = _own(model)
    waiting = [name for text in (_text(home), _facades(model), own) for name in _imported(text)]
    if own:
        files[f"{OWN}.py"] = _relative(own)
    done = {"headtohead.hub.assembled"}
    while waiting:
        name = waiting.pop()
        if name not in done:
            done.add(name)
            files[f"{_flat(name)}.py"] = _relative(_text(name))
            waiting += _imported(_text(name))
    return files


def _text(module: str) -> str:
    path = HERE.joinpath(*module.split(".")[1:])
    return (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text(encoding="utf-8")


def _flat(module: str) -> str:
    return "_".join(module.split(".")[1:])


def _imported(text: str) -> list[str]:
    nodes = ast.walk(ast.parse(text))
    found = [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    return [module for module in found if module.startswith("headtohead.")]


def _relative(text: str) -> str:
    return re.sub(
        r"^(\s*from) headtohead\.([\w.]+) import", lambda m: f"{m[1]} .{_short(m[2])} import", text, flags=re.M
    )


def _short(below: str) -> str:
    return ASSEMBLED if below == "hub.assembled" else below.replace(".", "_")


def _things(model: Part) -> Iterator[Any]:
    """Every class of a part, and every function in a field."""
    for _, part in walk(model):
        yield type(part)
        yield from (value for value in fields(part).values() if callable(value) and not isinstance(value, Part))


def _ours(thing: Any) -> bool:
    return thing.__module__.startswith("headtohead.") and not thing.__module__.startswith("headtohead.studies.")


def _facades(model: Part) -> str:
    """Imports of the package's own classes."""
    ours = sorted({(thing.__module__, thing.__name__) for thing in _things(model) if _ours(thing)})
    return "".join(f"from {module} import {name}\n" for module, name in ours)


def _assembled(model: Part) -> str:
    own = sorted({thing.__name__ for thing in _things(model) if not _ours(thing)})
    imports = _relative(_facades(model)) + (f"from .{OWN} import {', '.join(own)}\n" if own else "")
    return f'''"""The network, with the parts that its recipe has."""

from __future__ import annotations

{imports}from .spec import Size

MODEL = {short(model)}


def assemble(vocabulary, length):
    """The network without its weights."""
    return MODEL.build(MODEL.complete(Size(vocabulary=vocabulary, length=length)))
'''


def _own(model: Part) -> str:
    """The classes and functions of the user's own with all that they use of their file, in its order."""
    things = [thing for thing in _things(model) if not _ours(thing)]
    if not things:
        return ""
    homes = {thing.__module__ for thing in things}
    path = Path(getattr(sys.modules.get(things[0].__module__), "__file__", None) or "")
    if len(homes) > 1 or not path.is_file():
        raise Mistake(
            f"the parts of this model come from {', '.join(sorted(homes))}; put them all into the study's file"
        )
    body = ast.parse(path.read_text(encoding="utf-8")).body
    owner = {name: node for node in body for name in _defined(node)}
    needed: set[str] = set()
    waiting = [thing.__name__ for thing in things]
    while waiting:
        name = waiting.pop()
        if name in owner and name not in needed:
            needed.add(name)
            waiting += [node.id for node in ast.walk(owner[name]) if isinstance(node, ast.Name)]
    local = outside()
    kept = [_kept(node, needed, local, path) for node in body if needed & set(_defined(node))]
    return "from __future__ import annotations\n\n" + "\n\n".join(kept) + "\n"


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [(alias.asname or alias.name).partition(".")[0] for alias in node.names]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]


def _kept(node: ast.stmt, needed: set[str], local: dict[str, Path], path: Path) -> str:
    """A statement, imports cut down to what is needed and taken from where the name lives."""
    if isinstance(node, ast.Import):
        modules = [alias.name for alias in node.names]
    else:
        modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
    for module in modules:
        if module in local:
            raise Mistake(
                f"{path.name} imports {module}, a file beside it; an export takes the study's file alone: put it in"
            )
        if module == "headtohead" and isinstance(node, ast.Import):
            raise Mistake(
                f"{path.name} has `import headtohead`; write `from headtohead import …`, whose names can travel"
            )
    if isinstance(node, ast.ImportFrom) and node.module == "headtohead":
        wanted = [alias for alias in node.names if (alias.asname or alias.name) in needed]
        return "\n".join(_from_home(alias) for alias in wanted)
    return ast.unparse(node)


def _from_home(alias: ast.alias) -> str:
    thing = getattr(sys.modules["headtohead"], alias.name)
    return f"from {thing.__module__} import {alias.name}" + (f" as {alias.asname}" if alias.asname else "")
