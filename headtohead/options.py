"""What the commands' options take, and what their help says of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from headtohead.request import MOST_SEEDS
from headtohead.spec import Mistake


def whole(option: str, least: int | None = None, most: int | None = None) -> Callable[[Any], int]:
    """Reads what an option takes, a whole number within bounds."""

    def read(text: Any) -> int:
        try:
            value = int(text)
        except ValueError:
            raise Mistake(f"{option} {text}: takes a whole number, e.g. {option} 3") from None
        if least is not None and value < least:
            raise Mistake(f"{option} {text}: at least {least}")
        if most is not None and value > most:
            raise Mistake(f"{option} {text}: at most {most:,}")
        return value

    return read


def number(option: str) -> Callable[[Any], float]:
    """Reads what an option takes, any number from 0 on."""

    def read(text: Any) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not 0 <= value < math.inf:
            raise Mistake(f"{option} {text}: takes a number from 0 on, e.g. {option} 0.8")
        return value

    return read


StudyName = Annotated[str, typer.Argument(metavar="STUDY", help="A built-in study's name, or a .py file of your own.")]
Size = Annotated[str, typer.Option(metavar="demo|paper", help="Minutes on a laptop, or the published size.")]
Seeds = Annotated[
    int | None,
    typer.Option(
        parser=whole("--seeds", most=MOST_SEEDS),
        metavar="N",
        help="How many times every arm is trained, each from another random start; a verdict takes at least 3.",
    ),
]
Steps = Annotated[
    int | None,
    typer.Option(
        parser=whole("--steps", least=1),
        metavar="N",
        help="How many training steps every run makes; the course of the learning rate is stretched to fit.",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="ADDRESS=VALUE",
        help="Change a setting in every arm alike, e.g. model.layers=3; may be given several times.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for a program to read.")]
Trust = Annotated[
    bool, typer.Option("--trust-study", help="Run the copy of the study's file that lies in the run's folder.")
]
TrustCode = Annotated[
    bool, typer.Option("--trust-remote-code", help="Run the code of its own that a model's folder brings.")
]
StudyFile = Annotated[
    Path | None,
    typer.Option(
        "--study", metavar="FILE", help="The file of the study that made the run, where it has parts of its own."
    ),
]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A run's folder: <study>/arms/<arm>/seed<k>.")]
Out = Annotated[Path | None, typer.Option(metavar="DIR", help="Where the runs go; h2h-runs/<study> unless told.")]
Jobs = Annotated[
    int | None,
    typer.Option(parser=whole("--jobs", least=1), metavar="N", help="How many runs at a time; one a core unless told."),
]
AgainstItself = Annotated[
    bool,
    typer.Option(
        "--against-itself",
        help="Compare the baseline with itself: IDENTICAL with the same seeds, the noise between runs with others.",
    ),
]
Tuned = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Give every arm the values that `h2h tune` found for it and left in this folder."),
]
Rates = Annotated[
    str | None,
    typer.Option(
        metavar="R,R,…",
        help="The learning rates to try in every arm; ¼, ½, 1, 2 and 4 times the baseline's unless told.",
    ),
]
Confirm = Annotated[
    int | None,
    typer.Option(
        parser=whole("--confirm", least=1, most=MOST_SEEDS),
        metavar="N",
        help="Train N fresh seeds and judge them on their own, in a folder of their own.",
    ),
]
Tokens = Annotated[
    int,
    typer.Option(parser=whole("--tokens", least=0, most=1_000_000), metavar="N", help="How many tokens to add."),
]
Temperature = Annotated[
    float | None,
    typer.Option(
        parser=number("--temperature"),
        metavar="T",
        help="0 always takes the likeliest token, 1 (the default) draws as the model says, more is wilder.",
    ),
]
Greedy = Annotated[bool, typer.Option("--greedy", help="Always take the likeliest token.")]
TopK = Annotated[
    int,
    typer.Option("--top-k", parser=whole("--top-k", least=0), metavar="K", help="Draw from the K likeliest; 0 is all."),
]
TopP = Annotated[
    float,
    typer.Option(
        "--top-p",
        parser=number("--top-p"),
        metavar="P",
        help="Draw from the fewest tokens that hold this share of the probability; 1 is all.",
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        parser=whole("--seed", least=0, most=2**63 - 1), metavar="N", help="Another number, another continuation."
    ),
]
