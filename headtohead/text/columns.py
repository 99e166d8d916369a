"""Arrays that grow on disk: plain .npy files, appended to, then read mapped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.lib import format as npy

HEADER = 128  # bytes: np.save's own length for short headers
CHUNK = 1 << 22  # numbers copied at a time


class Column:
    """Numbers written one piece after another, in the smallest unsigned type that has held them so far."""

    def __init__(self, path: Path, dtype: str = "u1") -> None:
        self.path, self.dtype, self.count = path, np.dtype(dtype), 0
        self.file = self._begun()

    def append(self, numbers: np.ndarray) -> None:
        """Write more numbers, none of them negative."""
        needed = np.min_scalar_type(int(numbers.max(initial=0)))
        if needed.itemsize > self.dtype.itemsize:
            self._widen(needed)
        self.file.write(np.ascontiguousarray(numbers, dtype=self.dtype).data)
        self.count += len(numbers)

    def __enter__(self) -> Column:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        try:
            if kind is None:
                self._head()
        finally:
            self.file.close()

    def _begun(self):  # type: ignore[no-untyped-def]  # typeshed's name of this class is private
        file = open(self.path, "wb+")  # noqa: SIM115  # closed by __exit__
        file.write(bytes(HEADER))
        return file

    def _head(self) -> None:
        """The header, once the length is known."""
        self.file.seek(0)
        npy.write_array_header_1_0(
            self.file, npy.header_data_from_array_1_0(np.empty(0, self.dtype)) | {"shape": (self.count,)}
        )
        if self.file.tell() != HEADER:
            raise RuntimeError(f"the header of {self.path} has {self.file.tell()} bytes")

    def _widen(self, dtype: np.dtype) -> None:
        """Write everything again in a wider type."""
        old, before = self.path.with_suffix(".narrow"), self.dtype
        self.file.close()
        self.path.rename(old)
        self.dtype, count, self.count = dtype, self.count, 0
        self.file = self._begun()
        with open(old, "rb") as narrow:
            narrow.seek(HEADER)
            while self.count < count:
                piece = np.frombuffer(narrow.read(CHUNK * before.itemsize), dtype=before)
                self.file.write(piece.astype(dtype).data)
                self.count += len(piece)
        old.unlink()


def pieces(path: Path) -> Iterator[np.ndarray]:
    """A stored array in pieces that fit in memory; read, not mapped, since mapped pages count as memory until they go."""
    mapped = np.load(path, mmap_mode="r")
    with open(path, "rb") as file:
        file.seek(mapped.offset)
        while len(piece := np.fromfile(file, mapped.dtype, CHUNK)):
            yield piece
