"""Sentences scored token by token: what is hidden when a token is asked, and what the scores come to."""

import math

import numpy as np
import pytest
from small import tiny

from headtohead import BytePairs, Lines, MaskedLM, Words, at
from headtohead.inspection import Trained
from headtohead.sentences import SENTENCES, hidden_with, told
from headtohead.spec import Mistake
from headtohead.text.vocabulary import CharacterVocabulary, Encoded


def pieces(*words):
    """A text in pieces, as a tokenizer gives them."""
    sizes = np.array([len(word) for word in words])
    return "".join(words), Encoded(np.arange(5, 5 + len(words)), sizes, sizes)


def test_the_rest_of_a_word_is_hidden_with_a_piece_of_it():
    """Kauf & Ivanova's example: a piece is asked with the pieces right of it in its word hidden, and no others."""
    text, encoded = pieces("The", " sou", "ven", "ir", " is", " old", ".", "\n")
    assert hidden_with(text, encoded, ()) == [[0], [1, 2, 3], [2, 3], [3], [4], [5], [6], [7]]


def test_punctuation_is_a_word_and_specials_are_not_asked():
    text, encoded = pieces("don", "'", "t", " st", "op")
    marked = Encoded(
        np.array([1, *encoded.ids, 2]), np.array([0, *encoded.bytes, 0]), np.array([0, *encoded.characters, 0])
    )
    assert hidden_with(text, marked, (1, 2)) == [[], [1], [2], [3], [4, 5], [5], []]


def test_characters_are_asked_one_by_one():
    text, encoded = pieces(*"two words")
    assert hidden_with(text, encoded, ()) == [[place] for place in range(9)]


@pytest.fixture
def masked():
    recipe = at(tiny(objective=MaskedLM()), {"examples": Lines(), "length": 12, "tokenizer": BytePairs(size=270)})
    vocabulary = recipe.tokenizer.train(["a souvenir of souvenirs"] * 5)
    return Trained(recipe, vocabulary, recipe.learner(vocabulary.size, 0).eval())


def test_pseudo_log_likelihood_is_that_of_the_words(masked):
    """By hand: the row with a piece and the rest of its word masked, between the marks that lines have."""
    text = "a revenues of"
    found, ids = masked.score(text), masked.encode(text)[0]
    assert (ids[0], ids[-1]) == masked.tokenizer.marks and found["nll"][0] is None
    pieces_of = [masked.tokenizer.decode(token[None].numpy()) for token in ids[1:-1]]
    assert "".join(pieces_of) == text and len(pieces_of) > 3
    ends, end = [], 0
    for piece in pieces_of:
        end += len(piece)
        ends.append(len(text[:end].split()))
    for place, word in enumerate(ends, 1):
        row = ids.clone()
        hidden = [other for other in range(place, len(ids) - 1) if ends[other - 1] == word]
        row[hidden] = masked.tokenizer.mask
        wanted = -masked.logits(row[None])[0, place].log_softmax(0)[ids[place]].item()
        assert found["nll"][place] == pytest.approx(wanted, rel=1e-5)
    assert found["pseudo_log_likelihood"] == pytest.approx(-sum(found["nll"][1:-1]))
    assert "bits_per_byte" not in found


def test_bits_per_byte_are_of_the_bytes_that_were_scored():
    """ln 2 nats for each of two tokens of 3 and 5 bytes: 2 bits over 8 bytes; the first token is not scored."""
    found = told(["a", "b", "c"], [None, math.log(2), math.log(2)], np.array([7, 3, 5]), masked=False)
    assert found["bits_per_byte"] == pytest.approx(2 / 8) and found["perplexity"] == pytest.approx(2)
    assert told(["a"], [math.log(4)], np.array([0]), masked=False)["bits_per_byte"] is None


def test_words_between_their_marks_are_all_scored():
    """Study 3: START gives the first word its context, and STOP is a word that is predicted."""
    recipe = at(tiny(), {"length": 20})
    vocabulary = Words(minimum_count=1).train(SENTENCES)
    run = Trained(recipe, vocabulary, recipe.learner(vocabulary.size, 0).eval())
    found = run.score(SENTENCES[1])
    assert len(found["nll"]) == len(SENTENCES[1].split()) + 2 and found["nll"][0] is None
    logits = run.logits(run.encode(SENTENCES[1]))[0].log_softmax(-1)
    by_hand = [-logits[place, token].item() for place, token in enumerate(run.encode(SENTENCES[1])[0, 1:])]
    assert found["loss"] == pytest.approx(sum(by_hand) / len(by_hand))
    assert run.prompt("The quick").shape[1] == 3 and run.prompt("").tolist() == [[2]]  # open at the end


def test_a_head_that_knows_no_tokens_is_told():
    from headtohead import Bare

    recipe = at(tiny(objective=MaskedLM()), {"model.head": Bare()})
    vocabulary = CharacterVocabulary("abcdefgh", False)
    with pytest.raises(Mistake, match="says nothing of single tokens"):
        Trained(recipe, vocabulary, recipe.learner(vocabulary.size, 0).eval()).score("abc")
