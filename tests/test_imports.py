"""Law tests that read the source: imports point one way, five places need no torch, and the core names no variant."""

import ast
import keyword
import re
import tokenize
from collections.abc import Iterator
from importlib.util import resolve_name
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).parents[1] / "headtohead"

# A module imports only from its left, so a comma too is a step to the right: initialize.py needs what parts/ says.
ORDER = """spec < files < request < imports, catalogue < text, parts, kernels, initialize, optimizer, schedule, memory < model < bodies < objectives
           < checkpoint < train < measure < study < matching < plan < audit < restart < run < generation, sentences < inspection < launch < verdict
           < finetune, hub < report < options < cli"""
RANK = {name: rank for rank, name in enumerate(re.findall(r"\w+", ORDER))}
ALONE = {"worked"}
STUDIES = "studies"
FACADE = ""  # headtohead/__init__.py, from which a study takes its names; it offers all and may import all
WITHOUT_TORCH = {"files", "spec", "request", "catalogue", "text", "verdict", "report"}
CORE = {"model", "train", "run", "checkpoint", "study", "verdict", "measure"}


class Import(NamedTuple):
    line: int
    module: str  # from module import name
    name: str
    inside: bool  # inside a function: it runs later, if at all


def sources(package: Path) -> dict[str, tuple[Path, ast.Module]]:
    """Every module of a package by its dotted name below the package: "model", "parts.norm", "" for the package."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        names = path.relative_to(package).with_suffix("").parts
        names = names[:-1] if names[-1] == "__init__" else names
        found[".".join(names)] = (path, ast.parse(path.read_text(encoding="utf-8"), str(path)))
    return found


def imports(tree: ast.Module, package: str) -> Iterator[Import]:
    """Every import of a module that can run, wherever it stands; `package` is what one leading dot means."""
    pending: list[tuple[ast.AST, bool]] = [(tree, False)]
    while pending:
        node, inside = pending.pop()
        if isinstance(node, ast.Import):
            yield from (Import(node.lineno, alias.name, "", inside) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = resolve_name("." * node.level + (node.module or ""), package)
            yield from (Import(node.lineno, module, alias.name, inside) for alias in node.names)
        inside = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for_types = isinstance(node, ast.If) and ast.unparse(node.test).split(".")[-1] == "TYPE_CHECKING"
        children = node.orelse if for_types else ast.iter_child_nodes(node)
        pending += [(child, inside) for child in children]


def imported(package: Path) -> dict[str, tuple[Path, list[Import]]]:
    found = {}
    for module, (path, tree) in sources(package).items():
        home = module if path.name == "__init__.py" else module.rpartition(".")[0]
        found[module] = (path, sorted(imports(tree, f"{package.name}.{home}".rstrip("."))))
    return found


def target(entry: Import, package: Path) -> str | None:
    """The top-level name inside the package that an import reaches: "spec"; FACADE for the package; None outside."""
    root, _, below = entry.module.partition(".")
    if root != package.name:
        return None
    if below:
        return below.split(".")[0]
    return entry.name if entry.name in RANK.keys() | ALONE | {STUDIES} else FACADE


def wrong_way(package: Path) -> list[str]:
    """Imports that do not point to the left, and modules that have no place in the order."""
    broken = []
    for module, (path, entries) in imported(package).items():
        top = module.split(".")[0]
        if top not in RANK and top not in ALONE | {STUDIES, FACADE}:
            broken.append(f"{path}: {top} has no place in the order")
            continue
        for entry in entries:
            goal = target(entry, package)
            if goal is not None and not allowed(top, goal, entry.name):
                broken.append(f"{path}:{entry.line}: {top} imports {entry.module} {entry.name}".rstrip())
    return broken


def allowed(top: str, goal: str, name: str) -> bool:
    """Whether the module or package `top` may import `name` from `goal`."""
    if top == FACADE:
        return goal != FACADE
    if top == STUDIES:
        return goal == FACADE and bool(name) and name != "*" and not name.startswith("_")
    if top == goal:
        return True
    return goal in RANK and RANK[goal] < RANK.get(top, -1)


def with_torch(package: Path) -> list[str]:
    """Imports of torch where it must not be: anywhere in these places, or at start-up in whatever they load."""
    everything = imported(package)
    broken = []
    for module, (path, entries) in everything.items():
        if module.split(".")[0] not in WITHOUT_TORCH:
            continue
        broken += [f"{path}:{entry.line}: imports {entry.module}" for entry in entries if is_torch(entry)]
        broken += [f"{path}: loads {other}, which imports torch" for other in loaded(module, everything, package)]
    return broken


def is_torch(entry: Import) -> bool:
    return f"{entry.module}.{entry.name}".startswith(("torch", "safetensors.torch"))


def loaded(module: str, everything: dict[str, tuple[Path, list[Import]]], package: Path) -> list[str]:
    """The package's other modules that importing `module` loads and that themselves import torch when loaded."""
    seen, pending = {module}, [module]
    while pending:
        now = pending.pop()
        ours = [e for e in everything[now][1] if not e.inside and e.module.split(".")[0] == package.name]
        names = [now] + [f"{e.module}.{e.name}".removeprefix(package.name).strip(".") for e in ours]
        # The packages above a module load with it.
        above = {".".join(name.split(".")[:depth]) for name in names for depth in range(name.count(".") + 2)}
        pending += (above & everything.keys()) - seen
        seen |= above & everything.keys()
    guilty = (name for name in seen - {module} if any(is_torch(e) and not e.inside for e in everything[name][1]))
    return sorted(name or package.name for name in guilty)


