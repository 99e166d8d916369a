"""What each family of transformers is in our parts: settings by address, tensors by name. Data, and nothing but.

`{}` stands for a layer (in ALBERT, for a group of layers). A tensor of theirs may hold several of ours, one below the
other; `transposed` is a matrix that is kept as inputs × outputs (GPT-2's Conv1D); `optional` tensors may be absent.
"""

from __future__ import annotations

from typing import NamedTuple

from headtohead import bodies
from headtohead.model import Transformer
from headtohead.objectives import Objective
from headtohead.objectives.causal import CausalLM
from headtohead.objectives.masked import MaskedLM
from headtohead.parts.head import Bare, BertHead, Head, PerToken, Tied, Untied
from headtohead.spec import at

Pairs = tuple[tuple[str, str], ...]
Fixed = tuple[tuple[str, object], ...]


class Row(NamedTuple):
    """A tensor of theirs and those of ours that it holds."""

    theirs: str
    ours: tuple[str, ...]
    transposed: bool = False
    optional: bool = False


class Top(NamedTuple):
    """A head that a family may have and the objective that it serves; `copies` are second names of tied tensors."""

    architecture: str
    head: Head
    objective: Objective
    rows: tuple[Row, ...] = ()
    settings: Pairs = ()
    fixed: Fixed = ()
    copies: Pairs = ()


class Family(NamedTuple):
    """`settings` pairs keys of config.json with addresses in the model; `fixed` are the only values we have parts for."""

    name: str
    template: Transformer
    base: str
    prefix: str
    length: str
    settings: Pairs
    rows: tuple[Row, ...]
    tops: tuple[Top, ...]
    fixed: Fixed = ()


def _one(theirs: str, ours: str) -> tuple[Row, ...]:
    return (Row(theirs, (ours,)),)


def _both(theirs: str, *ours: str, transposed: bool = False) -> tuple[Row, ...]:
    """Weight and bias; a bias is no matrix to be turned."""
    weight = Row(f"{theirs}.weight", tuple(f"{name}.weight" for name in ours), transposed)
    return weight, Row(f"{theirs}.bias", tuple(f"{name}.bias" for name in ours))


def _bert_head(dense: str, norm: str, bias: str) -> tuple[Row, ...]:
    return (*_both(dense, "head.dense"), *_both(norm, "head.norm"), *_one(bias, "head.bias"))


ATTENTION, FEEDFORWARD = "blocks.{}.attention", "blocks.{}.feedforward"
QUERY, KEY, VALUE = (f"{ATTENTION}.projection.{role}" for role in ("query", "key", "value"))
NORM, SECOND_NORM = "blocks.{}.attention_norm", "blocks.{}.feedforward_norm"
TABLES = (
    *_one("embeddings.word_embeddings.weight", "embedding.token.weight"),
    *_one("embeddings.position_embeddings.weight", "position.table.weight"),
    *_both("embeddings.LayerNorm", "embedding.norm"),
)
SEGMENTS = _one("embeddings.token_type_embeddings.weight", "embedding.segment.weight")
LAYER = "encoder.layer.{}"
ENCODER = (
    *_both(f"{LAYER}.attention.self.query", QUERY),
    *_both(f"{LAYER}.attention.self.key", KEY),
    *_both(f"{LAYER}.attention.self.value", VALUE),
    *_both(f"{LAYER}.attention.output.dense", f"{ATTENTION}.output"),
    *_both(f"{LAYER}.attention.output.LayerNorm", NORM),
    *_both(f"{LAYER}.intermediate.dense", f"{FEEDFORWARD}.up"),
    *_both(f"{LAYER}.output.dense", f"{FEEDFORWARD}.down"),
    *_both(f"{LAYER}.output.LayerNorm", SECOND_NORM),
)
# only where the embedding's width is not the model's
OWN_WIDTH = tuple(row._replace(optional=True) for row in _both("embeddings_project", "embedding.projection"))
GROUP = "encoder.albert_layer_groups.{}.albert_layers.0"
SIZES = (
    ("num_hidden_layers", "layers"),
    ("num_attention_heads", "heads"),
    ("hidden_size", "width"),
    ("intermediate_size", "feedforward.ratio"),
    ("hidden_act", "feedforward.approximation"),
    ("hidden_dropout_prob", "dropout.embedding"),
    ("hidden_dropout_prob", "dropout.attention"),
    ("hidden_dropout_prob", "dropout.feedforward"),
    ("attention_probs_dropout_prob", "dropout.weights"),
    ("type_vocab_size", "embedding.segments"),
    ("layer_norm_eps", "norm.eps"),
    ("layer_norm_eps", "embedding.norm_eps"),
)
NARROW = (("embedding_size", "embedding.width"),)
EPS = (("layer_norm_eps", "head.eps"),)
ALONE = (("is_decoder", False), ("add_cross_attention", False), ("position_embedding_type", "absolute"))
IS_TIED, IS_FREE = (("tie_word_embeddings", True),), (("tie_word_embeddings", False),)
OUTPUT = "embedding.token.weight"

