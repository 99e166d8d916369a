"""Commands to and from transformers: import, export and push."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from headtohead.options import Json, RunFolder, Settings, StudyFile, Trust
from headtohead.request import parse_settings, run_folder


def import_(
    folder: Annotated[Path, typer.Argument(metavar="MODEL_DIR", help="A folder that save_pretrained wrote.")],
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The run's folder to make; h2h-runs/imported/<name> unless told.")
    ] = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Make a run's folder of a transformers model: BERT, RoBERTa, DistilBERT, ALBERT, ELECTRA or GPT-2."""
    asked = parse_settings(settings or [])
    from headtohead.hub.incoming import bring_in
    from headtohead.report import looked

    found = bring_in(folder, out or Path("h2h-runs") / "imported" / folder.resolve().name, asked)
    print(json.dumps(found, indent=1) if as_json else looked.imported(found))


def export(
    run: RunFolder,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to write; new or empty.")],
    study: StudyFile = None,
    trust_study: Trust = False,
) -> None:
    """Write a run as a folder that transformers loads, with a model card."""
    run_folder(run)
    from headtohead.hub.outgoing import send_out

    print(send_out(run, folder, study, trust_study))


def push(
    run: RunFolder,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The repository: user/name, or a name of your own.")],
    private: Annotated[bool, typer.Option("--private", help="Only you see it.")] = False,
    study: StudyFile = None,
    trust_study: Trust = False,
) -> None:
    """Export a run and upload it to the Hugging Face Hub; goes on where an upload was stopped."""
    run_folder(run)
    from headtohead.hub.upload import upload

    print(upload(run, name, private, study, trust_study))