def variants(package: Path) -> set[str]:
    """The final parts: classes in parts/ that derive from an abstract part, so not from Part itself."""
    trees = [tree for module, (_, tree) in sources(package).items() if module.split(".")[0] == "parts"]
    classes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    bases = {c.name: {ast.unparse(base).split("[")[0].split(".")[-1] for base in c.bases} for c in classes}
    abstract = {name for name, above in bases.items() if "Part" in above}
    final: set[str] = set()
    while more := {name for name, above in bases.items() if above & (abstract | final)} - final - abstract:
        final |= more
    return final


def words(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Every identifier in a piece of code and every word in its strings; no comment, and no string that only stands."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    line = getattr(node, "lineno", 0)
    for _, value in ast.iter_fields(node):
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, str):
                yield from ((line, word) for word in re.findall(r"\w+", item))
            elif isinstance(item, ast.AST):
                yield from ((inner or line, word) for inner, word in words(item))


def drop_defaults(tree: ast.Module) -> None:
    """Take the default values of all fields out of a module, and the imports that bring them."""
    tree.body = [node for node in tree.body if not isinstance(node, ast.ImportFrom)]
    for node in ast.walk(tree):
        for item in node.body if isinstance(node, ast.ClassDef) else []:
            if isinstance(item, ast.AnnAssign):
                item.value = None


def named_in_core(package: Path) -> list[str]:
    """Places where the core names a variant; only model.py may, as the default of a field."""
    known, everything, broken = variants(package), imported(package), []
    for module, (path, tree) in sources(package).items():
        if module == "model":
            drop_defaults(tree)
        if module.split(".")[0] in CORE:
            # schedule.py, an objective or a library may have a class of the same name; who imports that one means it.
            others = {e.name for e in everything[module][1] if target(e, package) not in CORE | {"parts", FACADE}}
            broken += [f"{path}:{line}: names {word}" for line, word in words(tree) if word in known - others]
    return broken


@pytest.mark.parametrize("law", [wrong_way, with_torch, named_in_core])
def test_the_package_keeps_the_law(law):
    assert (PACKAGE / "spec.py").exists()
    assert law(PACKAGE) == []


def test_words_are_those_of_the_tokenizer():
    """Python's own tokenizer sees no name that `words` misses."""
    for path, tree in sources(PACKAGE).values():
        with tokenize.open(path) as file:
            names = {token.string for token in tokenize.generate_tokens(file.readline) if token.type == tokenize.NAME}
        assert names - set(keyword.kwlist) - set(keyword.softkwlist) <= {word for _, word in words(tree)}, path


def make(folder: Path, files: dict[str, str]) -> Path:
    """A small package of the same name, to break the laws in."""
    for name, code in {"__init__.py": "", **files}.items():
        path = folder / "headtohead" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code, encoding="utf-8")
    return folder / "headtohead"


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("model.py", "from headtohead.spec import Part; from .parts.norm import LayerNorm; from . import kernels"),
        ("initialize.py", "from headtohead.parts.initialization import Role"),
        ("parts/norm.py", "from ..spec import Part; from .embedding import rows; from . import head"),
        ("parts/__init__.py", "from .norm import LayerNorm; from .. import spec"),
        ("cli.py", "def show():\n    from headtohead.report import page"),
        ("__init__.py", "def __getattr__(name):\n    from headtohead import cli"),
        ("studies/mine.py", "import torch\nfrom headtohead import Study, at"),
        ("model.py", "if TYPE_CHECKING:\n    import headtohead.run\nif typing.TYPE_CHECKING:\n    from . import run"),
        ("worked.py", "import numpy, headtohead_plugins.run"),
    ],
)
def test_imports_to_the_left_are_allowed(tmp_path, name, code):
    assert wrong_way(make(tmp_path, {name: code})) == []


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("spec.py", "from headtohead.model import Body; from headtohead import model; import headtohead.model as m"),
        ("spec.py", "from . import model; from .model import Body"),
        ("parts/norm.py", "from ..model import Body; from .. import model; from headtohead.kernels import fused"),
        ("parts/__init__.py", "from .. import model"),
        ("parts/deep/norm.py", "from ...model import Body"),
        ("train.py", "class Late:\n    def at_last(self):\n        import headtohead.run"),
        ("train.py", "try:\n    import headtohead.run\nexcept ImportError:\n    pass"),
        ("train.py", "if TYPE_CHECKING:\n    pass\nelse:\n    import headtohead.run"),
        ("train.py", "from headtohead import Study; import headtohead"),
        ("cli.py", "from headtohead.studies.mine import study; from headtohead.worked import main"),
        ("worked.py", "from headtohead.spec import Part; from headtohead.missing import main"),
        ("studies/mine.py", "from headtohead.spec import Part; from headtohead import spec; import headtohead"),
        ("studies/mine.py", "from headtohead import _private; from headtohead import *; from .yours import study"),
    ],
)
def test_imports_to_the_right_are_found(tmp_path, name, code):
    broken = wrong_way(make(tmp_path, {name: code}))
    assert len(broken) == 1 + code.count(";")
    assert all(line.startswith(f"{tmp_path / 'headtohead' / name}:") for line in broken)


