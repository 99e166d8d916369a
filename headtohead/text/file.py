"""Files of the user's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from headtohead.spec import Mistake
from headtohead.text import formats, store, unpacked
from headtohead.text.digests import digests
from headtohead.text.formats import KNOWN, PACKED, Border, Errors, Reading, documents, kind
from headtohead.text.source import Document, Text


class File(Text):
    """A file, or a folder of files (recursive): .txt, .jsonl, .csv, .tsv (also .gz or .zst of them), .parquet.

    A text file is a document, or each of its lines is one (`border="line"`), or what stands between blank lines; a row
    of a table or of JSON Lines is a document, its text in `column` (of a table without a heading, its number from 1
    on). `after_tab` keeps of each line what follows its last tab. Bytes that are not UTF-8 are refused, replaced by
    U+FFFD or skipped, and counted. `validation` names files that are held out, in place of a draw.

    One document: its first 90 % of characters train, the rest is held out (nanoGPT's split of Shakespeare). Several:
    whole documents are held out. A relative path counts from the current folder.
    """

    path: str
    column: str | int = "text"
    border: Border = "file"
    after_tab: bool = False
    errors: Errors = "refuse"
    validation: str = ""

    def documents(self, tally: Counter[str]) -> Iterator[Document]:
        reading = Reading(str(self.column), self.border, self.after_tab, self.errors)
        for side, file in self._files():
            for document in documents(file, reading, tally):
                yield document._replace(side=side) if side else document

    def identity(self) -> str:
        found = self._files()
        known = digests([file for _, file in found])
        code = [store.code(thing) for thing in (File, formats.Reading, unpacked.blocks)]
        return store.key([(side, known[file]) for side, file in found], self.title(), code)

    def title(self) -> str:
        return bare(_place(self.path).name)

    def note(self) -> str:
        return self.path + (f", held out: {self.validation}" if self.validation else "")

    def _files(self) -> list[tuple[str, Path]]:
        """Every file with its side; what is held out may lie in the folder of what is not."""
        held = files(_place(self.validation)) if self.validation else []
        side = "train" if held else ""
        found = [(side, file) for file in files(_place(self.path)) if file not in held]
        if not found:
            raise Mistake(f"all of {self.path} is held out by validation={self.validation!r}; name a part of it")
        return found + [("validation", file) for file in held]


def _place(path: str) -> Path:
    if not path:  # which Python takes for the current folder
        raise Mistake("an empty path names no text; give a file or a folder, or '.' for all of the current folder")
    return Path(path).expanduser().resolve()


def bare(name: str) -> str:
    """A file's name without the endings that tell its format."""
    while Path(name).suffix.lower() in (*KNOWN, *PACKED):
        name = Path(name).stem
    return name


def files(place: Path) -> list[Path]:
    """The file itself, or all files below a folder whose names end as they should."""
    if place.is_dir():
        found = below(place, KNOWN)
        if not found:
            raise Mistake(f"no text file in {place}; name a folder that holds some ({_endings()}), or one file")
        return found
    if not place.exists():
        raise Mistake(f"no text at {place}; give a file or a folder of them, e.g. --set text.path=FILE")
    if kind(place) not in KNOWN:
        raise Mistake(f"{place} is not a text file ({_endings()}); save its text as {place.with_suffix('.txt').name}")
    if not place.is_file():  # to open a pipe is to wait for who writes into it
        raise Mistake(f"{place} is no regular file; write its text into one, e.g. cat {place} > text.txt")
    return [place]


def below(folder: Path, kinds: tuple[str, ...] = ()) -> list[Path]:
    """The regular files of a folder and of those in it, in order: all, or those of some kinds."""
    try:
        return sorted(path for path in folder.rglob("*") if (not kinds or kind(path) in kinds) and path.is_file())
    except OSError as error:  # most often, one that went while the folder was walked
        wrong = f"cannot read all of {folder} ({error.filename}: {error.strerror})"
        raise Mistake(f"{wrong}; name a folder that holds texts alone") from error


def _endings() -> str:
    return ", ".join(KNOWN) + ", packed or not"
