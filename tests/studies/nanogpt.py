"""Is nanoGPT's published result for a CPU reached: at most 1.88 nats per character on tiny Shakespeare?

Its README's setting: 4 layers, 4 heads, width 128, context 64, batch 12, 2,000 steps, no dropout, AdamW with rate 1e-3 to
1e-4 by cosine after 100 steps of warm-up, β2 .99; also its missing biases, its weight decay of .1 on all but vectors and
its clipping at 1. What the setting leaves open is the start. Here it is Xavier's; the challenger has GPT-2's, which is
nanoGPT's own. Needs --set text.path=FILE with the text.
"""

from headtohead import (
    AdamW,
    Characters,
    CosineDecay,
    File,
    Gelu,
    LayerNorm,
    MultiHead,
    Recipe,
    ScaledNormal,
    Separate,
    Study,
    Transformer,
    Xavier,
    at,
)

baseline = Recipe(
    model=Transformer(
        layers=4,
        heads=4,
        width=128,
        attention=MultiHead(projection=Separate(bias=False), bias=False),
        feedforward=Gelu(bias=False),
        norm=LayerNorm(bias=False),
        initialization=Xavier(per_head=False),
    ),
    text=File("shakespeare.txt"),
    tokenizer=Characters(bare=True),
    length=64,
    batch=12,
    steps=2000,
    optimizer=AdamW(rate=1e-3, betas=(0.9, 0.99), weight_decay=0.1, decay="matrices and tables"),
    schedule=CosineDecay(warmup=100, floor=0.1),
)

study = Study(
    baseline=baseline,
    challengers={"gpt2-start": at(baseline, {"model.initialization": ScaledNormal()})},
    seeds=3,
)
