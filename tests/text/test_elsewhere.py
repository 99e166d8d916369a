"""Tokenizers from elsewhere, and vocabularies that transformers loads: the same numbers on both sides."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import ByteLevelBPETokenizer, Tokenizer, decoders, models, pre_tokenizers

from headtohead.spec import Mistake, fingerprint
from headtohead.text.cache import prepare
from headtohead.text.elsewhere import save_for_transformers
from headtohead.text.examples import Lines
from headtohead.text.tokenizer import BytePairs, Characters, Given, WordPieces, Words
from headtohead.text.vocabulary import load_vocabulary

from .conftest import DATA
from .conftest import Given as Text

STUDY1 = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
SAMPLE = (
    "The quick brown fox, the lazy dog.\nthe the the fox\n\n  fox quick quick brown brown naïve Ñandú 日本 🦊\n" * 5
)
PIECES = WordPieces(200).train([SAMPLE])
TOKENIZERS = {
    "byte pairs": BytePairs(320),
    "study 1": BytePairs(320, specials=STUDY1),
    "word pieces": WordPieces(200),
    "cased": WordPieces(200, lower=False, specials=("[UNK]", "[MASK]", "[SEP]", "[CLS]", "[PAD]")),
    "characters": Characters(),
    "words": Words(1),
}
anything = st.text(max_size=60) | st.text("the quick\t fox ÑÉéİßﬁ日\u0301\u200b\x1c🦊", max_size=40)


@pytest.fixture(scope="module")
def bert():
    path = DATA / "vocab/bert-base-uncased.txt"
    if not path.exists():
        pytest.skip("bert-base-uncased.txt lies in ../shared/data, which is not here")
    return str(path)


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    """A byte-level tokenizer as others save it: pieces may hold line ends, and the special token comes last."""
    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train_from_iterator([SAMPLE * 3], vocab_size=330, special_tokens=[], show_progress=False)
    tokenizer.add_special_tokens(["<|endoftext|>"])
    path = tmp_path_factory.mktemp("gpt2") / "tokenizer.json"
    tokenizer.save(str(path))
    return str(path)


def ours(vocabulary, line):
    """A line's numbers between its marks, where there are two different ones."""
    ids = vocabulary.encode(line).ids.tolist()
    marks = vocabulary.marks
    own = marks is None or marks[0] == marks[1] or ids[:1] == [marks[0]]
    return ids if own else [marks[0], *ids, marks[1]]


def same_numbers(vocabulary, lines, folder, masks=False):
    from transformers import AutoTokenizer

    assert save_for_transformers(vocabulary, folder, masks)
    theirs = AutoTokenizer.from_pretrained(str(folder))
    assert theirs(lines)["input_ids"] == [ours(vocabulary, line) for line in lines]
    return theirs


@pytest.mark.parametrize("name", TOKENIZERS)
def test_transformers_loads_the_same_numbers(name, tmp_path):
    vocabulary = TOKENIZERS[name].train([SAMPLE])
    lines = [*[line for line in SAMPLE.split("\n") if line.strip()][:4], "unseen Wörter", "a\tb  c", "日", "x\x1cy"]
    theirs = same_numbers(vocabulary, lines, tmp_path, masks=True)
    assert theirs.mask_token_id == vocabulary.mask and theirs.pad_token_id == vocabulary.pad
    assert len(theirs) == vocabulary.size + (vocabulary.mask == vocabulary.size)


REAL = [(name, text) for name in ("study 1", "word pieces", "characters", "words") for text in ("esperanto", "hebrew")]


@pytest.mark.parametrize(
    ("name", "text"), [REAL[0], *(pytest.param(*pair, marks=pytest.mark.slow) for pair in REAL[1:])]
)
def test_transformers_agrees_on_ten_thousand_real_lines(name, text, real, tmp_path):
    lines = [line for line in Path(real(text)).read_text().split("\n") if line.strip()][:10_000]
    size = {"size": 2000} if name in ("study 1", "word pieces") else {}
    tokenizer = type(TOKENIZERS[name])(**{**{f: getattr(TOKENIZERS[name], f) for f in ("specials",) if size}, **size})
    same_numbers(tokenizer.train(["\n".join(lines)]), lines, tmp_path)


def test_transformers_own_bert_agrees_on_ten_thousand_lines(bert, real):
    from transformers import BertTokenizer

    vocabulary = Given(bert).train([])
    theirs = BertTokenizer(vocab=bert, do_lower_case=True)
    lines = [line for text in ("esperanto", "hebrew") for line in Path(real(text)).read_text().split("\n")][-10_000:]
    assert theirs(lines)["input_ids"] == [ours(vocabulary, line) for line in lines]
    assert (vocabulary.size, vocabulary.mask, vocabulary.pad, vocabulary.marks) == (30_522, 103, 0, (101, 102))
    assert (vocabulary.unknown, vocabulary.separator, vocabulary.specials) == (100, 102, (0, 101, 102, 103))


