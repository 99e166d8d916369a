"""Published bodies as recipes of parts: functions that give a Transformer, which at() changes further.

A count that is published may leave something out. Here: transformers counts BERT's and ALBERT's pooler (a map of the
first position, which no masked model uses) with the body, counts a tied output matrix once, and minGPT leaves out the head.
"""

from __future__ import annotations

from headtohead.model import MultiHead, Transformer
from headtohead.parts.dropout import Dropout
from headtohead.parts.embedding import Embedding
from headtohead.parts.feedforward import Gelu
from headtohead.parts.head import BertHead, PerToken, Untied
from headtohead.parts.initialization import ScaledNormal, Xavier
from headtohead.parts.norm import LayerNorm
from headtohead.parts.position import Learned
from headtohead.parts.residual import PostNorm
from headtohead.parts.sharing import Shared
from headtohead.parts.visibility import Everyone
from headtohead.spec import at

EVERYWHERE = Dropout(embedding=0.1, weights=0.1, attention=0.1, feedforward=0.1)


def bert(layers: int = 12, heads: int = 12, width: int = 768) -> Transformer:
    """BERT base (Devlin et al. 2018): 109,514,298 parameters with its head at 30,522 tokens and 512 positions."""
    return Transformer(
        layers=layers,
        heads=heads,
        width=width,
        embedding=Embedding(norm=True, norm_eps=1e-12, segments=2),
        position=Learned(),
        attention=MultiHead(visibility=Everyone()),
        feedforward=Gelu(),
        norm=LayerNorm(eps=1e-12),
        residual=PostNorm(),
        head=BertHead(eps=1e-12),
        dropout=EVERYWHERE,
    )


def roberta(layers: int = 12, heads: int = 12, width: int = 768) -> Transformer:
    """RoBERTa (Liu et al. 2019): BERT with one segment type and two rows of positions that nothing uses.

    Base has 124,697,433 parameters with its head at 50,265 tokens and 512 positions, large (24, 16, 1024) 355,412,057;
    study 1's (6 layers, 52,032 tokens) 83,529,024. `norm.eps` is 1e-12 as in transformers' configuration and in study 1; the
    released weights have 1e-5.
    """
    changes = {"embedding.segments": 1, "position": Learned(padding_offset=2)}
    return at(bert(layers, heads, width), changes)


def electra(layers: int = 12, heads: int = 4, width: int = 256, embedding: int = 128) -> Transformer:
    """ELECTRA's discriminator (Clark et al. 2020): BERT with smaller embeddings and one value a token.

    Small has 13,549,057 parameters at 30,522 tokens and 512 positions; study 4's, `embedding` 256 and 128 positions,
    17,324,544 without the head.
    """
    changes = {"embedding.width": _factor(embedding, width), "head": PerToken(outputs=1, dense=True)}
    return at(bert(layers, heads, width), changes)


def electra_generator(layers: int = 12, heads: int = 1, width: int = 64, embedding: int = 128) -> Transformer:
    """ELECTRA-Small's generator: a BERT of a quarter of the width, its embeddings as wide as the discriminator's.

    Study 4's has 3 layers of 1 head, width and embedding 256, and a feed-forward of ratio 1.
    """
    return at(bert(layers, heads, width), {"embedding.width": _factor(embedding, width)})


def albert(layers: int = 12, heads: int = 4, width: int = 256, embedding: int = 128, groups: int = 1) -> Transformer:
    """ALBERT (Lan et al. 2019): small embeddings, and `groups` blocks that all layers share.

    The default is study 4's: 4,812,288 parameters with the pooler at 30,522 tokens and 128 positions. GELU by tanh, as in
    transformers' configuration.
    """
    changes = {
        "embedding.width": _factor(embedding, width),
        "sharing": Shared(groups=groups),
        "feedforward.approximation": "tanh",
        "head": BertHead(eps=1e-12, gelu="tanh"),
    }
    return at(bert(layers, heads, width), changes)


def gpt2(layers: int = 12, heads: int = 12, width: int = 768) -> Transformer:
    """GPT-2 (Radford et al. 2019): 124,439,808 parameters at 50,257 tokens and 1,024 positions, the tied head counted once.

    minGPT's gpt-nano (3, 3, 48), the model of study 3, has 1,410,960 at 26,602 tokens, its untied head not counted.
    """
    return Transformer(
        layers=layers,
        heads=heads,
        width=width,
        feedforward=Gelu(approximation="tanh"),
        dropout=EVERYWHERE,
        initialization=ScaledNormal(),
    )


def characters(layers: int = 15, heads: int = 6, width: int = 192) -> Transformer:
    """Study 5's character model: pre-norm, exact GELU, an output map, and a head of its own with a bias.

    6,723,715 parameters at 67 characters and 128 positions.
    """
    return Transformer(layers=layers, heads=heads, width=width, head=Untied(), initialization=Xavier())


def _factor(embedding: int, width: int) -> int:
    """The embedding's width where it is not the model's."""
    return 0 if embedding == width else embedding
