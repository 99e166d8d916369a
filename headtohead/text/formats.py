"""From a file to documents, format by format: text, JSON Lines, tables with a comma or a tab, Parquet."""

from __future__ import annotations

import csv
import difflib
import io
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from headtohead.spec import Mistake
from headtohead.text.source import Document
from headtohead.text.unpacked import characters

PIECE = 1 << 22  # characters; a longer document is handed on in pieces of about this length
LONGEST = 1 << 26  # characters of a row, or of a line that must be seen whole
PACKED = (".gz", ".zst")
ROWS = 256  # of a Parquet file held at a time

Border = Literal["file", "line", "blank line"]
Errors = Literal["refuse", "replace", "skip"]


class Reading(NamedTuple):
    """How a file is read: the column of a table, where a document ends, what becomes of bytes that are not UTF-8.

    `after_tab` keeps of each line what follows its last tab.
    """

    column: str = "text"
    border: Border = "file"
    after_tab: bool = False
    errors: Errors = "refuse"


def documents(file: Path, reading: Reading, tally: Counter[str]) -> Iterator[Document]:
    """The documents of a file; one whose ending says nothing is read as text."""
    rows = ROWS_OF.get(kind(file))
    if rows is None:
        texts = characters(file, reading.errors, tally)
        return bordered(_after_last_tab(texts, file) if reading.after_tab else texts, reading.border)
    return (part for row in rows(file, reading, tally) for part in of_row(row, reading, file))


def of_row(text: str, reading: Reading, file: Path | str) -> Iterator[Document]:
    """The documents of a row; a blank one is a blank document, for what stands around it may have a meaning."""
    if not text:
        return iter((Document(""),))
    return bordered(_after_last_tab([text], file) if reading.after_tab else [text], reading.border)


def kind(file: Path) -> str:
    """The ending that tells the format, whatever it is packed with: ".jsonl" of a.jsonl.gz."""
    endings = [ending.lower() for ending in file.suffixes]
    return next((ending for ending in reversed(endings) if ending not in PACKED), "")


def bordered(texts: Iterable[str], border: str) -> Iterator[Document]:
    """The documents of a text that comes in pieces cut anywhere."""
    if border == "file":
        return joined(_whole(texts))
    return _lines(texts) if border == "line" else joined(_paragraphs(_lines(texts)))


def _whole(texts: Iterable[str]) -> Iterator[Document]:
    yield from (Document(text, goes_on=True) for text in texts)
    yield Document("")


def joined(pieces: Iterable[Document]) -> Iterator[Document]:
    """The same documents, in one piece where they are not long."""
    held: list[str] = []
    size = 0
    for piece in pieces:
        held.append(piece.text)
        size += len(piece.text)
        if not piece.goes_on or size >= PIECE:
            yield Document("".join(held), piece.goes_on, piece.side)
            held, size = [], 0


def _lines(texts: Iterable[str]) -> Iterator[Document]:
    """Each line a document, without its end; a blank one is an empty document."""
    held, begun = "", False
    for text in _plain_ends(texts):
        first, *more = text.split("\n")
        held += first
        if more:
            yield Document(held)
            yield from map(Document, more[:-1])
            held, begun = more[-1], False
        if len(held) >= PIECE:
            yield Document(held, goes_on=True)
            held, begun = "", True
    if held or begun:
        yield Document(held)


def _plain_ends(texts: Iterable[str]) -> Iterator[str]:
    r"""\r\n as \n, also where a piece ends between the two."""
    held = ""
    for text in texts:
        text = held + text
        held = "\r" if text.endswith("\r") else ""
        yield text.removesuffix("\r").replace("\r\n", "\n")
    yield held


def _paragraphs(lines: Iterable[Document]) -> Iterator[Document]:
    """Lines up to a blank one are a document, in pieces of a line."""
    begun, fresh = False, True  # inside a document, at the start of a line
    for line in lines:
        if fresh and not line.goes_on and not line.text.strip():
            if begun:
                yield Document("")
            begun = False
        else:
            yield Document(("\n" if begun and fresh else "") + line.text, goes_on=True)
            begun = True
        fresh = not line.goes_on
    if begun:
        yield Document("")


def _after_last_tab(texts: Iterable[str], file: Path | str) -> Iterator[str]:
    return (re.sub(r"(?m)^.*\t", "", text) for text in _whole_lines(texts, file))


def _whole_lines(texts: Iterable[str], file: Path | str) -> Iterator[str]:
    """Pieces that end where a line ends."""
    held: list[str] = []
    size = 0
    for text in texts:
        end = text.rfind("\n") + 1
        if end:
            yield "".join([*held, text[:end]])
            held, size = [], 0
        held.append(text[end:])
        size += len(text) - end
        if size > LONGEST:
            raise Mistake(f"{file} has a line of more than {LONGEST:,} characters; give such a text as a .txt file")
    yield "".join(held)


