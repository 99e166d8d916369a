"""Does a character model learn Hebrew more easily than English, and is it because Hebrew has fewer letters?

Study 5 trained one model on each, saw training losses of 0.14 for Hebrew and 0.2 for Shakespeare, and guessed at the alphabet.
Losses on different texts are INCOMPARABLE in any unit: a text has an entropy of its own. So this study has no winner; its page
shows side by side what can be said of each arm: the share of the unigram entropy that was gained, bits per character, and the
steps to 90 % of the gain. English in lower case is the control for the guess: the same words in a smaller alphabet.

Put shakespeare.txt and hebrew.txt, any two UTF-8 texts, into the folder that you run this in. The paper size is the study's
last: 15 layers, 6 heads, width 192, dropout 0.1, 50,000 steps of 64.
"""

from headtohead import (
    AdamW,
    Characters,
    Constant,
    Dropout,
    File,
    LowerCase,
    Recipe,
    Study,
    Transformer,
    Untied,
    Xavier,
    at,
)

ENGLISH, HEBREW = File("shakespeare.txt"), File("hebrew.txt")

demo = Recipe(
    model=Transformer(layers=2, heads=4, width=64, head=Untied(), initialization=Xavier()),
    text=ENGLISH,
    tokenizer=Characters(),
    length=64,
    batch=32,
    steps=400,
    optimizer=AdamW(rate=2e-3, betas=(0.9, 0.95)),
    schedule=Constant(),
    held_out=60_000,
)

paper = at(
    demo,
    {
        "model.layers": 15,
        "model.heads": 6,
        "model.width": 192,
        "model.dropout": Dropout(embedding=0.1, attention=0.1),
        "length": 128,
        "batch": 64,
        "steps": 50_000,
        "optimizer.rate": 1e-3,
        "held_out": 0,
    },
)


def ask(baseline: Recipe, seeds: int) -> Study:
    """The study's question about a baseline of any size."""
    texts = {"hebrew": HEBREW, "lower-case": LowerCase(ENGLISH)}
    challengers = {name: at(baseline, {"text": text}) for name, text in texts.items()}
    return Study(baseline=baseline, challengers=challengers, seeds=seeds)


study = ask(demo, seeds=3)
study = at(study, {"paper": ask(paper, seeds=5)})
