"""Commands on a study: run, judge, draw, list and show. Each imports what it needs when it runs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from headtohead.options import AgainstItself, Confirm, Jobs, Json, Out, Seeds, Settings, Size, Steps, StudyName, Tuned
from headtohead.request import (
    Options,
    check_out,
    complete,
    find_study,
    first,
    folder_for,
    folders,
    judged,
    make_folder,
    parse_settings,
    plan_of,
    request,
    same_request,
    same_sources,
    state_of,
    study_folder,
)
from headtohead.spec import Mistake


def options_of(size: str, seeds: int | None, steps: int | None, settings: list[str] | None) -> Options:
    """The command line's options, checked as far as they can be without the study."""
    if size not in ("demo", "paper"):
        raise Mistake(f"--size {size}: choose demo or paper")
    return Options(size, seeds, steps, parse_settings(settings or []))


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
    tuned: Tuned = None,
) -> None:
    """Train every arm over every seed, audit, judge and write the page. Goes on where it was stopped."""
    path = find_study(study)
    chosen = None if tuned is None else str(tuned)
    options = options_of(size, seeds, steps, settings)
    options = options._replace(against_itself=against_itself, confirm=confirm, tuned=chosen)
    folder = out or folder_for(path.stem, options)
    before, asked = plan_of(folder), request(path, options, study, out)
    done = before is not None and same_request(before["request"], asked) and complete(folder, _as_far(folder, before))
    if before is not None and done and same_sources(before):
        show_verdict(folder, before, judged=judged(folder, before))
        return
    check_out(folder)
    _run(path, options, folder, asked, jobs)


def _as_far(folder: Path, plan: dict[str, Any]) -> dict[str, Any]:
    """The plan as far as it needs to be run: to the look that settled everything, or to its end."""
    verdict = folder / "verdict.json"
    if not plan.get("looks") or not verdict.is_file():
        return plan
    from headtohead.files import read_json
    from headtohead.verdict.looks import settled

    found = read_json(verdict)
    enough = found["lock"] == plan["lock"] and settled(entry["verdict"] for entry in found["arms"].values())
    return first(plan, len(found["seeds"])) if enough else plan


def _run(path: Path, options: Options, folder: Path, asked: dict[str, Any], jobs: int | None) -> None:
    print(f"preparing {path.stem}: text, arms, a rehearsal of each …", file=sys.stderr, flush=True)
    from headtohead.launch.folder import agree, lay_out
    from headtohead.launch.local import study_claimed
    from headtohead.launch.routing import jobs_here
    from headtohead.plan import load_study

    loaded = load_study(path)
    jobs = jobs or jobs_here()
    plan = agree(loaded, options, folder) | {"request": asked}
    make_folder(folder)
    with study_claimed(folder):
        lay_out(plan, path, folder, jobs)
        _enter(folder, plan)
        _look_by_look(folder, plan, jobs)
    show_verdict(folder, plan, judged=False)


def _enter(folder: Path, plan: dict[str, Any]) -> None:
    """Register the challengers, and take what earlier studies lend, before anything is known of this one."""
    from headtohead.verdict.earlier import gather
    from headtohead.verdict.ledger import register

    register(folder, plan)
    gather(folder, plan)


def _look_by_look(folder: Path, plan: dict[str, Any], jobs: int) -> None:
    """Run to the next planned look, judge, and go on only for what is still open; without looks, run to the end."""
    from headtohead.launch.local import run_all
    from headtohead.report.progress import follow
    from headtohead.verdict.judge import judge_and_write
    from headtohead.verdict.looks import settled

    route = json.loads((folder / "route.json").read_text())
    looks = plan.get("looks") or [len(plan["seeds"])]
    for number, seeds in enumerate(looks, 1):
        now = first(plan, seeds)
        follow(run_all(folder, now, min(jobs, len(folders(folder, now)))), route)
        if number == len(looks):
            return
        found = {name: arm["verdict"] for name, arm in judge_and_write(folder)["arms"].items()}
        told = ", ".join(f"{name} {word}" for name, word in found.items())
        done = settled(found.values())
        more = "all are settled" if done else f"going on to {looks[number]} seeds"
        print(f"look {number} of {len(looks)}, {seeds} seeds: {told}; {more}", file=sys.stderr, flush=True)
        if done:
            return


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
    seen = first(plan, len(verdict["seeds"]))
    failed = any(state_of(run)["state"] == "failed" for _, _, run in folders(folder, seen))
    if failed or any(arm["verdict"].split(":")[0] in ("INVALID", "UNSTABLE") for arm in verdict["arms"].values()):
        raise typer.Exit(1)


def verdict(
    place: Annotated[
        Path,
        typer.Argument(metavar="DIR|results.csv", help="A study's folder, or a table with the columns arm,seed,value."),
    ],
    metric: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which metric of a table the verdict rests on; loss unless told.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Judge a finished study again, or a table of results made elsewhere."""
    from headtohead.report.terminal import verdict_table
    from headtohead.verdict.judge import judge_and_write
    from headtohead.verdict.table import judge_table

    if metric and place.suffix != ".csv":
        raise Mistake(
            f"--metric {metric}: a study states its own primary measure; --metric is for a table, results.csv"
        )
    found = judge_table(place, metric) if place.suffix == ".csv" else judge_and_write(study_folder(place))
    print(json.dumps(found, indent=1) if as_json else verdict_table(found))
    if any(arm["verdict"].split(":")[0] in ("INVALID", "UNSTABLE") for arm in found["arms"].values()):
        raise typer.Exit(1)


def report(place: Annotated[Path, typer.Argument(metavar="DIR", help="A study's folder.")]) -> None:
    """Draw the page of a finished study again."""
    from headtohead.report.page import write_report
    from headtohead.verdict.judge import judge_and_write

    judge_and_write(study_folder(place))
    write_report(place)
    print(place / "report.html")


def list_(
    what: Annotated[str, typer.Argument(metavar="[studies|parts|texts]", help="What to list.")] = "studies",
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="One of them, in full.")] = None,
    as_json: Json = False,
) -> None:
    """What there is: built-in studies, the parts of each slot, the texts."""
    from headtohead import catalogue
    from headtohead.text import listing

    found = listing.listed(name) if what == "texts" else catalogue.entries(what, name)
    render = listing.render if what == "texts" else catalogue.render
    print(json.dumps(found, indent=1) if as_json else render(found))


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
    from headtohead.launch.made import make
    from headtohead.launch.preview import preview
    from headtohead.plan import load_study
    from headtohead.report.preview import render

    loaded = load_study(find_study(study))
    options = options_of(size, seeds, steps, settings)
    made = make(loaded, options)
    rehearse(made.study)
    found = preview(make_plan(loaded, made, options), made.study)
    print(json.dumps(found, indent=1) if as_json else render(found))
