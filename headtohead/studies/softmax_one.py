"""Does softmax with one added to its denominator ("attention is off by one") change how well a masked language model
predicts held-out text?

Study 1 trained one RoBERTa with each on Esperanto, compared the mean training loss (4.46 and 4.44) and concluded that it
does not. Here both arms have the same text, masks, start and noise over several seeds, and are judged on held-out text.
"""

from headtohead import (
    AdamW,
    BertHead,
    BytePairs,
    Dropout,
    Embedding,
    Everyone,
    LinearDecay,
    MaskedLM,
    MultiHead,
    NoWorse,
    PostNorm,
    Recipe,
    SoftmaxN,
    Study,
    Transformer,
    at,
)

demo = Recipe(
    model=Transformer(
        layers=3,
        heads=4,
        width=128,
        attention=MultiHead(visibility=Everyone()),
        embedding=Embedding(norm=True),
        residual=PostNorm(),
        head=BertHead(),
        dropout=Dropout(embedding=0.1, weights=0.1, attention=0.1, feedforward=0.1),
    ),
    objective=MaskedLM(),
    tokenizer=BytePairs(size=1024),
    length=64,
    batch=64,
    steps=300,
    optimizer=AdamW(rate=2e-3, weight_decay=0.0),
    schedule=LinearDecay(warmup=30),
    held_out=20_000,
)

study = Study(
    baseline=demo,
    challengers={"softmax1": at(demo, {"model.attention.normalizer": SoftmaxN(n=1)})},
    seeds=3,
    claims=(NoWorse("loss"),),
)
