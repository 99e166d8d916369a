"""The command h2h. Each command imports what it needs when it runs: help, lists and finished studies need no torch."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from headtohead.request import Options, complete, find_study, folders, parse_settings, plan_of, request, state_of
from headtohead.spec import Mistake

app = typer.Typer(
    help="Change one thing in a transformer, and find out whether it mattered.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

StudyName = Annotated[str, typer.Argument(metavar="STUDY", help="a built-in study or a .py file of your own")]
Size = Annotated[str, typer.Option(help="demo (minutes on a laptop) or paper (the published size)")]
Seeds = Annotated[int | None, typer.Option(help="how many random seeds; 3 is the least for a verdict")]
Steps = Annotated[int | None, typer.Option(help="training steps; the schedule is rescaled with them")]
Settings = Annotated[list[str] | None, typer.Option("--set", metavar="ADDRESS=VALUE", help="change every arm alike")]
Json = Annotated[bool, typer.Option("--json", help="print JSON for a machine")]
Trust = Annotated[bool, typer.Option("--trust-study", help="run the study file that lies in the run's folder")]
StudyFile = Annotated[Path | None, typer.Option("--study", help="the file of the study that made the run")]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="a run's folder: <study>/arms/<arm>/seed<k>")]


def options_of(size: str, seeds: int | None, steps: int | None, settings: list[str] | None, itself: bool) -> Options:
    """The command line's options, checked as far as they can be without the study."""
    if size not in ("demo", "paper"):
        raise Mistake(f"--size {size}: choose demo or paper")
    return Options(size, seeds, steps, parse_settings(settings or []), itself)


def folder_for(study: Path, options: Options) -> Path:
    """Where a study's runs lie, unless told."""
    words = [study.stem, "" if options.size == "demo" else options.size]
    words += ["against-itself" if options.against_itself else "", "confirm" if options.confirm else ""]
    return Path("h2h-runs") / "-".join(filter(None, words))


@app.command()
def run(  # noqa: PLR0913 (one for each option)
    study: StudyName,
    out: Annotated[Path | None, typer.Option(help="where the runs go; ./h2h-runs/<study> unless told")] = None,
    size: Size = "demo",
    seeds: Seeds = None,
    steps: Steps = None,
    settings: Settings = None,
    jobs: Annotated[int | None, typer.Option(help="runs at a time; one a core unless told")] = None,
    against_itself: Annotated[bool, typer.Option(help="the baseline against itself: must come out IDENTICAL")] = False,
    confirm: Annotated[
        int | None, typer.Option(help="judge so many fresh seeds on their own, in a folder apart")
    ] = None,
) -> None:
    """Train every arm over every seed, audit, judge and write the page. Goes on where it was stopped."""
    path = find_study(study)
    options = options_of(size, seeds, steps, settings, against_itself)._replace(confirm=confirm)
    folder = out or folder_for(path, options)
    if jobs is not None and jobs < 1:
        raise Mistake(f"--jobs {jobs}: at least 1")
    before = plan_of(folder)
    if before is not None and before["request"] == request(path, options) and complete(folder, before):
        show_verdict(folder, before, judged=(folder / "verdict.json").exists() and (folder / "report.html").exists())
        return
    _run(path, options, folder, jobs)


def _run(path: Path, options: Options, folder: Path, jobs: int | None) -> None:
    print(f"preparing {path.stem}: text, arms, a rehearsal of each …", file=sys.stderr, flush=True)
    from headtohead.launch.folder import agree, jobs_here, lay_out
    from headtohead.launch.local import run_all, study_claimed
    from headtohead.plan import load_study
    from headtohead.report.progress import follow

    loaded = load_study(path)
    jobs = jobs or jobs_here()
    plan = agree(loaded, options, folder)
    with study_claimed(folder):
        lay_out(plan, path, folder, jobs)
        route = json.loads((folder / "route.json").read_text())
        follow(run_all(folder, plan, min(jobs, len(folders(folder, plan)))), route)
    show_verdict(folder, plan, judged=False)


def show_verdict(folder: Path, plan: dict[str, Any], judged: bool) -> None:
    """Judge unless that is done, write the page, print the table, and end with 1 where something is wrong."""
    from headtohead.files import read_json
    from headtohead.report.terminal import verdict_table
    from headtohead.verdict.judge import judge_and_write

    if judged:
        verdict = read_json(folder / "verdict.json")
    else:
        from headtohead.report.page import write_report

        verdict = judge_and_write(folder)
        write_report(folder)
    print(verdict_table(verdict))
    print(f"\nthe page: {folder / 'report.html'}")
    failed = any(state_of(run)["state"] == "failed" for _, _, run in folders(folder, plan))
    if failed or any(arm["verdict"].split(":")[0] in ("INVALID", "UNSTABLE") for arm in verdict["arms"].values()):
        raise typer.Exit(1)


