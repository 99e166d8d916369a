"""Token numbers and the text they stand for. A vocabulary is a part, so a file can hold it and equal ones are equal."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headtohead.files import read_json, write_json
from headtohead.spec import Mistake, Part, describe, load
from headtohead.text.memo import Memo

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PAD, UNKNOWN, START, STOP = range(4)  # where a vocabulary has them, it has them there


class Encoded(NamedTuple):
    """Token numbers, and the UTF-8 bytes and characters of the text that each covers; they sum to the whole text's."""

    ids: np.ndarray
    bytes: np.ndarray
    characters: np.ndarray


class Vocabulary(Part):
    """`encode` and `decode`, and what the numbers 0 … size − 1 mean. A mask is not among them but at `size`.

    A token never reaches over the end of a line, so that lines are whole in a stream of tokens.
    """

    @property
    def size(self) -> int:
        """How many numbers there are."""
        raise TypeError(f"{type(self).__name__} must define size")

    @property
    def specials(self) -> tuple[int, ...]:
        """The numbers that stand for no text; a token for unknown text is not one of them."""
        raise TypeError(f"{type(self).__name__} must define specials")

    @property
    def separator(self) -> int | None:
        """Stands at the start of a stream and after each of its documents; None where nothing does."""
        return None

    @property
    def unknown(self) -> int | None:
        """Stands for text without a number of its own; None where there can be none."""
        return None

    @property
    def newline(self) -> int | None:
        """The token that is the end of a line and nothing else; None where a special ends it, or no line ever ends."""
        return None

    @property
    def marks(self) -> tuple[int, int] | None:
        """What stands before and after a line on its own; None where there is nothing to mark it with."""
        return None if self.separator is None else (self.separator, self.separator)

    @property
    def shows_lines(self) -> bool:
        """Whether its tokens tell where a line ends: a token that is a line's end, or marks around each line."""
        return True

    @property
    def pad(self) -> int:
        """Fills rows up; what is padding is told by the document number −1, never by this id."""
        return PAD

    def encode(self, text: str) -> Encoded:
        """The tokens of a text."""
        raise TypeError(f"{type(self).__name__} must define encode(text)")

    def encode_all(self, texts: Sequence[str]) -> tuple[Encoded, np.ndarray]:
        """The tokens of many texts one after another, and how many each has."""
        parts = [self.encode(text) for text in texts]
        whole = [np.concatenate(column) for column in zip(*parts, strict=True)] or [np.empty(0, np.int64)] * 3
        return Encoded(*whole), np.array([len(part.ids) for part in parts], dtype=np.int64)

    def decode(self, ids: np.ndarray) -> str:
        """The text of some tokens; specials are silent."""
        raise TypeError(f"{type(self).__name__} must define decode(ids)")

    def save(self, path: Path) -> None:
        """Write the vocabulary as one JSON file."""
        write_json(path, describe(self))


def load_vocabulary(path: Path, module: ModuleType | None = None) -> Vocabulary:
    """The vocabulary in a file; one that is not the package's own must be defined in `module`."""
    description = read_json(path)
    name = description["part"].partition(":")[2]
    if not description["part"].startswith("headtohead.") and hasattr(module, name):
        return getattr(module, name)(**{field: load(value) for field, value in description.items() if field != "part"})
    return load(description)


class CharacterVocabulary(Vocabulary):
    """<pad> (also between documents), <unk>, then the characters in code point order; `bare`: characters alone."""

    characters: str
    bare: bool

    @property
    def size(self) -> int:
        return self._first + len(self.characters)

    @property
    def specials(self) -> tuple[int, ...]:
        return () if self.bare else (PAD,)

    @property
    def separator(self) -> int | None:
        return None if self.bare else PAD

    @property
    def unknown(self) -> int | None:
        return None if self.bare else UNKNOWN

    @property
    def newline(self) -> int | None:
        return self._first + self.characters.index("\n") if "\n" in self.characters else None

    @property
    def marks(self) -> tuple[int, int] | None:
        if self.bare:
            return None if self.newline is None else (self.newline, self.newline)
        return (PAD, PAD)

    @property
    def _first(self) -> int:
        return 0 if self.bare else 2

    @cached_property
    def _points(self) -> np.ndarray:
        return _code_points(self.characters)

    def encode(self, text: str) -> Encoded:
        points = _code_points(text)
        place = np.minimum(np.searchsorted(self._points, points), len(self._points) - 1)
        known = self._points[place] == points
        if self.bare and not known.all():
            stranger = text[int(np.argmin(known))]
            name = f"{stranger!r} (U+{ord(stranger):04X})"
            raise Mistake(f"the character {name} does not occur in training; use Characters(bare=False)")
        ids = np.where(known, place + self._first, UNKNOWN).astype(np.int32)
        size = 1 + (points > 0x7F).astype(np.int64) + (points > 0x7FF) + (points > 0xFFFF)
        return Encoded(ids, size, np.ones_like(size))

    def encode_all(self, texts: Sequence[str]) -> tuple[Encoded, np.ndarray]:
        return self.encode("".join(texts)), np.array([*map(len, texts)], dtype=np.int64)

    def decode(self, ids: np.ndarray) -> str:
        silent = "" if self.bare else "\0\N{REPLACEMENT CHARACTER}"
        table = silent + self.characters
        return "".join(table[token] for token in np.asarray(ids).tolist() if self.bare or token != PAD)


