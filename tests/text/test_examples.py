import hashlib
import os
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headtohead.spec import Mistake
from headtohead.text.cache import prepare
from headtohead.text.examples import Lines, Stream, digest, random_bits, windows
from headtohead.text.tokenizer import BytePairs, Characters, Words

from .conftest import Given

TRAIN = "\n\nThe quick brown fox\njumps over\n\nthe lazy dog.\nThe end\n"
TEXT = Given((TRAIN * 9, "ב" * 90 + "\nend"), ("The end\n\nthe lazy ש dog", TRAIN * 2, "\nthe fox" * 20, "fox"))
TOKENIZERS = [Characters(), Characters(bare=True), Words(1), BytePairs(270)]
BARE = Given((TRAIN * 9,), (TRAIN * 4,))
widths = st.integers(3, 60).flatmap(lambda width: st.tuples(st.just(width), st.integers(1, width - 1)))


def tokens_of(tokenizer):
    return prepare(BARE if tokenizer == Characters(bare=True) else TEXT, tokenizer)


@given(st.integers(1, 300), widths, st.integers(0, 1))
def test_windows_score_every_token_once(length, shape, ahead):
    width, stride = shape
    starts, first = windows(length, width, stride, ahead)
    scored = [
        (place, start)
        for start, fresh in zip(starts, first, strict=True)
        for place in range(fresh, min(start + width, length))
    ]
    assert [place for place, _ in scored] == list(range(ahead, length))
    assert all(place - start >= ahead for place, start in scored)
    assert starts[0] == 0 and starts[-1] == max(length - width, 0)
    assert (np.diff(starts)[:-1] == stride).all() and (np.diff(starts) <= stride).all() and (np.diff(starts) > 0).all()


def test_windows_by_hand():
    starts, first = windows(12, 5, 2, 1)
    assert (starts.tolist(), first.tolist()) == ([0, 2, 4, 6, 7], [1, 5, 7, 9, 11])
    starts, first = windows(12, 5, 5, 0)
    assert (starts.tolist(), first.tolist()) == ([0, 5, 7], [0, 5, 10])
    with pytest.raises(ValueError, match="stride 5 must lie between 1 and width 5 - ahead 1"):
        windows(12, 5, 5, 1)


@settings(deadline=None)
@given(st.sampled_from(TOKENIZERS), widths, st.integers(1, 7), st.integers(0, 1))
def test_a_stream_is_scored_once_in_order(tokenizer, shape, batch, ahead):
    tokens, (width, stride) = tokens_of(tokenizer), shape
    split = tokens.validation
    if len(split.ids) < width:
        return
    batches = list(Stream().held_out(tokens, width, stride, batch, ahead))
    assert [len(rows.ids) for rows in batches[:-1]] == [batch] * (len(batches) - 1)
    got = {
        name: np.concatenate([getattr(rows, name)[rows.fresh] for rows in batches])
        for name in ("ids", "bytes", "characters")
    }
    for name, column in got.items():
        assert column.tolist() == getattr(split, name)[ahead:].tolist()
    source = np.concatenate([rows.source[rows.fresh] for rows in batches])
    for document, (start, end) in enumerate(zip(split.documents[:-1], split.documents[1:], strict=True)):
        assert (source == document).sum() == end - max(start, ahead)
    assert all(not rows.fresh[:, :ahead].any() for rows in batches)
    stream = "".join(map(chr, split.ids))
    assert all("".join(map(chr, row)) in stream for rows in batches for row in rows.ids)
    assert batches[0].position.tolist() == [list(range(width))] and not batches[0].document.any()


@settings(deadline=None)
@given(st.sampled_from(TOKENIZERS), widths, st.integers(1, 7), st.integers(0, 1))
def test_lines_are_scored_once_to_the_byte(tokenizer, shape, batch, ahead):
    tokens, (width, stride) = tokens_of(tokenizer), shape
    split, (before, after) = tokens.validation, tokens.vocabulary.marks
    expected = [[before, *split.ids[start:end], after] for start, end in split.lines]
    batches = list(Lines().held_out(tokens, width, stride, batch, ahead))
    fresh = np.concatenate([rows.ids[rows.fresh] for rows in batches])
    assert fresh.tolist() == [token for line in expected for token in line[ahead:]]
    for name in ("bytes", "characters"):
        columns = [(getattr(rows, name), rows) for rows in batches]
        assert sum(int(column[rows.fresh].sum()) for column, rows in columns) == split.__getattribute__(name).sum(
            dtype=int
        )
        assert all(not column[rows.document < 0].any() for column, rows in columns)
    by_document = np.zeros(len(split.documents) - 1, dtype=int)
    for rows in batches:
        np.add.at(by_document, rows.source[rows.fresh], rows.bytes[rows.fresh])
        assert ((rows.source == -1) == (rows.document == -1)).all() and set(np.unique(rows.document)) <= {0, -1}
        assert (rows.ids[rows.document < 0] == tokens.vocabulary.pad).all()
        assert all(
            list(rows.ids[r][rows.document[r] == 0]) in _windows_of(expected, width) for r in range(len(rows.ids))
        )
    if tokens.bordered:
        sums = [split.bytes[a:b].sum() for a, b in zip(split.documents[:-1], split.documents[1:], strict=True)]
        assert by_document.tolist() == sums


