"""Every format gives the documents that were written into it, however its bytes are cut and packed."""

import csv
import gzip
import json
import re
from collections import Counter
from itertools import groupby

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headtohead.spec import Mistake
from headtohead.text import formats, unpacked
from headtohead.text.formats import Reading, bordered, documents
from headtohead.text.source import Document

TEXTS = ["one line", "two\nlines", 'a "quoted", text', "שלום é 🦊\n", "last"]


def joined(parts):
    """Documents with their pieces put together."""
    found, held = [], ""
    for part in parts:
        held += part.text
        if not part.goes_on:
            found.append(held)
            held = ""
    assert not held
    return found


def read(path, tally=None, **how):
    return joined(documents(path, Reading(**how), Counter() if tally is None else tally))


def table(path, rows, **style):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, **style).writerows(rows)
    return path


def parquet(path, column, texts):
    pyarrow = pytest.importorskip("pyarrow", reason="the package pyarrow is not here")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"number": list(range(len(texts))), column: texts}), path)
    return path


def json_lines(texts, column="text"):
    return "".join(json.dumps({"n": n, column: text}) + "\n" for n, text in enumerate(texts)).encode()


@pytest.mark.parametrize("block", [1, 7, 1 << 20])
def test_rows_are_documents_in_every_format(tmp_path, monkeypatch, block):
    monkeypatch.setattr(unpacked, "BLOCK", block)
    monkeypatch.setattr(unpacked, "PACKED_BLOCK", block)
    zstandard = pytest.importorskip("zstandard", reason="the package zstandard is not here")
    plain = json_lines(TEXTS)
    (tmp_path / "a.jsonl").write_bytes(plain)
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(plain[:50]) + gzip.compress(plain[50:]))  # two members
    packer = zstandard.ZstdCompressor()
    (tmp_path / "a.jsonl.zst").write_bytes(packer.compress(plain[:50]) + packer.compress(plain[50:]))
    table(tmp_path / "a.csv", [["id", "text"], *enumerate(TEXTS)])
    parquet(tmp_path / "a.parquet", "text", TEXTS)
    for name in ("a.jsonl", "a.jsonl.gz", "a.jsonl.zst", "a.csv", "a.parquet"):
        assert read(tmp_path / name) == TEXTS, name


def test_a_table_with_tabs_has_no_quotes_and_a_number_names_a_column_without_a_heading(tmp_path):
    (tmp_path / "a.tsv").write_text('"an odd one\t1\nfine\t0\n')
    assert read(tmp_path / "a.tsv", column="1") == ['"an odd one', "fine"]
    assert read(tmp_path / "a.tsv", column="2") == ["1", "0"]
    (tmp_path / "b.tsv").write_text("label\tsentence\n1\tgood\n0\tbad\n")
    assert read(tmp_path / "b.tsv", column="sentence") == ["good", "bad"]


def test_the_real_tables_are_read(real):
    from pathlib import Path

    folder = Path(real("shakespeare")).parents[1] / "sst2-sentences"
    found = [read(path, column="1") for path in sorted(folder.glob("*.t*"))]
    assert sorted(map(len, found)) == [872, 1821, 6920]  # study 3's split


lines = st.lists(st.text(st.sampled_from("ab \tשé"), max_size=5), max_size=8)
cuts = st.lists(st.integers(0, 40), max_size=5).map(sorted)


@settings(deadline=None)
@given(lines, st.sampled_from(["\n", "\r\n"]), cuts, st.integers(1, 6))
def test_borders_are_found_wherever_the_text_is_cut(lines, end, cuts, piece):
    text = end.join(lines)
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, None], strict=True)]
    by_blank = list(bordered(pieces, "blank line"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(formats, "PIECE", piece)
        whole, by_line = (list(bordered(pieces, border)) for border in ("file", "line"))
    assert joined(whole) == [text] and joined(by_line) == (lines if not lines or lines[-1] else lines[:-1])
    groups = groupby(lines, key=lambda line: bool(line.strip()))
    assert joined(by_blank) == ["\n".join(group) for worded, group in groups if worded]
    assert all(len(part.text) < piece + max(map(len, pieces)) + 2 for part in whole)


@settings(deadline=None)
@given(lines, cuts)
def test_what_follows_the_last_tab_is_kept(tmp_path_factory, lines, cuts):
    path = tmp_path_factory.mktemp("leipzig") / "epo-sentences.txt"
    path.write_text("".join(line + "\n" for line in lines))
    assert read(path, border="line", after_tab=True) == [line.rpartition("\t")[2] for line in lines]
    assert read(path, after_tab=True) == ["".join(line.rpartition("\t")[2] + "\n" for line in lines)]


def test_a_long_line_comes_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "PIECE", 1000)
    monkeypatch.setattr(unpacked, "BLOCK", 300)
    (tmp_path / "a.txt").write_text("first\n" + "x" * 10_000 + "\nlast")
    parts = list(documents(tmp_path / "a.txt", Reading(border="line"), Counter()))
    assert joined(parts) == ["first", "x" * 10_000, "last"] and max(len(part.text) for part in parts) < 1300
    assert parts[1].goes_on and not parts[-1].goes_on


@settings(deadline=None)
@given(st.binary(max_size=40), st.integers(1, 9))
def test_bytes_that_are_not_utf8(tmp_path_factory, data, block):
    """Refused at the place where Python's own decoder stops; left out or replaced one by one, and counted."""
    path = tmp_path_factory.mktemp("bytes") / "a.txt"
    path.write_bytes(data)
    bare = data.removeprefix(b"\xef\xbb\xbf")
    escaped = bare.decode(errors="surrogateescape")
    wrong = sum("\udc80" <= letter <= "\udcff" for letter in escaped)
    tally: Counter[str] = Counter()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unpacked, "BLOCK", block)
        try:
            data.decode()
        except UnicodeDecodeError as error:
            with pytest.raises(Mistake, match=f"not UTF-8 at byte {error.start}[; ]"):
                read(path)
        else:
            assert read(path) == [bare.decode()] and not wrong
        assert read(path, tally, errors="skip") == [re.sub("[\udc80-\udcff]", "", escaped)]
        assert read(path, errors="replace") == [re.sub("[\udc80-\udcff]", "\ufffd", escaped)]
    assert tally.total() == wrong


