import json
import os
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headtohead.spec import Mistake
from headtohead.text.corpus import open_corpus
from headtohead.text.file import File
from headtohead.text.split import Split

from .conftest import both, write


def opened(path):
    return opened_as(File(str(path)))


def opened_as(text):
    return open_corpus(text, Split())


def test_one_file_is_cut_at_nine_tenths_of_its_characters(tmp_path):
    write(tmp_path, {"one.txt": "א" * 95 + "z" * 10})
    corpus = opened(tmp_path / "one.txt")
    assert both(File(str(tmp_path / "one.txt"))) == (["א" * 94], ["א" + "z" * 10]) and not corpus.bordered
    assert corpus.name == "one" and "one document" in corpus.note


def test_shakespeare_is_split_as_in_nanogpt(real):
    (train,), (validation,) = both(File(real("shakespeare")))
    assert (len(train), len(validation)) == (1_003_854, 111_540)
    assert train + validation == Path(real("shakespeare")).read_text()


def test_a_folder_is_documents_wherever_its_files_lie(tmp_path):
    texts = {f"{n}/{n}.txt": f"document {n} " * n for n in range(1, 30)}
    write(tmp_path / "a", texts)
    write(tmp_path / "b", {f"{99 - n}.TXT": texts[f"{n}/{n}.txt"] for n in range(1, 30)} | {"note.md": "not a text"})
    train, validation = both(File(str(tmp_path / "a")))
    assert (train, validation) == both(File(str(tmp_path / "b")))
    assert sorted(train + validation) == sorted(texts.values()) and opened(tmp_path / "a").bordered


def test_equal_documents_are_kept_once(tmp_path):
    same = "Un CAFÉ  noir\n"
    files = {"a.txt": same, "b.txt": unicodedata.normalize("NFD", same), "c.txt": "un café noir", "d.txt": "un thé"}
    corpus = opened(write(tmp_path, files))
    assert (len(corpus.train), len(corpus.validation)) == (1, 1) and "2 left out as equal" in corpus.note
    assert sum(map(len, both(File(str(tmp_path)), Split(twins=True)))) == 4


def test_a_lone_document_among_empty_files_is_cut(tmp_path):
    corpus = opened(write(tmp_path, {"a.txt": "0123456789", "b.txt": "", "c.txt": " \n"}))
    assert both(File(str(tmp_path))) == (["012345678"], ["9"]) and not corpus.bordered


def test_a_byte_order_mark_is_no_text_and_line_ends_stay(tmp_path):
    write(tmp_path, {"a.txt": b"\xef\xbb\xbf" + b"one\r\ntwo\r\n" * 10})
    (train,), (validation,) = both(File(str(tmp_path / "a.txt")))
    assert train + validation == "one\r\ntwo\r\n" * 10


def test_a_relative_path_counts_from_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(write(tmp_path, {"in/one.txt": "words " * 9}))
    assert opened("in/one.txt").name == "one" and both(File("in")) == both(File("in/one.txt"))


@pytest.mark.parametrize(
    ("path", "files", "said"),
    [
        ("none.txt", {}, "no text at .*none.txt; give"),
        ("a.txt", {"a.txt": ""}, "a.txt holds no text; give"),
        ("", {"a.txt": " \n\t", "b.txt": ""}, "holds no text; give"),
        ("a.txt", {"a.txt": b"good \xe9t\xe9"}, "a.txt is not UTF-8 at byte 5; save"),
        ("", {"a.txt": "fine", "deep/b.txt": b"\xff"}, "deep/b.txt is not UTF-8 at byte 0; save"),
        ("", {"a.pdf": "1,2"}, "no text file in .*; name a folder that holds some"),
        ("a.pdf", {"a.pdf": "1,2"}, "a.pdf is not a text file .*; save its text as a.txt"),
        ("a.txt", {"a.txt": "x"}, "too short to hold out a part of it; give more text"),
        ("a.txt", {"a.txt": "words" + " " * 50}, "too short to hold out a part of it; give more text"),
    ],
)
def test_bad_texts_are_told_in_one_line(tmp_path, path, files, said):
    with pytest.raises(Mistake, match=said) as caught:
        opened(write(tmp_path, files) / path)
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_read_is_told(tmp_path, monkeypatch):
    write(tmp_path, {"a.txt": "words"})

    def denied(*arguments):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("headtohead.text.unpacked.open", denied, raising=False)
    with pytest.raises(Mistake, match=r"cannot read .*a.txt \(Permission denied\); make it readable"):
        opened(tmp_path / "a.txt")


