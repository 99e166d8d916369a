import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import decoders, pre_tokenizers

from headtohead.spec import Mistake
from headtohead.text.subwords import _pages, byte_alphabet
from headtohead.text.tokenizer import BytePairs, Characters, Words
from headtohead.text.vocabulary import Encoded, Vocabulary, load_vocabulary

SAMPLE = "The quick brown fox, the lazy dog.\nthe the the fox\n\n  fox quick quick brown brown שלום שלום שלום 🦊\n" * 5
BYTE_PAIRS = BytePairs(300).train([SAMPLE])
VOCABULARIES = {
    "characters": Characters().train([SAMPLE]),
    "bare": Characters(bare=True).train(["".join(map(chr, [*range(0xD800), *range(0xE000, 0x11000)]))]),
    "words": Words(1).train([SAMPLE]),
    "byte pairs": BYTE_PAIRS,
}
anything = st.text(st.characters(max_codepoint=0x10FFF, exclude_categories=["Cs"]), max_size=80)
wordy = st.lists(st.sampled_from(["fox", "the", "Fox", "é", " ", "\n", "\t ", "\r\n", "\u2003", "\x1c", "<UNK>"])).map(
    "".join
)


@pytest.mark.parametrize("name", VOCABULARIES)
@given(text=anything | wordy)
def test_bytes_and_characters_add_up(name, text):
    encoded = VOCABULARIES[name].encode(text)
    assert len(encoded.ids) == len(encoded.bytes) == len(encoded.characters)
    assert encoded.bytes.sum() == len(text.encode()) and encoded.characters.sum() == len(text)
    assert encoded.ids.dtype == np.int32 and all(encoded.ids >= 0) and all(encoded.ids < VOCABULARIES[name].size)


@given(text=st.text() | wordy | st.sampled_from(["<|endoftext|>", "<pad>", "a<pad>b", "\n\n \n", "\ud7ff\ue000"]))
def test_byte_pairs_give_every_text_back(text):
    encoded = BYTE_PAIRS.encode(text)
    assert BYTE_PAIRS.decode(encoded.ids) == text
    assert not np.isin(encoded.ids, BYTE_PAIRS.specials).any()
    pieces = [BYTE_PAIRS.decode(np.array([token])) for token in encoded.ids]
    assert all("\n" not in piece or piece == "\n" for piece in pieces)
    assert [piece == "\n" for piece in pieces] == (encoded.ids == BYTE_PAIRS.newline).tolist()


@given(text=anything)
def test_characters_give_every_text_back(text):
    assert VOCABULARIES["bare"].decode(VOCABULARIES["bare"].encode(text).ids) == text


@given(text=wordy)
def test_words_give_the_words_of_every_line_back(text):
    vocabulary = VOCABULARIES["words"]
    encoded = vocabulary.encode(text)
    lines = [line.split() for line in text.split("\n") if line.split()] or [[]]
    known = [[word if word in vocabulary.words else "<UNK>" for word in line] for line in lines]
    assert vocabulary.decode(encoded.ids) == "".join(" ".join(line) + "\n" for line in known)
    assert (encoded.ids == vocabulary.marks[0]).sum() == (encoded.ids == vocabulary.marks[1]).sum() == len(lines)


def test_what_a_word_covers():
    vocabulary = Words(1).train(["a b c"])
    encoded = vocabulary.encode("\n a  é \n\n\tb\n")
    assert vocabulary.decode(encoded.ids) == "a <UNK>\nb\n"
    # START, "\n a", "  é", STOP " \n\n", START, "\tb", STOP "\n"
    assert encoded.ids.tolist() == [2, 4, 1, 3, 2, 5, 3]
    assert encoded.bytes.tolist() == [0, 3, 4, 3, 0, 2, 1] and encoded.characters.tolist() == [0, 3, 3, 3, 0, 2, 1]


def test_the_numbers_of_characters():
    vocabulary = Characters().train(["cab\n", "bad"])
    assert vocabulary.characters == "\nabcd" and vocabulary.size == 7
    assert (vocabulary.pad, vocabulary.separator, vocabulary.unknown, vocabulary.newline) == (0, 0, 1, 2)
    assert vocabulary.encode("ab\nz").ids.tolist() == [3, 4, 2, 1]
    assert vocabulary.decode(np.array([0, 3, 1, 0])) == "a\N{REPLACEMENT CHARACTER}"


def test_bare_characters_are_nothing_else():
    vocabulary = Characters(bare=True).train(["cab\n", "bad"])
    assert (vocabulary.size, vocabulary.separator, vocabulary.unknown, vocabulary.specials) == (5, None, None, ())
    assert vocabulary.encode("ab\n").ids.tolist() == [1, 2, 0] and vocabulary.marks == (0, 0)
    assert Characters(bare=True).train(["ab"]).marks is None
    with pytest.raises(Mistake, match=r"character 'ß' \(U\+00DF\) .*; use Characters\(bare=False\)"):
        vocabulary.encode("abß")