def test_utf16_is_recognized(tmp_path):
    (tmp_path / "a.txt").write_bytes("words".encode("utf-16"))
    with pytest.raises(Mistake, match=r"a.txt is not UTF-8 at byte 0 \(it looks like UTF-16\); save it as UTF-8"):
        read(tmp_path / "a.txt")


BAD = {
    "cut.txt.gz": (lambda: gzip.compress(b"words " * 999)[:-9], "breaks off in the middle; fetch it again"),
    "no.txt.gz": (lambda: b"words " * 9, "is damaged or no .gz file"),
    "no.txt.zst": (lambda: b"words " * 9, "is damaged or no .zst file"),
    "a.jsonl": (lambda: b'{"text": "a"}\n{"text": ', "line 2 is no JSON object .*one object a line"),
    "a.json": (lambda: b'[\n{"text": "a"}]', "line 1 is no JSON object"),
    "b.jsonl": (lambda: b'{"texts": "a", "id": 3}', "no column 'text'; did you mean 'texts'. It has texts, id"),
    "c.jsonl": (lambda: b'{"text": 5}', "line 1 has no text in 'text' but 5; name the column"),
    "a.csv": (lambda: b"id,txt\n1,a\n", "no column 'text'; did you mean 'txt'"),
    "b.csv": (lambda: b'id,text\n1,"abc"x,"y\n2,foo\n3,bar\n', r"b.csv: line 2 begins no row of a table .*mend it"),
    "c.csv": (lambda: b'id,text\n1,abc\n2,"foo\n3,bar\n', r"c.csv: line 3 begins no row of a table .*mend it"),
    "deep.jsonl": (lambda: b'{"text": "a"}\n' + b"[" * 200_000, "line 2 is no row .lists or objects too deep"),
    "long.jsonl": (
        lambda: b'{"text": "a", "n": ' + b"1" * 5000 + b"}",
        "line 1 has a number of more than .* digits; put",
    ),
    "a.tsv": (lambda: b"id\ttxt\n1\ta\n", "no column 'text'; did you mean 'txt'"),
    "a.parquet": (lambda: b"PAR1 nothing PAR1", "is damaged or no Parquet file"),
    "f.txt": (lambda: b"\xff", "is not UTF-8 at byte 0; save it as UTF-8, or set errors"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_told_in_one_line(tmp_path, name):
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow", reason="the package pyarrow is not here")
    if name.endswith(".zst"):
        pytest.importorskip("zstandard", reason="the package zstandard is not here")
    content, said = BAD[name]
    (tmp_path / name).write_bytes(content())
    with pytest.raises(Mistake, match=said) as caught:
        read(tmp_path / name)
    assert "\n" not in str(caught.value) and str(tmp_path / name) in str(caught.value)


def test_a_truncated_zst_is_told(tmp_path):
    zstandard = pytest.importorskip("zstandard", reason="the package zstandard is not here")
    (tmp_path / "a.txt.zst").write_bytes(zstandard.ZstdCompressor().compress(bytes(range(128)) * 99)[:-5])
    with pytest.raises(Mistake, match="breaks off in the middle"):
        read(tmp_path / "a.txt.zst")


def test_a_parquet_column_that_is_not_there(tmp_path):
    with pytest.raises(Mistake, match="no column 'text'; did you mean 'texts'"):
        read(parquet(tmp_path / "a.parquet", "texts", ["a"]))


def test_empty_files_and_rows(tmp_path):
    tally: Counter[str] = Counter()
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n\n{"text": null}\n{"other": 1}\n{"text": ""}\n{"text": "b"}')
    assert read(tmp_path / "a.jsonl", tally) == ["a", "", "b"] and tally == {"rows without 'text' left out": 2}
    (tmp_path / "a.csv").write_text("id,text\n1\n2,b\n")
    assert read(tmp_path / "a.csv", tally) == ["b"] and tally["rows without 'text' left out"] == 3
    for name in ("e.txt", "e.jsonl", "e.csv", "e.txt.gz"):
        (tmp_path / name).write_bytes(b"")
        assert "".join(read(tmp_path / name)) == ""


def test_a_line_that_must_be_whole_has_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "LONGEST", 100)
    monkeypatch.setattr(unpacked, "BLOCK", 50)
    (tmp_path / "a.jsonl").write_bytes(json_lines(["x" * 200]))
    with pytest.raises(Mistake, match="a line of more than 100 characters; give such"):
        read(tmp_path / "a.jsonl")


def test_documents_are_handed_on_as_they_are():
    assert list(bordered(["a\nb"], "line")) == [Document("a"), Document("b")]
