"""A trained run looked at from Python: scores of texts longer than the context, and samples at every temperature."""

import math

import pytest
import torch
from small import VOCABULARY, tiny

from headtohead import BytePairs, File, MaskedLM
from headtohead.inspection import Trained, load
from headtohead.run import Run, claimed
from headtohead.sentences import ROWS
from headtohead.spec import Mistake
from headtohead.train import Route


def trained(changes=None, **more):
    recipe = tiny(changes, **more)
    return Trained(recipe, VOCABULARY, recipe.learner(VOCABULARY.size, 0).eval())


@pytest.fixture
def causal():
    return trained()


TEXT = "abcdefghgfedcbaabdhace"


@pytest.mark.parametrize("count", [2, 3, 5, 6, 7, 8, 9, 10, 13, 22])
def test_every_token_is_scored_with_half_the_context_at_least(causal, count):
    """By hand: the plain logits of the row that starts where the stride says, one token at a time."""
    text, length = TEXT[:count], causal.recipe.length
    found, ids = causal.score(text), causal.encode(text)
    assert found["tokens"] == list(text) and found["nll"][0] is None
    for i, nll in enumerate(found["nll"][1:], 1):
        first = max(0, math.ceil((i - length) / (length // 2))) * (length // 2)
        assert i - first >= length // 2 or first == 0
        logits = causal.logits(ids[:, first:i])[0, -1]
        assert nll == pytest.approx(-torch.log_softmax(logits.double(), 0)[ids[0, i]].item(), rel=1e-5)
    assert found["loss"] == pytest.approx(sum(found["nll"][1:]) / (count - 1))
    assert found["perplexity"] == pytest.approx(math.exp(found["loss"]))


@pytest.mark.parametrize(("length", "count"), [(6, 1), (6, 6), (6, 7), (6, 15), (ROWS + 5, ROWS + 9)])
def test_a_masked_model_has_each_token_masked_in_turn(length, count):
    run = trained({"length": length}, objective=MaskedLM())
    text = (TEXT * 2)[:count]
    found, ids = run.score(text), run.encode(text)[0]
    for i, nll in enumerate(found["nll"]):
        row = ids[i // length * length :][:length].clone()
        row[i % length] = VOCABULARY.size
        logits = run.logits(row[None])[0, i % length]
        assert nll == pytest.approx(-torch.log_softmax(logits.double(), 0)[ids[i]].item(), rel=1e-5)


def test_a_temperature_of_zero_takes_the_likeliest(causal):
    ids = causal.encode("abc")
    for _ in range(9):
        likeliest = causal.logits(ids[:, -causal.recipe.length :])[0, -1, : VOCABULARY.size].argmax()
        ids = torch.cat([ids, likeliest[None, None]], 1)
    wanted = causal.tokenizer.decode(ids[0].numpy())
    assert {causal.sample("abc", 9, temperature, seed) for temperature in (0, 1e-300) for seed in (0, 1)} == {wanted}


def test_samples_are_drawn_from_the_models_probabilities(causal):
    """1,000 draws of one token at temperature 2, against softmax(logits / 2)."""
    logits = causal.logits(causal.encode("abc"))[0, -1, : VOCABULARY.size]
    wanted = torch.softmax(logits.double() / 2, 0)
    drawn = [causal.encode(causal.sample("abc", 1, 2.0, seed))[0] for seed in range(1000)]
    seen = torch.zeros(VOCABULARY.size)
    for ids in drawn:
        if len(ids) > 3:  # specials are silent
            seen[ids[3]] += 1
    assert (seen[2:] / 1000 - wanted[2:]).abs().max() < 4 * (0.25 / 1000) ** 0.5


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda run: run.score(""), "the text is empty"),
        (lambda run: run.score("a"), "a single token has nothing before it"),
        (lambda run: run.score("a\udcff"), "not UTF-8"),
        (lambda run: run.sample(""), "the text is empty"),
        (lambda run: run.sample("a", -1), "tokens = -1 must be at least 0"),
        (lambda run: run.sample("a", 1, -0.1), "temperature -0.1 must be a number from 0 on"),
        (lambda run: run.sample("a", 1, math.nan), "temperature nan must be a number from 0 on"),
        (lambda run: run.sample("a", 1, math.inf), "temperature inf must be a number from 0 on"),
        (lambda run: run.attention("abcdefg"), "the text has 7 tokens, and the model sees 6 at a time"),
    ],
)
def test_what_cannot_be_asked_is_told(causal, call, told):
    with pytest.raises(Mistake, match=told):
        call(causal)


def test_a_masked_model_does_not_go_on():
    with pytest.raises(Mistake, match="sample a CausalLM run"):
        trained(objective=MaskedLM()).sample("abc")


def test_a_prompt_may_be_longer_than_the_context_and_hold_what_is_unknown(causal):
    assert causal.sample(TEXT * 3, 0) == TEXT * 3
    assert causal.sample(TEXT * 3, 4).startswith(TEXT * 3)
    assert causal.unknown("abc") == 0 and causal.unknown("a€ß") == 2
    assert causal.sample("€", 0) and math.isfinite(causal.score("€ß€")["loss"])


def test_a_runs_vocabulary_is_its_own_and_that_of_transformers(prose, tmp_path):
    from transformers import AutoTokenizer

    specials = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
    tokenizer = BytePairs(300, specials=specials)
    recipe = tiny({"steps": 2}, text=File(str(prose)), tokenizer=tokenizer, objective=MaskedLM(), held_out=500)
    with claimed(tmp_path):
        Run(tmp_path, recipe, 0, Route()).execute()
    run, theirs = load(tmp_path.parent / tmp_path.name), AutoTokenizer.from_pretrained(str(tmp_path))
    line = "the cat runs by night"
    assert theirs(line)["input_ids"] == [0, *run.encode(line)[0].tolist(), 2] and theirs.mask_token_id == 4
    table = run.model.embedding.token.weight
    assert len(table) == run.tokenizer.size == len(theirs) == 300  # the mask is one of them, and has no second row
    assert len(run.score(line)["nll"]) == len(run.encode(line)[0])
