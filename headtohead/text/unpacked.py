"""The characters of a file: unpacked, decoded, a block at a time, so that no file is ever whole in memory."""

from __future__ import annotations

import codecs
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import Any

from headtohead.spec import Mistake

BLOCK = 1 << 20  # bytes read at a time
PACKED_BLOCK = 1 << 16  # a packed block grows, of a text about four times
ESCAPED = re.compile("[\udc80-\udcff]")  # what Python makes of a byte that is not UTF-8, one each
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def opened(file: Path) -> BufferedReader:
    """A file to read from, or the user's mistake."""
    try:
        return open(file, "rb")
    except OSError as error:
        raise Mistake(f"cannot read {file} ({error.strerror}); make it readable or name another") from error


def characters(file: Path, errors: str, tally: Counter[str]) -> Iterator[str]:
    """The text of a file in pieces. A byte order mark is no part of it.

    A byte that is not UTF-8 is refused with its place, becomes U+FFFD ("replace") or is left out ("skip"), and counted.
    """
    begun = False
    for text in _decoded(blocks(file), file, errors, tally):
        if text:
            yield text if begun else text.removeprefix("\ufeff")
            begun = True


def blocks(file: Path) -> Iterator[bytes]:
    """The bytes of a file, unpacked where its name ends in .gz or .zst."""
    with opened(file) as stream:
        kind = file.suffix.lower()
        if kind == ".gz":
            yield from _unpacked(file, stream, lambda: zlib.decompressobj(wbits=31))  # 31: with gzip's header and sum
        elif kind == ".zst":
            yield from _unpacked(file, stream, _zstandard().ZstdDecompressor().decompressobj)
        else:
            yield from iter(lambda: stream.read(BLOCK), b"")


def _zstandard() -> Any:
    try:
        import zstandard
    except ImportError:
        raise Mistake('a .zst file needs the package zstandard: pip install "headtohead[data]"') from None
    return zstandard


def _unpacked(file: Path, stream: BufferedReader, begin: Callable[[], Any]) -> Iterator[bytes]:
    """A packed file may hold several streams one after another; each must come to its end."""
    worker, pieces = begin(), 0
    while data := stream.read(PACKED_BLOCK):
        while data:
            worker = begin() if worker.eof else worker
            try:
                yield worker.decompress(data)
            except Exception as error:  # zlib and zstandard have each an error of their own
                raise Mistake(f"{file} is damaged or no {file.suffix} file ({error}); fetch it again") from None
            data = worker.unused_data if worker.eof else b""
            pieces += 1
    if pieces and not worker.eof:
        raise Mistake(f"{file} breaks off in the middle; fetch it again")


def _decoded(data: Iterator[bytes], file: Path, errors: str, tally: Counter[str]) -> Iterator[str]:
    rest, place = b"", 0
    for block in chain(data, [None]):
        rest, last = rest + (block or b""), block is None
        try:
            text, used = codecs.utf_8_decode(rest, "strict", last)
        except UnicodeDecodeError as error:
            if errors == "refuse":
                raise _not_utf8(file, place, error.start, rest) from None
            text, used = codecs.utf_8_decode(rest, "surrogateescape", last)
            text, count = ESCAPED.subn("\ufffd" if errors == "replace" else "", text)
            tally[f"bytes that are not UTF-8 {'replaced' if errors == 'replace' else 'left out'}"] += count
        yield text
        rest, place = rest[used:], place + used


def _not_utf8(file: Path, place: int, start: int, data: bytes) -> Mistake:
    kind = " (it looks like UTF-16)" if place == 0 and data.startswith(UTF_16) else ""
    fix = "save it as UTF-8, or set errors to 'replace' or 'skip'"
    return Mistake(f"{file} is not UTF-8 at byte {place + start}{kind}; {fix}")
