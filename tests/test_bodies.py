"""The published bodies: as many parameters as published and as transformers counts, and transformers' own logits."""

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from theirs import put, shaken
from torch import nn

from headtohead import (
    Pooled,
    Size,
    Transformer,
    albert,
    at,
    bert,
    characters,
    electra,
    electra_generator,
    gpt2,
    roberta,
)


def count(model: Transformer, vocabulary: int, length: int) -> int:
    """Parameters of a body at a number of token rows, the mask's among them."""
    with torch.device("meta"):
        network = model.make(model.complete(Size(vocabulary=vocabulary, length=length)), 0)
    return numbers(network)


def numbers(network: nn.Module) -> int:
    return sum(p.numel() for p in network.parameters())


def counted(cls, **more):
    """transformers' model on the meta device, and how many parameters it says it has."""
    with torch.device("meta"):
        return cls(cls.config_class(**more)).num_parameters()


SMALL = {"hidden_size": 256, "num_attention_heads": 4, "intermediate_size": 1024, "num_hidden_layers": 12}


@pytest.mark.parametrize(
    ("model", "length", "cls", "config", "published"),
    [
        (
            roberta(6),
            512,
            transformers.RobertaForMaskedLM,
            {"num_hidden_layers": 6, "vocab_size": 52_032, "max_position_embeddings": 514, "type_vocab_size": 1},
            83_529_024,
        ),
        (
            roberta(),
            512,
            transformers.RobertaForMaskedLM,
            {"vocab_size": 50_265, "max_position_embeddings": 514, "type_vocab_size": 1},
            124_697_433,
        ),
        (
            roberta(24, 16, 1024),
            512,
            transformers.RobertaForMaskedLM,
            {
                "vocab_size": 50_265,
                "max_position_embeddings": 514,
                "type_vocab_size": 1,
                "hidden_size": 1024,
                "num_hidden_layers": 24,
                "num_attention_heads": 16,
                "intermediate_size": 4096,
            },
            355_412_057,
        ),
        (bert(), 512, transformers.BertForMaskedLM, {}, 109_514_298),
        # study 4's BERT-small, which nobody published a count of
        (bert(12, 4, 256), 128, transformers.BertForMaskedLM, SMALL | {"max_position_embeddings": 128}, None),
        (electra(), 512, transformers.ElectraForPreTraining, {}, 13_549_057),
        (
            electra_generator(),
            512,
            transformers.ElectraForMaskedLM,
            {"hidden_size": 64, "num_attention_heads": 1, "intermediate_size": 256},
            None,
        ),
        (
            albert(),
            128,
            transformers.AlbertForMaskedLM,
            SMALL | {"vocab_size": 30_522, "embedding_size": 128, "max_position_embeddings": 128},
            None,
        ),
        (
            albert(groups=3),
            128,
            transformers.AlbertForMaskedLM,
            SMALL
            | {"vocab_size": 30_522, "embedding_size": 128, "max_position_embeddings": 128, "num_hidden_groups": 3},
            None,
        ),
        (gpt2(), 1024, transformers.GPT2LMHeadModel, {}, 124_439_808),
    ],
)
def test_counts_are_transformers(model, length, cls, config, published):
    with torch.device("meta"):
        vocabulary = cls.config_class(**config).vocab_size
    ours = count(model, vocabulary, length)
    assert ours == counted(cls, **config)
    assert published in (None, ours)


def test_counts_that_leave_out_the_head():
    """Study 4's encoder, its ALBERT with a pooler, and minGPT's gpt-nano of study 3."""
    disc = electra(embedding=256)
    with torch.device("meta"):
        size = Size(vocabulary=30_522, length=128)
        whole = disc.make(disc.complete(size), 0)
        pooled = at(albert(), {"head": Pooled()})
        small = pooled.make(pooled.complete(size), 0)
        config = transformers.AlbertConfig(vocab_size=30_522, embedding_size=128, max_position_embeddings=128, **SMALL)
        theirs = transformers.AlbertModel(config)
    assert numbers(whole) - numbers(whole.head) == 17_324_544
    assert numbers(small) - numbers(small.head.out) == 4_812_288 == theirs.num_parameters()
    assert count(gpt2(3, 3, 48), 26_602, 1024) == 1_410_960  # a tied head has no numbers of its own


def test_study_fives_model():
    assert count(characters(), 67, 128) == 6_723_715


