"""Do shared layers (ALBERT) suit replaced-token detection as well as ELECTRA's own body, and what should the generator and
the discriminator share?

Study 4 built ELECTRA-Small and ALECTRA, the same with ALBERT as both networks: 4 million parameters instead of 17. It said
that their embeddings are tied; its code copied the tensors, which then drifted apart, so "untied" is what it ran. Here
tied is tied, each arm has several seeds, and all are compared by how well the discriminator ranks replaced tokens above
original ones (AUC, on held-out text). Each arm's discriminator has its own generator's tokens to judge: where the
generator changed too, a worse one makes the task easier, and the measures of the generator tell.

BERT-small has nothing to detect: its verdict is INVALID (INCOMPARABLE) until both are fine-tuned on a task.

The demo is 3 layers with ALiBi. The paper size is the study's: 12 layers of width 256, a million steps of 128 rows of 128
tokens with LAMB, on --set text.path=FILE; the study's own word pieces had as many tokens as the byte pairs here.
"""

from typing import Any

from headtohead import (
    AdamW,
    Alibi,
    BytePairs,
    Dropout,
    File,
    Lamb,
    LinearDecay,
    Lines,
    MaskedLM,
    PerToken,
    Recipe,
    Replaced,
    Study,
    Transformer,
    albert,
    at,
    bert,
    electra,
    electra_generator,
)

JUDGE = PerToken(outputs=2)


def short(model: Transformer, ratio: float = 4.0) -> Transformer:
    """With ALiBi and without dropout, so that 400 steps suffice: with learned positions they do not (LOG.md)."""
    return at(model, {"position": Alibi(shape="shifted"), "dropout": Dropout(), "feedforward.ratio": ratio})


demo = Recipe(
    model=at(short(electra(3, 4, 128, 128)), {"head": JUDGE}),
    objective=Replaced(generator=short(electra_generator(3, 4, 128, 128), ratio=1.0)),
    tokenizer=BytePairs(size=512),
    length=64,
    batch=32,
    steps=400,
    optimizer=AdamW(rate=2e-3, weight_decay=0.0),
    schedule=LinearDecay(warmup=50),
    held_out=40_000,
)

paper = Recipe(
    model=at(electra(12, 4, 256, 256), {"head": JUDGE}),
    objective=Replaced(generator=at(electra_generator(3, 1, 256, 256), {"feedforward.ratio": 1.0})),
    text=File("openwebtext.txt"),
    tokenizer=BytePairs(size=30_521),  # and the mask
    examples=Lines(),
    length=128,
    batch=128,
    steps=1_000_000,
    optimizer=Lamb(rate=5e-4, weight_decay=0.01, decay="matrices and tables", eps=1e-6),
    schedule=LinearDecay(warmup=10_000),
    clip=0.0,
    held_out=20_000_000,
)


def ask(baseline: Recipe, alectra: dict[str, Any], mixed: dict[str, Any], more: dict[str, Any], seeds: int) -> Study:
    """The study's question about a baseline of any size."""
    changes: dict[str, dict[str, Any]] = {
        "untied": {"objective.tie": "nothing"},
        "alectra": alectra,
        "alectra-tied-encoder": alectra | {"objective.tie": "encoder"},
        "mixed": mixed,
        **more,
    }
    return Study(
        baseline=baseline,
        challengers={name: at(baseline, change) for name, change in changes.items()},
        seeds=seeds,
        primary="auc",
        better="higher",
    )


def both(model: Transformer, generator: Transformer) -> dict[str, Any]:
    """The changes that put two networks in."""
    return {"model": at(model, {"head": JUDGE}), "objective.generator": generator}


study = ask(
    demo,
    alectra=both(short(albert(3, 4, 128, 64)), short(albert(3, 4, 128, 64))),
    mixed=both(short(albert(3, 4, 128, 64)), short(electra_generator(3, 2, 64, 64))),
    more={"bert-small": {"model": short(bert(3, 4, 128)), "objective": MaskedLM()}},
    seeds=3,
)

full = ask(
    paper,
    alectra=both(albert(12, 4, 256, 128), albert(3, 1, 256, 128)),
    mixed=both(albert(12, 4, 256, 128), at(electra_generator(3, 1, 128, 128), {"feedforward.ratio": 2.0})),
    more={
        "tied-tokens": {"objective.tie": "tokens"},
        "alectra-tied-projection": both(albert(12, 4, 256, 128), albert(3, 1, 256, 128))
        | {"objective.tie": "projection"},
        "official-masking": {"objective.masking": MaskedLM(masked=0.85, random=0.0, count="exact")},
        "official-generator": {"objective.generator": electra_generator(12, 1, 64, 256)},
        "bert-small": {"model": bert(12, 4, 256), "objective": MaskedLM(), "steps": 1_500_000},
    },
    seeds=5,
)
study = at(study, {"paper": full})
