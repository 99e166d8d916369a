"""A text with its capital letters taken away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from headtohead.text import store
from headtohead.text.source import Document, Text


class LowerCase(Text):
    """Another text in lower case (Unicode's own mapping): the same words in a smaller alphabet."""

    of: Text

    def documents(self, tally: Counter[str]) -> Iterator[Document]:
        for document in self.of.documents(tally):
            yield document._replace(text=document.text.lower())

    def identity(self) -> str:
        return store.key(self.of.identity(), store.code(LowerCase))

    def title(self) -> str:
        return f"{self.of.title()} in lower case"

    def note(self) -> str:
        return f"{self.of.note()}, in lower case"
