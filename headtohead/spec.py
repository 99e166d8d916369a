"""Parts and addresses: what an experiment is made of, and how two of them differ.

A part is a frozen dataclass that builds a module. An address such as `model.attention.normalizer` names one part inside
another, everywhere: in a study, in a diff, in `--set` and in the report. Nothing here imports torch.
"""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import importlib
import inspect
import json
import math
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any, Self, TypeVar, dataclass_transform


class Mistake(Exception):
    """The user's mistake, told in one line with its fix. The command prints the line and exits with 2."""


@dataclasses.dataclass(frozen=True)
class Size:
    """What a part needs to know of the model around it."""

    vocabulary: int
    length: int
    width: int = 0
    embedding_width: int = 0
    heads: int = 1
    key_value_heads: int = 1
    layers: int = 1
    layer: int = 0

    @property
    def head_width(self) -> int:
        return self.width // self.heads


@dataclass_transform(frozen_default=True)
class Part:
    """A frozen dataclass that builds a module; subclasses need no decorator.

    A class is abstract (it names a slot, and its docstring is the slot's contract) or final (a variant).
    """

    if typing.TYPE_CHECKING:
        __dataclass_fields__: typing.ClassVar[dict[str, dataclasses.Field[Any]]]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        dataclasses.dataclass(frozen=True)(cls)
        # Part itself refuses assignment for all subclasses; without these two a user may decorate the class as well.
        del cls.__setattr__, cls.__delattr__

    def __new__(cls, *values: Any, **named: Any) -> Self:
        known = [f.name for f in dataclasses.fields(cls)]
        for name in [name for name in named if name not in known]:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.0)
            hint = f"did you mean {near[0]!r}?" if near else "it has none"
            raise Mistake(f"{cls.__name__} has no field {name!r}; {hint}")
        return super().__new__(cls)

    def build(self, size: Size) -> Any:
        """The module this part stands for, or the part itself where it has no weights."""
        return self

    def refuse(self, size: Size, recipe: Any) -> Iterator[str]:
        """Reasons why this part cannot work in that recipe, each naming the other address."""
        yield from ()


def _refuse_change(self: Part, name: str, *value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"{type(self).__name__} is frozen; make another one with at()")


# A frozen dataclass guards only its own fields; with these Part guards those of every subclass.
dataclasses.dataclass(frozen=True)(Part)
Part.__setattr__ = Part.__delattr__ = _refuse_change  # type: ignore[method-assign, assignment]

P = TypeVar("P", bound=Part)


def fields(part: Part) -> dict[str, Any]:
    """A part's own fields and their values."""
    return {f.name: getattr(part, f.name) for f in dataclasses.fields(part)}


def walk(part: Part, address: str = "") -> Iterator[tuple[str, Part]]:
    """Every part inside `part`, itself first, with its address."""
    yield address, part
    for name, value in fields(part).items():
        if isinstance(value, Part):
            yield from walk(value, f"{address}.{name}".lstrip("."))


def get(part: Part, address: str) -> Any:
    """The value at an address."""
    value: Any = part
    for depth, name in enumerate(address.split(".")):
        here = ".".join(address.split(".")[:depth])
        if not isinstance(value, Part):
            raise Mistake(
                f"no address {address!r}: {here!r} is {value!r}, which has no parts inside; did you mean {here!r}?"
            )
        if name not in fields(value):
            raise Mistake(_unknown(address, here, name, value, part))
        value = getattr(value, name)
    return value


def _unknown(address: str, here: str, name: str, holder: Part, root: Part) -> str:
    known = [f"{here}.{field}".lstrip(".") for field in fields(holder)]
    inside = [f"{place}.{field}".lstrip(".") for place, part in walk(root) for field in fields(part)]
    # The right name at the wrong depth is the commonest slip: prefer an address that ends in the same word.
    same_word = [place for place in inside if place.rsplit(".")[-1] == address.rsplit(".")[-1]]
    near = difflib.get_close_matches(address, same_word or known + inside, n=1, cutoff=0.0)
    hint = near[0] if near else "nothing"
    return f"no address {address!r} ({type(holder).__name__} has no field {name!r}); did you mean {hint!r}?"


def at(part: P, changes: dict[str, Any]) -> P:
    """A copy of `part` with the values at some addresses replaced: at(baseline, {"model.layers": 3})."""
    for address, value in changes.items():
        get(part, address)
        part = _replace(part, address.split("."), address, value)
    return part


def _replace(part: P, names: list[str], address: str, value: Any) -> P:
    name, *rest = names
    if rest:
        value = _replace(getattr(part, name), rest, address, value)
    else:
        problem = misfit(type(part), name, value)
        if problem:
            raise Mistake(f"{address}: {problem}")
    return dataclasses.replace(part, **{name: value})


def hints(cls: type) -> dict[str, Any]:
    """The types of a part's fields, resolved."""
    return typing.get_type_hints(cls)