def test_the_studys_generator_has_one_head_and_a_narrow_feed_forward():
    model = at(electra_generator(3, 1, 256, 256), {"feedforward.ratio": 1.0})
    config = {"hidden_size": 256, "embedding_size": 256, "intermediate_size": 256, "num_hidden_layers": 3}
    config |= {"num_attention_heads": 1, "max_position_embeddings": 128}
    assert count(model, 30_522, 128) == counted(transformers.ElectraForMaskedLM, **config)


FAMILIES = {
    "bert": (bert, transformers.BertForMaskedLM),
    "roberta": (roberta, transformers.RobertaForMaskedLM),
    "electra": (electra, transformers.ElectraForPreTraining),
    "electra_generator": (electra_generator, transformers.ElectraForMaskedLM),
    "albert": (albert, transformers.AlbertForMaskedLM),
    "gpt2": (gpt2, transformers.GPT2LMHeadModel),
}


@st.composite
def shapes(draw):
    heads = draw(st.sampled_from((1, 2, 4)))
    return {
        "layers": draw(st.integers(1, 4)),
        "heads": heads,
        "width": heads * draw(st.sampled_from((4, 8, 12))),
        "embedding": draw(st.sampled_from((5, 10))),  # never a width: ALBERT has its map even where it is none
        "groups": draw(st.integers(1, 4)),
        "ratio": draw(st.sampled_from((1.0, 4.0))),
        "vocabulary": draw(st.integers(8, 40)),
        "length": draw(st.integers(2, 20)),
        "segments": draw(st.integers(1, 3)),
        "seed": draw(st.integers(0, 999)),
    }


def ours_of(family, shape):
    more = {"embedding": shape["embedding"]} if family in ("electra", "electra_generator", "albert") else {}
    more |= {"groups": min(shape["groups"], shape["layers"])} if family == "albert" else {}
    model = FAMILIES[family][0](shape["layers"], shape["heads"], shape["width"], **more)
    changes = {"feedforward.ratio": shape["ratio"]} | (
        {} if family == "gpt2" else {"embedding.segments": shape["segments"]}
    )
    return at(model, changes)


def theirs_of(family, shape):
    cls = FAMILIES[family][1]
    inner = round(shape["ratio"] * shape["width"])
    if family == "gpt2":
        return cls(
            transformers.GPT2Config(
                n_layer=shape["layers"],
                n_head=shape["heads"],
                n_embd=shape["width"],
                n_inner=inner,
                vocab_size=shape["vocabulary"],
                n_positions=shape["length"],
                bos_token_id=0,
                eos_token_id=0,
            )
        )
    config = {
        "num_hidden_layers": shape["layers"],
        "num_attention_heads": shape["heads"],
        "hidden_size": shape["width"],
        "intermediate_size": inner,
        "vocab_size": shape["vocabulary"],
        "type_vocab_size": shape["segments"],
        "max_position_embeddings": shape["length"] + 2 * (family == "roberta"),
        "pad_token_id": 1,
    }
    config |= {"embedding_size": shape["embedding"]} if "lectra" in family or family == "albert" else {}
    config |= {"num_hidden_groups": min(shape["groups"], shape["layers"])} if family == "albert" else {}
    return cls(cls.config_class(**config))


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=12, deadline=None)
@given(shape=shapes())
@torch.no_grad()
def test_logits_are_transformers(family, shape):
    """With the same weights, on random rows of which the second has padding, to 1e-5."""
    theirs = shaken(theirs_of(family, shape), shape["seed"])
    model = ours_of(family, shape)
    ours = model.make(model.complete(Size(vocabulary=shape["vocabulary"], length=shape["length"])), 0)
    put(theirs, ours)
    generator = torch.Generator().manual_seed(shape["seed"])
    length = shape["length"]
    ids = torch.randint(2, shape["vocabulary"], (2, length), generator=generator)
    segments = torch.randint(shape["segments"], (2, length), generator=generator)
    real = torch.arange(length) < torch.tensor([[length], [(length + 1) // 2]])
    ids[~real] = 1
    position, document = torch.arange(length)[None], torch.where(real, 0, -1)
    mine = ours(ids, position, document, segments).unflatten(0, ids.shape)[real]
    more = {} if family == "gpt2" else {"token_type_ids": segments}
    told = theirs(input_ids=ids, attention_mask=real.long(), **more).logits[real]
    assert (mine - told.view_as(mine)).abs().max() <= 1e-5
