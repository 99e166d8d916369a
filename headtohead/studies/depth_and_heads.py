"""How much do more layers, and more heads at the same width, lower the loss of a character model?

Study 5 trained every cell of 6 depths and 5 numbers of heads once, judged by training loss, and chose 15 layers and 6 heads.
5 and 10 heads do not divide the width of 192, so here the width is heads · round(192 / heads), 190 for those two; the
difference to the baseline shows it. The paper size has all 30 cells with 5,000 steps each, on --set text.path=FILE, a text
such as the Shakespeare of the study.
"""

from headtohead import AdamW, Characters, Constant, File, Recipe, Study, Transformer, Untied, Xavier, at

demo = Recipe(
    model=Transformer(layers=2, heads=4, width=64, head=Untied(), initialization=Xavier()),
    tokenizer=Characters(),
    length=64,
    batch=32,
    steps=300,
    optimizer=AdamW(rate=2e-3, betas=(0.9, 0.95)),
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
        "steps": 5000,
        "optimizer.rate": 1e-3,
        "held_out": 0,
    },
)


def grid(baseline: Recipe, width: int, layers: tuple[int, ...], heads: tuple[int, ...], seeds: int) -> Study:
    """Every depth with every number of heads, the baseline's own cell left out."""
    challengers = {}
    for depth in layers:
        for count in heads:
            nearest = count * round(width / count)
            cell = at(baseline, {"model.layers": depth, "model.heads": count, "model.width": nearest})
            if cell != baseline:
                challengers[f"layers{depth}-heads{count}"] = cell
    return Study(baseline=baseline, challengers=challengers, seeds=seeds, grid=("model.layers", "model.heads"))


study = grid(demo, 64, layers=(1, 2, 3), heads=(2, 4, 5), seeds=3)
study = at(study, {"paper": grid(paper, 192, layers=(5, 6, 8, 10, 12, 15), heads=(5, 6, 8, 10, 12), seeds=5)})