def test_byte_pairs_are_those_of_study_1s_own_trainer(real):
    text = Path(real("esperanto")).read_text()[:400_000]
    theirs = ByteLevelBPETokenizer()
    specials = list(STUDY1)
    theirs.train_from_iterator(
        text.split("\n"), vocab_size=3000, min_frequency=2, special_tokens=specials, show_progress=False
    )
    vocabulary = BytePairs(3000, specials=STUDY1).train([text])
    assert {name: number for number, name in enumerate((*vocabulary.names, *vocabulary.tokens))} == theirs.get_vocab()
    assert vocabulary.size == 3000


def test_the_roles_of_study_1s_special_tokens():
    vocabulary = BytePairs(320, specials=STUDY1).train([SAMPLE])
    assert (vocabulary.marks, vocabulary.pad, vocabulary.separator, vocabulary.mask) == ((0, 2), 1, 2, 4)
    assert vocabulary.specials == (0, 1, 2, 3, 4) and vocabulary.unknown is None
    assert vocabulary.plain.tolist() == list(range(5, vocabulary.size))


@pytest.mark.parametrize("specials", [("<pad>", "<|endoftext|>"), STUDY1, ("</s>",)])
@given(text=st.text() | st.sampled_from(["<s>", "<mask>a</s>", "\n\n \n", "<|endoftext|>"]))
def test_byte_pairs_give_every_text_back_whatever_the_specials(specials, text):
    vocabulary = _byte_pairs(specials)
    encoded = vocabulary.encode(text)
    assert vocabulary.decode(encoded.ids) == text and not np.isin(encoded.ids, vocabulary.specials).any()
    assert encoded.bytes.sum() == len(text.encode()) and encoded.characters.sum() == len(text)


def _byte_pairs(specials, made={}):  # noqa: B006 (one training for all examples)
    if specials not in made:
        made[specials] = BytePairs(300, specials=specials).train([SAMPLE])
    return made[specials]


@settings(deadline=None)
@given(st.lists(anything, min_size=1, max_size=5))
def test_pieces_cover_every_byte_of_the_raw_text(texts):
    encoded, counts = PIECES.encode_all(texts)
    assert encoded.bytes.sum() == len("".join(texts).encode()) and encoded.characters.sum() == len("".join(texts))
    assert counts.sum() == len(encoded.ids) == len(encoded.bytes) == len(encoded.characters)
    alone = [token for text in texts for token in PIECES.tokenizer.encode(text, add_special_tokens=False).ids]
    assert encoded.ids.tolist() == alone or not alone
    assert (encoded.bytes >= 0).all() and (encoded.characters >= 0).all()


def test_what_a_piece_covers():
    vocabulary = WordPieces(60, minimum_count=1).train(["éab ab"])
    encoded, counts = vocabulary.encode_all(["  ÉAB", "\n", "ab "])
    assert vocabulary.decode(encoded.ids) == "eab ab" and counts.tolist() == [1, 0, 1]
    assert encoded.bytes.tolist() == [2 + 4 + 1, 3] and encoded.characters.tolist() == [2 + 3 + 1, 3]


def test_word_pieces_by_hand():
    vocabulary = WordPieces(13, specials=("[UNK]", "[SEP]")).train(["hug Hug hugs bug"])
    numbers = vocabulary.tokenizer.get_vocab()
    # letters b h ##g ##s ##u; ##u ##g occurs 4 times, h ##ug 3 times, and no other pair twice
    assert sorted(numbers, key=numbers.get)[:2] == ["[UNK]", "[SEP]"] and len(numbers) == 9
    assert set(numbers) == {"[UNK]", "[SEP]", "b", "h", "##g", "##s", "##u", "##ug", "hug"}
    assert [vocabulary.decode([token]) for token in vocabulary.encode("HUGS bug x").ids] == [
        "hug",
        "##s",
        "b",
        "##ug",
        "[UNK]",
    ]


TRAINED = "import sys; from headtohead.text.tokenizer import *; from headtohead.spec import fingerprint; \
print(fingerprint(WordPieces(300).train([sys.argv[1]])))"


def test_word_pieces_are_the_same_in_every_process():
    seen = set()
    for seed in ("1", "2", "3"):
        command = [sys.executable, "-c", TRAINED, SAMPLE]
        environment = os.environ | {"PYTHONHASHSEED": seed}
        seen.add(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip())
    assert seen == {fingerprint(WordPieces(300).train([SAMPLE]))}


