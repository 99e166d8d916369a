"""A published tokenizer as a vocabulary. Its mask, wherever it stands, becomes our last number."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from headtohead.spec import Mistake
from headtohead.text.tokenizer import Tokenizer
from headtohead.text.vocabulary import Encoded, Vocabulary, load_vocabulary, one_thread

NONE = -1


class PublishedVocabulary(Vocabulary):
    """`definition` is the text of a tokenizer.json, `rows` the rows of the model's table; the numbers are the published ones,
    −1 where there is none. Ours are the same but for the mask: it goes to the end, and what stood behind it moves up.
    """

    definition: str
    rows: int
    masked: int
    opening: int
    closing: int
    stranger: int
    filler: int
    silent: tuple[int, ...]

    @property
    def size(self) -> int:
        return self.rows - (self.masked != NONE)

    @property
    def order(self) -> np.ndarray:
        """The published number of each of ours, the mask last."""
        every = np.arange(self.rows)
        return every if self.masked == NONE else np.append(np.delete(every, self.masked), self.masked)

    @cached_property
    def _ours(self) -> np.ndarray:
        return np.argsort(self.order)

    def ours(self, published: int) -> int | None:
        """Our number for a published one."""
        return None if published == NONE else int(self._ours[published])

    @property
    def specials(self) -> tuple[int, ...]:
        kept = (self._ours[number] for number in self.silent if number not in (self.masked, self.stranger))
        return tuple(sorted(map(int, kept)))

    @property
    def separator(self) -> int | None:
        return self.ours(self.closing)

    @property
    def unknown(self) -> int | None:
        return self.ours(self.stranger)

    @property
    def marks(self) -> tuple[int, int] | None:
        before, after = self.ours(self.opening), self.ours(self.closing)
        return None if before is None or after is None else (before, after)

    @property
    def shows_lines(self) -> bool:
        return self.marks is not None

    @property
    def pad(self) -> int:
        return self.ours(self.filler) or 0

    @cached_property
    def tokenizer(self) -> Any:
        """The tokenizers object; names of specials in a text are text to it."""
        from tokenizers import Tokenizer as Definition

        tokenizer = Definition.from_str(self.definition)
        tokenizer.encode_special_tokens = True
        tokenizer.no_padding()
        tokenizer.no_truncation()
        return tokenizer

    def encode(self, text: str) -> Encoded:
        with one_thread():
            found = self.tokenizer.encode(text, add_special_tokens=False)
        ids = self._ours[np.array(found.ids, dtype=np.int64)].astype(np.int32)
        ends = np.maximum.accumulate(np.array([end for _, end in found.offsets], dtype=np.int64))
        if len(ends):
            ends[-1] = len(text)
        points = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
        before = np.append(0, np.cumsum(1 + (points > 0x7F) + (points > 0x7FF) + (points > 0xFFFF)))
        starts = np.append(0, ends[:-1])[: len(ends)]
        return Encoded(ids, before[ends] - before[starts], ends - starts)

    def decode(self, ids: np.ndarray) -> str:
        return self.tokenizer.decode(self.order[np.asarray(ids)].tolist(), skip_special_tokens=True)


class Published(Tokenizer):
    """The vocabulary that lies in an imported run's tokenizer.json; nothing is trained. `hash` is that of the file."""

    path: str
    hash: str

    def train(self, documents: Iterable[str]) -> Vocabulary:
        path = Path(self.path)
        if not path.is_file() or file_hash(path) != self.hash:
            raise Mistake(f"{path} is not the tokenizer that was imported; import the model again")
        return load_vocabulary(path)


def file_hash(path: Path) -> str:
    """The hash by which a tokenizer is known."""
    return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()


def published(folder: Path, rows: int) -> PublishedVocabulary:
    """The tokenizer of a folder, for a model whose table has so many rows."""
    from transformers import AutoTokenizer

    try:
        theirs = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        definition = theirs.backend_tokenizer.to_str()
    except Exception as error:  # every format fails in a way of its own
        told = " ".join(str(error).split())[:120]
        raise Mistake(f"{folder} has no tokenizer that can be read ({told}); put its tokenizer.json there") from None
    most = max(theirs.get_vocab().values(), default=0)
    if most >= rows:
        raise Mistake(
            f"the tokenizer of {folder} has number {most} and the model's table {rows} rows; they belong to two models"
        )

    def number(*names: str) -> int:
        known = [getattr(theirs, f"{name}_token_id", None) for name in names]
        return next((one for one in known if isinstance(one, int)), NONE)

    return PublishedVocabulary(
        definition=definition,
        rows=rows,
        masked=number("mask"),
        opening=number("cls"),
        closing=number("sep", "eos"),
        stranger=number("unk"),
        filler=number("pad"),
        silent=tuple(sorted({int(one) for one in theirs.all_special_ids})),
    )