def _windows_of(lines, width):
    return [line[at : at + width] for line in lines for at in range(max(len(line) - width, 0) + 1)]


def test_lines_by_hand():
    tokens = prepare(Given(("ab\n\nabc", "c\n"), ("\nab\n\nc\n", "b")), Characters())
    (rows,) = Lines().held_out(tokens, 4, 2, 9)
    a, b, c = 3, 4, 5
    assert rows.ids.tolist() == [[0, a, b, 0], [0, c, 0, 0], [0, b, 0, 0]]
    assert rows.document.tolist() == [[0, 0, 0, 0], [0, 0, 0, -1], [0, 0, 0, -1]]
    assert rows.bytes.tolist() == [[0, 1, 1, 3], [0, 1, 1, 0], [0, 1, 0, 0]]  # blank lines count to a line's end
    assert rows.source.tolist() == [[0, 0, 0, 0], [0, 0, 0, -1], [1, 1, 1, -1]]
    assert rows.fresh.tolist() == [[False, True, True, True], [False, True, True, False], [False, True, True, False]]


def test_blank_lines_before_the_first_count_to_its_end():
    tokens = prepare(Given(("ab\n",), ("\n" * 3000 + "ab\n" * 700,)), Characters())
    assert len(tokens.validation.documents) == 3 and tokens.validation.documents[1] < 3000
    (rows,) = Lines().held_out(tokens, 5, 4, 9999)
    assert rows.bytes[rows.fresh].sum() == 3000 + 3 * 700 and rows.bytes[0].tolist() == [0, 1, 1, 3001, 0]


@pytest.mark.parametrize("examples", [Stream(), Lines(), Lines(drop_longer=True)])
def test_a_batch_is_a_function_of_seed_and_number(examples):
    tokens, again = prepare(TEXT, Words(1)), prepare(TEXT, Words(1))
    forward = [examples.rows(tokens, 5, 3, 1, i) for i in range(40)]
    for i in reversed(range(40)):
        assert digest(*examples.rows(again, 5, 3, 1, i)) == digest(*forward[i])
    assert len({digest(*rows) for rows in forward}) > 20
    assert digest(*examples.rows(tokens, 5, 3, 2, 0)) != digest(*forward[0])
    assert forward[0].ids.shape == (3, 5) and forward[0].ids.dtype == forward[0].position.dtype == np.int64


BATCH = """
import sys
from headtohead.text.cache import prepare
from headtohead.text.file import File
from headtohead.text.tokenizer import Characters
from headtohead.text.examples import Stream, Lines, digest
tokens = prepare(File(sys.argv[1]), Characters(bare=True))
print(digest(Stream().rows(tokens, 9, 4, 7, 123).ids), digest(Lines().rows(tokens, 9, 4, 7, 123).ids))
"""


def by_hand(text: str) -> list[str]:
    """What BATCH prints, from the definition: batch 123 of seed 7, four rows of nine."""

    def bits(name: str, i: int, count: int) -> np.ndarray:
        key = int.from_bytes(hashlib.blake2b(name, digest_size=16).digest(), "little")
        return np.random.Generator(np.random.Philox(key=key, counter=[0, i, 0, 0])).integers(0, 2**64, count, np.uint64)

    alphabet, train = sorted(set(text)), text[: len(text) * 9 // 10]
    starts = [int(draw) % (len(train) - 9 + 1) for draw in bits(b"7/data", 123, 4)]
    stream = [train[start : start + 9] for start in starts]
    lines = [f"\n{line}\n".ljust(9, alphabet[0])[:9] for line in train.split("\n") if line]
    turns = [divmod(turn, len(lines)) for turn in range(4 * 123, 4 * 124)]
    order = {epoch: np.argsort(bits(b"7/data/order", epoch, len(lines))) for epoch, _ in turns}
    rows = [lines[order[epoch][turn]] for epoch, turn in turns]
    return [digest(np.array([[alphabet.index(letter) for letter in row] for row in batch])) for batch in (stream, rows)]


def test_a_batch_is_the_same_in_every_process(tmp_path):
    text = "".join(f"{n**3}\n" for n in range(50))
    (tmp_path / "a.txt").write_text(text)
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed, "H2H_CACHE": str(tmp_path / seed)}
        command = [sys.executable, "-c", BATCH, str(tmp_path / "a.txt")]
        said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        assert said.split() == by_hand(text)


def test_random_bits_are_those_of_philox():
    key = int.from_bytes(hashlib.blake2b(b"7/data", digest_size=16).digest(), "little")
    generator = np.random.Generator(np.random.Philox(key=key, counter=[0, 3, 0, 0]))
    drawn = generator.integers(0, 2**64, 10, dtype=np.uint64)
    assert random_bits("7/data", 3, 10).tolist() == drawn.tolist()


