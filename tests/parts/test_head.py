"""Heads with their products written out, with a table of the model's width and with a narrow one."""

import dataclasses

import pytest
import torch
from torch.testing import assert_close

from headtohead import Bare, BertHead, Clap, Embedding, Head, PerToken, Pooled, Size, Tied, Untied
from parts.made import SIZE, filled

WIDTHS = pytest.mark.parametrize("width", [12, 4])


def gelu(x):
    return x * (1 + torch.erf(x / 2**0.5)) / 2


def built(head, embedding):
    """The head, its embedding, and what takes a hidden state to the table's width."""
    size = dataclasses.replace(SIZE, embedding_width=embedding.width or SIZE.width)
    table = filled(embedding.build(size))
    down = torch.eye(12, dtype=torch.float64) if table.projection is None else table.projection.weight
    return filled(head.build(size)), table, down


def shapes(module):
    return {name: tuple(p.shape) for name, p in module.named_parameters()}


TABLE = [[3.0, 4.0], [0.0, 2.0], [1.0, 0.0]]
DIAGONAL = {"dense.weight": [[0.1, 0.0], [0.0, 0.2]], "dense.bias": [0.0, 0.0]}  # takes x to (1, 1)
OUT = {"out.weight": [[1.0, 1.0], [1.0, -1.0]], "out.bias": [0.0, 0.5]}


@pytest.mark.parametrize(
    ("part", "numbers", "normalize", "logits"),
    [
        (Tied(), {}, False, [50, 10, 10]),
        (Tied(bias=True), {"bias": [1.0, 2.0, 3.0]}, False, [51, 12, 13]),
        (Tied(), {}, True, [10, 5, 10]),
        (Untied(), {"out.weight": TABLE, "out.bias": [1.0, 2.0, 3.0]}, True, [51, 12, 13]),
        (Clap(beta=2.0), {}, True, [20, 10, 20]),
        (Clap(beta=-1.0), {}, False, [-50, -10, -10]),
        (PerToken(), OUT, False, [15, 5.5]),
        (PerToken(dense=True), DIAGONAL | OUT, False, [2 * 0.8413447460685429, 0.5]),  # Φ(1) from tables
        (Pooled(), DIAGONAL | OUT, False, [2 * 0.7615941559557649, 0.5]),  # tanh 1
        # gelu gives (Φ(1), 0), which the norm takes to (1, −1)
        (
            BertHead(eps=1e-14),
            {"dense.weight": [[0.1, 0.0], [0.0, 0.0]], "dense.bias": [0.0, 0.0], "bias": [1.0, 2.0, 3.0]},
            False,
            [0, 0, 4],
        ),
    ],
    ids=lambda value: str(value) if isinstance(value, Head) else "",
)
def test_by_hand(part, numbers, normalize, logits):
    """x = (10, 5) over rows (3, 4), (0, 2) and (1, 0), normalized (.6, .8), (0, 1) and (1, 0)."""
    size = Size(vocabulary=3, length=2, width=2, embedding_width=2)
    table, head = Embedding(normalize=normalize).build(size).double(), part.build(size).double()
    with torch.no_grad():
        table.token.weight.copy_(torch.tensor(TABLE))
        for name, values in numbers.items():
            head.get_parameter(name).copy_(torch.tensor(values, dtype=torch.float64))
    made = head(torch.tensor([[10.0, 5.0]], dtype=torch.float64), table)[0]
    assert_close(made, torch.tensor(logits, dtype=torch.float64), rtol=1e-12, atol=1e-12)


@WIDTHS
@pytest.mark.parametrize("bias", [False, True])
def test_tied_is_a_product_with_the_embeddings(width, bias, draw):
    head, table, down = built(Tied(bias=bias), Embedding(width=width))
    x = draw(5, 12)
    wanted = x @ down @ table.token.weight.T + (head.bias if bias else 0)
    assert_close(head(x, table), wanted, rtol=1e-12, atol=1e-12)
    assert shapes(head) == ({"bias": (11,)} if bias else {})


@WIDTHS
@pytest.mark.parametrize("bias", [True, False])
def test_untied_has_a_matrix_of_its_own_from_the_models_width(width, bias, draw):
    head, table, _ = built(Untied(bias=bias), Embedding(width=width))
    x = draw(5, 12)
    wanted = x @ head.out.weight.T + (head.out.bias if bias else 0)
    assert_close(head(x, table), wanted, rtol=1e-12, atol=1e-12)
    assert shapes(head) == {"out.weight": (11, 12)} | ({"out.bias": (11,)} if bias else {})


