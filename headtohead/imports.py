"""The code outside the installed packages that a study brings with it: what it imports, itself or through another."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Collection
from pathlib import Path

from headtohead.request import file_hash

STUDY = "study"  # the name under which a study's own file is loaded
PACKAGES = ("stdlib", "platstdlib", "purelib", "platlib")  # sysconfig's names of where installed code lies


def brought(before: Collection[str], folder: Path) -> dict[str, str]:
    """Module -> hash of its file, of all that was loaded since `before`, or lies where the study does.

    Python itself says what was loaded, so an import inside a package, through another module or by importlib counts.
    """
    return {
        name: file_hash(path)
        for name, path in sorted(outside().items())
        if name != STUDY and (name not in before or path.is_relative_to(folder.resolve()))
    }


def changed(recorded: dict[str, str]) -> list[str]:
    """The recorded modules that are not loaded from a file with that hash."""
    here = outside()
    return [name for name, mark in recorded.items() if name not in here or file_hash(here[name]) != mark]


def find_beside(folder: Path) -> None:
    """Let what lies beside a study's file be imported, as `python FILE` does."""
    place = str(folder.resolve())
    if place not in sys.path:
        sys.path.insert(0, place)


def outside() -> dict[str, Path]:
    """Every loaded module whose file is not an installed one, nor one of this package."""
    installed = [Path(sysconfig.get_path(name)).resolve() for name in PACKAGES] + [Path(__file__).resolve().parent]
    files = {name: getattr(module, "__file__", None) or "" for name, module in list(sys.modules.items())}
    paths = {name: Path(file).resolve() for name, file in files.items() if file.endswith(".py") and name != "__main__"}
    return {
        name: path
        for name, path in paths.items()
        if path.is_file() and not any(path.is_relative_to(place) for place in installed)
    }
