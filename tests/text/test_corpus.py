import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headtohead.spec import Mistake
from headtohead.text import corpus as module
from headtohead.text.corpus import Documents, open_corpus
from headtohead.text.source import Document, Text
from headtohead.text.split import Split

from .conftest import Given, both


class Pieces(Text):
    """Documents in pieces."""

    given: tuple[tuple[str, ...], ...]

    def documents(self, tally):
        tally["words found"] += 7
        tally["words lost"] += 0
        for pieces in self.given:
            for number, piece in enumerate(pieces, start=1):
                yield Document(piece, goes_on=number < len(pieces))


def test_pieces_are_one_document_and_blank_ones_none():
    text = Pieces((("one ", "", "two"), (" ", "\n"), ("three",), ("", "")))
    train, validation = both(text)
    assert sorted(train + validation) == ["one two", "three"]
    assert open_corpus(text, Split()).note == "a text of the study's own; 2 documents; 7 words found"


def test_a_given_side_stays_in_its_order_and_apart():
    assert both(Given(("b", "a", "c", "A"), ("z", "a", "Z", "b"))) == (["b", "a", "c"], ["z", "a", "b"])


def test_one_text_a_side_has_no_borders():
    assert not open_corpus(Given(("b",), ("z",)), Split()).bordered
    assert open_corpus(Given(("b", "c"), ("z",)), Split()).bordered
    assert open_corpus(Pieces((("b",), ("z",))), Split()).bordered


def test_shares_decide_what_is_held_out():
    words = Pieces(tuple((f"word {n:03}",) for n in range(400)))
    for share in (0.05, 0.1, 0.3):
        assert len(both(words, Split(validation=share))[1]) == 400 * share
    assert both(Pieces((("0123456789" * 10,),)), Split(validation=0.25))[1] == ["56789" + "0123456789" * 2]


def test_half_a_character_is_refused():
    with pytest.raises(Mistake, match="the text holds U\\+D800, half of a character"):
        open_corpus(Given(("fine \ud800",), ("fine",)), Split())


def test_a_text_that_does_not_tell_its_identity_is_compared_whole():
    one, other = Pieces((("a", "b"), ("c",))), Pieces((("a",), ("b",), ("c",)))
    assert one.identity() == Pieces((("a", "b"), ("c",))).identity() != other.identity()
    assert Given(("a",), ("b",)).identity() != Given(("b",), ("a",)).identity()


@given(st.lists(st.text(st.sampled_from("ab \né𝔘"), min_size=1, max_size=60), min_size=1, max_size=8))
@pytest.mark.parametrize(("page", "longest"), [(4, 8), (16, 16), (16, 1 << 20), (1 << 20, 1 << 24)])
def test_pages_hold_every_character_once(page, longest, texts):
    raw, stops = "".join(texts).encode(), np.cumsum([len(text.encode()) for text in texts])
    documents = Documents(raw, np.stack([np.append(0, stops[:-1]), stops], axis=1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PAGE", page)
        patch.setattr(module, "LONGEST_LINE", longest)
        pages = list(documents.pages())
        joined = "".join(
            "".join(f"{text}|" if last else text for text, last in zip(*page, strict=True)) for page in pages
        )
        assert joined == "".join(f"{text}|" for text in texts) and list(documents) == [
            t for p in pages for t in p.texts
        ]
        every = [pair for page in pages for pair in zip(*page, strict=True)]
        for (text, last), (after, _) in zip(every, [*every[1:], ("", True)], strict=True):
            full = len(text.encode()) > longest - 4
            assert (
                last or text.endswith("\n") or after.startswith(" ") or full
            )  # where a line ends, or a long one's word
            assert len(text.encode()) <= max(longest, page)
    assert [documents[i] for i in range(len(documents))] == texts


def test_a_hash_of_documents_knows_their_borders():
    one = Documents(b"abc", np.array([[0, 1], [1, 3]]))
    assert one.sha256() == Documents(b"_a_bc", np.array([[1, 2], [3, 5]])).sha256()
    assert one.sha256() != Documents(b"abc", np.array([[0, 2], [2, 3]])).sha256()