def test_a_file_that_goes_while_its_folder_is_walked_is_told(tmp_path, monkeypatch):
    write(tmp_path, {"a/b.txt": "words " * 20})

    def gone(folder, pattern):
        yield folder / "a/b.txt"
        raise FileNotFoundError(2, "No such file or directory", str(folder / "c"))

    monkeypatch.setattr(Path, "rglob", gone)
    with pytest.raises(Mistake, match=r"cannot read all of .*/c: No such file or directory\); name a folder") as caught:
        opened(tmp_path)
    assert "\n" not in str(caught.value)


def test_only_regular_files_are_read(tmp_path):
    """To open a pipe that nobody writes into would wait without end."""
    write(tmp_path, {"a.txt": "words " * 20})
    os.mkfifo(tmp_path / "b.txt")
    assert opened(tmp_path).name == tmp_path.name
    with pytest.raises(Mistake, match=r"b.txt is no regular file; write its text into one"):
        opened(tmp_path / "b.txt")


def test_an_empty_path_is_not_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(write(tmp_path, {"a.txt": "words " * 20}))
    with pytest.raises(Mistake, match="an empty path names no text; give a file or a folder"):
        opened("")
    assert opened(".").name == tmp_path.name


def test_a_column_by_number(tmp_path):
    write(tmp_path, {"a.tsv": "good film\t1\nbad film\t0\n"})
    assert both(File(str(tmp_path), column=1)) == both(File(str(tmp_path), column="1"))
    assert sorted(sum(both(File(str(tmp_path), column=1)), [])) == ["bad film", "good film"]  # noqa: RUF017


def test_given_files_are_held_out_wherever_they_lie(tmp_path):
    write(tmp_path, {"a/1.txt": "one", "a/2.txt": "two", "a/dev/3.txt": "three", "4.txt": "four"})
    inside = File(str(tmp_path / "a"), validation=str(tmp_path / "a/dev"))
    assert both(inside) == (["one", "two"], ["three"])
    assert both(File(str(tmp_path / "a/1.txt"), validation=str(tmp_path / "4.txt"))) == (["one"], ["four"])
    assert "held out: " in opened_as(inside).note
    with pytest.raises(Mistake, match="is held out by validation"):
        opened_as(File(str(tmp_path / "a"), validation=str(tmp_path)))


words = st.text(st.sampled_from("abcdeé "), min_size=1, max_size=12).filter(str.strip)
names = st.lists(st.text("xyz", min_size=1, max_size=3), min_size=12, max_size=12, unique=True)
FORMATS = {
    ".txt": lambda texts: "\n".join(texts),
    ".jsonl": lambda texts: "\n".join(json.dumps({"text": text}) for text in texts),
    ".csv": lambda texts: "text\n" + "\n".join(f'"{text}"' for text in texts),
}


@settings(max_examples=40, deadline=None)
@given(
    st.lists(words, min_size=2, max_size=12, unique_by=lambda text: " ".join(text.split())), names, names, st.randoms()
)
def test_no_document_is_lost_or_in_both_sides_whatever_the_files(tmp_path_factory, texts, one, other, random):
    """The same documents, spread over other files, in other formats and another order, are split alike."""
    sides = []
    for spread in (one, other):
        folder = tmp_path_factory.mktemp("files")
        random.shuffle(texts)
        held = [
            (spread[n % 4], ending, texts[n :: len(spread)])
            for n, ending in zip(range(12), [*FORMATS] * 4, strict=True)
        ]
        write(
            folder,
            {f"{n}/{name}{ending}": FORMATS[ending](part) for n, (name, ending, part) in enumerate(held) if part},
        )
        sides.append([sorted(side) for side in both(File(str(folder), border="line"))])
    assert sides[0] == sides[1] and sorted(sides[0][0] + sides[0][1]) == sorted(texts)


def test_identity_follows_the_content(tmp_path):
    text = File(str(tmp_path / "a.txt"))
    write(tmp_path, {"a.txt": "one two"})
    stat = (tmp_path / "a.txt").stat()
    before = text.identity()
    assert text.identity() == before
    write(tmp_path, {"a.txt": "one TWO"})
    os.utime(tmp_path / "a.txt", ns=(stat.st_atime_ns, stat.st_mtime_ns))  # as after cp -p of an equally long file
    assert text.identity() != before
