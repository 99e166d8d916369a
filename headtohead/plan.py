"""From a study's file and the command line's options to the arms that will run."""

from __future__ import annotations

import ast
import dataclasses
import difflib
import importlib
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from headtohead.catalogue import parts
from headtohead.imports import STUDY, brought, changed, find_beside
from headtohead.request import Options, file_hash, is_builtin, options_from
from headtohead.spec import Mistake, Part, at, describe, diff, load
from headtohead.study import Recipe, Study, check_arms, validate
from headtohead.text.listing import text_at

CONTROLS = ("itself", "other-seeds")  # the baseline again: with its own seeds, and with as many others


class Loaded(NamedTuple):
    """A study with where it came from."""

    name: str
    question: str
    study: Study
    path: Path
    builtin: bool
    module: ModuleType
    imports: dict[str, str]  # what it brings with it: module -> hash of the file


def load_study(path: Path) -> Loaded:
    """Run a study's file and take its `study`."""
    builtin, before = is_builtin(path), set(sys.modules)
    module = _execute(path, f"headtohead.studies.{path.stem}" if builtin else STUDY)
    study = getattr(module, "study", None)
    if not isinstance(study, Study):
        found = "nothing of that name" if study is None else repr(study)
        raise Mistake(f"{path} must end in `study = Study(...)`, found {found}")
    imports = {} if builtin else brought(before, path.parent)
    return Loaded(path.stem, (module.__doc__ or "").strip(), study, path, builtin, module, imports)


def _execute(path: Path, name: str) -> ModuleType:
    if name.startswith("headtohead."):
        return importlib.import_module(name)
    module = ModuleType(name)
    module.__file__ = str(path)
    find_beside(path.parent)
    sys.modules[name] = module  # the types of its parts' fields are looked up here
    try:
        # as import does, but leaves no cache beside it
        exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)
    except SyntaxError as error:
        raise Mistake(f"{error.filename or path}:{error.lineno or 1}: {error.msg}") from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a study may raise what it likes
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        place = f"{path}:{lines[-1]}" if lines else str(path)
        kind = "" if isinstance(error, Mistake) else f"{type(error).__name__}: "
        raise Mistake(f"{place}: {kind}{' '.join(str(error).split())}{_nearest(error)}") from None
    return module


def _nearest(error: BaseException) -> str:
    """Where the package was asked for a name it does not have: the one that was meant."""
    wrong = re.match(r"(?:cannot import name|module 'headtohead' has no attribute) '(\w+)'", str(error))
    near = difflib.get_close_matches(wrong[1], dir(sys.modules["headtohead"]), n=1, cutoff=0.0) if wrong else []
    return f"; did you mean {near[0]!r}?" if near and "'headtohead'" in str(error) else ""


def with_options(loaded: Loaded, options: Options) -> Study:
    """The study as asked for on the command line, refused where it cannot run."""
    study = loaded.study
    with _told_where(loaded, study):
        check_arms(study)
    if options.size == "paper":
        if not isinstance(study.paper, Study):
            raise Mistake(
                f"study {loaded.name} has no paper size; give it Study(..., paper=Study(...)) or leave out --size"
            )
        study = study.paper
        with _told_where(loaded, study):
            check_arms(study)
    if options.seeds is not None:
        if study.looks and options.seeds != study.seeds and options.confirm is None and not options.against_itself:
            raise Mistake(
                f"--seeds {options.seeds}: the study plans its looks at {', '.join(map(str, study.looks))} seeds; change "
                "looks and seeds in the study file, or ask for fresh seeds with --confirm N"
            )
        study = dataclasses.replace(study, seeds=options.seeds)
    if options.confirm is not None:  # fresh seeds are judged once, all together
        study = dataclasses.replace(study, looks=())
    if options.against_itself:
        controls = {name: study.baseline for name in CONTROLS}
        study = dataclasses.replace(study, challengers=controls, claims=(), looks=(), grid=(), match="tokens", by="")
    if options.steps is not None:
        if options.steps < 1:
            raise Mistake(f"--steps {options.steps}: at least 1")
        steps = options.steps
        study = _every_arm(study, lambda recipe: recipe.rescaled(steps))
    for address, text in options.settings:
        study = _with_setting(study, address, parse_value(text, loaded.module))
    with _told_where(loaded, study):
        validate(study)
    return study


@contextmanager
def _told_where(loaded: Loaded, study: Study) -> Iterator[None]:
    """A mistake in a study as its file has it is told with the file's line; one that an option brought is not."""
    try:
        yield
    except Mistake as mistake:
        as_written = study is loaded.study or study is loaded.study.paper
        raise Mistake(f"{_place(loaded.path)}: {mistake}" if as_written else str(mistake)) from None


def _place(path: Path) -> str:
    """The line of a file in which its study is made."""
    body = ast.parse(path.read_bytes()).body
    targets = [(node.lineno, target) for node in body if isinstance(node, ast.Assign) for target in node.targets]
    lines = [line for line, target in targets if isinstance(target, ast.Name) and target.id == "study"]
    return f"{path}:{lines[-1]}" if lines else str(path)


