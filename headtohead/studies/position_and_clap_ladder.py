"""Which step from RoBERTa's prediction head to CLAP's matters?

Six steps, each arm one more than the arm before: without the dense layer, without GELU, without the norm, without the
bias, then with one learned factor β, then with embeddings of length 1. Everything else stays, dropout and the norm of the
embeddings too, which study 2 took away together with the head.

The demo has ALiBi, because with learned positions a model this small learns nothing in so few steps (LOG.md). The paper
size is study 2's RoBERTa on WikiText-103, on --set text.path=FILE.
"""

from typing import Any

from headtohead import (
    AdamW,
    Alibi,
    BytePairs,
    Clap,
    Embedding,
    File,
    LinearDecay,
    MaskedLM,
    Recipe,
    Study,
    at,
    roberta,
)

FAIRSEQ = {"norm.eps": 1e-5, "head.eps": 1e-5, "embedding": Embedding(norm=True)}  # no segments either

demo = Recipe(
    model=at(roberta(3, 4, 128), FAIRSEQ | {"position": Alibi(shape="shifted")}),
    objective=MaskedLM(count="exact"),
    tokenizer=BytePairs(size=512),
    length=64,
    batch=32,
    steps=400,
    optimizer=AdamW(rate=2e-3, betas=(0.9, 0.98), eps=1e-6),
    schedule=LinearDecay(warmup=50),
    clip=0.0,
    held_out=40_000,
)

paper = at(
    demo,
    {
        "model": at(roberta(), FAIRSEQ),
        "text": File("wikitext-103.txt"),
        "tokenizer.size": 50_257,
        "length": 512,
        "batch": 256,
        "accumulate": 16,
        "steps": 125_000,
        "optimizer.rate": 5e-4,
        "schedule.warmup": 10_000,
        "held_out": 0,
    },
)

STEPS: dict[str, dict[str, Any]] = {
    "minus-dense": {"model.head.dense": False},
    "minus-gelu": {"model.head.gelu": "none"},
    "minus-norm": {"model.head.norm": False},
    "minus-bias": {"model.head.bias": False},
    "plus-beta": {"model.head": Clap()},
    "plus-length-1": {"model.embedding.normalize": True},
}


def ask(baseline: Recipe, seeds: int) -> Study:
    """The study's question about a baseline of any size."""
    challengers, arm = {}, baseline
    for name, change in STEPS.items():
        challengers[name] = arm = at(arm, change)
    return Study(baseline=baseline, challengers=challengers, seeds=seeds)


study = ask(demo, seeds=3)
study = at(study, {"paper": ask(paper, seeds=5)})
