"""How a text becomes tokens. A tokenizer is trained on the training documents alone."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable

from headtohead.spec import Mistake, Part
from headtohead.text.vocabulary import (
    BytePairVocabulary,
    CharacterVocabulary,
    Vocabulary,
    WordVocabulary,
    byte_level,
    one_thread,
)


class Tokenizer(Part):
    """`train(documents)` gives a Vocabulary: a pure function of the documents and of its own fields.

    `documents` can be read again and again and is never whole in memory: a long document comes in pieces that end
    where a line ends.
    """

    def train(self, documents: Iterable[str]) -> Vocabulary:
        """The vocabulary of these documents."""
        raise TypeError(f"{type(self).__name__} must define train(documents)")


class Characters(Tokenizer):
    """One token a character (study 5: <pad> and the sorted characters); <unk> for those that training never had.

    `bare`: characters alone, 65 for Shakespeare (nanoGPT); a character that training never had is then refused.
    """

    bare: bool = False

    def train(self, documents: Iterable[str]) -> CharacterVocabulary:
        letters: set[str] = set()
        for document in documents:  # one after another: union(*documents) would hold them all
            letters.update(document)
        return CharacterVocabulary("".join(sorted(letters)), self.bare)


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
    """Byte-level byte pair encoding of `size` tokens, of pairs that occur at least twice (studies 1 and 2).

    A text too small for so many pairs gives a smaller vocabulary.
    """

    size: int = 1024

    def train(self, documents: Iterable[str]) -> BytePairVocabulary:
        from tokenizers import models, pre_tokenizers, trainers

        if self.size < 258:
            raise Mistake(f"BytePairs(size={self.size}) cannot hold two specials and the 256 bytes; use 258 or more")
        trainer = trainers.BpeTrainer(
            vocab_size=self.size - 2,
            min_frequency=2,
            show_progress=False,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        )
        tokenizer = byte_level(models.BPE())
        with one_thread():
            tokenizer.train_from_iterator(documents, trainer)
        model = json.loads(tokenizer.to_str())["model"]
        tokens = sorted(model["vocab"], key=model["vocab"].__getitem__)
        return BytePairVocabulary(tuple(tokens), tuple(" ".join(pair) for pair in model["merges"]))
