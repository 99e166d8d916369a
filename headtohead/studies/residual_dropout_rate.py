"""What do residual connections, a dropout of 0.1 and the learning rate do to a character model?

Study 5 found that without residuals nothing is learned, that dropout "lowers performance" (it compared a training loss
with dropout on to one with it off), and that 1e-3 is the best of four rates. Here all are judged on held-out text. The
paper size is 6 layers, 6 heads, width 192, length 128, 6,000 steps of 64, on --set text.path=FILE.
"""

from typing import Any

from headtohead import (
    AdamW,
    Characters,
    Constant,
    Dropout,
    File,
    NoResidual,
    Recipe,
    Study,
    Transformer,
    Untied,
    Xavier,
    at,
)

demo = Recipe(
    model=Transformer(layers=3, heads=4, width=64, head=Untied(), initialization=Xavier()),
    tokenizer=Characters(),
    length=64,
    batch=32,
    steps=300,
    optimizer=AdamW(rate=1e-3, betas=(0.9, 0.95)),
    schedule=Constant(),
    held_out=30_000,
)

paper = at(
    demo,
    {
        "model.layers": 6,
        "model.heads": 6,
        "model.width": 192,
        "text": File("shakespeare.txt"),
        "length": 128,
        "batch": 64,
        "steps": 6000,
        "held_out": 0,
    },
)


def ask(baseline: Recipe, seeds: int) -> Study:
    """The study's question about a baseline of any size."""
    changes: dict[str, dict[str, Any]] = {
        "no-residual": {"model.residual": NoResidual()},
        "dropout": {"model.dropout": Dropout(embedding=0.1, attention=0.1)},
        "rate-1e-4": {"optimizer.rate": 1e-4},
        "rate-5e-4": {"optimizer.rate": 5e-4},
        "rate-5e-3": {"optimizer.rate": 5e-3},
    }
    return Study(baseline=baseline, challengers={name: at(baseline, c) for name, c in changes.items()}, seeds=seeds)


study = ask(demo, seeds=3)
study = at(study, {"paper": ask(paper, seeds=5)})
