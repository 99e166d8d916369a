"""Does softmax with one added to its denominator ("attention is off by one") change how well a masked language model
predicts held-out text?

Study 1 trained one RoBERTa with each on Esperanto, compared the mean training loss (4.46 and 4.44) and concluded that it
does not. Here both arms have the same text, masks, start and noise over several seeds, and are judged on held-out text.

The demo is a masked language model of 3 layers with ALiBi, because with learned positions such a model needs thousands of
steps before it knows more than how frequent each token is (LOG.md). The paper size is the study's own: RoBERTa with 6
layers, 83.5 million parameters, 285,899 steps of 16 lines, on --set text.path=FILE.
"""

from headtohead import (
    AdamW,
    Alibi,
    BertHead,
    BytePairs,
    Dropout,
    Embedding,
    Everyone,
    File,
    LinearDecay,
    Lines,
    MaskedLM,
    MultiHead,
    NoWorse,
    PostNorm,
    Recipe,
    SoftmaxN,
    Study,
    Transformer,
    at,
    roberta,
)

demo = Recipe(
    model=Transformer(
        layers=3,
        heads=4,
        width=128,
        attention=MultiHead(visibility=Everyone()),
        position=Alibi(shape="shifted"),
        embedding=Embedding(norm=True),
        residual=PostNorm(),
        head=BertHead(),
        dropout=Dropout(embedding=0.1, weights=0.1, attention=0.1, feedforward=0.1),
    ),
    objective=MaskedLM(),
    tokenizer=BytePairs(size=512),
    length=64,
    batch=32,
    steps=400,
    optimizer=AdamW(rate=2e-3, weight_decay=0.0),
    schedule=LinearDecay(warmup=50),
    held_out=40_000,
)

paper = at(
    demo,
    {
        "model": roberta(6),
        "text": File("esperanto.txt"),
        "tokenizer": BytePairs(size=52_032, specials=("<s>", "<pad>", "</s>", "<unk>", "<mask>")),
        "examples": Lines(),
        "length": 512,
        "batch": 16,
        "steps": 285_899,
        "optimizer.rate": 5e-5,
        "schedule.warmup": 0,
        "held_out": 0,
    },
)


def ask(baseline: Recipe, seeds: int) -> Study:
    """The study's question about a baseline of any size."""
    softmax1 = at(baseline, {"model.attention.normalizer": SoftmaxN(n=1)})
    return Study(baseline=baseline, challengers={"softmax1": softmax1}, seeds=seeds, claims=(NoWorse("loss"),))


study = ask(demo, seeds=3)
study = at(study, {"paper": ask(paper, seeds=5)})
