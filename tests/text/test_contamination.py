import random
import string

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headtohead.text.contamination import contaminated_share, contamination, word_grams

ALPHABET = list(string.ascii_lowercase)
WORDS = [f"word{letter}" for letter in ALPHABET]


def test_an_excerpt_is_found():
    train = [" ".join(ALPHABET)]
    excerpt = " ".join(ALPHABET[4:20])
    assert len(word_grams(excerpt)) == 4
    assert contamination(train, [excerpt]) == (1.0, 1.0, (0,))


def test_another_order_is_another_text():
    shuffled = random.Random(0).sample(ALPHABET, 26)
    assert contamination([" ".join(ALPHABET)], [" ".join(shuffled)]) == (0.0, 0.0, ())


def test_twelve_words_are_judged_by_their_characters():
    train, excerpt = [" ".join(WORDS)], " ".join(WORDS[4:16])
    assert len(word_grams(excerpt)) == 0
    assert contamination(train, [excerpt]) == (1.0, 0.0, (0,))
    assert contaminated_share(train, [" ".join(reversed(WORDS[4:16]))]) == 0


def test_a_script_without_spaces_is_judged_by_its_characters():
    train = ["".join(chr(0x4E00 + n) for n in range(500))]
    assert contaminated_share(train, [train[0][101:300]]) == 1
    assert contaminated_share(train, [train[0][300:100:-1]]) == 0


def test_equal_documents_are_found_however_short():
    assert contamination(["Ünder  the\nsea", "x"], ["u\u0308nder the sea", "y"]).documents == (0,)


@pytest.mark.parametrize(("known", "dirty"), [(18, True), (17, False)])
def test_half_of_the_13_grams_is_enough(known, dirty):
    # 24 words have 12 13-grams; of `known` words in a row, known − 12 occur in training
    text = " ".join([*WORDS[:known], *(f"new{n}" for n in range(24 - known))])
    found = contamination([" ".join(WORDS)], [text])
    assert found.grams == (known - 12) / 12 and bool(found.documents) is dirty


def test_the_share_is_of_bytes():
    dirty, clean = " ".join(WORDS), "ש" * 100
    found = contamination([dirty], [dirty, clean])
    assert found.share == len(dirty) / (len(dirty) + 200)


def test_nothing_to_compare():
    assert contamination([], ["a"]) == (0.0, 0.0, ()) == contamination(["a"], [])


def test_one_in_sixteen_is_enough_for_long_documents():
    draw = random.Random(1)
    train = [" ".join(str(draw.random()) for _ in range(3000)) for _ in range(2)]
    validation = [" ".join(train[1].split()[500:2500]), " ".join(str(draw.random()) for _ in range(2000))]
    assert contamination(train, validation, most=100).documents == contamination(train, validation).documents == (0,)


words = st.lists(st.sampled_from("ab"), max_size=60).map(" ".join)


@given(st.lists(words, max_size=3), st.lists(words, max_size=3))
def test_13_grams_are_those_of_a_plain_set(train, validation):
    def grams(text: str) -> set[tuple[str, ...]]:
        parts = text.split()
        return {tuple(parts[i : i + 13]) for i in range(len(parts) - 12)}

    seen = set().union(*map(grams, train))
    hits = [gram in seen for text in validation for gram in grams(text)]
    assert contamination(train, validation).grams == pytest.approx(np.mean(hits) if hits else 0)
    for index, text in enumerate(validation):
        own = grams(text)
        if own:
            expected = len(own & seen) >= len(own) / 2 or text in train
            assert (index in contamination(train, validation).documents) is expected
