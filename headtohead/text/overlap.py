"""What held-out text is made of: a hash of the text that was scored, and which of its documents training has too."""

from __future__ import annotations

import hashlib
import inspect
from pathlib import Path
from typing import NamedTuple

from headtohead.files import read_json, write_json
from headtohead.text import contamination, store
from headtohead.text.cache import Tokens, evaluated
from headtohead.text.corpus import Corpus

MOST = 1 << 31  # bytes of training text that are compared in memory


class Overlap(NamedTuple):
    """Which validation documents training has too, and how many bytes each document has."""

    sizes: list[int]
    dirty: list[int]
    grams: float  # of the validation 13-grams, those that occur in training


def text_hash(corpus: Corpus, tokens: Tokens) -> str:
    """SHA-256 of the raw text that is scored, whatever the tokenizer."""
    whole = hashlib.sha256()
    for text in evaluated(corpus, tokens):
        data = text.encode()
        whole.update(f"{len(data)}\n".encode() if corpus.bordered else b"")
        whole.update(data)
    return whole.hexdigest()


def overlap(corpus: Corpus, tokens: Tokens) -> Overlap | None:
    """Compare the validation side with the training side; kept, for it is the same for every run. None: too much text."""
    if int(corpus.train.sizes.sum()) > MOST:
        return None
    code = hashlib.blake2b(inspect.getsource(contamination).encode(), digest_size=8).hexdigest()

    def write(folder: Path) -> None:
        texts = list(evaluated(corpus, tokens))
        found = contamination.contamination(list(corpus.train), texts)
        sizes = [len(text.encode()) for text in texts]
        write_json(folder / "overlap.json", Overlap(sizes, list(found.documents), found.grams)._asdict())

    name = store.key("overlap", tokens.fingerprint, code)
    return store.kept(name, write, lambda folder: Overlap(**read_json(folder / "overlap.json")))
