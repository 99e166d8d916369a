"""The command h2h. Each command imports what it needs when it runs: help, lists and finished studies need no torch."""

from __future__ import annotations

import errno
import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from headtohead.options import (
    AgainstItself,
    Confirm,
    Jobs,
    Json,
    Out,
    RunFolder,
    Seed,
    Seeds,
    Settings,
    Size,
    Steps,
    StudyFile,
    StudyName,
    Temperature,
    Tokens,
    Trust,
)
from headtohead.request import (
    Options,
    builtin_studies,
    check_out,
    complete,
    find_study,
    folder_for,
    folders,
    judged,
    make_folder,
    parse_settings,
    plan_of,
    request,
    run_folder,
    same_request,
    state_of,
    study_folder,
)
from headtohead.spec import Mistake

app = typer.Typer(
    help="Change one thing in a transformer, and find out whether it mattered.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

# what a disk or a file system says, and no code of ours can help
OUTSIDE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.ENAMETOOLONG, errno.EIO)


def options_of(size: str, seeds: int | None, steps: int | None, settings: list[str] | None) -> Options:
    """The command line's options, checked as far as they can be without the study."""
    if size not in ("demo", "paper"):
        raise Mistake(f"--size {size}: choose demo or paper")
    return Options(size, seeds, steps, parse_settings(settings or []))


@app.command()
def run(  # noqa: PLR0913 (one for each option)
    study: StudyName,
    out: Out = None,
    size: Size = "demo",
    seeds: Seeds = None,
    steps: Steps = None,
    settings: Settings = None,
    jobs: Jobs = None,
    against_itself: AgainstItself = False,
    confirm: Confirm = None,
) -> None:
    """Train every arm over every seed, audit, judge and write the page. Goes on where it was stopped."""
    path = find_study(study)
    options = options_of(size, seeds, steps, settings)._replace(against_itself=against_itself, confirm=confirm)
    folder = out or folder_for(path.stem, options)
    before, asked = plan_of(folder), request(path, options, study, out)
    if before is not None and same_request(before["request"], asked) and complete(folder, before):
        show_verdict(folder, before, judged=judged(folder, before))
        return
    check_out(folder)
    _run(path, options, folder, asked, jobs)


def _run(path: Path, options: Options, folder: Path, asked: dict[str, Any], jobs: int | None) -> None:
    print(f"preparing {path.stem}: text, arms, a rehearsal of each …", file=sys.stderr, flush=True)
    from headtohead.launch.folder import agree, jobs_here, lay_out
    from headtohead.launch.local import run_all, study_claimed
    from headtohead.plan import load_study
    from headtohead.report.progress import follow

    loaded = load_study(path)
    jobs = jobs or jobs_here()
    plan = agree(loaded, options, folder) | {"request": asked}
    make_folder(folder)
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
        Path,
        typer.Argument(metavar="DIR|results.csv", help="A study's folder, or a table with the columns arm,seed,value."),
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


@app.command()
def report(place: Annotated[Path, typer.Argument(metavar="DIR", help="A study's folder.")]) -> None:
    """Draw the page of a finished study again."""
    from headtohead.report.page import write_report
    from headtohead.verdict.judge import judge_and_write

    judge_and_write(study_folder(place))
    write_report(place)
    print(place / "report.html")


@app.command(name="list")
def list_(
    what: Annotated[str, typer.Argument(metavar="[studies|parts|texts]", help="What to list.")] = "studies",
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="One of them, in full.")] = None,
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
    options = options_of(size, seeds, steps, settings)
    asked = with_options(loaded, options)
    rehearse(asked)
    found = preview(make_plan(loaded, asked, options), asked)
    print(json.dumps(found, indent=1) if as_json else render(found))


@app.command()
def audit(
    what: Annotated[str, typer.Argument(metavar="STUDY|RUN", help="A study, or the folder of a finished run.")],
    size: Size = "demo",
    steps: Steps = None,
    settings: Settings = None,
    study: StudyFile = None,
    trust_study: Trust = False,
    as_json: Json = False,
) -> None:
    """Look for cheating: in a study's arms before any seed is spent, or in a trained run."""
    place, options = Path(what), options_of(size, None, steps, settings)
    run = not what.endswith(".py") and what not in builtin_studies() and (place.is_dir() or "/" in what)
    if run and options != Options():
        raise Mistake(f"--size, --steps and --set change a study; {what} is a run, which is audited as it is")
    place = run_folder(place) if run else find_study(what)
    from headtohead.launch.check import audit_run, audit_study
    from headtohead.report import looked

    found = audit_run(place, study, trust_study) if run else audit_study(place, options)
    print(json.dumps(found, indent=1) if as_json else looked.audits(found))
    if any(one["severity"] == "fatal" and one["result"] == "fail" for one in found):
        raise typer.Exit(1)


@app.command()
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


@app.command()
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


def main() -> None:
    """The command's entry: a user's mistake is one line and exit 2, a run that broke down one line and exit 1."""
    try:
        code = app(sys.argv[1:] or ["--help"], prog_name="h2h", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except BrokenPipeError:  # the reader of our output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except Exception as error:
        told = _one_line(error)
        if told is None:
            raise
        code = 1 if type(error).__name__ == "Breakdown" else 2
        print(f"h2h: {' '.join(told.split())}", file=sys.stderr)
    if code == 130:
        more = "; the same command goes on from here" if "run" in sys.argv[1:2] else ""
        print(f"{chr(10) if sys.stderr.isatty() else ''}h2h: stopped{more}", file=sys.stderr)
    sys.exit(code)


def _one_line(error: Exception) -> str | None:
    """What a user is told of what went wrong; None where it is our bug."""
    if isinstance(error, Mistake) or type(error).__name__ == "Breakdown":
        return str(error)
    if hasattr(error, "format_message"):  # the command line did not parse
        command = getattr(getattr(error, "ctx", None), "command_path", "h2h")
        return f"{error.format_message().rstrip('.')}; see {command} --help"
    if isinstance(error, OSError) and error.errno in OUTSIDE:
        return f"{error.filename or 'the disk'}: {error.strerror}; mend that, and the same command goes on from here"
    return None
