import os
import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headtohead.spec import Mistake
from headtohead.text import documentation
from headtohead.text.contamination import contamination
from headtohead.text.source import File, PythonDocs, split


def write(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def test_one_file_is_cut_at_nine_tenths_of_its_characters(tmp_path):
    write(tmp_path, {"one.txt": "א" * 95 + "z" * 10})
    corpus = File(str(tmp_path / "one.txt")).read()
    assert (corpus.train, corpus.validation, corpus.bordered) == (["א" * 94], ["א" + "z" * 10], False)
    assert corpus.name == "one" and "one document" in corpus.note


def test_shakespeare_is_split_as_in_nanogpt(real):
    corpus = File(real("shakespeare")).read()
    assert (len(corpus.train[0]), len(corpus.validation[0])) == (1_003_854, 111_540)
    assert corpus.train[0] + corpus.validation[0] == Path(real("shakespeare")).read_text()


def test_a_folder_is_documents_wherever_its_files_lie(tmp_path):
    texts = {f"{n}/{n}.txt": f"document {n} " * n for n in range(1, 30)}
    write(tmp_path / "a", texts)
    write(tmp_path / "b", {f"{99 - n}.TXT": texts[f"{n}/{n}.txt"] for n in range(1, 30)} | {"note.md": "not a text"})
    one, other = File(str(tmp_path / "a")).read(), File(str(tmp_path / "b")).read()
    assert (one.train, one.validation) == (other.train, other.validation)
    assert sorted(one.train + one.validation) == sorted(texts.values()) and one.bordered


def test_equal_documents_are_kept_once(tmp_path):
    same = "Un CAFÉ  noir\n"
    files = {"a.txt": same, "b.txt": unicodedata.normalize("NFD", same), "c.txt": "un café noir", "d.txt": "un thé"}
    corpus = File(str(write(tmp_path, files))).read()
    assert len(corpus.train + corpus.validation) == 2 and "2 left out" in corpus.note


def test_a_lone_document_among_empty_files_is_cut(tmp_path):
    corpus = File(str(write(tmp_path, {"a.txt": "0123456789", "b.txt": "", "c.txt": " \n"}))).read()
    assert (corpus.train, corpus.validation, corpus.bordered) == (["012345678"], ["9"], False)


def test_a_byte_order_mark_is_no_text_and_line_ends_stay(tmp_path):
    write(tmp_path, {"a.txt": b"\xef\xbb\xbf" + b"one\r\ntwo\r\n" * 10})
    corpus = File(str(tmp_path / "a.txt")).read()
    assert corpus.train[0] + corpus.validation[0] == "one\r\ntwo\r\n" * 10


def test_a_relative_path_counts_from_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(write(tmp_path, {"in/one.txt": "words " * 9}))
    assert File("in/one.txt").read().name == "one" and File("in").read().train == File("in/one.txt").read().train


@pytest.mark.parametrize(
    ("path", "files", "said"),
    [
        ("none.txt", {}, "no text at .*none.txt; give"),
        ("a.txt", {"a.txt": ""}, "a.txt holds no text; give"),
        ("", {"a.txt": " \n\t", "b.txt": ""}, "holds no text; give"),
        ("a.txt", {"a.txt": b"good \xe9t\xe9"}, "a.txt is not UTF-8 at byte 5; save"),
        ("", {"a.txt": "fine", "deep/b.txt": b"\xff"}, "deep/b.txt is not UTF-8 at byte 0; save"),
        ("", {"a.csv": "1,2"}, "no .txt file in .*; name"),
        ("a.csv", {"a.csv": "1,2"}, "a.csv is not a .txt file; save its text as a.txt"),
        ("a.txt", {"a.txt": "x"}, "too short to hold out a tenth of it; give more text"),
        ("a.txt", {"a.txt": "words" + " " * 50}, "too short to hold out a tenth of it; give more text"),
    ],
)
def test_bad_texts_are_told_in_one_line(tmp_path, path, files, said):
    with pytest.raises(Mistake, match=said) as caught:
        File(str(write(tmp_path, files) / path)).read()
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_read_is_told(tmp_path, monkeypatch):
    write(tmp_path, {"a.txt": "words"})

    def denied(*arguments):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("headtohead.text.source.open", denied, raising=False)
    with pytest.raises(Mistake, match=r"cannot read .*a.txt \(Permission denied\); make it readable"):
        File(str(tmp_path / "a.txt")).read()


def test_identity_follows_the_content(tmp_path):
    text = File(str(tmp_path / "a.txt"))
    write(tmp_path, {"a.txt": "one two"})
    stat = (tmp_path / "a.txt").stat()
    before = text.identity()
    assert text.identity() == before
    write(tmp_path, {"a.txt": "one TWO"})
    os.utime(tmp_path / "a.txt", ns=(stat.st_atime_ns, stat.st_mtime_ns))  # as after cp -p of an equally long file
    assert text.identity() != before


@given(st.lists(st.text(min_size=1, max_size=40), min_size=2, max_size=40, unique=True), st.randoms())
def test_the_split_is_a_function_of_the_set_of_documents(documents, random):
    train, validation = split(documents)
    assert sorted(train + validation) == sorted(documents) and train and validation
    total = sum(map(len, documents))
    assert sum(map(len, validation)) <= total / 10 or validation == [min(validation, key=len)]
    random.shuffle(documents)
    assert split(documents) == (train, validation)


def test_the_split_holds_out_many_voices():
    documents = ["large " * 2000] + [f"small {n} " * 10 for n in range(400)]
    train, validation = split(documents)
    assert documents[0] in train
    assert 0.095 < sum(map(len, validation)) / sum(map(len, documents)) <= 0.1


def test_the_documentation_inside_python():
    corpus = PythonDocs().read()
    found = contamination(corpus.train, corpus.validation)
    assert found.share < 0.001 and found.grams < 0.05, found
    size = {side: sum(map(len, getattr(corpus, side))) for side in ("train", "validation")}
    assert size["train"] > 1_000_000 and 0.09 < size["validation"] / sum(size.values()) <= 0.1
    assert len(corpus.validation) >= 30 and corpus.bordered
    paragraphs = [p.lower().split() for text in corpus.train + corpus.validation for p in re.split(r"\n\s*\n", text)]
    assert len(paragraphs) == len(set(map(tuple, paragraphs)))
    assert PythonDocs().read() == corpus


def numbered(**counts: int) -> str:
    return " ".join(f"{word}{n}" for word, count in counts.items() for n in range(count))


LIBRARY = {
    "pydoc_data/topics.py": "topics = {'assert': 'A topic of its own, with as many words as a document needs to be.'}",
    "alone.py": '"""The first one."""\ndef f():\n    "A second docstring."\nraise RuntimeError("never imported")\n',
    "pack/__init__.py": f'"""{numbered(pack=40)}"""',
    "pack/inner.py": 'class C:\n  """Inner words."""\n  def f(self):\n    """Shared\n    part.\n\n    Own one."""',
    "near.py": f'"""{numbered(pack=15, near=5)}"""',
    "far.py": f'"""{numbered(pack=13, far=12)}\n\nshared  PART."""',
    "short.py": '"""Too short to stay."""',
    "template.py": "def {name}(): pass",
    "test/mine.py": f'"""{numbered(test=20)}"""',
    "lib2to3/old.py": f'"""{numbered(old=20)}"""',
}


def test_documents_are_packages_and_what_shares_13_grams(tmp_path):
    found = documentation.documents(write(tmp_path, LIBRARY))
    assert len(found) == 3
    one = next(text for text in found if "near4" in text)  # shares 3 of its 8 13-grams with pack: one document
    assert "pack19" in one and "Inner words." in one and "Own one." in one and "near4" in one
    other = next(text for text in found if "far11" in text)  # shares 1 of 13: another
    assert "pack19" not in other and "shared  PART." in other and "Shared" not in one
    assert any(text.startswith("A topic of its own") for text in found)
    assert not any("test1" in text or "old1" in text or "Too short" in text for text in found)


def test_docstrings_come_in_the_order_of_the_source(tmp_path):
    write(tmp_path, LIBRARY)
    assert documentation.docstrings(tmp_path / "alone.py") == ["The first one.", "A second docstring."]
    assert documentation.docstrings(tmp_path / "template.py") == []


def test_a_python_without_topics_still_has_docstrings(tmp_path):
    library = {name: code for name, code in LIBRARY.items() if not name.startswith("pydoc_data")}
    assert len(documentation.documents(write(tmp_path, library))) == 2


def test_a_python_without_sources_says_so(tmp_path):
    with pytest.raises(Mistake, match=r"no source files; give your own text, File\(path\)"):
        documentation.documents(tmp_path)