def test_a_given_tokenizer_keeps_lines_whole(gpt2):
    text = Text(("the fox\n\n\n quick  \nfox", "\n\nthe dog\n"), ("lazy\n \n\ndog", "fox\n"))
    tokens = prepare(text, Given(gpt2, mask=""))
    vocabulary = tokens.vocabulary
    assert (vocabulary.separator, vocabulary.specials, vocabulary.mask) == (
        vocabulary.size - 1,
        (vocabulary.size - 1,),
        vocabulary.size,
    )
    for split, lines in (
        (tokens.train, {"the fox", " quick  ", "fox", "\n\nthe dog"}),
        (tokens.validation, {"lazy", "dog", "fox"}),
    ):
        assert {vocabulary.decode(split.ids[a:b]) for a, b in split.lines} == lines
    whole = vocabulary.decode(tokens.validation.ids)
    assert (
        sorted([whole[: len("lazy\n \n\ndog")], whole[len("lazy\n \n\ndog") :]]) == ["fox\n", "lazy\n \n\ndog"]
        or whole == "fox\nlazy\n \n\ndog"
    )
    assert tokens.validation.bytes.sum() == len("lazy\n \n\ndogfox\n")
    fresh = sum(int(rows.bytes[rows.fresh].sum()) for rows in Lines().held_out(tokens, 9, 9, 2, 0))
    assert fresh == tokens.validation.bytes.sum()


def test_a_folder_of_transformers_is_read(tmp_path):
    vocabulary = WordPieces(200).train([SAMPLE])
    save_for_transformers(vocabulary, tmp_path, False)
    again = Given(str(tmp_path)).train([])
    assert again.encode(SAMPLE).ids.tolist() == vocabulary.encode(SAMPLE).ids.tolist() and again.mask == vocabulary.mask


def test_a_given_vocabulary_comes_back(tmp_path):
    PIECES.save(tmp_path / "vocabulary.json")
    assert load_vocabulary(tmp_path / "vocabulary.json") == PIECES


def test_a_changed_file_is_another_tokenizer(tmp_path):
    path = tmp_path / "vocab.txt"
    text = Text(("a b",), ("b a",))
    for pieces, expected in ((["[UNK]", "[SEP]", "a", "b"], [3, 2]), (["[UNK]", "[SEP]", "b", "a"], [2, 3])):
        path.write_text("\n".join(pieces) + "\n")
        tokens = prepare(text, Given(str(path), mask=""))
        assert tokens.validation.ids.tolist() == [1, *expected, 1]


def test_names_of_specials_in_a_text_are_text():
    assert not np.isin(PIECES.encode("the [MASK] fox [SEP]").ids, PIECES.specials).any()


def test_a_vocabulary_that_cannot_be_said_is_not_written(tmp_path):
    words = Words(1).train(["a <STOP> b"])
    assert not save_for_transformers(words, tmp_path, False) and not list(tmp_path.iterdir())
    merged = BytePairs(400, specials=("pad", "</s>")).train(["pad\npad\npad"])
    assert "pad" in merged.tokens and not save_for_transformers(merged, tmp_path, False)


def test_bare_characters_are_saved_too(tmp_path):
    same_numbers(Characters(bare=True).train([SAMPLE]), ["the fox"], tmp_path)
    assert json.loads((tmp_path / "special_tokens_map.json").read_text()) == {}


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("vocab.txt", "a\nb\n", r"has no \[UNK\]; give a vocab.txt"),
        ("vocab.txt", "[UNK]\na\na\n", "has a piece twice"),
        ("tokenizer.json", "{}", "is not a tokenizer.json"),
        ("none.txt", None, "cannot read a tokenizer at .*none.txt .*; name a vocab.txt"),
        ("folder/config.json", "{}", "transformers finds no tokenizer"),
        (
            "vocab.txt",
            "[UNK]\n[SEP]\na\n",
            r"has no special token '\[MASK\]' \(it has: \[UNK\], \[SEP\]\); set tokenizer.mask",
        ),
    ],
)
def test_what_is_no_tokenizer_is_told(tmp_path, name, content, said):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    if content is not None:
        path.write_text(content)
    with pytest.raises(Mistake, match=said) as caught:
        Given(str(path.parent if "folder" in name else path)).train([])
    assert "\n" not in str(caught.value)


def test_an_unfit_vocabulary_is_told():
    with pytest.raises(Mistake, match=r"BytePairs\(size=260\) cannot hold 5 special tokens and the 256 bytes; use 261"):
        BytePairs(260, specials=STUDY1).train([SAMPLE])
    with pytest.raises(Mistake, match=r"WordPieces\(size=20\) cannot hold"):
        WordPieces(20).train([SAMPLE])


def test_a_unigram_tokenizer_is_read_too(tmp_path):
    scores = [("<unk>", 0.0), ("▁the", -1.0), ("▁f", -2.0), ("ox", -2.0), ("</s>", 0.0)]
    tokenizer = Tokenizer(models.Unigram(scores, unk_id=0))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    tokenizer.add_special_tokens(["<unk>", "</s>"])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    tokens = prepare(Text(("the fox\nthe é\n",), ("fox the\n",)), Given(str(tmp_path / "tokenizer.json"), mask=""))
    assert tokens.validation.ids.tolist() == [4, 2, 3, 1, 0, 4]  # to this one the end of a line is unknown text
    assert tokens.validation.bytes.tolist() == [0, 1, 2, 4, 1, 0] and tokens.train.bytes.sum() == 15
    assert [tokens.train.ids[a:b].tolist() for a, b in tokens.train.lines] == [[1, 2, 3], [1, 0]]
