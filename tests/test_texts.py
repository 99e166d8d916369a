"""h2h text prepare and show, and the list of texts."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from test_cli import ARM, HEAD, call, place

from headtohead.catalogue import entries
from headtohead.spec import Mistake
from headtohead.text.file import File
from headtohead.text.huggingface import HuggingFace
from headtohead.text.listing import listed, published, render, text_at
from headtohead.text.named import Shakespeare

__all__ = ["place"]
NAMES = {
    "python-docs",
    "shakespeare",
    "hebrew",
    "oscar-eo",
    "wikitext-2",
    "wikitext-103",
    "pile",
    "openwebtext",
    "one-billion",
    "sotu",
}


def test_show_prints_what_there_is(place: Path, monkeypatch, capsys):
    code, out, _ = call(
        monkeypatch, capsys, "text", "show", "text.txt", "--set", "tokenizer=Characters()", "--set", "length=8"
    )
    assert code == 0
    for said in (
        "text.txt; one document",
        "occur in training",
        "never had",
        "tokens in lines of training",
        "decoded back",
    ):
        assert said in out, said
    code, out, _ = call(monkeypatch, capsys, "text", "show", "text.txt", "--set", "tokenizer=Characters()", "--json")
    found = json.loads(out)
    # forty lines of 45 characters, nine tenths of them for training
    assert found["sides"]["train"]["characters"] == 1620 and found["sides"]["validation"]["characters"] == 180
    assert found["types"] == {"vocabulary": 32, "train": 30, "validation": 30, "unseen": 0, "unseen_share": 0.0}


def test_prepare_fills_the_cache_for_studies_and_texts(place: Path, monkeypatch, capsys):
    monkeypatch.setenv("H2H_CACHE", str(place / "cache"))
    code, out, _ = call(monkeypatch, capsys, "text", "prepare", "good.py", "text.txt", "--json")
    assert code == 0 and out.count('"folder"') == 2
    before = sorted((place / "cache").rglob("*.npy"))
    assert call(monkeypatch, capsys, "text", "show", "good.py")[0] == 0
    assert sorted((place / "cache").rglob("*.npy")) == before
    code, out, _ = call(monkeypatch, capsys, "text", "prepare", "text.txt")
    assert out.startswith("text: 0.0 MB, ") and str(place / "cache") in out


def test_a_study_with_two_texts_shows_both(place: Path, monkeypatch, capsys):
    (place / "two.py").write_text(
        HEAD + ARM.replace('"model.attention.normalizer": SoftmaxN()', '"tokenizer": Characters(bare=True)')
    )
    code, out, _ = call(monkeypatch, capsys, "text", "show", "two.py")
    assert code == 0 and "Characters()," in out and "Characters(bare=True)," in out


BAD = {
    "no such text": (["text", "show", "shakespear"], "there is no text 'shakespear', no file of that name either; did you mean 'shakespeare'?"),
    "no such study": (["text", "show", "absent.py"], "there is no study file absent.py"),
    "no command": (["text"], "Missing command; see h2h text --help"),
    "no text": (["text", "prepare"], "Missing argument 'STUDY|TEXT…'; see h2h text prepare --help"),
    "no such address": (["text", "show", "text.txt", "--set", "text.colum=a"], "did you mean 'text.column'?"),
    "no such part": (["text", "show", "text.txt", "--set", "tokenizer=Word()"], "did you mean 'Words'?"),
    "a value inside a part": (["text", "prepare", "text.txt", "--set", "tokenizer=Words(minimum_count='x')"], "tokenizer.minimum_count: takes int, got 'x' (str)"),
    "a part that cannot work": (["text", "prepare", "text.txt", "--set", "tokenizer=BytePairs(specials=('a','a'))"], "tokenizer: specials a, a hold a name twice"),
    "a share of a text": (["text", "prepare", "text.txt", "--set", "split.validation=0.7"], "split: validation = 0.7 is a share of the text"),
    "an empty path": (["text", "prepare", ""], "an empty path names no text; give a file or a folder"),
    "no such dataset": (["text", "show", "hf:"], "write hf:NAME[:CONFIG][:SPLIT][:COLUMN]"),
    "a size of a text": (["text", "show", "text.txt", "--size", "paper"], "text.txt is a text; leave it out"),
    "no such listing": (["list", "texts", "wikitxt-103"], "did you mean 'wikitext-103'?"),
    "a study's text": (["run", "good.py", "--set", "text=shakespear"], "did you mean 'shakespeare'?"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_mistake_is_one_line_with_the_fix(name: str, place: Path, monkeypatch, capsys):
    arguments, expected = BAD[name]
    code, _, errors = call(monkeypatch, capsys, *arguments)
    lines = [line for line in errors.splitlines() if not line.startswith("preparing")]
    assert code == 2 and len(lines) == 1 and lines[0].startswith("h2h: ") and expected in lines[0], errors


def test_a_text_is_set_by_what_people_type(place: Path, monkeypatch, capsys):
    (place / "more").mkdir()
    (place / "more" / "b.jsonl").write_text(
        "".join(json.dumps({"text": f"Number {n} of many. " * 9}) + "\n" for n in range(40))
    )
    code, out, _ = call(monkeypatch, capsys, "show", "good.py", "--set", "text=more", "--json")
    assert code == 0 and json.loads(out)["text"]["note"] == "more; 40 documents"
    code, out, _ = call(monkeypatch, capsys, "show", "good.py", "--set", "text=File(path=more, border=line)", "--json")
    assert code == 0 and json.loads(out)["text"]["name"] == "more"


def test_addresses(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    assert text_at("shakespeare") == Shakespeare() and text_at(str(tmp_path)) == File(str(tmp_path))
    assert text_at("hf:user/books::train") == HuggingFace("user/books", split="train")
    with pytest.raises(Mistake, match="did you mean 'wikitext-2'"):
        text_at("wikitext2")


def test_every_published_text_is_listed_with_what_a_reader_asks(monkeypatch, tmp_path):
    monkeypatch.setenv("H2H_DATA", str(tmp_path))
    assert set(published()) == NAMES
    found = {entry["title"]: entry for entry in listed(None) if entry["title"]}
    assert set(found) == NAMES and all(
        entry["language"] and entry["size"] and entry["license"] for entry in found.values()
    )
    assert found["python-docs"]["here"] and not found["shakespeare"]["here"]
    (tmp_path / "shakespeare").mkdir()
    (tmp_path / "shakespeare" / "input.txt").write_text("words")
    assert listed("shakespeare")[0]["here"] and listed("Shakespeare")[0]["place"] == str(tmp_path / "shakespeare")
    assert all(name in render(listed(None)) for name in (*NAMES, "File", "HuggingFace"))
    assert "Named" not in {entry["name"] for entry in entries("texts", None)}


def test_the_list_needs_neither_torch_nor_datasets():
    code = "import sys; from headtohead.cli import main; sys.argv = ['h2h', 'list', 'texts']\ntry: main()\nexcept SystemExit: pass\n"
    code += "assert not {'torch', 'datasets', 'pyarrow', 'sotu', 'tokenizers'} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "wikitext-103" in done.stdout, done.stderr
