"""Does squaring the scores' positive part instead of exponentiating them change how well a small model predicts text?

Copy this file, write your own variant in place of Squared, put it in one slot, and run it:
h2h run yours.py
"""

from torch import Tensor

from headtohead import Characters, Normalizer, Recipe, Study, Transformer, at


class Squared(Normalizer):
    """relu(x)² / (1 + Σ relu(x)²)."""

    def __call__(self, scores: Tensor) -> Tensor:
        x = scores.clamp_min(0.0).square()
        return x / (1 + x.sum(-1, keepdim=True))


baseline = Recipe(
    model=Transformer(layers=2, heads=4, width=64),
    tokenizer=Characters(),
    length=64,
    batch=32,
    steps=300,
    held_out=30_000,
)

study = Study(
    baseline=baseline,
    challengers={"squared": at(baseline, {"model.attention.normalizer": Squared()})},
    seeds=3,
)