@app.command()
def verdict(
    place: Annotated[
        Path, typer.Argument(metavar="DIR|results.csv", help="a study's folder, or a table arm,seed,value")
    ],
    as_json: Json = False,
) -> None:
    """Judge a finished study again, or a table of results made elsewhere."""
    from headtohead.report.terminal import verdict_table
    from headtohead.verdict.judge import judge_and_write
    from headtohead.verdict.table import judge_table

    found = judge_table(place) if place.suffix == ".csv" else judge_and_write(study_folder(place))
    print(json.dumps(found, indent=1) if as_json else verdict_table(found))
    if any(arm["verdict"].split(":")[0] in ("INVALID", "UNSTABLE") for arm in found["arms"].values()):
        raise typer.Exit(1)


def study_folder(place: Path) -> Path:
    """A folder that holds a study, or the user's mistake."""
    if plan_of(place) is None:
        raise Mistake(f"{place} holds no study.json; give the folder of a study, e.g. h2h-runs/softmax_one")
    return place


@app.command()
def report(place: Annotated[Path, typer.Argument(metavar="DIR", help="a study's folder")]) -> None:
    """Draw the page of a finished study again."""
    from headtohead.report.page import write_report
    from headtohead.verdict.judge import judge_and_write

    judge_and_write(study_folder(place))
    write_report(place)
    print(place / "report.html")


@app.command(name="list")
def list_(
    what: Annotated[str, typer.Argument(metavar="[studies|parts|texts]")] = "studies",
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="one of them, in full")] = None,
    as_json: Json = False,
) -> None:
    """What there is: built-in studies, the parts of each slot, the texts."""
    from headtohead.catalogue import entries, render

    found = entries(what, name)
    print(json.dumps(found, indent=1) if as_json else render(found))


@app.command()
def show(
    study: StudyName,
    size: Size = "demo",
    seeds: Seeds = None,
    steps: Steps = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Arms, what differs, parameters, operations, the time and cost to expect, and the assembled model."""
    from headtohead.launch.folder import make_plan, rehearse
    from headtohead.launch.preview import preview
    from headtohead.plan import load_study, with_options
    from headtohead.report.preview import render

    loaded = load_study(find_study(study))
    options = options_of(size, seeds, steps, settings, False)
    asked = with_options(loaded, options)
    rehearse(asked)
    found = preview(make_plan(loaded, asked, options), asked)
    print(json.dumps(found, indent=1) if as_json else render(found))


@app.command()
def audit(
    what: Annotated[str, typer.Argument(metavar="STUDY|RUN", help="a study, or the folder of a finished run")],
    study: StudyFile = None,
    trust_study: Trust = False,
    as_json: Json = False,
) -> None:
    """Look for cheating: in a study's arms before any seed is spent, or in a trained run."""
    from headtohead.launch.check import audit_run, audit_study

    finished = (Path(what) / "recipe.json").is_file()
    found = audit_run(Path(what), study, trust_study) if finished else audit_study(find_study(what))
    if as_json:
        print(json.dumps(found, indent=1))
    else:
        for finding in found:
            print(
                f"{finding['arm']:>16}  {finding['id']:<10} {finding['result']:<5} {finding['when']}: {finding['sentence']}"
            )
            print(f"{'':>16}  {finding['evidence']}")
    if any(finding["severity"] == "fatal" and finding["result"] == "fail" for finding in found):
        raise typer.Exit(1)


@app.command()
def score(
    run: RunFolder,
    text: Annotated[str, typer.Option(help="the text to score")],
    study: StudyFile = None,
    trust_study: Trust = False,
    as_json: Json = False,
) -> None:
    """How well a trained model predicts a text, token by token."""
    from headtohead.inspection import load

    found = load(run, study, trust_study).score(text)
    if as_json:
        print(json.dumps(found, indent=1))
        return
    for token, nll in zip(found["tokens"], found["nll"], strict=True):
        print(f"{'' if nll is None else f'{nll:.3f}':>8}  {token!r}")
    print(f"{found['loss']:>8.3f}  nats per scored token, perplexity {found['perplexity']:.2f}")


@app.command()
def sample(
    run: RunFolder,
    prompt: Annotated[str, typer.Option(help="the text to go on from")],
    tokens: Annotated[int, typer.Option(help="how many tokens to add")] = 200,
    temperature: Annotated[float, typer.Option(help="below 1 is more careful, above 1 wilder")] = 1.0,
    seed: int = 0,
    study: StudyFile = None,
    trust_study: Trust = False,
) -> None:
    """Let a trained causal model go on from a prompt."""
    from headtohead.inspection import load

    print(load(run, study, trust_study).sample(prompt, tokens, temperature, seed))


def main() -> None:
    """The command's entry: a user's mistake is one line and exit 2, a run that broke down one line and exit 1."""
    try:
        app()
    except Mistake as mistake:
        print(f"h2h: {' '.join(str(mistake).split())}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("\nh2h: stopped; the same command goes on from here", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:
        if type(error).__name__ != "Breakdown":
            raise
        print(f"h2h: {error}", file=sys.stderr)
        sys.exit(1)
