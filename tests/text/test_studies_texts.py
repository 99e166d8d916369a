"""The texts of the studies, prepared for real: nothing of them is lost between the file and the rows."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headtohead import MaskedLM
from headtohead.spec import Mistake
from headtohead.study import Recipe, refuse
from headtohead.text.cache import prepare
from headtohead.text.examples import Lines, Sentences, Stream
from headtohead.text.file import File
from headtohead.text.packed import Packed
from headtohead.text.pairs import ElectraPairs, Pairs
from headtohead.text.tokenizer import BytePairs, Characters, Given, WordPieces, Words

from .conftest import DATA
from .conftest import Given as Text

STUDY1 = BytePairs(52_032, specials=("<s>", "<pad>", "</s>", "<unk>", "<mask>"))


def held_out_bytes(examples, tokens, width):
    return sum(int(rows.bytes[rows.fresh].sum()) for rows in examples.held_out(tokens, width, width, 64, 0))


@pytest.mark.parametrize(
    ("name", "tokenizer", "size"), [("shakespeare", Characters(bare=True), 65), ("hebrew", Characters(), 124)]
)
def test_study_5(name, tokenizer, size, real):
    tokens = prepare(File(real(name)), tokenizer)
    characters = len(Path(real(name)).read_text())
    assert tokens.vocabulary.size == size
    assert sum(int(side.characters.sum(dtype=np.int64)) for side in (tokens.train, tokens.validation)) == characters
    assert held_out_bytes(Stream(), tokens, 128) == tokens.validation.bytes.sum(dtype=np.int64)


@pytest.mark.slow
def test_study_1(real):
    """Esperanto by the study's tokenizer; so small a text holds no 52,032 entries of which each occurs twice."""
    tokens = prepare(File(real("esperanto")), STUDY1)
    assert 30_000 < tokens.vocabulary.size < 52_032 and tokens.vocabulary.mask == 4
    assert held_out_bytes(Lines(), tokens, 512) == tokens.validation.bytes.sum(dtype=np.int64)
    assert Lines().counts(tokens, 512) == {"rows": len(tokens.train.lines), "truncated": 0, "dropped": 0}


def test_studies_3_and_4_on_sentences_of_sst2(tmp_path):
    source, pieces = DATA / "sst2-sentences/dev.tsv", DATA / "vocab/bert-base-uncased.txt"
    if not source.exists():
        pytest.skip("sst2-sentences lies in ../shared/data, which is not here")
    sentences = [line.split("\t")[0] for line in source.read_text().splitlines()]
    assert len(sentences) == 872
    (tmp_path / "sst2.txt").write_text("\n".join(sentences) + "\n")
    words, given = (prepare(File(str(tmp_path / "sst2.txt")), t) for t in (Words(), Given(str(pieces))))
    for tokens in (words, given):
        assert abs(len(tokens.train.lines) + len(tokens.validation.lines) - 872) <= 1  # the cut may go through one
    whole = words.validation.bytes.sum(dtype=np.int64)
    for examples, tokens, width in ((Sentences(), words, 101), (Pairs(), given, 127), (ElectraPairs(), given, 128)):
        assert held_out_bytes(examples, tokens, width) == whole
    (line,) = (given.vocabulary.decode(given.train.ids[a:b]) for a, b in given.train.lines[:1])
    assert line.replace(" ", "") == sentences[0].replace(" ", "")


lines = st.lists(st.text("abc é\n", max_size=20), min_size=1, max_size=4)


@settings(deadline=None, max_examples=40)
@given(lines, lines, st.sampled_from([BytePairs(262), BytePairs(300, specials=()), WordPieces(40), Characters()]))
def test_any_text_is_held_out_to_the_byte(train, held, tokenizer):
    """Whatever the line ends and blanks: the bytes of all fresh tokens are the text's."""
    text = Text(("abc é\nabc", *train), ("a\n", *held))
    try:
        tokens = prepare(text, tokenizer)
    except Mistake:
        return
    for examples in (Stream(), Lines(), Packed(), Packed("lines"), Packed("lines", False, False), Pairs(4)):
        try:
            examples.check(tokens, 7)
        except Mistake:
            continue
        assert held_out_bytes(examples, tokens, 7) == tokens.validation.bytes.sum(dtype=np.int64)


def test_no_special_tokens_at_all():
    tokens = prepare(Text(("ab\n", "ba"), ("b", "aa\n")), BytePairs(256, specials=()))
    assert (tokens.vocabulary.specials, tokens.vocabulary.separator, tokens.vocabulary.marks) == ((), None, None)
    assert sorted(tokens.vocabulary.decode(tokens.train.ids)) == sorted("ab\nba")
    rows = Packed(marks=False).rows(tokens, 3, 1, 0, 0)
    assert tokens.vocabulary.decode(rows.ids[0]) in {"ab\n", "baa"}


def test_special_tokens_are_named_once():
    recipe = Recipe(objective=MaskedLM(), tokenizer=BytePairs(specials=("<s>", "<s>")))
    with pytest.raises(Mistake, match="tokenizer: specials <s>, <s> hold a name twice"):
        refuse(recipe)
    with pytest.raises(Mistake, match=r"tokenizer: specials need one for unknown text; add '\[UNK\]'"):
        refuse(Recipe(objective=MaskedLM(), tokenizer=WordPieces(specials=("[SEP]",))))