def test_shakespeare_has_65_characters(real):
    text = Path(real("shakespeare")).read_text()
    assert Characters(bare=True).train([text]).size == 65 and Characters().train([text]).size == 67


def test_words_below_the_minimum_are_unknown():
    vocabulary = Words().train(["b a b a b", "a The the the the the c c"])
    assert vocabulary.words == ("the", "a", "b")  # by count, then by name; The and c occur once and twice
    assert vocabulary.encode("the c").ids.tolist() == [2, 4, 1, 3]
    assert (vocabulary.size, vocabulary.separator, vocabulary.newline, vocabulary.specials) == (
        7,
        None,
        None,
        (0, 2, 3),
    )
    with pytest.raises(Mistake, match="no word occurs 9 times; lower minimum_count"):
        Words(9).train(["a b"])


def test_byte_pairs_by_hand():
    vocabulary = BytePairs(260).train(["hug hug hug", "bug"])
    assert vocabulary.merges == ("u g", "h ug")  # u g occurs 4 times; then h ug 3 times, a space before hug only twice
    assert vocabulary.encode("hug").ids.tolist() == [259] and vocabulary.decode(np.array([0, 258, 1])) == "ug"
    assert (vocabulary.size, vocabulary.separator, vocabulary.specials) == (260, 1, (0, 1))


def test_a_small_text_gives_fewer_byte_pairs():
    assert BytePairs().train(["hug hug"]).size == 2 + 256 + 2  # no pair that occurs only once
    with pytest.raises(Mistake, match=r"BytePairs\(size=257\) cannot hold .*; use 258 or more"):
        BytePairs(257).train([SAMPLE])


def test_the_byte_alphabet_is_that_of_tokenizers():
    assert len(byte_alphabet()) == 256 and set(byte_alphabet()) == set(pre_tokenizers.ByteLevel.alphabet())
    text = "".join(map(chr, range(0x800)))
    letters = [byte_alphabet()[byte] for byte in text.encode()]
    assert decoders.ByteLevel().decode(letters) == text


@given(text=wordy, size=st.integers(0, 8))
def test_encoding_page_by_page_changes_nothing(text, size):
    pages = list(_pages(text, size))
    assert "".join(pages) == text
    assert [token for page in pages for token in BYTE_PAIRS.tokenizer.encode(page).ids] == BYTE_PAIRS.encode(
        text
    ).ids.tolist()


@pytest.mark.parametrize("name", VOCABULARIES)
def test_a_saved_vocabulary_comes_back(name, tmp_path):
    VOCABULARIES[name].save(tmp_path / "tokenizer.json")
    assert load_vocabulary(tmp_path / "tokenizer.json") == VOCABULARIES[name]


class Vowels(Vocabulary):
    """Not the package's own."""

    letters: tuple[str, ...]

    def encode(self, text):
        return Encoded(*np.array([[self.letters.index(letter), 1, 1] for letter in text]).T)


def test_a_vocabulary_of_the_users_own_comes_from_the_users_module(tmp_path):
    Vowels(("a", "e")).save(tmp_path / "tokenizer.json")
    assert load_vocabulary(tmp_path / "tokenizer.json", sys.modules[__name__]) == Vowels(("a", "e"))
    with pytest.raises(Mistake, match="Vowels is not one of headtohead's own parts"):
        load_vocabulary(tmp_path / "tokenizer.json")


TRAINED = "import sys, json; from headtohead.text.tokenizer import *; from headtohead.spec import fingerprint; \
print(*[fingerprint(t.train([sys.argv[1]])) for t in (BytePairs(500), Words(1), Characters())])"


def test_training_is_the_same_in_every_process():
    seen = set()
    for seed, parallel in (("1", "true"), ("2", "false")):
        environment = os.environ | {"PYTHONHASHSEED": seed, "TOKENIZERS_PARALLELISM": parallel}
        command = [sys.executable, "-c", TRAINED, SAMPLE + "".join(map(chr, range(32, 700)))]
        seen.add(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert len(seen) == 1 and len(seen.pop().split()) == 3


@pytest.mark.parametrize("before", [None, "true"])
def test_the_environment_is_left_alone(before, monkeypatch):
    monkeypatch.delenv("TOKENIZERS_PARALLELISM", raising=False)
    if before:
        monkeypatch.setenv("TOKENIZERS_PARALLELISM", before)
    BytePairs(258).train(["a"]).encode("a")
    assert os.environ.get("TOKENIZERS_PARALLELISM") == before


def test_the_file_holds_plain_json(tmp_path):
    VOCABULARIES["words"].save(tmp_path / "tokenizer.json")
    held = json.loads((tmp_path / "tokenizer.json").read_text())
    assert held == {"part": "headtohead.text.vocabulary:WordVocabulary", "words": list(VOCABULARIES["words"].words)}
