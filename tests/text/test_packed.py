"""Packed rows hold every token once, in order, and keep documents apart where they are asked to."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headtohead.spec import Mistake
from headtohead.text.cache import prepare
from headtohead.text.examples import Lines, Sentences, Stream, digest, shuffled
from headtohead.text.packed import Packed
from headtohead.text.pairs import ElectraPairs, Pairs
from headtohead.text.tokenizer import BytePairs, Characters, Words

from .conftest import Given

SOME = "the fox\njumps over it\n\nand\n"
TEXT = Given((SOME, "a dog", SOME * 2, "it is é\nout", "x"), ("the end\n\nof it", SOME * 3, "fox", "a\nb\nc\n"))
TOKENIZERS = [Characters(), Words(1), BytePairs(270), BytePairs(280, specials=("<s>", "</s>", "<pad>"))]
packings = st.builds(Packed, st.sampled_from(["documents", "lines"]), st.booleans(), st.booleans())
widths = st.integers(3, 40).flatmap(lambda width: st.tuples(st.just(width), st.integers(1, width - 1)))


def items_by_hand(part, tokens, split):
    """The tokens of every item with their marks, in order."""
    vocabulary = tokens.vocabulary
    before, after = vocabulary.marks
    separated = vocabulary.separator is not None
    if part.unit == "lines":
        found, marked = [split.ids[a:b].tolist() for a, b in split.lines], part.marks
    else:
        borders = zip(split.documents[:-1], split.documents[1:], strict=True)
        found, marked = [split.ids[a : b - separated].tolist() for a, b in borders], part.marks and separated
    return [[before, *item, after] if marked else item for item in found]


@settings(deadline=None)
@given(packings, st.sampled_from(TOKENIZERS), st.integers(3, 40), st.integers(1, 4), st.integers(0, 3))
def test_every_item_is_read_once_an_epoch(part, tokenizer, width, count, seed):
    tokens = prepare(TEXT, tokenizer)
    items = items_by_hand(part, tokens, tokens.train)
    total = sum(map(len, items))
    if min(total, sum(map(len, items_by_hand(part, tokens, tokens.validation)))) < width:
        return
    batches = [part.rows(tokens, width, count, seed, i) for i in range(2 * total // (width * count) + 1)]
    stream = np.concatenate([rows.ids.reshape(-1) for rows in batches]).tolist()
    for epoch in range(2):
        order = shuffled(len(items), seed, epoch).tolist()
        assert sorted(order) == list(range(len(items)))
        assert stream[epoch * total : (epoch + 1) * total] == [token for number in order for token in items[number]]
        if part.isolated:
            begins = np.concatenate([(rows.position == 0).reshape(-1) for rows in batches])
            firsts = epoch * total + np.cumsum([0, *(len(items[number]) for number in order[:-1])])
            assert begins[firsts].all()
            assert set(np.flatnonzero(begins[epoch * total : (epoch + 1) * total]) + epoch * total) == {
                *firsts.tolist(),
                *(place for place in range(epoch * total, (epoch + 1) * total) if place % width == 0),
            }


@settings(deadline=None)
@given(packings, st.sampled_from(TOKENIZERS), widths, st.integers(1, 5), st.integers(0, 1))
def test_held_out_tokens_are_scored_once(part, tokenizer, shape, batch, ahead):
    tokens, (width, stride) = prepare(TEXT, tokenizer), shape
    split = tokens.validation
    items = items_by_hand(part, tokens, split)
    if sum(map(len, items)) < width:
        return
    batches = list(part.held_out(tokens, width, stride, batch, ahead))
    fresh = [token for rows in batches for token in rows.ids[np.broadcast_to(rows.fresh, rows.ids.shape)]]
    if part.isolated:
        assert fresh == [token for item in items for token in item[ahead:]]
    else:
        assert fresh == [token for item in items for token in item][ahead:]
    marked = part.marks and (part.unit == "lines" or tokens.vocabulary.separator is not None)
    for name in ("bytes", "characters"):
        covered = sum(int(getattr(rows, name)[rows.fresh].sum()) for rows in batches)
        whole = int(getattr(split, name).sum())
        assert covered == whole if marked or not ahead else covered <= whole
    for rows in batches:
        assert part.isolated or (not rows.document.any() and rows.position.tolist() == [list(range(width))])


@settings(deadline=None)
@given(st.sampled_from(TOKENIZERS), st.sampled_from(["documents", "lines"]), st.integers(3, 40))
def test_isolated_rows_tell_documents_apart(tokenizer, unit, width):
    tokens = prepare(TEXT, tokenizer)
    rows = Packed(unit).rows(tokens, width, 6, 0, 1)
    steps = np.diff(rows.document, axis=1)
    assert (rows.document[:, 0] == 0).all() and set(np.unique(steps)) <= {0, 1}
    assert (rows.position[:, 0] == 0).all()
    assert (np.diff(rows.position, axis=1)[steps == 0] == 1).all() and (rows.position[:, 1:][steps == 1] == 0).all()
    before = tokens.vocabulary.marks[0]
    if tokens.vocabulary.separator is not None:
        assert (rows.ids[:, 1:][steps == 1] == before).all()


def test_packed_by_hand():
    tokens = prepare(Given(("ab\n", "cab"), ("ab\nc", "ca")), Characters())
    end, a, b, c = 2, 3, 4, 5
    (rows,) = Packed().held_out(tokens, 6, 6, 9, ahead=0)
    assert rows.ids.tolist() == [[0, a, b, end, c, 0], [c, 0, 0, c, a, 0]]  # the last window ends with the text
    assert rows.document.tolist() == [[0] * 6, [0, 0, 1, 1, 1, 1]]
    assert rows.position.tolist() == [[0, 1, 2, 3, 4, 5], [0, 1, 0, 1, 2, 3]]
    assert rows.fresh.tolist() == [[True] * 6, [False, False, True, True, True, True]]
    assert rows.source.tolist() == [[0] * 6, [0, 0, 1, 1, 1, 1]]
    (rows,) = Packed(unit="lines", marks=False).held_out(tokens, 4, 3, 9, ahead=1)
    assert rows.ids.tolist() == [[a, b, c, c], [b, c, c, a]] and rows.document.tolist() == [[0, 0, 1, 2], [0, 1, 2, 2]]
    assert rows.fresh.tolist() == [[False, True, False, False], [False, False, False, True]]
    assert rows.bytes.tolist() == [[1, 2, 1, 1], [2, 1, 1, 1]]  # the last token of a line has its end


def test_a_text_that_cannot_be_packed_is_told():
    one = prepare(Given(("ab\n" * 999,), ("ab\n" * 99,)), Characters())
    with pytest.raises(Mistake, match=r"given is one document; pack its lines with Packed\(unit='lines'\)"):
        Packed().check(one, 9)
    Packed(unit="lines").check(one, 9)
    with pytest.raises(Mistake, match="training side of given has 3 tokens and a row needs 9; choose"):
        Packed(marks=False).check(prepare(Given(("ab", "c"), ("a" * 99, "b")), Characters()), 9)
    with pytest.raises(Mistake, match=r"no special tokens to mark borders with; use Packed\(marks=False\)"):
        Packed().check(prepare(Given(("ab", "c"), ("ab", "b")), Characters(bare=True)), 2)


EVERY = [
    Stream(),
    Lines(),
    Lines(True),
    Sentences(9),
    Packed(),
    Packed("lines", False, False),
    Pairs(5),
    ElectraPairs(),
]
ONE = """
import sys
sys.path.insert(0, sys.argv[1])
from tests.text.test_packed import EVERY, TEXT, Words, digest, prepare
tokens = prepare(TEXT, Words(1))
print(*(digest(*part.rows(tokens, 9, 4, 7, 23)) for part in EVERY))
"""


def in_process(root, seed, cache):
    environment = os.environ | {"PYTHONHASHSEED": seed, "H2H_CACHE": cache}
    command = [sys.executable, "-c", ONE, root]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()


def test_a_batch_is_the_same_whatever_was_read_before_from_any_process(tmp_path):
    from pathlib import Path

    tokens = prepare(TEXT, Words(1))
    alone = [digest(*part.rows(tokens, 9, 4, 7, 23)) for part in EVERY]
    for part, expected in zip(EVERY, alone, strict=True):
        again = prepare(TEXT, Words(1))
        for i in (23, 22, 500, 0, 23):
            found = digest(*part.rows(again, 9, 4, 7, i))
            part.rows(again, 9, 4, 8, i)
            assert i != 23 or found == expected
    root = str(Path(__file__).parents[2])
    with ThreadPoolExecutor(2) as workers:
        told = workers.map(lambda seed: in_process(root, seed, str(tmp_path / seed)), ("1", "2"))
        assert all(found == alone for found in told)


@pytest.mark.parametrize("part", EVERY)
def test_a_batch_is_the_same_on_any_number_of_workers(part):
    tokens = prepare(TEXT, Words(1))
    alone = [digest(*part.rows(tokens, 9, 4, 7, i)) for i in range(30)]
    with ThreadPoolExecutor(5) as workers:
        assert list(workers.map(lambda i: digest(*part.rows(tokens, 9, 4, 7, i)), range(30))) == alone


def test_what_becomes_of_the_text_is_counted():
    tokens = prepare(Given(("a\na b\na b c\na b c d e\n", "a b\n"), ("a",)), Words(1))
    assert Lines().counts(tokens, 4) == {"rows": 5, "truncated": 2, "dropped": 0}
    assert Lines(drop_longer=True).counts(tokens, 4) == {"rows": 3, "truncated": 0, "dropped": 2}
    assert Sentences(3).counts(tokens, 9) == {"rows": 5, "truncated": 4, "dropped": 0}
    assert Packed("lines").counts(tokens, 4) == {"rows": (3 + 4 + 5 + 7 + 4) // 4}
    assert Packed("lines", marks=False).counts(tokens, 4) == {"rows": 13 // 4}
    assert Pairs(4).counts(tokens, 9) == {"pairs": 2, "truncated": 2, "dropped": 1}
    assert Stream().counts(tokens, 5) == {"windows": len(tokens.train.ids) - 4}
    for examples in (Lines(), Lines(True)):
        rows = [tuple(row) for i in range(60) for row in examples.rows(tokens, 4, 1, 0, i).ids]
        counted = examples.counts(tokens, 4)
        assert len(rows) == 60 and len({*rows}) <= counted["rows"]
        assert (sum(row[-1] not in (0, 3) for row in rows) == 0) == (counted["truncated"] == 0)


def test_sentences_are_cut_at_their_own_length():
    tokens = prepare(Given(("a\na b\na b c d e\n",), ("a b a b a b",)), Words(1))
    cut = {tuple(row) for i in range(3) for row in Sentences(4).rows(tokens, 6, 1, 0, i).ids}
    assert cut == {(2, 4, 3, 0, 0, 0), (2, 4, 5, 3, 0, 0), (2, 4, 5, 6, 0, 0)}
    documents = {tuple(row) for i in range(3) for row in Sentences(4).rows(tokens, 6, 1, 0, i).document}
    assert documents == {(0, 0, 0, -1, -1, -1), (0, 0, 0, 0, -1, -1)}
    (rows,) = Sentences(4).held_out(tokens, 6, 5, 9)
    assert rows.fresh.sum() == 7  # held out, nothing is cut off
    with pytest.raises(Mistake, match="max_tokens = 9 does not fit in a row of 6; choose a larger length"):
        Sentences(9).check(tokens, 6)
