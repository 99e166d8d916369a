"""Commands on a trained run: audit, score and sample."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from headtohead.cli.studies import options_of
from headtohead.options import (
    Json,
    RunFolder,
    Seed,
    Settings,
    Size,
    Steps,
    StudyFile,
    Temperature,
    Tokens,
    Trust,
    TrustCode,
)
from headtohead.request import Options, builtin_studies, find_study, run_folder
from headtohead.spec import Mistake


def audit(  # noqa: PLR0913 (one for each option)
    what: Annotated[
        str, typer.Argument(metavar="STUDY|RUN|MODEL_DIR", help="A study, or the folder of a run or a model.")
    ],
    size: Size = "demo",
    steps: Steps = None,
    settings: Settings = None,
    study: StudyFile = None,
    trust_study: Trust = False,
    trust_remote_code: TrustCode = False,
    as_json: Json = False,
) -> None:
    """Look for cheating: in a study's arms before any seed is spent, in a finished run, or in a transformers model."""
    place, options = Path(what), options_of(size, None, steps, settings)
    run = not what.endswith(".py") and what not in builtin_studies() and (place.is_dir() or "/" in what)
    if run and options != Options():
        raise Mistake(f"--size, --steps and --set change a study; {what} is a folder, which is audited as it is")
    from headtohead.report import looked

    if run and (place / "config.json").is_file() and not (place / "recipe.json").is_file():
        from headtohead.launch.released import audit_model

        found = audit_model(place, trust_remote_code)
    else:
        place = run_folder(place) if run else find_study(what)
        from headtohead.launch.check import audit_run, audit_study

        found = audit_run(place, study, trust_study) if run else audit_study(place, options)
    print(json.dumps(found, indent=1) if as_json else looked.audits(found))
    if any(one["severity"] == "fatal" and one["result"] == "fail" for one in found):
        raise typer.Exit(1)


def score(
    run: RunFolder,
    text: Annotated[str, typer.Option(metavar="TEXT", help="The text to score.")],
    study: StudyFile = None,
    trust_study: Trust = False,
    as_json: Json = False,
) -> None:
    """How well a trained model predicts a text, token by token."""
    run_folder(run)
    from headtohead.inspection import load
    from headtohead.report import looked

    trained = load(run, study, trust_study)
    found = trained.score(text)
    print(json.dumps(found, indent=1) if as_json else looked.score(found))
    _tell_unknown(trained.unknown(text), "text")


def sample(
    run: RunFolder,
    prompt: Annotated[str, typer.Option(metavar="TEXT", help="The text to go on from.")],
    tokens: Tokens = 200,
    temperature: Temperature = 1.0,
    seed: Seed = 0,
    study: StudyFile = None,
    trust_study: Trust = False,
) -> None:
    """Let a trained causal model go on from a prompt."""
    run_folder(run)
    from headtohead.inspection import load

    trained = load(run, study, trust_study)
    print(trained.sample(prompt, tokens, temperature, seed))
    _tell_unknown(trained.unknown(prompt), "prompt")


def _tell_unknown(count: int, what: str) -> None:
    """Say that a text has what training never had, so that odd results are understood."""
    if count:
        print(
            f"h2h: {count} of the {what}'s tokens never occurred in training and are read as unknown", file=sys.stderr
        )