def test_a_module_without_a_place_is_found(tmp_path):
    assert len(wrong_way(make(tmp_path, {"utils.py": "", "tools/strings.py": "", "spec.py": ""}))) == 2


@pytest.mark.parametrize(
    ("files", "count"),
    [
        ({"spec.py": "if TYPE_CHECKING:\n    import torch", "model.py": "import torch"}, 0),
        ({"report/page.py": "def late():\n    from headtohead.model import Body", "model.py": "import torch"}, 0),
        ({"report/page.py": "from headtohead.study import Study", "study.py": "def run():\n    import torch"}, 0),
        ({"files.py": "def late():\n    import torch.nn as nn", "text/cache.py": "from torch import nn"}, 2),
        ({"verdict/judge.py": "import torchao, safetensors.torch; from safetensors.torch import load_file"}, 3),
        ({"report/page.py": "from headtohead.model import Body", "model.py": "import torch"}, 1),
        ({"report/page.py": "from .. import study", "study.py": "import headtohead.run", "run.py": "import torch"}, 1),
        ({"text/cache.py": "", "text/__init__.py": "from ..parts import norm", "parts/norm.py": "import torch"}, 2),
        ({"report/page.py": "from ..measure.cost import flops", "measure/__init__.py": "import torch"}, 1),
        ({"spec.py": "", "__init__.py": "import torch"}, 1),
    ],
)
def test_torch_is_found(tmp_path, files, count):
    assert len(with_torch(make(tmp_path, files))) == count


PARTS = {
    "parts/normalizer.py": "class Normalizer(Part): ...\nclass Softmax(Normalizer): ...\nclass Rows(nn.Module): ...",
    "parts/norm.py": "class Norm(spec.Part): ...\nclass LayerNorm(Norm): ...\nclass Half(LayerNorm, Generic[T]): ...",
}


def test_variants_are_the_final_parts(tmp_path):
    assert variants(make(tmp_path, PARTS)) == {"Softmax", "LayerNorm", "Half"}
    assert variants(make(tmp_path / "none", {})) == set()


@pytest.mark.parametrize(
    ("name", "code", "count"),
    [
        ("train.py", '"""Softmax in a docstring."""\nx = 1  # Softmax in a comment\n', 0),
        ("train.py", "def f(x):\n    'Softmax'\n    return x.softmax, Softmaximum, Normalizer, 'a softmax'", 0),
        ("model.py", "from headtohead.parts.norm import LayerNorm\nclass Body(Part):\n    norm: Norm = LayerNorm()", 0),
        ("study.py", "from headtohead.objectives.half import Half\nclass Recipe(Part):\n    goal: Goal = Half()", 0),
        ("model.py", "class Body(Part):\n    norm: Norm = LayerNorm()\n    def f(self):\n        LayerNorm()", 1),
        ("model.py", "class Body(Part):\n    norm: LayerNorm\n    other = LayerNorm()", 2),
        ("study.py", "class Recipe(Part):\n    norm: Norm = LayerNorm()", 1),
        ("train.py", "from headtohead.parts.normalizer import Softmax as s; x = normalizer.Softmax()", 2),
        ("train.py", "from headtohead.model import Softmax; from headtohead import LayerNorm", 2),
        ("run.py", "kind = type(x).__name__ == 'Softmax'; kind = f'{x}:Softmax'", 2),
        ("run.py", "match x:\n    case Softmax():\n        pass", 1),
        ("checkpoint.py", "def f(x: 'Softmax', y=Half): f(Softmax=1)", 3),
        ("measure/deep/cost.py", "x = Half", 1),
    ],
)
def test_a_named_variant_is_found(tmp_path, name, code, count):
    assert len(named_in_core(make(tmp_path, {**PARTS, name: code}))) == count
