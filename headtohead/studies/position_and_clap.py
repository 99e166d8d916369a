"""Do ALiBi, and a simpler head on embeddings of length 1 (CLAP), change how well a RoBERTa predicts masked tokens?

Study 2 trained each variant once, and its CLAP runs also dropped the dropout and the norm of the embeddings. Here those
are arms of their own: "learned-clap" and "zero-clap" change the head and the embeddings alone, and the two arms
"published" all that study 2 changed. Which of its details matter is asked by position_and_clap_choices, and which step
from RoBERTa's head to CLAP's does by position_and_clap_ladder.

In the demo, whose 400 steps do not suffice for learned or sinusoidal positions (LOG.md), ALiBi wins by that alone. The
paper size is WikiText-103: 12 layers of width 768, 125,000 steps of 256 rows of 512, on --set text.path=FILE. On the Pile
the study had --set length=2048 --set batch=512 --set steps=133082 --set optimizer.rate=6e-4 and
--set "schedule=CosineDecay(warmup=10000, horizon=1.1894)"; its large model --set model.layers=24 --set model.heads=16
--set model.width=1024 --set optimizer.rate=4e-4 with a floor of .125.
"""

from typing import Any

from headtohead import (
    AdamW,
    Alibi,
    BytePairs,
    Clap,
    Dropout,
    Embedding,
    File,
    LinearDecay,
    MaskedLM,
    Nothing,
    Recipe,
    Sinusoidal,
    Study,
    at,
    roberta,
)

FAIRSEQ = {"norm.eps": 1e-5, "head.eps": 1e-5, "embedding": Embedding(norm=True)}  # no segments either

demo = Recipe(
    model=at(roberta(3, 4, 128), FAIRSEQ),
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


def ask(baseline: Recipe, seeds: int) -> Study:
    """The study's question about a baseline of any size."""
    shifted = {"model.position": Alibi(shape="shifted")}
    clap = {"model.head": Clap(), "model.embedding.normalize": True}
    changes: dict[str, dict[str, Any]] = {
        "alibi": {"model.position": Alibi()},
        "alibi-shifted": shifted,
        "sinusoidal": {"model.position": Sinusoidal(layout="halves")},
        "no-position": {"model.position": Nothing()},
        "no-dropout": {"model.dropout": Dropout(weights=0.1)},
        "no-embedding-norm": {"model.embedding.norm": False},
        "learned-clap": clap,
        "learned-clap-published": clap | {"model.dropout": Dropout(weights=0.1), "model.embedding.norm": False},
        "zero-clap": shifted | clap | {"model.embedding.mask": "zero"},
        "zero-clap-published": shifted
        | clap
        | {"model.embedding.mask": "zero", "model.dropout": Dropout(), "model.embedding.norm": False},
    }
    return Study(baseline=baseline, challengers={name: at(baseline, c) for name, c in changes.items()}, seeds=seeds)


study = ask(demo, seeds=3)
study = at(study, {"paper": ask(paper, seeds=5)})
