"""Token numbers and the text they stand for. A vocabulary is a part, so a file can hold it and equal ones are equal."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headtohead.files import read_json, write_json
from headtohead.spec import Mistake, Part, describe, load

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PAD, UNKNOWN, START, STOP = range(4)  # where a vocabulary has them, it has them there


class Encoded(NamedTuple):
    """Token numbers, and the UTF-8 bytes and characters of the text that each covers; they sum to the whole text's."""

    ids: np.ndarray
    bytes: np.ndarray
    characters: np.ndarray


class Exported(NamedTuple):
    """A vocabulary as `tokenizers` has it, and its special tokens by the names of transformers, such as pad_token."""

    tokenizer: Tokenizer
    specials: dict[str, str]


class Vocabulary(Part):
    """`encode` and `decode`, and what the numbers 0 … size − 1 mean.

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

    @property
    def mask(self) -> int:
        """Stands for a token that was taken out; it is not among the others but at `size`, where no name says otherwise."""
        return self.size

    @cached_property
    def plain(self) -> np.ndarray:
        """The numbers that may stand in for one that was taken out."""
        return np.setdiff1d(np.arange(self.size), self.specials)

    def exported(self) -> Exported | None:
        """The same for `tokenizers`, a text being one line; None where that cannot say it."""
        return None

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
        size = utf8_sizes(text)
        return Encoded(ids, size, np.ones_like(size))

    def decode(self, ids: np.ndarray) -> str:
        silent = "" if self.bare else "\0\N{REPLACEMENT CHARACTER}"
        table = silent + self.characters
        return "".join(table[token] for token in np.asarray(ids).tolist() if self.bare or token != PAD)

    def exported(self) -> Exported:
        from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

        names = [] if self.bare else ["<pad>", "<unk>"]
        numbers = {token: number for number, token in enumerate([*names, *self.characters])}
        tokenizer = Tokenizer(models.WordLevel(numbers, unk_token="<unk>"))
        tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
        tokenizer.decoder = decoders.Fuse()
        return Exported(tokenizer, {} if self.bare else {"pad_token": "<pad>", "unk_token": "<unk>"})


def _code_points(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)


def utf8_sizes(text: str) -> np.ndarray:
    """The UTF-8 bytes of each character."""
    points = _code_points(text)
    return 1 + (points > 0x7F).astype(np.int64) + (points > 0x7FF) + (points > 0xFFFF)


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
    def plain(self) -> np.ndarray:
        return np.arange(4, self.size)

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

    def exported(self) -> Exported | None:
        from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors

        names = dict(pad_token="<pad>", unk_token="<UNK>", bos_token="<START>", eos_token="<STOP>")
        numbers = {name: number for number, name in enumerate([*names.values(), *self.words])}
        if len(numbers) < self.size:
            return None  # a word of the text is spelt as a special is
        tokenizer = Tokenizer(models.WordLevel(numbers, unk_token="<UNK>"))
        tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\x1c-\x1f]+"), "removed")  # Python's white space
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<START> $A <STOP>", special_tokens=[("<START>", START), ("<STOP>", STOP)]
        )
        return Exported(tokenizer, names)
