"""Are five choices irrelevant to a masked language model with ALiBi and CLAP's head: dropout on the attention weights,
ALiBi symmetric or shifted, a mask that is learned or zero, embeddings of length 1 or as they are, and their scale?

Study 2 held that they are, from one run of each, and later took the third back. "No difference found" is not "equal": here
each is claimed to be equivalent, within a margin of .5 % of the loss, and answered yes, no, or not enough evidence.

The paper size is study 2's zero-clap on WikiText-103, on --set text.path=FILE.
"""

from typing import Any

from headtohead import (
    AdamW,
    Alibi,
    BytePairs,
    Clap,
    Dropout,
    Embedding,
    Equivalent,
    File,
    LinearDecay,
    MaskedLM,
    Recipe,
    Study,
    Transformer,
    at,
    roberta,
)


def zero_clap(body: Transformer) -> Transformer:
    """Study 2's own model: ALiBi shifted, CLAP's head, a mask vector of zeros, no dropout and no norm of the embeddings."""
    changes = {
        "norm.eps": 1e-5,
        "position": Alibi(shape="shifted"),
        "embedding": Embedding(normalize=True, mask="zero"),
        "head": Clap(),
        "dropout": Dropout(),
    }
    return at(body, changes)


demo = Recipe(
    model=zero_clap(roberta(3, 4, 128)),
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
        "model": zero_clap(roberta()),
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


def ask(baseline: Recipe, seeds: int) -> Study:
    """The study's question about a baseline of any size."""
    changes: dict[str, dict[str, Any]] = {
        "attention-dropout": {"model.dropout.weights": 0.1},
        "symmetric": {"model.position.shape": "symmetric"},
        "learned-mask": {"model.embedding.mask": "learned"},
        "any-length": {"model.embedding.normalize": False},
        "scaled": {"model.embedding.scale": True},
    }
    challengers = {name: at(baseline, change) for name, change in changes.items()}
    return Study(baseline=baseline, challengers=challengers, seeds=seeds, claims=(Equivalent(),))


study = ask(demo, seeds=3)
study = at(study, {"paper": ask(paper, seeds=5)})
