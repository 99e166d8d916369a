"""The sets of held-out tokens that masked models are asked for."""

import hashlib
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from headtohead.text.cache import prepare
from headtohead.text.exam import REPLICATES, exam_sets, splitmix
from headtohead.text.examples import Lines, Stream
from headtohead.text.packed import Packed
from headtohead.text.pairs import ElectraPairs, Pairs
from headtohead.text.tokenizer import BytePairs, Words

from .conftest import Given

SPEECH = "the quick brown fox\njumps over the lazy dog and\n\nnever looks back\n"
TEXT = Given((SPEECH * 3, "a b c d"), (SPEECH, "one line alone " * 30, SPEECH[::-1] * 2, "x y\nz"))
BERT = BytePairs(300, specials=("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"))
EVERY = [
    Stream(),
    Lines(),
    Packed(),
    Packed(unit="lines"),
    Packed(isolated=False, marks=False),
    Pairs(8),
    ElectraPairs(),
]


def splitmix_by_hand(seed, count):
    """SplitMix64 as Java's SplittableRandom has it, one number after another."""
    state, found = seed, []
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
        found.append(z ^ (z >> 31))
    return found


def test_splitmix_is_that_of_its_authors():
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert splitmix_by_hand(1234567, 4) == published
    seeds = np.full(4, 1234567, dtype=np.uint64)
    assert splitmix(seeds, np.arange(4)).tolist() == published


@given(st.lists(st.integers(0, 40), min_size=1, max_size=6), st.integers(0, 5), st.randoms(use_true_random=False))
def test_a_set_is_fifteen_in_a_hundred_of_each_document_by_rank(sizes, opening, draw):
    documents = np.cumsum([opening, *sizes])
    able = np.array([draw.random() < 0.8 for _ in range(documents[-1])], dtype=bool)
    able[:opening] = False
    found = exam_sets(documents, able)
    for replicate in range(REPLICATES):
        for number, (start, end) in enumerate(itertools.pairwise(documents)):
            key = hashlib.blake2b(f"{number}/{replicate}".encode(), digest_size=8).digest()
            values = splitmix_by_hand(int.from_bytes(key, "little"), end - start)
            places = [place for place in range(end - start) if able[start + place]]
            first = sorted(places, key=lambda place: values[place])[: -(-15 * len(places) // 100)]
            assert np.flatnonzero(found[start:end] >> replicate & 1).tolist() == sorted(first)
    assert not found[~able].any() and found.max(initial=0) < 2**REPLICATES


def test_sets_favour_no_place():
    documents = np.arange(0, 16 * 1200 + 1, 16)
    found = exam_sets(documents, np.ones(16 * 1200, dtype=bool)).reshape(-1, 16)
    for replicate in range(REPLICATES):
        assert chisquare((found >> replicate & 1).sum(0)).pvalue > 1e-3


def marked(examples, tokens, width):
    """Every token of the validation side by its place among all that are shown, with its sets, in order of the text."""
    found = []
    for rows in examples.held_out(tokens, width, width, 3, ahead=0):
        shown = rows.fresh & ~np.isin(rows.ids, tokens.vocabulary.specials)
        found += zip(rows.source[shown].tolist(), rows.ids[shown].tolist(), rows.exam[shown].tolist(), strict=True)
        assert not rows.exam[~shown & rows.fresh].any()
    return found


@pytest.mark.parametrize("examples", EVERY)
@settings(deadline=None, max_examples=15)
@given(width=st.integers(15, 60))
def test_the_sets_are_the_same_at_every_length(examples, width):
    tokens = prepare(TEXT, BERT)
    assert sorted(marked(examples, tokens, width)) == sorted(marked(examples, tokens, 60))


@pytest.mark.parametrize("examples", EVERY)
def test_every_document_has_its_share(examples):
    tokens = prepare(TEXT, BERT)
    found = marked(examples, tokens, 40)
    for document in range(4):
        mine = [sets for source, _, sets in found if source == document]
        for replicate in range(REPLICATES):
            assert sum(sets >> replicate & 1 for sets in mine) == -(-15 * len(mine) // 100)


def test_where_the_next_token_is_asked_for_there_are_none():
    tokens = prepare(TEXT, Words(1))
    assert not any(rows.exam.any() for rows in Lines().held_out(tokens, 9, 4, 5, ahead=1))