def _each_line(file: Path, reading: Reading, tally: Counter[str]) -> Iterator[str]:
    for text in _whole_lines(characters(file, reading.errors, tally), file):
        yield from io.StringIO(text, newline="\n")


def _json_rows(file: Path, reading: Reading, tally: Counter[str]) -> Iterator[str]:
    known: list[str] = []
    for number, line in enumerate(_each_line(file, reading, tally), start=1):
        if not line.strip():
            continue
        row = _object(line, f"{file}: line {number}")
        if reading.column not in row and not known:
            raise missing(str(file), reading.column, list(row))
        known = known or list(row)
        yield from text_of(row.get(reading.column), f"{file}: line {number}", reading.column, tally)


def _object(line: str, place: str) -> dict[str, Any]:
    fix = "one object a line is needed; of an array: jq -c '.[]' FILE > FILE.jsonl"
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise Mistake(f"{place} is no JSON object ({error}); {fix}") from None
    except RecursionError:
        raise Mistake(f"{place} is no row (lists or objects too deep in one another); {fix}") from None
    except ValueError:  # the only other one: Python reads no longer integer
        most = f"{sys.get_int_max_str_digits():,}"
        raise Mistake(f"{place} has a number of more than {most} digits; put it in quotes or leave it out") from None
    if not isinstance(row, dict):
        raise Mistake(f"{place} is no JSON object; {fix}")
    return row


def _table_rows(file: Path, reading: Reading, tally: Counter[str]) -> Iterator[str]:
    """A column by its name in the first row, or, of a table without such a row, by its number from 1 on."""
    csv.field_size_limit(LONGEST)  # of the whole process; it only ever bounds what this module reads
    tabs = kind(file) == ".tsv"  # by custom without quotes
    lines = _each_line(file, reading, tally)
    rows = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE) if tabs else csv.reader(lines, strict=True)
    place: int | None = None
    begin = 1  # the line at which a row begins; an unclosed quote is noticed lines later, or at the end of the file
    try:
        for row in rows:
            if place is None:
                place, headed = _column(file, reading.column, row)
            else:
                headed = False
            begin = rows.line_num + 1
            if not headed:
                yield from text_of(row[place] if place < len(row) else None, str(file), reading.column, tally)
    except csv.Error as error:
        fix = "mend it: a text in quotes ends with one, and each quote inside is doubled"
        raise Mistake(f"{file}: line {begin} begins no row of a table ({error}); {fix}") from None


def _column(file: Path, column: str, first: list[str]) -> tuple[int, bool]:
    """The place of a column, and whether the first row is a heading."""
    if column.isdecimal() and 1 <= int(column) <= len(first):
        return int(column) - 1, False
    if column in first:
        return first.index(column), True
    raise missing(str(file), column, first)


def _parquet_rows(file: Path, reading: Reading, tally: Counter[str]) -> Iterator[str]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise Mistake('a .parquet file needs the package pyarrow: pip install "headtohead[data]"') from None
    try:
        with parquet.ParquetFile(file) as table:
            if reading.column not in table.schema_arrow.names:
                raise missing(str(file), reading.column, table.schema_arrow.names)
            for batch in table.iter_batches(ROWS, columns=[reading.column]):
                for value in batch.column(0).to_pylist():
                    yield from text_of(value, str(file), reading.column, tally)
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise Mistake(f"{file} is damaged or no Parquet file ({str(error).splitlines()[0]}); fetch it again") from None


def text_of(value: Any, place: str, column: str, tally: Counter[str]) -> Iterator[str]:
    """The text of a row, where it has one."""
    if isinstance(value, str):
        yield value
    elif value is None:
        tally[f"rows without {column!r} left out"] += 1
    else:
        raise Mistake(f"{place} has no text in {column!r} but {value!r:.40}; name the column that holds the text")


def missing(place: str, column: str, known: list[str]) -> Mistake:
    """What to say of a column that is not there."""
    near = difflib.get_close_matches(column, known, n=1, cutoff=0.0)
    meant = f"did you mean {near[0]!r}? It has {', '.join(known)[:200]}" if near else "it has none"
    return Mistake(f"{place} has no column {column!r}; {meant} (--set text.column=NAME)")


ROWS_OF: dict[str, Callable[[Path, Reading, Counter[str]], Iterator[str]]] = {
    ".jsonl": _json_rows,
    ".ndjson": _json_rows,
    ".json": _json_rows,
    ".csv": _table_rows,
    ".tsv": _table_rows,
    ".parquet": _parquet_rows,
}
KNOWN = (".txt", *ROWS_OF)