def arms_of(out: Path, plan: dict[str, Any], trusted: str | None) -> dict[str, Recipe]:
    """The recipes of a plan: from their descriptions, or, where the study has parts of its own, from its copied file.

    The copy is run only if its hash is one that the user named.
    """
    if plan["request"]["builtin"]:
        return {name: load(description) for name, description in plan["arms"].items()}
    copy = out / "study.py"
    if file_hash(copy) != plan["code"]:
        raise Mistake(f"{copy} is not the file that was locked; put the original back or start in another folder")
    if trusted != plan["code"]:
        raise Mistake(
            f"{copy} is code; name the study's own file, or say --trust-study if you trust what the folder holds "
            "(in Python: study=… or trust_study=True)"
        )
    written = with_options(load_study(copy), options_from(plan["request"])).arms()
    other = changed(plan.get("imports", {}))
    if other:
        raise Mistake(f"{copy} imports {other[0]}, which is not the one that was locked; put it back or start anew")
    arms = {name: settle(written[origin], values) for name, (origin, values) in made_of(plan).items()}
    if {name: describe(recipe) for name, recipe in arms.items()} != plan["arms"]:
        raise Mistake(f"{copy} builds other arms than the lock says; does it read something outside itself?")
    return arms


def made_of(plan: dict[str, Any]) -> dict[str, tuple[str, dict[str, Any]]]:
    """Arm -> the arm of the study's file that it is made of, and what matching or tuning put in place of its values."""
    return {name: plan.get("made", {}).get(name, (name, {})) for name in plan["arms"]}


def settle(recipe: Recipe, values: dict[str, Any]) -> Recipe:
    """The recipe with other values at some addresses; another number of steps stretches the schedule with it."""
    steps = values.get("steps", recipe.steps)
    changed = at(recipe, {address: value for address, value in values.items() if address != "steps"})
    return changed.rescaled(steps) if steps != recipe.steps else changed


def settled(study: Study, values: dict[str, dict[str, Any]]) -> Study:
    """The study with such values in some of its arms."""
    arms = {name: settle(recipe, values.get(name, {})) for name, recipe in study.arms().items()}
    baseline = arms.pop("baseline")
    return dataclasses.replace(study, baseline=baseline, challengers=arms)


def _every_arm(study: Study, change: Callable[[Recipe], Recipe]) -> Study:
    challengers = {name: change(recipe) for name, recipe in study.challengers.items()}
    return dataclasses.replace(study, baseline=change(study.baseline), challengers=challengers)


def _with_setting(study: Study, address: str, value: Any) -> Study:
    value = text_at(value) if address == "text" and isinstance(value, str) else value
    changed = _every_arm(study, lambda recipe: at(recipe, {address: value}))
    for name in study.challengers:
        before = set(diff(study.baseline, study.challengers[name]))
        if before != set(diff(changed.baseline, changed.challengers[name])):
            raise Mistake(f"--set {address}: {name} differs from the baseline just there; change it in the study file")
    return changed


def parse_value(text: str, module: ModuleType | None = None) -> Any:
    """A literal such as 3, a part such as SoftmaxN(n=2), or else the text itself; nothing is evaluated."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # of a null byte, of ten thousand brackets
        return text
    return _value(tree, text, module)


def _class(name: str, module: ModuleType | None) -> type[Part] | None:
    """A part's class: the study's own, or one of the package's."""
    own = getattr(module, name, None)
    if own is None and name in parts():
        own = getattr(importlib.import_module(parts()[name].module), name)
    return own if isinstance(own, type) and issubclass(own, Part) else None


def _value(node: Any, text: str, module: ModuleType | None) -> Any:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return _part(node, node.func.id, text, module)
    written = ast.get_source_segment(text.strip(), node) or text
    if isinstance(node, ast.Name):  # a class is kept, so that what is missing is told: its brackets
        return _class(node.id, module) or written
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError):
        return written


def _part(node: ast.Call, name: str, text: str, module: ModuleType | None) -> Part:
    cls = _class(name, module)
    if cls is None:
        near = difflib.get_close_matches(name, parts(), n=1, cutoff=0.0)[0]
        raise Mistake(f"{text!r}: there is no part {name!r}; did you mean {near!r}? (`h2h list parts` has them all)")
    given = {word.arg: _value(word.value, text, module) for word in node.keywords if word.arg}
    known = dataclasses.fields(cls)
    if node.args or len(given) < len(node.keywords):
        fields = ", ".join(f"{field.name}=…" for field in known)
        raise Mistake(f"{text!r}: name the fields, as in {name}({fields})")
    for field in known:
        if field.default is dataclasses.MISSING and field.name not in given:
            raise Mistake(f"{text!r}: {name} needs {field.name!r}; write {name}({field.name}=…)")
    return cls(**given)