def misfit(cls: type, name: str, value: object) -> str | None:
    """Why a value cannot stand in a field, or None where it can."""
    hint = hints(cls)[name]
    if fits(value, hint):
        return None
    wanted = " or ".join(_say(option) for option in _options(hint))
    if isinstance(value, type) and issubclass(value, Part):
        return f"takes {wanted}, got the class {value.__name__}; write {value.__name__}()"
    if isinstance(value, Part):
        line = [c.__name__ for c in type(value).__mro__[1:] if issubclass(c, Part) and c is not Part]
        kind = f"a {line[0]}" if line else f"derived from Part alone; write class {type(value).__name__}({wanted})"
        return f"takes {wanted}, got {type(value).__name__}, which is {kind}"
    return f"takes {wanted}, got {value!r} ({type(value).__name__})"


def _options(hint: Any) -> tuple[Any, ...]:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return typing.get_args(hint)
    return (hint,)


def _say(hint: Any) -> str:
    if typing.get_origin(hint) is typing.Literal:
        return " or ".join(repr(value) for value in typing.get_args(hint))
    if hint is type(None):
        return "None"
    return str(hint) if typing.get_origin(hint) else getattr(hint, "__name__", str(hint))


def fits(value: object, hint: Any) -> bool:
    """Whether a value has the type that a field declares; a whole number may stand for a float, a bool for neither."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return True
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, option) for option in arguments)
    if origin is typing.Literal:
        return any(value == option and type(value) is type(option) for option in arguments)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return all(fits(item, arguments[0]) for item in value)
        return len(value) == len(arguments) and all(map(fits, value, arguments))
    if origin is Callable or hint is Callable:
        return callable(value)
    if hint is float:  # no setting is infinite, and JSON could not hold it
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, type(None) if hint is None else (origin or hint))


def check(part: Part) -> None:
    """Refuse values of the wrong type anywhere inside a part."""
    for address, inner in walk(part):
        for name, value in fields(inner).items():
            problem = misfit(type(inner), name, value)
            if problem:
                raise Mistake(f"{f'{address}.{name}'.lstrip('.')}: {problem}")


def diff(one: Part, other: Part, address: str = "") -> dict[str, tuple[Any, Any]]:
    """The addresses at which two parts differ, with both values. Parts of different classes differ as a whole."""
    if type(one) is not type(other):
        return {address: (one, other)}
    changed: dict[str, tuple[Any, Any]] = {}
    for name, value in fields(one).items():
        place, theirs = f"{address}.{name}".lstrip("."), getattr(other, name)
        if isinstance(value, Part) and isinstance(theirs, Part):
            changed |= diff(value, theirs, place)
        elif value != theirs:
            changed[place] = (value, theirs)
    return changed


def describe(value: Any) -> Any:
    """A part as plain JSON: its class by module and name, then its fields."""
    if isinstance(value, Part):
        cls = type(value)
        types = hints(cls)
        return {"part": _home(cls)} | {
            name: describe(_one_way(inner, types[name])) for name, inner in fields(value).items()
        }
    if isinstance(value, tuple | list):
        return [describe(item) for item in value]
    if callable(value):
        return {"call": _home(value)}
    return value


def _one_way(value: Any, hint: Any) -> Any:
    """1 and 1.0 are the same setting, so both are written as the field's type has it."""
    if isinstance(value, tuple) and typing.get_origin(hint) is tuple:
        inside = typing.get_args(hint)
        inside = inside[:1] * len(value) if inside[-1] is Ellipsis else inside
        return tuple(map(_one_way, value, inside))
    whole = isinstance(value, int) and not isinstance(value, bool)
    return float(value) if whole and float in _options(hint) and int not in _options(hint) else value


def _home(thing: Any) -> str:
    name = thing.__qualname__
    if "<" in name:
        raise Mistake(f"{name} has no name of its own that a file could hold; define it with def or class at the top")
    return f"{thing.__module__}:{name}"


def fingerprint(value: Any) -> str:
    """A hash of a description: equal parts, equal fingerprints, in every process."""
    text = json.dumps(describe(value), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def load(description: Any) -> Any:
    """A part from its description. Only the package's own parts: a study's come from its file, by the arm's name."""
    if isinstance(description, list):
        return tuple(load(item) for item in description)
    if not isinstance(description, dict):
        return description
    home = description.get("part", "")
    module, _, name = home.partition(":")
    if not module.startswith("headtohead."):
        raise Mistake(
            f"{home or description} is not one of headtohead's own parts; name the study file that defines it"
        )
    cls = getattr(importlib.import_module(module), name, None)
    if not (inspect.isclass(cls) and issubclass(cls, Part)):
        raise Mistake(f"headtohead has no part {home!r}")
    return cls(**{field: load(value) for field, value in description.items() if field != "part"})


def short(value: Any) -> str:
    """A value as a person would write it: class name, and only the fields that differ from their defaults."""
    if not isinstance(value, Part):
        return getattr(value, "__name__", None) or repr(value)
    shown = []
    for field in dataclasses.fields(value):
        given = getattr(value, field.name)
        if given != field.default:
            shown.append(f"{field.name}={short(given)}")
    return f"{type(value).__name__}({', '.join(shown)})"
