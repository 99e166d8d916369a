"""Two texts in a row: what is paired, what is cut off, and that held out nothing is lost."""

import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small import tiny

from headtohead import CausalLM, Embedding, MaskedLM, at
from headtohead.spec import Mistake
from headtohead.study import refuse
from headtohead.text import pairs
from headtohead.text.cache import prepare
from headtohead.text.pairs import ElectraPairs, Pairs
from headtohead.text.tokenizer import BytePairs, Characters, Words

from .conftest import Given

WORDS = "one two three four five six seven eight nine ten".split()  # noqa: SIM905
DRAW = random.Random(4)
DOCUMENTS = [
    "".join(" ".join(DRAW.choices(WORDS, k=DRAW.randint(1, 30))) + "\n" for _ in range(n)) for n in (9, 1, 25, 6)
]
TEXT = Given(tuple(DOCUMENTS), ("ten nine\n\neight\n" * 4, DOCUMENTS[0][::-1], "one", DOCUMENTS[2][40:]))
TOKENIZERS = [Words(1), BytePairs(290, specials=("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")), Characters()]
PAD, START, STOP = 0, 2, 3


def taken_apart(rows):
    """The two texts of each row without their marks; checks what stands around them."""
    found = []
    for ids, document, segments in zip(rows.ids, rows.document, rows.segments, strict=True):
        real = ids[document == 0].tolist()
        assert (ids[document < 0] == PAD).all() and real[0] == START and real[-1] == STOP
        stops = [place for place, token in enumerate(real) if token == STOP]
        assert len(stops) in (1, 2) and STOP not in real[1 : stops[0]]
        assert segments.tolist() == [int(place > stops[0]) for place in range(len(ids))]
        found.append((tuple(real[1 : stops[0]]), tuple(real[stops[0] + 1 : -1])))
    return found


