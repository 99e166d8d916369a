"""Held-out text: known probabilities give known figures, every token counts once, and nothing depends on batches."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from small import tiny
from torch import nn

from headtohead import BytePairs, CausalLM, Characters, Custom, Everyone, File, Lines, MaskedLM, Rows, Words, at
from headtohead.measure import likelihood as module
from headtohead.measure.likelihood import held_out, likelihood, unigram
from headtohead.objectives import Prediction
from headtohead.text.cache import evaluated, prepare
from headtohead.text.corpus import open_corpus

LENGTH = 12


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Thirty documents of a few lines, some letters of which take two or three bytes."""
    place, draw = tmp_path_factory.mktemp("documents"), np.random.default_rng(3)
    words = "no naïve café owner ever had seven teas – or none – at noon on an even day".split()  # noqa: SIM905 (a sentence)
    for number in range(30):
        lines = [" ".join(draw.choice(words, draw.integers(2, 8))) for _ in range(draw.integers(1, 6))]
        (place / f"{number}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return place


@pytest.fixture(params=["documents", "one"])
def recipe(request, folder, prose):
    """A recipe over many documents, and over one long text."""
    path = folder if request.param == "documents" else prose
    return at(tiny(text=File(str(path)), tokenizer=Characters()), {"length": LENGTH})


def tokens_of(recipe):
    return prepare(recipe.text, recipe.tokenizer)


class Uniform(nn.Module):
    """Every token is as likely as any other."""

    def __init__(self, size):
        super().__init__()
        self.level = nn.Parameter(torch.zeros(size.vocabulary))

    def forward(self, ids):
        return self.level.expand(*ids.shape, -1)


class Bigram(nn.Module):
    """A table: the next token given this one alone."""

    def __init__(self, size):
        super().__init__()
        self.table = nn.Embedding(size.vocabulary, size.vocabulary)

    def forward(self, ids):
        return self.table(ids)


class Sum(Bigram):
    """The row of the table is chosen by the sum of all tokens so far in the window: the context matters."""

    def forward(self, ids):
        return self.table(ids.cumsum(1) % self.table.num_embeddings)


def measured(recipe, cls, stride, train=False):
    tokens = tokens_of(recipe)
    learner = at(recipe, {"model": Custom(cls)}).learner(tokens.vocabulary.size, 0)
    learner.train(train)
    return likelihood(learner, recipe, tokens, stride), tokens, learner


def table_of(learner):
    """ln p of the next token for each row of the table, in float64."""
    return torch.log_softmax(learner.model.inner.table.weight.detach().double(), -1).numpy()


def text_bytes(tokens, recipe):
    documents = list(evaluated(open_corpus(recipe.text, recipe.split), tokens))
    return [len(text.encode()) for text in documents], [len(text) for text in documents]


@pytest.mark.parametrize("stride", [1, LENGTH // 2, LENGTH])
def test_a_uniform_model_has_ln_v(recipe, stride):
    result, tokens, _ = measured(recipe, Uniform, stride)
    size, count = tokens.vocabulary.size, len(tokens.validation.ids) - 1
    figures, (sizes, lengths) = result.figures, text_bytes(tokens, recipe)
    missed = int(tokens.validation.bytes[0])  # the first token of all has nothing before it
    assert figures["loss"] == pytest.approx(math.log(size), rel=1e-6)
    assert figures["perplexity"] == pytest.approx(size, rel=1e-5)
    assert figures["scored_tokens"] == count
    assert figures["bits_per_byte"] == pytest.approx(math.log2(size) * count / (sum(sizes) - missed), rel=1e-6)
    assert figures["bits_per_character"] == pytest.approx(math.log2(size) * count / (sum(lengths) - missed), rel=1e-6)


def test_the_methods_oracle():
    """V = 16: 2.772589 nats, perplexity 16, and 4 bits a byte at one byte a token."""
    learner = Prediction(Custom(Uniform).build(tiny().size(16))).eval()
    batch = CausalLM().prepare(rows_of(np.arange(13)[None] % 16), np.random.default_rng(0), None)
    nll = learner.score(batch).double()
    assert float(nll.detach().mean()) == pytest.approx(2.772589, abs=1e-6)
    assert float(nll.detach().mean()) / math.log(2) == pytest.approx(4.0)


def rows_of(ids):
    return Rows(ids, np.arange(ids.shape[1])[None], np.zeros((1, ids.shape[1]), dtype=np.int64))


@pytest.mark.parametrize("stride", [1, 5, LENGTH // 2, LENGTH])
def test_a_bigram_table_gives_the_sum_by_hand(recipe, stride):
    """However the text is cut into windows, since one token before is all that counts; and document by document."""
    result, tokens, learner = measured(recipe, Bigram, stride)
    log_p, ids = table_of(learner), tokens.validation.ids.astype(int)
    nll = -log_p[ids[:-1], ids[1:]]
    assert result.figures["loss"] == pytest.approx(nll.mean(), rel=1e-6)
    assert result.figures["perplexity"] == pytest.approx(math.exp(nll.mean()), rel=1e-5)
    sizes, lengths = tokens.validation.bytes.astype(int), tokens.validation.characters.astype(int)
    assert result.figures["bits_per_byte"] == pytest.approx(nll.sum() / math.log(2) / sizes[1:].sum(), rel=1e-6)
    borders = tokens.validation.documents
    for number, (first, last) in enumerate(pairwise(borders)):
        mine = slice(max(first, 1), last)
        assert result.documents["nll"][number] == pytest.approx(nll[max(first, 1) - 1 : last - 1].sum(), rel=1e-5)
        assert result.documents["tokens"][number] == len(ids[mine])
        assert result.documents["bytes"][number] == sizes[mine].sum()
        assert result.documents["characters"][number] == lengths[mine].sum()
    assert len(result.documents["nll"]) == len(borders) - 1


def by_hand(ids, log_p, stride):
    """Windows of LENGTH + 1 tokens, one every `stride`, the last one at the end; each token in the first that has it."""
    starts = [*range(0, len(ids) - LENGTH - 1, stride), len(ids) - LENGTH - 1]
    found = {}
    for start in starts:
        total = 0
        for place in range(start, start + LENGTH):
            total = (total + ids[place]) % len(log_p)
            found.setdefault(place + 1, -log_p[total, ids[place + 1]])
    assert sorted(found) == list(range(1, len(ids)))
    return found


@pytest.mark.parametrize("stride", [1, 5, LENGTH // 2, LENGTH])
def test_windows_give_the_sum_by_hand(recipe, stride):
    """A model that remembers the whole window: which window a token is scored in changes its loss."""
    result, tokens, learner = measured(recipe, Sum, stride)
    found = by_hand(tokens.validation.ids.astype(int).tolist(), table_of(learner), stride)
    assert result.figures["loss"] == pytest.approx(sum(found.values()) / len(found), rel=1e-6)


def test_the_stride_matters_to_a_model_with_a_memory(recipe):
    assert measured(recipe, Sum, 5)[0].figures["loss"] != measured(recipe, Sum, LENGTH)[0].figures["loss"]


@pytest.mark.parametrize("stride", [1, 7, LENGTH])
@pytest.mark.parametrize("tokenizer", [Characters(), BytePairs(size=300), Words(minimum_count=1)])
def test_every_token_is_scored_once(recipe, tokenizer, stride):
    recipe = at(recipe, {"tokenizer": tokenizer})
    tokens, places = tokens_of(recipe), []
    for exam in held_out(recipe, tokens, stride):
        assert (exam.batch.weight == 1).all()
        places += exam.batch.target.tolist()
    assert sorted(places) == sorted(tokens.validation.ids[1:].tolist())
    result, _, _ = measured(recipe, Bigram, stride)
    assert result.documents["tokens"].sum() == len(tokens.validation.ids) - 1
    sizes, lengths = text_bytes(tokens, recipe)
    missed = int(tokens.validation.bytes[0]), int(tokens.validation.characters[0])
    assert result.documents["bytes"].sum() == sum(sizes) - missed[0]
    assert result.documents["characters"].sum() == sum(lengths) - missed[1]
    assert result.documents["document"].tolist() == list(range(len(sizes)))


def test_the_columns_of_the_documents_add_up(recipe):
    result, _, _ = measured(recipe, Sum, LENGTH)
    columns, figures = result.documents, result.figures
    assert columns["nll"].sum() / columns["tokens"].sum() == pytest.approx(figures["loss"], rel=1e-12)
    assert columns["tokens"].sum() == figures["scored_tokens"]
    bits = columns["nll"].sum() / math.log(2)
    assert bits / columns["bytes"].sum() == pytest.approx(figures["bits_per_byte"], rel=1e-12)
    assert bits / columns["characters"].sum() == pytest.approx(figures["bits_per_character"], rel=1e-12)


@pytest.mark.parametrize("examples", [None, Lines()])
@pytest.mark.parametrize("objective", [CausalLM(), MaskedLM()])
def test_the_batch_has_no_say(recipe, objective, examples, monkeypatch):
    """A real network, batches of 32 rows, of 5 and of 1; padding and masks included."""
    changes = {"objective": objective} | ({} if examples is None else {"examples": examples})
    if objective.masks:
        changes["model.attention.visibility"] = Everyone()
    recipe = at(recipe, changes)
    tokens = tokens_of(recipe)
    learner = recipe.learner(tokens.vocabulary.size, 0).eval()
    results = []
    for rows in (32, 5, 1):
        monkeypatch.setattr(module, "ROWS", rows)
        results.append(likelihood(learner, recipe, tokens, LENGTH))
    for result in results[1:]:
        assert result.figures["loss"] == pytest.approx(results[0].figures["loss"], rel=1e-6)
        for name in ("tokens", "bytes", "characters"):
            assert np.array_equal(result.documents[name], results[0].documents[name])
        np.testing.assert_allclose(result.documents["nll"], results[0].documents["nll"], rtol=1e-5)


def test_training_mode_is_refused(recipe):
    with pytest.raises(RuntimeError, match="evaluation mode"):
        measured(recipe, Bigram, LENGTH, train=True)

    class Half(Bigram):
        def eval(self):
            return self

    with pytest.raises(RuntimeError, match="evaluation mode"):
        tokens = tokens_of(recipe)
        learner = at(recipe, {"model": Custom(Half)}).learner(tokens.vocabulary.size, 0).eval()
        learner.model.inner.train()
        likelihood(learner, recipe, tokens, LENGTH)


def test_masked_tokens_have_no_bits_per_byte(recipe):
    recipe = at(recipe, {"objective": MaskedLM()})
    result, tokens, _ = measured(recipe, Uniform, LENGTH)
    figures = result.figures
    assert figures["loss"] == pytest.approx(math.log(tokens.vocabulary.size + 1), rel=1e-6)  # and the mask
    assert not {"bits_per_byte", "bits_per_character"} & figures.keys()
    plain = ~np.isin(tokens.validation.ids, tokens.vocabulary.specials)
    assert 4 * 0.15 * plain.sum() <= figures["scored_tokens"] <= 4 * (0.15 * plain.sum() + plain.size / LENGTH + 1)


def test_the_unigram_loss_is_of_training_counts_plus_one(recipe):
    result, tokens, _ = measured(recipe, Uniform, LENGTH)
    counts = {number: 1 for number in range(tokens.vocabulary.size)}
    for number in tokens.train.ids.tolist():
        counts[number] += 1
    total = sum(counts.values())
    target = tokens.validation.ids[1:].tolist()
    expected = -sum(math.log(counts[number] / total) for number in target) / len(target)
    assert result.figures["unigram"] == pytest.approx(expected, rel=1e-9)
    assert unigram(tokens, np.array(target)) == pytest.approx(expected, rel=1e-9)


def test_what_was_scored_has_a_hash(folder):
    recipe = at(tiny(text=File(str(folder)), tokenizer=Characters()), {"length": LENGTH})

    def mark(recipe, cls, stride):
        return measured(recipe, cls, stride)[0].figures["evaluation"]

    one = mark(recipe, Uniform, LENGTH)
    assert one == mark(recipe, Bigram, LENGTH) == mark(recipe, Bigram, 3)
    assert one != mark(at(recipe, {"held_out": 20}), Uniform, LENGTH)
    assert one != mark(at(recipe, {"objective": MaskedLM()}), Uniform, LENGTH)


def test_a_limit_keeps_whole_documents(folder):
    recipe = at(tiny(text=File(str(folder)), tokenizer=Characters()), {"length": LENGTH, "held_out": 150})
    whole, _, _ = measured(at(recipe, {"held_out": 0}), Bigram, LENGTH)
    part, _, _ = measured(recipe, Bigram, LENGTH)
    kept = len(part.documents["tokens"])
    assert 0 < kept < len(whole.documents["tokens"])
    assert np.array_equal(part.documents["tokens"], whole.documents["tokens"][:kept])
    np.testing.assert_allclose(part.documents["nll"], whole.documents["nll"][:kept], rtol=1e-6)
    assert part.documents["bytes"].sum() <= 150 < whole.documents["bytes"][: kept + 1].sum()


def test_an_infinite_loss_is_told_as_it_is(recipe):
    class Sure(Uniform):
        def forward(self, ids):
            return (1e9 * torch.nn.functional.one_hot(ids, len(self.level))).float() + self.level

    figures = measured(recipe, Sure, LENGTH)[0].figures
    assert figures["loss"] > 1e6 and math.isfinite(figures["perplexity"])
