"""Are challengers that were trained for 2, 5 and 10 % fewer steps told from the baseline?

A control: here the answer is known. The recipes are equal but for the number of steps, the schedule shrunk with it, so every
challenger must be worse, by little. A lab that finds none of them finds nothing; how many seeds each takes is in LOG.md.
"""

from headtohead import Characters, Recipe, Study, Transformer

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
    challengers={f"fewer{share}": baseline.rescaled(round(baseline.steps * (1 - share / 100))) for share in (2, 5, 10)},
    seeds=5,
)
