"""How much of the validation text was already seen in training.

A validation document is contaminated if it equals a training document, or if at least half of its distinct 13-grams of
words occur in training (the length of Brown et al. 2020, arXiv:2005.14165). A document of fewer than 13 words, as in
scripts without spaces, is judged by 50-character shingles: one every 10 characters, looked up among all of training's.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

WORDS, CHARACTERS, STRIDE = 13, 50, 10
MOST = 50_000_000  # 13-grams of training kept in memory; beyond that, of both sides every sixteenth is compared
Grams = Callable[[str], np.ndarray]


class Contamination(NamedTuple):
    """What of the validation text was found in training."""

    share: float  # of the validation bytes, those in contaminated documents
    grams: float  # of the validation 13-grams, those that occur in training
    documents: tuple[int, ...]  # the contaminated ones


def normalized(text: str) -> str:
    """NFC, lower case, every run of whitespace one space: texts that differ in less are the same text."""
    plain = text if text.isascii() else unicodedata.normalize("NFC", text)
    return " ".join(plain.lower().split())


def contaminated_share(train: Sequence[str], validation: Sequence[str]) -> float:
    """The share of the validation bytes that stand in contaminated documents."""
    return contamination(train, validation).share


def contamination(train: Sequence[str], validation: Sequence[str], most: int = MOST) -> Contamination:
    """Compare each validation document with all of training."""
    before, texts = [normalized(text) for text in train], [normalized(text) for text in validation]
    by_words = _hits(before, texts, word_grams, word_grams, most)
    short = [index for index, text in enumerate(texts) if len(text.split()) < WORDS]
    by_letters = _hits(before, [texts[index] for index in short], character_grams, _shingles, most)
    judged = by_words | dict(zip(short, by_letters.values(), strict=True))
    twins = {_digest(text) for text in before}
    dirty = tuple(i for i, text in enumerate(texts) if _digest(text) in twins or _share(judged[i]) >= 0.5)
    sizes = [len(text.encode()) for text in validation]
    share = sum(sizes[index] for index in dirty) / max(sum(sizes), 1)
    return Contamination(share, _share(np.concatenate([*by_words.values(), np.empty(0, dtype=bool)])), dirty)


def _hits(train: list[str], validation: list[str], kept: Grams, asked: Grams, most: int) -> dict[int, np.ndarray]:
    """For each validation document, which of its grams occur in training."""
    wanted = [asked(text) for text in validation]
    seen, every = _gathered((kept(text) for text in train if any(map(len, wanted))), most)
    return {index: found(_thin(grams, every), seen) for index, grams in enumerate(wanted)}


def _gathered(parts: Iterable[np.ndarray], most: int) -> tuple[np.ndarray, int]:
    """All distinct numbers, sorted; once they are too many, one in sixteen. Also says one in how many is there."""
    kept, size, every = [np.empty(0, dtype=np.uint64)], 0, 1
    for part in parts:
        kept.append(_thin(part, every))
        size += len(kept[-1])
        if size > most and every == 1:
            every = 16
            kept = [_thin(old, every) for old in kept]
    return np.unique(np.concatenate(kept)), every


def _thin(grams: np.ndarray, every: int) -> np.ndarray:
    # By the number itself, so that both sides keep the same ones.
    return grams if every == 1 else grams[(grams >> np.uint64(32)) % np.uint64(every) == 0]


def _share(hits: np.ndarray) -> float:
    return float(hits.mean()) if len(hits) else 0.0


def _shingles(text: str) -> np.ndarray:
    return character_grams(text, STRIDE)


def word_grams(text: str) -> np.ndarray:
    """A 64-bit number for each distinct run of 13 words, sorted; `text` is normalized."""
    words = text.split()
    numbers: dict[str, int] = {}
    for word in words:
        if word not in numbers:
            numbers[word] = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")
    return np.unique(_hashed(np.array([numbers[word] for word in words], dtype=np.uint64), WORDS))


def character_grams(text: str, stride: int = 1) -> np.ndarray:
    """A 64-bit number for each distinct run of 50 characters that starts at a multiple of `stride`, sorted."""
    points = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32).astype(np.uint64)
    return np.unique(_hashed(_mixed(points), CHARACTERS)[::stride])


def found(grams: np.ndarray, among: np.ndarray) -> np.ndarray:
    """For each number, whether it is one of the sorted ones."""
    if not len(among):
        return np.zeros(len(grams), dtype=bool)
    place = np.minimum(np.searchsorted(among, grams), len(among) - 1)
    return among[place] == grams


def _hashed(numbers: np.ndarray, length: int) -> np.ndarray:
    """Σ_j r_j · x_{i+j} mod 2^64 with fixed random odd r: blake2b of every run, at a hundredth of the time."""
    count = max(len(numbers) - length + 1, 0)
    total = np.zeros(count, dtype=np.uint64)
    for offset, factor in enumerate(_mixed(np.arange(1, length + 1, dtype=np.uint64)) | np.uint64(1)):
        total += numbers[offset : offset + count] * factor
    return total


def _mixed(x: np.ndarray) -> np.ndarray:
    """The finalizer of SplitMix64 (Steele et al. 2014): spreads small numbers over 64 bits."""
    x = (x + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