@given(st.integers(3, 12), st.integers(1, 5), st.integers(0, 3))
@settings(deadline=None)
def test_every_line_is_in_one_pair_an_epoch(segment, count, seed):
    tokens = prepare(TEXT, Words(1))
    lines = sorted(tuple(tokens.train.ids[a:b][: segment - 2].tolist()) for a, b in tokens.train.lines)
    each = len(lines) // 2
    assert len(lines) == 41  # an odd number: one is left out
    read = [
        pair
        for i in range(-(-2 * each // count))
        for pair in taken_apart(Pairs(segment).rows(tokens, 2 * segment, count, seed, i))
    ]
    for epoch in range(2):
        seen = sorted(text for pair in read[epoch * each : (epoch + 1) * each] for text in pair)
        left = list(lines)
        for text in seen:
            left.remove(text)
        assert len(left) == 1
    assert read[:each] != read[each : 2 * each]
    assert all(text for pair in read for text in pair)


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@pytest.mark.parametrize("part", [Pairs(5), Pairs(12), ElectraPairs()])
@settings(deadline=None, max_examples=20)
@given(width=st.integers(23, 40), batch=st.integers(1, 9), ahead=st.integers(0, 1))
def test_held_out_every_token_counts_once(tokenizer, part, width, batch, ahead):
    tokens = prepare(TEXT, tokenizer)
    split, specials = tokens.validation, tokens.vocabulary.specials
    got = list(part.held_out(tokens, width, 7, batch, ahead))
    shown = [rows.fresh & ~np.isin(rows.ids, specials) for rows in got]
    read = sorted(
        (source, token)
        for rows, seen in zip(got, shown, strict=True)
        for source, token in zip(rows.source[seen].tolist(), rows.ids[seen].tolist(), strict=True)
    )
    line = [np.searchsorted(split.documents, a, side="right") - 1 for a, _ in split.lines]
    ids = [split.ids[a:b].tolist() for a, b in split.lines]
    assert read == sorted((int(number), token) for number, text in zip(line, ids, strict=True) for token in text)
    for name in ("bytes", "characters"):
        covered = sum(int(getattr(rows, name)[rows.fresh].sum()) for rows in got)
        assert covered == int(getattr(split, name).sum())
        assert not any(getattr(rows, name)[rows.document < 0].any() for rows in got)
    assert all(((rows.source == -1) == (rows.document == -1)).all() for rows in got)


def test_electra_pairs_of_held_out_text_are_neighbours():
    tokens = prepare(TEXT, Words(1))
    split = tokens.validation
    stream = "".join(map(chr, split.ids[~np.isin(split.ids, (START, STOP))]))
    for rows in ElectraPairs().held_out(tokens, 21, 21, 4, 0):
        for (one, two), source in zip(taken_apart(rows), rows.source, strict=True):
            assert "".join(map(chr, (*one, *two))) in stream and len({*source.tolist()} - {-1}) == 1


def built_by_hand(lengths, borders, width, draw, part):
    """ELECTRA's builder from its description, on lengths alone: (lines of the first text, lines of the second) a row."""
    rows, gathered, target = [], [], width
    for line, length in enumerate(lengths):
        gathered.append((line, length))
        if sum(size for _, size in gathered) < target and line + 1 not in borders:
            continue
        half = 10**5 if next(draw) < part.single else (target - 3) // 2
        one, two = [], []
        for number, size in gathered:
            have = sum(lengths[n] for n in one)
            if not one or have + size < half or (not two and have < half and next(draw) < 0.5):
                one.append(number)
            else:
                two.append(number)
        rows.append((one, two))
        gathered = []
        target = 5 + int(next(draw) * (width - 4)) if next(draw) < part.short else width
    return rows


@settings(deadline=None)
@given(
    st.integers(5, 60),
    st.integers(0, 3),
    st.sampled_from([ElectraPairs(), ElectraPairs(0.5, 0.5), ElectraPairs(0.0, 1.0)]),
)
def test_electras_builder(width, seed, part):
    tokens = prepare(TEXT, Words(1))
    split = tokens.train
    lines = [split.ids[a:b].tolist() for a, b in split.lines]
    document = [int(np.searchsorted(split.documents, a, side="right")) for a, _ in split.lines]
    borders = {n for n, (one, two) in enumerate(pairwise(document), 1) if one != two} | {len(lines)}
    draw = pairs._uniform(f"{seed}/data/pairs")
    expected = []
    for one, two in built_by_hand(list(map(len, lines)), borders, width, draw, part):
        first = [token for number in one for token in lines[number]][: width - 2]
        second = [token for number in two for token in lines[number]][: max(0, width - len(first) - 3)]
        expected.append((tuple(first), tuple(second)))
    read = [taken_apart(part.rows(tokens, width, 1, seed, i))[0] for i in range(2 * len(expected))]
    assert sorted(read[: len(expected)]) == sorted(expected) == sorted(read[len(expected) :])
    assert all(len(one) + len(two) + 2 + bool(two) <= width for one, two in read)


def test_the_shares_of_electras_builder():
    long = "".join("a b c d e f g\n" for _ in range(40_000))
    tokens = prepare(Given((long,), ("a b\n",)), Words(1))
    built = pairs._built(tokens, 64, ElectraPairs(), 0)
    sizes = np.diff(built.ends, prepend=0)
    alone = [bool(built.first[end - size : end].all()) for end, size in zip(built.ends, sizes, strict=True)]
    full = sizes == 10  # seven words a line: ten lines reach 64
    trials = len(sizes)
    assert abs(1 - full.mean() - 0.05 * (1 - 7 / 60)) < 4 * (0.05 / trials) ** 0.5  # a target from 64 down to 64
    singles = np.array(alone)[full].mean()
    assert abs(singles - 0.1) < 4 * (0.09 / full.sum()) ** 0.5


def test_uniform_numbers_are_uniform_and_below_one():
    draw = pairs._uniform("a name")
    found = np.array([next(draw) for _ in range(10_000)])
    assert found.min() >= 0 and found.max() < 1 and abs(found.mean() - 0.5) < 4 * (1 / 12 / 10_000) ** 0.5
    assert len(np.unique(found)) == 10_000


@pytest.mark.parametrize("objective", [MaskedLM(), CausalLM()])
def test_segments_reach_the_batch(objective):
    tokens = prepare(TEXT, Words(1))
    rows = Pairs(6).rows(tokens, 16 + objective.ahead, 4, 0, 0)
    batch = objective.prepare(rows, np.random.default_rng(0), tokens.vocabulary)
    assert batch.segments.tolist() == rows.segments[:, :16].tolist() and batch.segments.shape == batch.ids.shape


def test_what_cannot_be_paired_is_told():
    tokens = prepare(TEXT, Words(1))
    with pytest.raises(Mistake, match="two segments of 64 need a length of 127, not 100"):
        Pairs().check(tokens, 100)
    with pytest.raises(Mistake, match="has one line to train on and a pair needs two"):
        Pairs(4).check(prepare(Given(("a b",), ("a",)), Words(1)), 9)
    with pytest.raises(Mistake, match="a row of 4 tokens holds no pair"):
        ElectraPairs().check(tokens, 4)
    recipe = tiny(objective=MaskedLM(), examples=Pairs(4))
    refuse(recipe)
    with pytest.raises(Mistake, match=r"examples: a row has two segments, and model\.embedding\.segments = 1"):
        refuse(at(recipe, {"model.embedding": Embedding(segments=1)}))
    with pytest.raises(Mistake, match="examples: segment = 2 holds no text"):
        refuse(at(recipe, {"examples": Pairs(2)}))
    with pytest.raises(Mistake, match="shares between 0 and 1"):
        refuse(at(recipe, {"examples": ElectraPairs(single=1.5)}))