@WIDTHS
@pytest.mark.parametrize("eps", [1e-5, 0.1])
def test_bert_head_is_dense_gelu_norm_and_the_embeddings(width, eps, draw):
    head, table, _ = built(BertHead(eps=eps), Embedding(width=width))
    x = draw(5, 12)
    h = gelu(x @ head.dense.weight.T + head.dense.bias)
    centred = h - h.mean(-1, keepdim=True)
    h = centred / (centred.square().mean(-1, keepdim=True) + eps).sqrt() * head.norm.weight + head.norm.bias
    assert_close(head(x, table), h @ table.token.weight.T + head.bias, rtol=1e-11, atol=1e-11)
    vectors = {"dense.bias": (width,), "norm.weight": (width,), "norm.bias": (width,), "bias": (11,)}
    assert shapes(head) == {"dense.weight": (width, 12)} | vectors


@WIDTHS
def test_clap_is_a_product_with_rows_of_length_1_and_one_factor(width, draw):
    """β · x · Êᵀ: x is not normalized, there is no bias, and β starts at 1."""
    head, table, down = built(Clap(), Embedding(width=width, normalize=True, scale=True))
    x = draw(5, 12)
    rows = table.token.weight / table.token.weight.norm(dim=-1, keepdim=True)
    with torch.no_grad():
        head.beta.fill_(-2.5)  # unconstrained: it may become negative
    assert_close(head(x, table), -2.5 * (x @ down @ rows.T), rtol=1e-12, atol=1e-12)
    assert_close(head(3 * x, table), 3 * head(x, table), rtol=1e-13, atol=0)
    assert shapes(head) == {"beta": ()}
    assert Clap().build(SIZE).beta.item() == 1.0 and Clap(beta=3).build(SIZE).beta.item() == 3.0


def test_clap_without_normalization_uses_the_rows_as_they_are(draw):
    head, table, _ = built(Clap(), Embedding())
    x = draw(5, 12)
    assert_close(head(x, table), head.beta * (x @ table.token.weight.T), rtol=1e-13, atol=1e-13)


def test_clap_saves_a_dense_layer_a_norm_and_a_bias():
    """768·768 + 768 + 2·768 + V parameters less, one more (study 2)."""
    size = dataclasses.replace(SIZE, width=768, embedding_width=768, vocabulary=100)
    counts = [sum(p.numel() for p in head.build(size).parameters()) for head in (BertHead(), Clap())]
    assert counts[0] - counts[1] == 768 * 768 + 768 + 2 * 768 + 100 - 1


def test_pooled_is_berts_pooler_and_classifier(draw):
    head, table, _ = built(Pooled(outputs=3), Embedding())
    x = draw(5, 12)
    wanted = torch.tanh(x @ head.dense.weight.T + head.dense.bias) @ head.out.weight.T + head.out.bias
    assert_close(head(x, table), wanted, rtol=1e-12, atol=1e-12)
    assert shapes(head) == {"dense.weight": (12, 12), "dense.bias": (12,), "out.weight": (3, 12), "out.bias": (3,)}


@pytest.mark.parametrize(("part", "outputs"), [(PerToken(), 2), (PerToken(outputs=1, dense=True), 1)], ids=str)
def test_per_token_is_one_product_or_electras_two(part, outputs, draw):
    head, table, _ = built(part, Embedding())
    x = draw(5, 12)
    h = gelu(x @ head.dense.weight.T + head.dense.bias) if part.dense else x
    assert_close(head(x, table), h @ head.out.weight.T + head.out.bias, rtol=1e-12, atol=1e-12)
    dense = {"dense.weight": (12, 12), "dense.bias": (12,)} if part.dense else {}
    assert shapes(head) == dense | {"out.weight": (outputs, 12), "out.bias": (outputs,)}


def test_bert_head_is_transformers(draw):
    from transformers.models.bert import modeling_bert as bert

    head, table, _ = built(BertHead(eps=1e-12), Embedding())
    config = bert.BertConfig(hidden_size=12, vocab_size=11, hidden_act="gelu", layer_norm_eps=1e-12)
    theirs = bert.BertLMPredictionHead(config).double()
    ours = {"transform.dense": head.dense, "transform.LayerNorm": head.norm}
    with torch.no_grad():
        for name, module in ours.items():
            theirs.get_submodule(name).weight.copy_(module.weight)
            theirs.get_submodule(name).bias.copy_(module.bias)
        theirs.decoder.weight.copy_(table.token.weight)
        theirs.decoder.bias.copy_(head.bias)
    x = draw(5, 12)
    assert_close(head(x, table), theirs(x), rtol=1e-12, atol=1e-12)


def test_without_a_head_the_hidden_state_comes_out():
    x = torch.randn(3, 12)
    assert Bare().build(SIZE)(x, None) is x and not shapes(Bare().build(SIZE))