BERT = Family(
    name="bert",
    template=at(bodies.bert(), {"head": Bare()}),
    base="BertModel",
    prefix="bert.",
    length="max_position_embeddings",
    settings=SIZES,
    rows=(*TABLES, *SEGMENTS, *ENCODER),
    fixed=ALONE,
    tops=(
        Top(
            architecture="BertForMaskedLM",
            head=BertHead(),
            objective=MaskedLM(),
            rows=_bert_head(
                "cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions.bias"
            ),
            settings=(*EPS, ("hidden_act", "head.gelu")),
            fixed=IS_TIED,
            copies=(("cls.predictions.decoder.weight", OUTPUT), ("cls.predictions.decoder.bias", "head.bias")),
        ),
    ),
)
ROBERTA = Family(
    name="roberta",
    template=at(bodies.roberta(), {"head": Bare()}),
    base="RobertaModel",
    prefix="roberta.",
    length="max_position_embeddings",
    settings=(*SIZES, ("pad_token_id", "position.padding_offset")),
    rows=BERT.rows,
    fixed=ALONE,
    tops=(
        Top(
            architecture="RobertaForMaskedLM",
            head=BertHead(),
            objective=MaskedLM(),
            rows=_bert_head("lm_head.dense", "lm_head.layer_norm", "lm_head.bias"),
            settings=EPS,
            fixed=IS_TIED,
            copies=(("lm_head.decoder.weight", OUTPUT), ("lm_head.decoder.bias", "head.bias")),
        ),
    ),
)
DISTILBERT = Family(
    name="distilbert",
    template=at(bodies.bert(), {"head": Bare(), "embedding.segments": 0, "dropout.attention": 0.0}),
    base="DistilBertModel",
    prefix="distilbert.",
    length="max_position_embeddings",
    settings=(
        ("n_layers", "layers"),
        ("n_heads", "heads"),
        ("dim", "width"),
        ("hidden_dim", "feedforward.ratio"),
        ("activation", "feedforward.approximation"),
        ("dropout", "dropout.embedding"),
        ("dropout", "dropout.feedforward"),
        ("attention_dropout", "dropout.weights"),
    ),
    rows=(
        *TABLES,
        *_both("transformer.layer.{}.attention.q_lin", QUERY),
        *_both("transformer.layer.{}.attention.k_lin", KEY),
        *_both("transformer.layer.{}.attention.v_lin", VALUE),
        *_both("transformer.layer.{}.attention.out_lin", f"{ATTENTION}.output"),
        *_both("transformer.layer.{}.sa_layer_norm", NORM),
        *_both("transformer.layer.{}.ffn.lin1", f"{FEEDFORWARD}.up"),
        *_both("transformer.layer.{}.ffn.lin2", f"{FEEDFORWARD}.down"),
        *_both("transformer.layer.{}.output_layer_norm", SECOND_NORM),
    ),
    tops=(
        Top(
            architecture="DistilBertForMaskedLM",
            head=BertHead(eps=1e-12),
            objective=MaskedLM(),
            rows=_bert_head("vocab_transform", "vocab_layer_norm", "vocab_projector.bias"),
            settings=(("activation", "head.gelu"),),
            fixed=IS_TIED,
            copies=(("vocab_projector.weight", OUTPUT),),
        ),
    ),
)
ALBERT = Family(
    name="albert",
    template=at(bodies.albert(), {"head": Bare()}),
    base="AlbertModel",
    prefix="albert.",
    length="max_position_embeddings",
    settings=(*SIZES, *NARROW, ("num_hidden_groups", "sharing.groups")),
    rows=(
        *TABLES,
        *SEGMENTS,
        *_both("encoder.embedding_hidden_mapping_in", "embedding.projection"),
        *_both(f"{GROUP}.attention.query", QUERY),
        *_both(f"{GROUP}.attention.key", KEY),
        *_both(f"{GROUP}.attention.value", VALUE),
        *_both(f"{GROUP}.attention.dense", f"{ATTENTION}.output"),
        *_both(f"{GROUP}.attention.LayerNorm", NORM),
        *_both(f"{GROUP}.ffn", f"{FEEDFORWARD}.up"),
        *_both(f"{GROUP}.ffn_output", f"{FEEDFORWARD}.down"),
        *_both(f"{GROUP}.full_layer_layer_norm", SECOND_NORM),
    ),
    fixed=(("inner_group_num", 1), ("position_embedding_type", "absolute")),
    tops=(
        Top(
            architecture="AlbertForMaskedLM",
            head=BertHead(),
            objective=MaskedLM(),
            rows=_bert_head("predictions.dense", "predictions.LayerNorm", "predictions.bias"),
            settings=(*EPS, ("hidden_act", "head.gelu")),
            fixed=IS_TIED,
            copies=(("predictions.decoder.weight", OUTPUT), ("predictions.decoder.bias", "head.bias")),
        ),
    ),
)
ELECTRA = Family(
    name="electra",
    template=at(bodies.electra(), {"head": Bare()}),
    base="ElectraModel",
    prefix="electra.",
    length="max_position_embeddings",
    settings=(*SIZES, *NARROW),
    rows=(*TABLES, *SEGMENTS, *OWN_WIDTH, *ENCODER),
    fixed=ALONE,
    tops=(
        Top(
            architecture="ElectraForMaskedLM",
            head=BertHead(),
            objective=MaskedLM(),
            rows=_bert_head("generator_predictions.dense", "generator_predictions.LayerNorm", "generator_lm_head.bias"),
            settings=EPS,
            fixed=IS_TIED,
            copies=(("generator_lm_head.weight", OUTPUT),),
        ),
        Top(
            architecture="ElectraForPreTraining",
            head=PerToken(outputs=1, dense=True),
            objective=MaskedLM(),
            rows=(
                *_both("discriminator_predictions.dense", "head.dense"),
                *_both("discriminator_predictions.dense_prediction", "head.out"),
            ),
            fixed=(("hidden_act", "gelu"),),
        ),
    ),
)
GPT2 = Family(
    name="gpt2",
    template=at(bodies.gpt2(), {"head": Bare()}),
    base="GPT2Model",
    prefix="transformer.",
    length="n_positions",
    settings=(
        ("n_layer", "layers"),
        ("n_head", "heads"),
        ("n_embd", "width"),
        ("n_inner", "feedforward.ratio"),
        ("activation_function", "feedforward.approximation"),
        ("embd_pdrop", "dropout.embedding"),
        ("resid_pdrop", "dropout.attention"),
        ("resid_pdrop", "dropout.feedforward"),
        ("attn_pdrop", "dropout.weights"),
        ("layer_norm_epsilon", "norm.eps"),
    ),
    rows=(
        *_one("wte.weight", OUTPUT),
        *_one("wpe.weight", "position.table.weight"),
        *_both("h.{}.ln_1", NORM),
        *_both("h.{}.attn.c_attn", QUERY, KEY, VALUE, transposed=True),
        *_both("h.{}.attn.c_proj", f"{ATTENTION}.output", transposed=True),
        *_both("h.{}.ln_2", SECOND_NORM),
        *_both("h.{}.mlp.c_fc", f"{FEEDFORWARD}.up", transposed=True),
        *_both("h.{}.mlp.c_proj", f"{FEEDFORWARD}.down", transposed=True),
        *_both("ln_f", "final_norm"),
    ),
    fixed=(
        ("scale_attn_weights", True),
        ("scale_attn_by_inverse_layer_idx", False),
        ("add_cross_attention", False),
    ),
    tops=(
        Top("GPT2LMHeadModel", Tied(), CausalLM(), fixed=IS_TIED, copies=(("lm_head.weight", OUTPUT),)),
        Top(
            "GPT2LMHeadModel", Untied(bias=False), CausalLM(), _one("lm_head.weight", "head.out.weight"), fixed=IS_FREE
        ),
    ),
)
FAMILIES = {family.name: family for family in (BERT, ROBERTA, DISTILBERT, ALBERT, ELECTRA, GPT2)}
# what a file may hold beside the model: buffers of older versions
IGNORED = (".attn.bias", ".attn.masked_bias", "embeddings.position_ids", "embeddings.token_type_ids")
