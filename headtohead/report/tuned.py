"""What tuning found, in a table for the terminal and in a section of the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headtohead.report import numbers
from headtohead.report.document import Block, Figure, Section, Table, Text
from headtohead.report.figures import best_of
from headtohead.report.folder import Folder


def table(found: Mapping[str, Any]) -> str:
    """Every arm with every value that was tried; the best is marked."""
    address, primary = found["address"], found["primary"]
    tried = [trial["values"][address] for trial in next(iter(found["arms"].values()))["trials"]]
    width = max(len(name) for name in found["arms"])
    lines = [
        f"{found['study']}: {primary['name']} on the tuning slice, {numbers.plural(len(found['seeds']), 'seed')} a trial",
        f"  {address:<{width}}" + "".join(f"{value:>11g}" for value in tried),
    ]
    for name, arm in found["arms"].items():
        marks = ["*" if trial["values"] == arm["best"] else " " for trial in arm["trials"]]
        cells = [_score(trial["score"]) + mark for trial, mark in zip(arm["trials"], marks, strict=True)]
        lines.append(f"  {name:<{max(width, len(address))}}" + "".join(f"{cell:>11}" for cell in cells))
    warned = [arm["edge"] for arm in found["arms"].values() if arm["edge"]["result"] == "fail"]
    return "\n".join([*lines, *(f"{edge['id']}: {edge['sentence']} ({edge['evidence']})" for edge in warned)])


def _score(score: float | None) -> str:
    return "failed" if score is None else f"{score:.4f}"


def sections(folder: Folder) -> list[Section]:
    """The page's section on tuning; none where nothing was tuned."""
    tuning = folder.study.get("tuning")
    if not tuning:
        return []
    from headtohead.verdict.tuning import summary

    found = summary(tuning)
    address, primary = found["address"], found["primary"]
    tried = [trial["values"][address] for trial in next(iter(found["arms"].values()))["trials"]]
    rows = [
        [name, *(_score(trial["score"]) for trial in arm["trials"]), f"{arm['best'][address]:g}", _time(arm)]
        for name, arm in found["arms"].items()
    ]
    told = "Tried on seeds and on a slice of the training text that no verdict rests on; the verdict's runs are fresh."
    blocks: list[Block] = [Text(told)]
    blocks += [
        Text(f"{arm['edge']['sentence']} ({arm['edge']['evidence']})", "warning")
        for arm in found["arms"].values()
        if arm["edge"]["result"] == "fail"
    ]
    columns = ["arm", *(f"{value:g}" for value in tried), "best", "time"]
    blocks.append(Table(f"{primary['name']} by {address}, every arm alike", columns, rows))
    curves = {name: arm["curve"] for name, arm in found["arms"].items()}
    caption = (
        "What the best of n trials is expected to come to (Dodge et al. 2019, drawn without replacement). Where two curves "
        "cross, which arm is ahead depends on how many trials either has."
    )
    said = "; ".join(f"{name} {', '.join(f'{value:.4f}' for value in curve)}" for name, curve in curves.items())
    picture = best_of(curves, folder.study["baseline"], f"expected best {primary['name']}")
    return [Section("Tuning", [*blocks, Figure("tuning", picture, caption, f"Expected best of 1, 2, …: {said}.")])]


def _time(arm: Mapping[str, Any]) -> str:
    return numbers.duration(arm["seconds"])
