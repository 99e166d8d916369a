"""Vocabularies of pieces of words: byte pairs made here, and whatever a tokenizer of `tokenizers` can express."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from headtohead.spec import Mistake
from headtohead.text.vocabulary import PAD, Encoded, Exported, Vocabulary, utf8_sizes

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# What a special token is for, told by its name; of several the first.
ROLES = {
    "pad": ("<pad>", "[PAD]", "<|padding|>", "<|pad|>"),
    "unknown": ("<unk>", "[UNK]"),
    "start": ("<s>", "[CLS]", "<bos>", "<|begin_of_text|>"),
    "stop": ("</s>", "[SEP]", "<eos>", "<|end_of_text|>"),
    "separator": ("<|endoftext|>", "</s>", "[SEP]", "<eos>", "<|end_of_text|>"),
    "mask": ("<mask>", "[MASK]", "<|mask|>"),
}
IN_TRANSFORMERS = {
    "pad": "pad_token", "unknown": "unk_token", "start": "bos_token", "stop": "eos_token", "mask": "mask_token",
}  # fmt: skip


def name_for(role: str, names: Sequence[str]) -> str | None:
    """Which of some names of special tokens has a role."""
    return next((name for name in ROLES[role] if name in names), None)


def marked(numbers: Mapping[str, int], names: Sequence[str]) -> Any:
    """What puts the marks around a text, and between two of them; None where there are no marks."""
    from tokenizers import processors

    start, stop = name_for("start", names), name_for("stop", names)
    if start is None or stop is None:
        return None
    pair, around = f"{start} $A {stop} $B:1 {stop}:1", [(name, numbers[name]) for name in (start, stop)]
    return processors.TemplateProcessing(single=f"{start} $A {stop}", pair=pair, special_tokens=around)


class NamedVocabulary(Vocabulary):
    """One whose special tokens have names that tell what they are for (ROLES): `named` has their numbers."""

    @property
    def named(self) -> dict[str, int]:
        """The special tokens by name; one for unknown text may be among them."""
        raise TypeError(f"{type(self).__name__} must define named")

    def number_for(self, role: str) -> int | None:
        """The special token that has a role."""
        name = name_for(role, tuple(self.named))
        return None if name is None else self.named[name]

    @property
    def specials(self) -> tuple[int, ...]:
        return tuple(sorted(set(self.named.values()) - {self.unknown}))

    @property
    def separator(self) -> int | None:
        return self.number_for("separator")

    @property
    def marks(self) -> tuple[int, int] | None:
        start, stop = self.number_for("start"), self.number_for("stop")
        return super().marks if start is None or stop is None else (start, stop)

    @property
    def pad(self) -> int:
        return next((number for number in (self.number_for("pad"), self.separator) if number is not None), PAD)

    @property
    def mask(self) -> int:
        own = self.number_for("mask")
        return self.size if own is None else own

    def _in_transformers(self) -> dict[str, str]:
        found = {IN_TRANSFORMERS[role]: name_for(role, tuple(self.named)) for role in IN_TRANSFORMERS}
        ends = name_for("separator", tuple(self.named))
        found |= {} if found["eos_token"] else {"eos_token": ends}
        if found["bos_token"] and found["eos_token"]:
            found |= {"cls_token": found["bos_token"], "sep_token": found["eos_token"]}
        return {role: name for role, name in found.items() if name is not None}


class BytePairVocabulary(NamedVocabulary):
    """Special tokens, then byte-level byte pairs (Sennrich et al. 2016; over bytes as in GPT-2, 2019).

    Every text can be written in it, and comes back the same. `tokens` and `merges` are in tokenizers' byte alphabet.
    """

    tokens: tuple[str, ...]
    merges: tuple[str, ...]
    names: tuple[str, ...] = ("<pad>", "<|endoftext|>")

    @property
    def size(self) -> int:
        return len(self.names) + len(self.tokens)

    @cached_property
    def named(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names)}

    @property
    def newline(self) -> int | None:
        return len(self.names) + self.tokens.index(byte_alphabet()[ord("\n")])

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizers object. It does not know the specials, so that their names in a text are text."""
        return byte_level(self._model(self.tokens, len(self.names)))

    def _model(self, tokens: Sequence[str], start: int) -> Any:
        from tokenizers import models

        numbers = {token: number for number, token in enumerate(tokens, start)}
        return models.BPE(vocab=numbers, merges=[(a, b) for a, b in map(str.split, self.merges)])

    @cached_property
    def _pieces(self) -> list[bytes]:
        value = {letter: number for number, letter in enumerate(byte_alphabet())}
        return [*[b""] * len(self.names), *(bytes(value[letter] for letter in token) for token in self.tokens)]

    @cached_property
    def _sizes(self) -> np.ndarray:
        """Bytes and characters of each token; a character belongs to the token that holds its first byte."""
        return np.array([(len(piece), sum(byte & 0xC0 != 0x80 for byte in piece)) for piece in self._pieces], np.int64)

    def encode(self, text: str) -> Encoded:
        with one_thread():
            parts = self.tokenizer.encode_batch_fast(list(_pages(text)), add_special_tokens=False)
        ids = np.concatenate([np.array(part.ids, dtype=np.int32) for part in parts] or [np.empty(0, dtype=np.int32)])
        return Encoded(ids, *self._sizes[ids].T)

    def decode(self, ids: np.ndarray) -> str:
        return b"".join(self._pieces[token] for token in np.asarray(ids).tolist()).decode(errors="replace")

    def exported(self) -> Exported | None:
        from tokenizers import decoders

        if set(self.names) & set(self.tokens):
            return None  # a piece of the text is spelt as a special is
        tokenizer = byte_level(self._model((*self.names, *self.tokens), 0))
        tokenizer.decoder = decoders.ByteLevel()
        tokenizer.post_processor = marked(self.named, self.names)
        return Exported(tokenizer, self._in_transformers())


