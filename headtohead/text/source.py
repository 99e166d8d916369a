"""Where a text comes from: a part that yields documents, in the order in which it has them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from typing import ClassVar, NamedTuple

from headtohead.spec import Part
from headtohead.text import store

SIDES = ("train", "validation")


class Document(NamedTuple):
    """A document, or a piece of a long one."""

    text: str
    goes_on: bool = False  # the next one is more of this document
    side: str = ""  # one of SIDES where the source itself holds it out, "" where the split decides


class About(NamedTuple):
    """What `h2h list texts` says of a published text."""

    name: str
    language: str
    size: str
    license: str
    fetch: str  # what to fetch where it is not here, and from where


class Text(Part):
    """A source. It keeps no more than a few documents in memory: a long one comes in pieces of some megabytes.

    `documents(tally)` yields what there is and counts in `tally` what it left out or mended, in words that a reader
    understands. `identity()` changes whenever that would be different. A published text says what it is in `about`.
    """

    about: ClassVar[About | None] = None

    def documents(self, tally: Counter[str]) -> Iterator[Document]:
        """All documents."""
        raise TypeError(f"{type(self).__name__} must define documents(tally)")

    def identity(self) -> str:
        """What decides whether earlier work on this text may be used again; by default all of the text itself."""
        whole = hashlib.blake2b(digest_size=16)
        for document in self.documents(Counter()):
            whole.update(
                f"{document.goes_on}{document.side}{len(document.text)}\n{document.text}".encode(errors="surrogatepass")
            )
        return store.key(whole.hexdigest())

    def here(self) -> bool:
        """Whether it can be read without a download."""
        return True

    def title(self) -> str:
        """A short name for pages and messages."""
        return type(self).__name__

    def note(self) -> str:
        """Where it came from, its licence, what it depends on."""
        return "a text of the study's own"
