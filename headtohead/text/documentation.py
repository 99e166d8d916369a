"""The documentation inside every Python installation, as documents of which no two share much.

Read with `ast`, nothing is imported: the help topics of `pydoc_data.topics` and the standard library's docstrings. numpy is
loaded where it is used, for the list of texts needs only what the class says of itself.
"""

from __future__ import annotations

import ast
import os
import platform
import re
import sysconfig
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from headtohead.spec import Mistake
from headtohead.text import store
from headtohead.text.source import About, Document, Text

if TYPE_CHECKING:
    import numpy as np

# Other people's packages, tests (their docstrings say little), a parser generator's copy of the language, data.
LEFT_OUT = {"site-packages", "dist-packages", "test", "tests", "idle_test", "lib2to3", "lib-dynload", "__pycache__"}
TOPICS = "pydoc_data/topics.py"
RELATED = 0.2  # of the smaller one's 13-grams: from here on two documents are one
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class PythonDocs(Text):
    """The documentation inside every Python: help topics and the standard library's docstrings, about 2 MB of English.

    It needs no download. It differs a little between Python versions, so the note names the version.
    """

    about = About("python-docs", "English", "2 MB", "Python Software Foundation License 2", "nothing")

    def documents(self, tally: Counter[str]) -> Iterator[Document]:
        for text in gathered(library()):
            yield Document(text)

    def identity(self) -> str:
        from headtohead.text import contamination

        root = library()
        stamps = [(str(path), (stat := path.stat()).st_size, stat.st_mtime_ns) for path in files(root)]
        return store.key(
            platform.python_version(), stamps, store.code(PythonDocs), store.code(contamination.Contamination)
        )

    def title(self) -> str:
        return "python-docs"

    def note(self) -> str:
        return (
            f"pydoc_data.topics and the standard library's docstrings in Python {platform.python_version()}, "
            "paragraphs that occur twice kept once; Python Software Foundation License 2"
        )


def library() -> Path:
    """The folder of the standard library."""
    return Path(sysconfig.get_path("stdlib"))


def files(root: Path) -> list[Path]:
    """The source files that are read, in the order in which they are read."""
    chosen: list[Path] = []
    for folder, inner, names in os.walk(root):
        inner[:] = [name for name in inner if name not in LEFT_OUT and not name.startswith("config-")]
        chosen += [Path(folder, name) for name in names if name.endswith(".py")]
    return sorted(chosen, key=lambda path: path.relative_to(root).as_posix())


def gathered(root: Path) -> list[str]:
    """One document a package and a topic, cleaned: no paragraph twice, those that share 13-grams joined."""
    sources: dict[str, list[str]] = {}
    for path in files(root):
        place = path.relative_to(root).as_posix()
        found = topics(path) if place == TOPICS else {place.split("/")[0].removesuffix(".py"): docstrings(path)}
        for name, texts in found.items():
            sources.setdefault(name, []).extend(texts)
    result = joined(distinct(sources.values()))
    if not result:
        raise Mistake(f"no documentation in {root}: this Python has no source files; give your own text, File(path)")
    return result


def topics(path: Path) -> dict[str, list[str]]:
    """The help texts of `pydoc_data.topics`, by name."""
    tables = [node for node in ast.walk(_parsed(path)) if isinstance(node, ast.Dict)]
    return {f"topic {name}": [text] for table in tables[:1] for name, text in ast.literal_eval(table).items()}


def docstrings(path: Path) -> list[str]:
    """Every docstring of a module, in the order of its source."""
    nodes = [node for node in ast.walk(_parsed(path)) if isinstance(node, DOCUMENTED)]
    nodes.sort(key=lambda node: getattr(node, "lineno", 0))  # the module itself has no line and comes first
    return [text for node in nodes if (text := ast.get_docstring(node))]


def _parsed(path: Path) -> ast.AST:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other people's escapes
        try:
            return ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):
            return ast.Module([], [])  # a template, not a program


def distinct(sources: Iterable[list[str]]) -> list[str]:
    """Each source as one document that holds only paragraphs which no earlier one holds."""
    from headtohead.text.contamination import normalized

    seen: set[str] = set()
    result = []
    for texts in sources:
        kept = []
        for paragraph in (piece for text in texts for piece in re.split(r"\n\s*\n", text)):
            plain = normalized(paragraph)
            if plain and plain not in seen:
                seen.add(plain)
                kept.append(paragraph.strip("\n").rstrip())
        result.append("\n\n".join(kept))
    return result


def joined(texts: list[str]) -> list[str]:
    """Documents that share a fifth of their 13-grams made one; those of fewer than 13 words say too little to stay."""
    from headtohead.text.contamination import normalized, word_grams

    grams = [word_grams(normalized(text)) for text in texts]
    texts = [text for text, own in zip(texts, grams, strict=True) if len(own)]
    grams = [own for own in grams if len(own)]
    leader = list(range(len(texts)))

    def lead(index: int) -> int:
        while leader[index] != index:
            index = leader[index]
        return index

    for one, other, count in shared(grams):
        if count >= RELATED * min(len(grams[one]), len(grams[other])):
            leader[lead(other)] = lead(one)
    groups: dict[int, list[str]] = {}
    for index, text in enumerate(texts):
        groups.setdefault(lead(index), []).append(text)
    return ["\n\n".join(group) for group in groups.values()]


def shared(grams: list[np.ndarray]) -> list[tuple[int, int, int]]:
    """(one, other, how many numbers they share) for every two lists of distinct numbers that share any."""
    import numpy as np

    numbers = np.concatenate([*grams, np.empty(0, dtype=np.uint64)])
    owner = np.repeat(np.arange(len(grams)), [len(own) for own in grams])
    order = np.argsort(numbers, kind="stable")
    numbers, owner = numbers[order], owner[order]
    pairs = []
    # After the sort the owners of one number stand side by side, in rising order.
    for gap in range(1, len(grams)):
        same = np.flatnonzero(numbers[gap:] == numbers[:-gap])
        if not len(same):
            break
        pairs.append(np.stack([owner[same], owner[same + gap]]))
    if not pairs:
        return []
    found, counts = np.unique(np.concatenate(pairs, axis=1), axis=1, return_counts=True)
    return [(int(one), int(other), int(count)) for (one, other), count in zip(found.T, counts, strict=True)]
