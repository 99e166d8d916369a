"""The command that tunes a study's arms alike before it is run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from headtohead.cli.studies import options_of
from headtohead.options import Jobs, Json, Out, Rates, Settings, Size, Steps, StudyName, whole
from headtohead.request import check_out, find_study, folder_for, folders, make_folder, request

TuningSeeds = Annotated[
    int,
    typer.Option(
        "--seeds",
        parser=whole("--seeds", least=1, most=100),
        metavar="N",
        help="How many seeds each rate is tried with.",
    ),
]


def tune(  # noqa: PLR0913 (one for each option)
    study: StudyName,
    out: Out = None,
    size: Size = "demo",
    steps: Steps = None,
    settings: Settings = None,
    rates: Rates = None,
    seeds: TuningSeeds = 1,
    jobs: Jobs = None,
    as_json: Json = False,
) -> None:
    """Try the same learning rates in every arm, on a slice of text and on seeds that no verdict rests on."""
    path = find_study(study)
    options = options_of(size, None, steps, settings)
    folder = out or Path(f"{folder_for(path.stem, options)}-tuning")
    check_out(folder)
    print(f"preparing {path.stem}: text, arms, a rehearsal of each …", file=sys.stderr, flush=True)
    from headtohead.launch.folder import lay_out
    from headtohead.launch.local import run_all, study_claimed
    from headtohead.launch.routing import jobs_here
    from headtohead.launch.tune import plan_tuning, rates_of, write_tuning
    from headtohead.plan import load_study, with_options
    from headtohead.report.progress import follow
    from headtohead.report.tuned import table
    from headtohead.verdict.tuning import summary

    loaded = load_study(path)
    tried = rates_of(rates, with_options(loaded, options))
    plan = plan_tuning(loaded, options, tried, seeds) | {"request": request(path, options, study, out)}
    jobs = jobs or jobs_here()
    make_folder(folder)
    with study_claimed(folder):
        lay_out(plan, path, folder, jobs)
        route = json.loads((folder / "route.json").read_text())
        follow(run_all(folder, plan, min(jobs, len(folders(folder, plan)))), route)
        found = write_tuning(folder)
    told = summary(found)
    print(json.dumps(told, indent=1) if as_json else table(told))
    print(
        f"\nto run the study with these: h2h run {study} --tuned {folder}", file=sys.stderr if as_json else sys.stdout
    )
