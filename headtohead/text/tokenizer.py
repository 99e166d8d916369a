"""How a text becomes tokens. A tokenizer is trained on the training documents alone."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from headtohead.spec import Mistake, Part, Size
from headtohead.text.elsewhere import BERT, bert, definition, spaced
from headtohead.text.subwords import BytePairVocabulary, PieceVocabulary, byte_level, name_for, one_thread
from headtohead.text.vocabulary import CharacterVocabulary, Vocabulary, WordVocabulary


class Tokenizer(Part):
    """`train(documents)` gives a Vocabulary: a pure function of the documents and of its own fields.

    `documents` can be read again and again and is never whole in memory: a long document comes in pieces that end
    where a line ends.
    """

    @property
    def has_mask(self) -> bool:
        """Whether its vocabularies have a mask among their own tokens, so that a model needs no more."""
        return False

    def identity(self) -> str:
        """What decides, beside the fields, what it gives: a hash of the file that it reads."""
        return ""

    def train(self, documents: Iterable[str]) -> Vocabulary:
        """The vocabulary of these documents."""
        raise TypeError(f"{type(self).__name__} must define train(documents)")


class Characters(Tokenizer):
    """One token a character (study 5: <pad> and the sorted characters); <unk> for those that training never had.

    `bare`: characters alone, 65 for Shakespeare (nanoGPT); a character that training never had is then refused.
    """

    bare: bool = False

    def train(self, documents: Iterable[str]) -> CharacterVocabulary:
        return CharacterVocabulary("".join(sorted(set().union(*documents))), self.bare)


class Words(Tokenizer):
    """One token a word, case kept; words seen fewer than `minimum_count` times in training are <UNK> (study 3)."""

    minimum_count: int = 3

    def train(self, documents: Iterable[str]) -> WordVocabulary:
        counts = Counter(word for document in documents for word in document.split())
        common = (word for word in counts if counts[word] >= self.minimum_count)
        kept = sorted(common, key=lambda word: (-counts[word], word))
        if not kept:
            raise Mistake(f"no word occurs {self.minimum_count} times; lower minimum_count or give more text")
        return WordVocabulary(tuple(kept))


class BytePairs(Tokenizer):
    """Byte-level byte pair encoding of `size` tokens, of pairs that occur at least `minimum_count` times.

    `specials` come first, in their order, and are told by their names (subwords.ROLES); study 1 had
    size=52_032, specials=("<s>", "<pad>", "</s>", "<unk>", "<mask>"). Without a mask among them a masked model has one
    more. A text too small for so many pairs gives a smaller vocabulary.
    """

    size: int = 1024
    minimum_count: int = 2
    specials: tuple[str, ...] = ("<pad>", "<|endoftext|>")

    @property
    def has_mask(self) -> bool:
        return name_for("mask", self.specials) is not None

    def refuse(self, size: Size, recipe: Any) -> Iterator[str]:
        yield from _unfit(self.specials)

    def train(self, documents: Iterable[str]) -> BytePairVocabulary:
        from tokenizers import pre_tokenizers

        least = 256 + len(self.specials)
        if self.size < least:
            special = f"{len(self.specials)} special tokens"
            raise Mistake(f"BytePairs(size={self.size}) cannot hold {special} and the 256 bytes; use {least} or more")
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        tokens, merges = _merged(byte_level, documents, self.size - len(self.specials), self.minimum_count, alphabet)
        return BytePairVocabulary(tokens, merges, self.specials)


class WordPieces(Tokenizer):
    """BERT's word pieces (Devlin et al. 2018; Wu et al. 2016): white space goes, `lower` takes case and accents off.

    Pairs are merged by their count within words, in which a first letter and a later one are two letters; a word is
    written in the longest pieces that fit, later ones with ## before them. tokenizers' own trainer counts alike, but
    numbers the pieces, and breaks ties, otherwise in every process.
    """

    size: int = 30_522
    minimum_count: int = 2
    lower: bool = True
    specials: tuple[str, ...] = BERT

    @property
    def has_mask(self) -> bool:
        return name_for("mask", self.specials) is not None

    def refuse(self, size: Size, recipe: Any) -> Iterator[str]:
        yield from _unfit(self.specials)
        if name_for("unknown", self.specials) is None:
            yield "specials need one for unknown text; add '[UNK]'"

    def train(self, documents: Iterable[str]) -> PieceVocabulary:
        numbers = {name: place for place, name in enumerate(self.specials)}
        words = Counter(_bert_words(documents, bert(numbers, self.specials, self.lower)))
        letters = sorted(set().union(*words)) if words else []
        number = {letter: place for place, letter in enumerate(letters)}
        spelt = (f"{_spelt(word, number)} " * words[word] for word in sorted(words))
        room = self.size - len(self.specials)
        if room < 2 * len(letters):
            raise Mistake(f"WordPieces(size={self.size}) cannot hold {len(letters)} letters twice; use a larger size")
        tokens, _ = _merged(spaced, spelt, room, self.minimum_count, [])
        pieces = [_piece(token, letters) for token in tokens]
        numbers |= {piece: place for place, piece in enumerate(pieces, len(numbers))}
        return PieceVocabulary(bert(numbers, self.specials, self.lower).to_str(), self.specials)


class Given(Tokenizer):
    """A vocabulary made elsewhere: `place` is a vocab.txt of BERT's word pieces (`lower` takes case and accents off), a
    tokenizer.json, a folder that transformers saved a tokenizer in, or "hf:NAME" for one from the Hugging Face Hub.

    `mask` is the name of its own mask token; "" where it has none: a masked model then gets one more.
    """

    place: str
    mask: str = "[MASK]"
    lower: bool = True

    @property
    def has_mask(self) -> bool:
        return bool(self.mask)

    def identity(self) -> str:
        return hashlib.blake2b(self._definition[0].encode(), digest_size=16).hexdigest()

    @cached_property
    def _definition(self) -> tuple[str, tuple[str, ...]]:
        return definition(self.place, self.lower)

    def train(self, documents: Iterable[str]) -> PieceVocabulary:
        text, names = self._definition
        if self.mask and self.mask not in names:
            special = ", ".join(names) or "none"
            wrong = f"the tokenizer {self.place} has no special token {self.mask!r} (it has: {special})"
            raise Mistake(f"{wrong}; set tokenizer.mask to its mask token, or to '' where it has none")
        return PieceVocabulary(text, names, self.mask)


def _unfit(specials: tuple[str, ...]) -> Iterator[str]:
    if len(set(specials)) < len(specials):
        yield f"specials {', '.join(specials)} hold a name twice"


def _merged(
    around: Callable[[Any], Any], texts: Iterable[str], size: int, least: int, alphabet: list[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The tokens and the merges of byte pair encoding."""
    from tokenizers import models, trainers

    trainer = trainers.BpeTrainer(vocab_size=size, min_frequency=least, show_progress=False, initial_alphabet=alphabet)
    tokenizer = around(models.BPE())
    with one_thread():
        tokenizer.train_from_iterator(texts, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].__getitem__)
    return tuple(tokens), tuple(" ".join(pair) for pair in model["merges"])


LETTER = 0x20000  # a word's first letter n is spelt as this and 2n, a later one as this and 2n + 1


def _spelt(word: str, number: Mapping[str, int]) -> str:
    return "".join(chr(LETTER + 2 * number[letter] + (place > 0)) for place, letter in enumerate(word))


def _piece(token: str, letters: Sequence[str]) -> str:
    points = [ord(letter) - LETTER for letter in token]
    return ("##" if points[0] % 2 else "") + "".join(letters[point // 2] for point in points)


def _bert_words(documents: Iterable[str], tokenizer: Any) -> Iterator[str]:
    for document in documents:
        for line in document.split("\n"):
            plain = tokenizer.normalizer.normalize_str(line)
            yield from (word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(plain))
