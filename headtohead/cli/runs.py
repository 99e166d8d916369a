"""Commands on a trained run: audit, score and sample."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from headtohead.cli.studies import options_of
from headtohead.options import (
    Greedy,
    Json,
    RunFolder,
    Seed,
    Settings,
    Size,
    Steps,
    StudyFile,
    Temperature,
    Tokens,
    TopK,
    TopP,
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
    place: Annotated[
        Path, typer.Argument(metavar="RUN|DIR", help="A run's folder, or a study's: then every arm is asked.")
    ],
    text: Annotated[str | None, typer.Option(metavar="TEXT", help="The text to score.")] = None,
    file: Annotated[Path | None, typer.Option(metavar="FILE", help="Sentences to score, one a line.")] = None,
    study: StudyFile = None,
    trust_study: Trust = False,
    as_json: Json = False,
) -> None:
    """How well trained models predict sentences; four of our own unless you give some."""
    if text is not None and file is not None:
        raise Mistake("--text and --file each give the sentences; leave one out")
    whole_study = (place / "study.json").is_file()
    if not whole_study:
        run_folder(place)
    from headtohead.inspection import load, score_arms
    from headtohead.report import looked
    from headtohead.sentences import SENTENCES

    sentences = _lines(file) if file else (SENTENCES if text is None else (text,))
    if whole_study:
        table = score_arms(place, sentences, study, trust_study)
        print(json.dumps(table, indent=1) if as_json else looked.arms(table))
        return
    trained = load(place, study, trust_study)
    found = [{"text": sentence, **trained.score(sentence)} for sentence in sentences]
    shown = found[0] if text is not None else found
    print(json.dumps(shown, indent=1) if as_json else "\n\n".join(map(looked.score, found)))
    _tell_unknown(sum(map(trained.unknown, sentences)), "text")


def _lines(file: Path) -> list[str]:
    """The sentences of a file: its lines, blank ones left out."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        told = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise Mistake(f"--file {file} cannot be read: {told}; give a text file in UTF-8, a sentence a line") from None
    if not any(line.strip() for line in lines):
        raise Mistake(f"--file {file} holds no sentence; write one a line")
    return [line.strip() for line in lines if line.strip()]


def sample(  # noqa: PLR0913 (one for each option)
    run: RunFolder,
    prompt: Annotated[str, typer.Option(metavar="TEXT", help="The text to go on from.")],
    tokens: Tokens = 200,
    temperature: Temperature = None,
    greedy: Greedy = False,
    top_k: TopK = 0,
    top_p: TopP = 1.0,
    seed: Seed = 0,
    study: StudyFile = None,
    trust_study: Trust = False,
) -> None:
    """Let a trained causal model go on from a prompt."""
    run_folder(run)
    if greedy and temperature:
        raise Mistake(f"--greedy takes the likeliest token, --temperature {temperature} draws one; leave one out")
    from headtohead.inspection import load

    trained = load(run, study, trust_study)
    heat = 0.0 if greedy else 1.0 if temperature is None else temperature
    print(trained.sample(prompt, tokens, heat, seed, top_k, top_p))
    _tell_unknown(trained.unknown(prompt), "prompt")
    length, read = trained.recipe.length, trained.prompt(prompt).shape[1]
    if read + tokens > length:
        print(
            f"h2h: the model sees {length} tokens at a time: beyond them it read the last {length} alone",
            file=sys.stderr,
        )


def _tell_unknown(count: int, what: str) -> None:
    """Say that a text has what training never had, so that odd results are understood."""
    if count:
        print(
            f"h2h: {count} of the {what}'s tokens never occurred in training and are read as unknown", file=sys.stderr
        )
