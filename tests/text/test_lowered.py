from collections import Counter

import pytest

from headtohead.text.cache import prepare
from headtohead.text.file import File
from headtohead.text.lowered import LowerCase
from headtohead.text.tokenizer import Characters

from .conftest import Given, both


def test_a_text_in_lower_case_keeps_its_documents_and_sides():
    whole, lowered = Given(("The Fox", "ÉÀ"), ("ΑΣ İ",)), LowerCase(Given(("The Fox", "ÉÀ"), ("ΑΣ İ",)))
    for one, other in zip(whole.documents(Counter()), lowered.documents(Counter()), strict=True):
        assert other == one._replace(text=one.text.lower())
    assert both(lowered)[1] == ["ας i̇"] and lowered.title() == "given in lower case"


def test_another_text_underneath_is_another_text(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("A b")
    before = LowerCase(File(str(path))).identity()
    path.write_text("A c")
    assert LowerCase(File(str(path))).identity() != before != File(str(path)).identity()


def test_shakespeare_has_39_characters_in_lower_case(real):
    """65 less 26 capital letters; which side has which is not asked."""
    tokens = prepare(LowerCase(File(real("shakespeare"))), Characters(bare=True))
    assert tokens.vocabulary.size == 39


@pytest.mark.parametrize("size", ["demo", "paper"])
def test_the_study_asks_for_its_texts_in_one_line(tmp_path, monkeypatch, size):
    from headtohead import Mistake
    from headtohead.plan import load_study
    from headtohead.request import find_study

    monkeypatch.chdir(tmp_path)
    study = load_study(find_study("two_languages")).study
    for recipe in (study if size == "demo" else study.paper).arms().values():
        with pytest.raises(Mistake, match=r"no text at .*(shakespeare|hebrew)\.txt; give") as caught:
            prepare(recipe.text, recipe.tokenizer)
        assert "\n" not in str(caught.value)
