"""headtohead: change one thing in a transformer, and find out whether it mattered.

Everything a study file needs comes from here. Names are looked up when they are first used, so that a command that needs
no torch never imports it.
"""

import ast
import importlib
from functools import cache
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:  # the one list of public names: `__getattr__` below reads it from this file
    from headtohead.bodies import albert, bert, characters, electra, electra_generator, gpt2, roberta
    from headtohead.inspection import Trained, load
    from headtohead.model import Attention, Block, Custom, Frame, Layered, Model, MultiHead, Network, Transformer
    from headtohead.objectives import Batch, Exam, Objective, Prediction, Term
    from headtohead.objectives.causal import CausalLM
    from headtohead.objectives.masked import MaskedLM
    from headtohead.objectives.replaced import Replaced
    from headtohead.optimizer import SGD, AdamW, Lamb, Muon, Optimizer, RMSprop
    from headtohead.parts.dropout import Dropout, drop, site
    from headtohead.parts.embedding import Embedding
    from headtohead.parts.feedforward import Feedforward, Gelu, ReluSquared, SwiGlu
    from headtohead.parts.gate import Gate, HeadGate, NoGate
    from headtohead.parts.head import Bare, BertHead, Clap, Head, PerToken, Pooled, Tied, Untied
    from headtohead.parts.initialization import Initialization, Normal, Role, ScaledNormal, Xavier
    from headtohead.parts.masking import Masking, MinusInfinity, ZeroAfter, ZeroThenRenormalize
    from headtohead.parts.norm import LayerNorm, Norm, RMSNorm
    from headtohead.parts.normalizer import (
        ClippedSoftmax,
        LearnedSink,
        Normalizer,
        Sigmoid,
        Softmax,
        SoftmaxN,
        Sparsemax,
    )
    from headtohead.parts.position import (
        Alibi,
        Learned,
        Nothing,
        Position,
        RelativeBuckets,
        Rotary,
        Sinusoidal,
        Unplaced,
    )
    from headtohead.parts.projection import Grouped, Projection, Separate, SharedQK, SharedQKV
    from headtohead.parts.residual import NoResidual, PostNorm, PreNorm, Residual, ReZero
    from headtohead.parts.score import Additive, Cosine, ScaledDot, Score
    from headtohead.parts.sharing import Distinct, Shared, Sharing
    from headtohead.parts.visibility import Causal, Everyone, Visibility, Window
    from headtohead.schedule import Constant, CosineDecay, InverseSquareRoot, LinearDecay, Schedule, WarmupStableDecay
    from headtohead.spec import Mistake, Part, Size, at, diff
    from headtohead.study import Better, Claim, Equivalent, Higher, Lower, NoWorse, Price, Recipe, Study
    from headtohead.text.corpus import Corpus
    from headtohead.text.documentation import PythonDocs
    from headtohead.text.examples import Examples, Lines, Rows, Sentences, Stream
    from headtohead.text.file import File
    from headtohead.text.lowered import LowerCase
    from headtohead.text.packed import Packed
    from headtohead.text.pairs import ElectraPairs, Pairs
    from headtohead.text.source import Document, Text
    from headtohead.text.split import Split
    from headtohead.text.tokenizer import BytePairs, Characters, Given, Tokenizer, WordPieces, Words


@cache
def _homes() -> dict[str, tuple[str, str]]:
    """Public name -> module and the name there."""
    with open(__file__, encoding="utf-8") as file:
        imports = [node for node in ast.walk(ast.parse(file.read())) if isinstance(node, ast.ImportFrom)]
    return {
        alias.asname or alias.name: (node.module, alias.name)
        for node in imports
        if node.module and node.module.startswith("headtohead.")
        for alias in node.names
    }


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return [*_homes()]
    if name not in _homes():
        raise AttributeError(f"module 'headtohead' has no attribute {name!r}")
    module, own = _homes()[name]
    return getattr(importlib.import_module(module), own)


def __dir__() -> list[str]:
    return [*_homes(), "__version__"]