class PieceVocabulary(NamedVocabulary):
    """What a tokenizer of `tokenizers` makes of a text, line by line. `definition` is its JSON, `names` its specials.

    Where it changes the text before it cuts it (lower case, no accents), a token stands for the raw text from the end of
    the token before to its own end; what leaves no token counts to the one before, at the very start to the one after.
    """

    definition: str
    names: tuple[str, ...]
    mask_name: str = ""  # where its name is none of the usual ones

    @property
    def size(self) -> int:
        return self._size

    @cached_property
    def _size(self) -> int:
        return 1 + max(self.tokenizer.get_vocab(with_added_tokens=True).values())

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizers object, for which the names of specials in a text are text."""
        tokenizer = self._object()
        tokenizer.encode_special_tokens = True
        return tokenizer

    def _object(self) -> Tokenizer:
        from tokenizers import Tokenizer

        return Tokenizer.from_str(self.definition)

    @cached_property
    def named(self) -> dict[str, int]:
        numbers = self.tokenizer.get_vocab(with_added_tokens=True)
        return {name: numbers[name] for name in self.names}

    @property
    def mask(self) -> int:
        return self.named[self.mask_name] if self.mask_name else super().mask

    @property
    def unknown(self) -> int | None:
        return self.number_for("unknown")

    @cached_property
    def plain(self) -> np.ndarray:
        return np.setdiff1d(np.arange(self.size), (*self.specials, -1 if self.unknown is None else self.unknown))

    @property
    def shows_lines(self) -> bool:
        return False

    def encode(self, text: str) -> Encoded:
        return self.encode_all([text])[0]

    def encode_all(self, texts: Sequence[str]) -> tuple[Encoded, np.ndarray]:
        with one_thread():
            parts = self.tokenizer.encode_batch(list(texts), add_special_tokens=False)
        counts = np.array([len(part.ids) for part in parts], dtype=np.int64)
        whole = utf8_sizes("".join(texts))
        if not counts.any():
            return self._nothing(whole, counts)
        ids = np.array([token for part in parts for token in part.ids], dtype=np.int32)
        ends = np.array([end for part in parts for _, end in part.offsets], dtype=np.int64)
        starts = np.cumsum([0, *map(len, texts)])
        ends += np.repeat(starts[:-1], counts)
        full = np.flatnonzero(counts)  # the last token of each reaches to where the next of them begins
        ends[np.cumsum(counts)[full] - 1] = np.append(starts[full[1:]], starts[-1])
        ends = np.maximum.accumulate(ends)
        size = np.append(0, np.cumsum(whole))
        return Encoded(ids, np.diff(size[ends], prepend=0), np.diff(ends, prepend=0)), counts

    def _nothing(self, sizes: np.ndarray, counts: np.ndarray) -> tuple[Encoded, np.ndarray]:
        """Texts that leave no token at all; what they held is then one unknown token, so that no byte is lost."""
        if not len(sizes):
            return Encoded(*np.empty((3, 0), dtype=np.int64)), counts
        if self.unknown is None:
            raise Mistake("the tokenizer makes nothing of a whole page of the text, and has no token for unknown text")
        counts[0] = 1
        return Encoded(*np.array([[self.unknown], [sizes.sum()], [len(sizes)]])), counts

    def decode(self, ids: np.ndarray) -> str:
        known = [token for token in np.asarray(ids).tolist() if token < self.size and token not in self.specials]
        return self.tokenizer.decode(known, skip_special_tokens=False)

    def exported(self) -> Exported:
        names = self._in_transformers()
        return Exported(self._object(), names | ({"mask_token": self.mask_name} if self.mask_name else {}))


def _pages(text: str, size: int = 1 << 16) -> Iterator[str]:
    """Pieces that end where a line ends, which changes no token; tokenizers slows down on a very long string."""
    start = 0
    while start < len(text):
        end = text.find("\n", start + size) + 1 or len(text)
        yield text[start:end]
        start = end


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
