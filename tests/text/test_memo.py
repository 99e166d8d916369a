"""What is looked up is what the tokenizers library itself says, for any text and whatever was read before it."""

from itertools import chain

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headtohead.text import memo
from headtohead.text.memo import LINES, PIECES, Memo
from headtohead.text.subwords import one_thread
from headtohead.text.tokenizer import BytePairs

SAMPLE = (
    "The quick brown fox, it's the lazy dog's.\nthe  the\tfox\n\n  fox quick 12 brown שלום שלום 🦊\r\n\x1c\x85 " * 5
)
VOCABULARY = BytePairs(320).train([SAMPLE])
WORDS = ["fox", "it's", "12", "!", "é", " ", "  ", "\n", "\t", "\r", "\u2003", "\x1c", "\x85", "\xa0", "\u200b"]
anything = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
wordy = st.lists(st.sampled_from(WORDS), max_size=12).map("".join)


def directly(texts):
    with one_thread():
        return [VOCABULARY.tokenizer.encode(text, add_special_tokens=False).ids for text in texts]


@settings(deadline=None)
@given(st.lists(anything | wordy, max_size=5))
@example(["fox\t  fox \x1c fox!\x1c", "", " ", "fox\x85 it's", "\u2003 \u2003fox  "])
def test_ids_are_the_librarys_own(texts):
    ids, counts = Memo(VOCABULARY.tokenizer).encode(texts)
    assert [part.tolist() for part in np.split(ids, np.cumsum(counts)[:-1])][: len(texts)] == directly(texts)
    assert len(counts) == len(texts) and ids.dtype == np.int32


@settings(deadline=None)
@given(st.lists(st.lists(wordy, max_size=3), max_size=6), st.integers(0, 6))
def test_what_was_forgotten_is_learnt_again(batches, most):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memo, "MOST", most)
        one = Memo(VOCABULARY.tokenizer)
        for texts in batches:
            ids, counts = one.encode(texts)
            assert ids.tolist() == [*chain(*directly(texts))] and counts.tolist() == [*map(len, directly(texts))]


@settings(deadline=None)
@given(anything | wordy)
def test_pieces_are_the_whole_text(text):
    assert "".join(PIECES.findall(text)) == text == "".join(LINES.findall(text))


def test_each_piece_is_merged_once():
    calls = []

    class Counting:
        def encode_batch_fast(self, texts, add_special_tokens):
            calls.extend(texts)
            return VOCABULARY.tokenizer.encode_batch_fast(texts, add_special_tokens=add_special_tokens)

    one = Memo(Counting())
    one.encode(["the fox the fox"])
    one.encode(["the fox", "the dog"])
    assert calls == ["the", " fox", " the", " dog"]