def test_a_stream_is_read_everywhere_alike():
    tokens = prepare(Given(("".join(map(chr, range(0x4E00, 0x4E00 + 50))),), ("一" * 20,)), Characters(bare=True))
    starts = np.concatenate([Stream().rows(tokens, 11, 64, 5, i).ids[:, 0] for i in range(100)])
    counts = np.bincount(starts, minlength=40)
    assert len(counts) == 40  # 50 − 11 + 1 places
    assert ((counts - 160) ** 2 / 160).sum() < 80  # χ² with 39 degrees of freedom: P(> 80) = 1e-4
    rows = Stream().rows(tokens, 11, 64, 5, 0)
    assert (np.diff(rows.ids) == 1).all() and rows.position.tolist() == [list(range(11))] and not rows.document.any()


@pytest.mark.parametrize("count", [1, 3, 8, 50])
def test_every_line_is_read_once_an_epoch(count):
    tokens = prepare(Given(tuple(f"line{n}\nword{n} word\n" for n in range(10)), ("a b",)), Words(1))
    lines = [tuple(tokens.train.ids[a:b]) for a, b in tokens.train.lines]
    read = [tuple(row[1:-1][row[1:-1] > 3]) for i in range(100) for row in Lines().rows(tokens, 5, count, 0, i).ids]
    epochs = [read[at : at + 20] for at in range(0, len(read) - 19, 20)]
    assert all(sorted(epoch) == sorted(lines) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == len(epochs)


def test_longer_lines_are_cut_or_left_out():
    tokens = prepare(Given(("a\na b\na b c\na b c d e\n",), ("a",)), Words(1))
    start, stop = tokens.vocabulary.marks
    a, b, c = 4, 5, 6
    cut = {tuple(row) for i in range(4) for row in Lines().rows(tokens, 4, 1, 0, i).ids}
    assert cut == {(start, a, stop, 0), (start, a, b, stop), (start, a, b, c)}
    kept = {tuple(row) for i in range(20) for row in Lines(drop_longer=True).rows(tokens, 4, 1, 0, i).ids}
    assert kept == {(start, a, stop, 0), (start, a, b, stop)}
    (rows,) = Lines(drop_longer=True).held_out(prepare(Given(("a b",), ("a b a b",)), Words(1)), 4, 2, 9)
    assert rows.fresh.sum() == 5  # held out, nothing is left out


@pytest.mark.parametrize(
    ("examples", "text", "tokenizer", "said"),
    [
        (
            Stream(),
            Given(("ab" * 3,), ("a" * 99,)),
            Characters(),
            "training side of given has 8 tokens and a row needs 9",
        ),
        (
            Stream(),
            Given(("ab" * 99,), ("a",)),
            Characters(),
            "validation side of given has 3 tokens and a row needs 9",
        ),
        (Lines(), Given(("ab",), ("ab",)), Characters(bare=True), "no line ends to mark lines with; use Characters"),
        (
            Lines(True),
            Given(("a" * 99,), ("a",)),
            Characters(),
            "shortest training line of given has 101 tokens and a row holds 9",
        ),
    ],
)
def test_a_text_that_cannot_fill_rows_is_told(examples, text, tokenizer, said):
    tokens = prepare(text, tokenizer)
    with pytest.raises(Mistake, match=said) as caught:
        examples.rows(tokens, 9, 2, 0, 0)
    assert "\n" not in str(caught.value) and (";" in str(caught.value))
    with pytest.raises(Mistake, match=said):
        next(iter(examples.held_out(tokens, 9, 8, 2)))
    with pytest.raises(Mistake, match=said):
        examples.check(tokens, 9)


def test_a_text_of_exactly_one_row_is_enough():
    tokens = prepare(Given(("ab" * 4,), ("a" * 8,)), Characters())
    assert Stream().rows(tokens, 10, 2, 0, 0).ids.tolist() == [tokens.train.ids.tolist()] * 2
    (rows,) = Stream().held_out(tokens, 10, 9, 4)
    assert rows.fresh.tolist() == [[False] + [True] * 9]


def test_a_digest_is_of_type_shape_and_content():
    array = np.arange(6, dtype=np.int32).reshape(2, 3)
    byte_by_byte = b"<i4(2, 3)" + bytes([0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0])
    assert digest(array) == hashlib.blake2b(byte_by_byte, digest_size=8).hexdigest()
    others = [array.reshape(3, 2), array.astype(np.int64), array.T, array + 1, array[::-1], np.empty((0, 3), np.int32)]
    assert len({digest(array), *map(digest, others), digest(array, array)}) == 8
    assert digest(array[:, ::2]) == digest(array[:, ::2].copy()) and digest(array, array.T) != digest(array.T, array)


@pytest.mark.parametrize("examples", [Stream(), Lines()])
def test_a_batch_costs_less_than_a_millisecond(real, examples):
    from headtohead.text.file import File

    tokens = prepare(File(real("shakespeare")), Characters())
    took = []
    for i in range(50):
        start = time.perf_counter()
        examples.rows(tokens, 129, 64, 0, i)
        took.append(time.perf_counter() - start)
    assert sorted(took)[10] < 1e-3
