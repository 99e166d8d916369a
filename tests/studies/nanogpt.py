"""Is nanoGPT's published result for a CPU reproduced: at most 1.88 nats per character on tiny Shakespeare?

Its README's setting: 4 layers, 4 heads, width 128, context 64, batch 12, 2,000 steps, no dropout, no biases, AdamW with
rate 1e-3 to 1e-4 by cosine after 100 steps of warm-up, β2 .99, weight decay .1 on matrices. The challenger drops the
GPT-2 scaling of the residual matrices' start. Needs --set text.path=FILE with the text.
"""

from headtohead import (
    AdamW,
    Characters,
    CosineDecay,
    File,
    Gelu,
    LayerNorm,
    MultiHead,
    Normal,
    Recipe,
    ScaledNormal,
    Separate,
    Study,
    Transformer,
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
        initialization=ScaledNormal(),
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
    challengers={"unscaled": at(baseline, {"model.initialization": Normal()})},
    seeds=3,
)