def _code_points(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)


class WordVocabulary(Vocabulary):
    """<pad>, <UNK>, <START>, <STOP>, then words; each line of text is START words STOP.

    A word covers the whitespace before it, STOP the rest of the line, its end and the blank lines that follow.
    """

    words: tuple[str, ...]

    @property
    def size(self) -> int:
        return 4 + len(self.words)

    @property
    def specials(self) -> tuple[int, ...]:
        return (PAD, START, STOP)

    @property
    def unknown(self) -> int | None:
        return UNKNOWN

    @property
    def marks(self) -> tuple[int, int] | None:
        return (START, STOP)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words, start=4)}

    def encode(self, text: str) -> Encoded:
        ids, covered = [START], [""]
        for gap, word in re.findall(r"(\s*)(\S+)", text):
            border = gap.rfind("\n") + 1 if len(ids) > 1 else 0  # blank lines before the first word go to that word
            if border:
                ids += [STOP, START]
                covered += [gap[:border], ""]
            ids.append(self._numbers.get(word, UNKNOWN))
            covered.append(gap[border:] + word)
        ids.append(STOP)
        covered.append(text[len(text.rstrip()) :])
        sizes = [len(piece) if piece.isascii() else len(piece.encode()) for piece in covered]
        return Encoded(np.array(ids, np.int32), np.array(sizes, np.int64), np.array([*map(len, covered)], np.int64))

    def decode(self, ids: np.ndarray) -> str:
        names = ("", "<UNK>", "", "\n", *self.words)
        pieces = [names[token] for token in np.asarray(ids).tolist()]
        return re.sub(r" ?\n ?", "\n", " ".join(piece for piece in pieces if piece))


class BytePairVocabulary(Vocabulary):
    """<pad>, <|endoftext|>, then byte-level byte pairs (Sennrich et al. 2016; over bytes as in GPT-2, 2019).

    Every text can be written in it, and comes back the same. `tokens` and `merges` are in tokenizers' byte alphabet.
    """

    tokens: tuple[str, ...]
    merges: tuple[str, ...]

    @property
    def size(self) -> int:
        return 2 + len(self.tokens)

    @property
    def specials(self) -> tuple[int, ...]:
        return (PAD, 1)

    @property
    def separator(self) -> int | None:
        return 1

    @property
    def newline(self) -> int | None:
        return 2 + self.tokens.index(byte_alphabet()[ord("\n")])

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizers object. It does not know the specials, so that their names in a text are text."""
        from tokenizers import models

        numbers = {token: number for number, token in enumerate(self.tokens, start=2)}
        return byte_level(models.BPE(vocab=numbers, merges=[(a, b) for a, b in map(str.split, self.merges)]))

    @cached_property
    def _pieces(self) -> list[bytes]:
        value = {letter: number for number, letter in enumerate(byte_alphabet())}
        return [b"", b"", *(bytes(value[letter] for letter in token) for token in self.tokens)]

    @cached_property
    def _sizes(self) -> np.ndarray:
        """Bytes and characters of each token; a character belongs to the token that holds its first byte."""
        return np.array([(len(piece), sum(byte & 0xC0 != 0x80 for byte in piece)) for piece in self._pieces], np.int64)

    @cached_property
    def _memo(self) -> Memo:
        return Memo(self.tokenizer)

    def encode(self, text: str) -> Encoded:
        return self.encode_all([text])[0]

    def encode_all(self, texts: Sequence[str]) -> tuple[Encoded, np.ndarray]:
        with one_thread():
            ids, counts = self._memo.encode(texts)
        return Encoded(ids, *self._sizes[ids].T), counts

    def decode(self, ids: np.ndarray) -> str:
        return b"".join(self._pieces[token] for token in np.asarray(ids).tolist()).decode(errors="replace")


def byte_alphabet() -> str:
    """The letter that stands for each byte: itself if it can be seen, else the next free one from U+0100 on (GPT-2)."""
    visible = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    free = iter(range(0x100, 0x200))
    return "".join(chr(byte if byte in visible else next(free)) for byte in range(256))


def byte_level(model: Any) -> Tokenizer:
    """A tokenizers object that splits at line ends, then into words with the space before them (GPT-2's pattern)."""
    from tokenizers import Tokenizer, pre_tokenizers

    tokenizer = Tokenizer(model)
    words = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split("\n", "isolated"), words])
    return tokenizer


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Keep tokenizers to one thread: it reads this variable at every call, and warns of forks without it."""
    name = "TOKENIZERS_PARALLELISM"
    before = os.environ.get(name)
    os.environ[name] = "false"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
