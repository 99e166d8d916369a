"""Do additive scores, shared query, key and value projections, or zeroing the future after the softmax change how well a
small causal language model predicts words?

Study 3 trained each variant once on sentences of a news corpus, found additive attention a little better, sharing without
effect, and "zero masking" far ahead (development perplexity 186.5 against 380.8). The last is a leak: the softmax's sum runs
over the future, so a weight's size tells what comes. Here that arm is trained all the same, and its verdict is INVALID;
renormalizing what is left repairs it.

The paper size is minGPT's gpt-nano on lines of at most 100 words, 1,923 steps of 32. Its text, a subset of the
one-billion-word benchmark, is not part of this package: give it with --set text.path=FILE. (The position table has 100
rows here; gpt-nano's had 1,024.)
"""

from typing import Any

from headtohead import (
    AdamW,
    Additive,
    Constant,
    Dropout,
    File,
    Lines,
    Recipe,
    ScaledNormal,
    SharedQK,
    SharedQKV,
    Study,
    Transformer,
    Untied,
    Words,
    ZeroAfter,
    ZeroThenRenormalize,
    at,
)

demo = Recipe(
    model=Transformer(
        layers=3,
        heads=3,
        width=48,
        head=Untied(bias=False),
        dropout=Dropout(embedding=0.1, weights=0.1, attention=0.1, feedforward=0.1),
    ),
    tokenizer=Words(minimum_count=20),
    length=64,
    batch=32,
    steps=300,
    optimizer=AdamW(rate=3e-3, betas=(0.9, 0.95), weight_decay=0.1, decay="matrices"),
    schedule=Constant(),
    held_out=120_000,
)

paper = at(
    demo,
    {
        "model.feedforward.approximation": "tanh",
        "model.initialization": ScaledNormal(),
        "text": File("one-billion.txt"),
        "tokenizer.minimum_count": 3,
        "examples": Lines(),
        "length": 100,
        "steps": 1923,
        "optimizer.rate": 5e-4,
        "held_out": 0,
    },
)


def ask(baseline: Recipe, seeds: int) -> Study:
    """The study's question about a baseline of any size."""
    changes: dict[str, dict[str, Any]] = {
        "additive": {"model.attention.score": Additive()},
        "shared-qk": {"model.attention.projection": SharedQK()},
        "shared-qkv": {"model.attention.projection": SharedQKV()},
        "zero-after": {"model.attention.masking": ZeroAfter()},
        "zero-renormalized": {"model.attention.masking": ZeroThenRenormalize()},
    }
    return Study(baseline=baseline, challengers={name: at(baseline, c) for name, c in changes.items()}, seeds=seeds)


study = ask(demo, seeds=3)
study = at(study, {"paper": ask(paper, seeds=5)})
