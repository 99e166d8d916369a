"""What a study's result rests on: the sections of its page that a sceptical reader turns to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from headtohead.report import beside, card, numbers
from headtohead.report.document import Block, Code, Facts, Section, Table, Text
from headtohead.report.folder import Folder
from headtohead.report.glossary import LABELS, VERDICTS
from headtohead.verdict.folder import FAILED, command


def sections(folder: Folder) -> Iterator[Section]:
    """From what differs to the command that repeats it all."""
    yield _differs(folder)
    yield _same_data(folder)
    yield _audits(folder)
    yield _texts(folder)
    yield _machine(folder)
    yield _method(folder)
    yield _repeat(folder)


def _differs(folder: Folder) -> Section:
    """The addresses that differ, and how much of every arm starts as the baseline does."""
    found = [
        [name, address, str(before), str(after)]
        for name, entry in folder.verdict["arms"].items()
        for address, (before, after) in entry["changes"].items()
    ]
    baseline = folder.study["baseline"]
    columns = ["challenger", "address", baseline, "challenger has"]
    caption = "Every address at which a recipe differs from the baseline's; all other settings are equal."
    blocks: list[Block] = [Text("Nothing: the recipes of all arms are equal.")]
    if found:
        blocks = [Table(caption, columns, found, frozenset(range(4)))]
    shared = folder.study.get("shared", {})
    rows = [[arm, *_start(shared[arm])] for arm in folder.arms if arm in shared]
    if rows:
        caption = f"Parameters that start with the same numbers as in {baseline}, for the same seed"
        blocks.append(Table(caption, ["arm", "parameters", "start alike", "share"], rows))
    return Section("What differs", blocks)


def _start(shared: dict[str, int]) -> list[str]:
    every, alike = shared["parameters"], shared["shared"]
    share = "100 %" if alike == every else f"{100 * alike / every:.1f} %"
    return [numbers.whole(every), numbers.whole(alike), share]


def _same_data(folder: Folder) -> Section:
    """The proof that the arms saw the same batches: a hash over the hashes of all of a run's batches."""
    most = max((trace.batches for mine in folder.traces.values() for trace in mine.values()), default=0)
    rows = [[arm, *(_digest(folder, arm, seed, most) for seed in folder.seeds)] for arm in folder.arms]
    caption = (
        "A hash over the hashes of all batches of a run, each of its tokens, targets and places. Equal in a column: "
    )
    caption += "the same data in the same order."
    columns = ["arm", *(f"seed {seed}" for seed in folder.seeds)]
    return Section("Same data?", [*_agreement(folder), Table(caption, columns, rows, frozenset(range(len(columns))))])


def _agreement(folder: Folder) -> list[Block]:
    """Whether the paired runs saw the same batches, by challenger where not all did."""
    entries = folder.verdict["arms"]
    different = {name: entry["different_data"] for name, entry in entries.items() if entry["different_data"]}
    if not different:
        compared = sum(entry["seeds"] for entry in entries.values())
        agree = f"Yes: the hashes of all batches agree, in every pair of runs that is compared ({compared})."
        return [Text(agree if compared else "No pair of finished runs can be compared.")]
    told = {
        name: ", ".join(f"seed {s} from step {step} on" for s, step in seeds.items())
        for name, seeds in different.items()
    }
    return [Text(f"{name} did not see the baseline's batches: {parted}.", "warning") for name, parted in told.items()]


def _digest(folder: Folder, arm: str, seed: Any, most: int) -> str:
    """A run's hash; a run that ended early has one of the batches that it saw."""
    trace = folder.traces[arm].get(seed)
    if trace is None:
        return "missing"
    return (
        trace.digest
        if trace.batches == most
        else f"{trace.digest} ({numbers.plural(trace.batches, 'batch', 'batches')})"
    )


def _audits(folder: Folder) -> Section:
    """Every audit of every arm; what failed comes first."""
    groups: dict[tuple[str, ...], list[Any]] = {}
    for arm in folder.arms:
        for seed, run in folder.runs[arm].items():
            for audit in run.audits:
                key = (arm, *(audit[name] for name in ("id", "when", "severity", "result", "sentence")))
                groups.setdefault(key, []).append((seed, audit["evidence"]))
    rows = [_audit(key, found) for key, found in groups.items()]
    order = ("fail", "skip", "pass")
    rows.sort(key=lambda row: order.index(row[4]))
    if not rows:
        return Section("Audits", [Text("No audit is on record.", "warning")])
    failed = list(dict.fromkeys(f"{row[1]} of {row[0]}" for row in rows if row[4] == "fail"))
    told = [Text(f"Failed: {', '.join(failed)}.", "warning")] if failed else [Text("None failed.")]
    columns = ["arm", "audit", "when", "severity", "result", "finding", "evidence", "seeds"]
    caption = "A failed audit of severity fatal makes a comparison INVALID. Evidence is that of the first seed."
    return Section("Audits", [*told, Table(caption, columns, rows, frozenset(range(8)))])


def _audit(key: tuple[str, ...], found: list[Any]) -> list[str]:
    arm, name, when, severity, result, sentence = key
    return [arm, name, when, severity, result, sentence, found[0][1], ", ".join(str(seed) for seed, _ in found)]


def _texts(folder: Folder) -> Section:
    """The text of every arm; once, if all have the same."""
    groups: dict[str, list[str]] = {}
    for arm, text in folder.study.get("texts", {}).items():
        groups.setdefault(json.dumps(text, sort_keys=True), []).append(arm)
    blocks: list[Block] = []
    for text, arms in groups.items():
        if len(groups) > 1:
            blocks.append(Text(f"{', '.join(arms)}:"))
        blocks.append(Facts(_text(json.loads(text), {folder.study.get("training", {}).get(arm) for arm in arms})))
    return Section("Text", blocks or [Text("The study's file says nothing of its text.")])


def _text(text: dict[str, Any], training: set[int | None]) -> list[card.Fact]:
    seen = [count for count in training if count is not None]
    passes = [
        f"{numbers.whole(count)} tokens, {numbers.significant(count / text['train'])} times the training text"
        for count in sorted(seen)
    ]
    return [
        ("name", [text["name"]]),
        ("source", [text["note"]]),
        ("hash", [text["hash"]]),
        ("vocabulary", [f"{numbers.whole(text['vocabulary'])} tokens"]),
        ("training text", [f"{numbers.whole(text['train'])} tokens"]),
        ("held-out text", [f"{numbers.whole(text['validation'])} tokens"]),
        *([("training rows", _examples(text["examples"]))] if text.get("examples") else []),
        *([("seen in training", passes)] if passes else []),
    ]


def _examples(counts: dict[str, int]) -> list[str]:
    """How many rows there are, and what of the text no row has: one in seven of study 2's documents, and nobody saw."""
    lines = counts.get("rows", 0) + counts.get("dropped", 0)  # where a row is a line
    beside: list[str] = [what for what in ("truncated", "dropped") if what in counts and "rows" in counts]
    share = {what: f" ({100 * counts[what] / lines:.1f} %)" for what in beside}
    return [f"{numbers.whole(count)} {what}{share.get(what, '')}" for what, count in counts.items()]


def _machine(folder: Folder) -> Section:
    """The route that all arms took, and where they ran."""
    route = folder.route
    told: list[card.Fact] = []
    if route:
        compiled = "compiled" if route["compiled"] else "eager"
        told = [
            ("device", [f"{route['device']}, {numbers.plural(route['threads'], 'thread')} a run"]),
            ("numbers", [route["dtype"]]),
            ("made", [compiled + (f": {route['why']}" if route.get("why") else "")]),
        ]
    blocks: list[Block] = [
        Text("All arms, seeds and resumes took the same route, chosen before the first run."),
        Facts(told),
    ]
    if not route:
        blocks = [Text("The folder holds no route.json, so it is not known how the arms were computed.", "warning")]
    known = [(environment, runs) for environment, runs in folder.environments if environment]
    if len(known) > 1:
        blocks.append(
            Text("The runs took place in different environments, so their times cannot be compared.", "warning")
        )
    for environment, runs in known:
        rows = [(name, [str(value)]) for name, value in environment.items() if name != "route"]
        blocks.append(Facts([*rows, ("runs", [str(runs)])]))
    return Section("Machine", blocks)


def _method(folder: Folder) -> Section:
    """How the numbers are made, with this study's own settings, and what the words mean."""
    words = [[word, meaning.text] for word, meaning in VERDICTS.items()]
    labels = [[label, meaning] for label, meaning in LABELS.items()]
    tables = [
        Table("The verdicts; the first that fits is given", ["verdict", "meaning"], words, frozenset({0, 1})),
        Table("The labels that go with a verdict", ["label", "meaning"], labels, frozenset({0, 1})),
    ]
    return Section("How the numbers are made", [Facts([(name, [line]) for name, line in _steps(folder)]), *tables])


def _steps(folder: Folder) -> list[tuple[str, str]]:
    """From the runs to the verdict."""
    verdict, stated = folder.verdict, folder.study.get("margin") is not None
    alpha = (verdict.get("look") or verdict)["alpha"]
    level, inner = (f"{100 * (1 - share * alpha):.4g} %" for share in (1, 2))
    margin = f"±{numbers.significant(verdict['margin'])}{card.unit(verdict['primary'])}"
    said = "stated by the study" if stated else "a convention, as the study states none"
    if verdict["baseline"]["mean"]:
        said += f" ({100 * verdict['margin'] / abs(verdict['baseline']['mean']):.2g} % of the baseline's mean)"
    several = beside.family(verdict) or "1 challenger"
    return [
        ("difference", "d = challenger − baseline for each seed, which sets start, data, masks and dropout of both"),
        ("interval", f"mean(d) ± t · sd(d) / √S at {level}, t with S − 1 degrees of freedom over S seeds"),
        ("p", f"two-sided, of the paired t test; adjusted for {several} by Holm's method, claims for all claims"),
        ("margin", f"{margin}, the smallest difference that matters: {said}"),
        ("equivalence", f"two one-sided tests (TOST): the {inner} interval lies inside the margin; never adjusted"),
        ("reach", "what these seeds find with a chance of 80 %; and how many find a difference as large as the margin, "
         "at the spread that was seen and at the largest that it may well have"),
        ("digits", "two of half a difference's interval; two of a mean's standard error over seeds"),
    ]  # fmt: skip


def _repeat(folder: Folder) -> Section:
    """What was declared, and the command that does it all again."""
    study = folder.study
    failed = [run for mine in folder.runs.values() for run in mine.values() if run.state == FAILED]
    missing = sum(seed not in mine for mine in folder.runs.values() for seed in folder.seeds)
    odd = f"{numbers.plural(len(failed), 'failed run')}, {numbers.plural(missing, 'missing run')}"
    told: list[card.Fact] = [
        (
            "lock",
            [f"{study['lock']}: hash of arms, text, seeds, measure, margin and claims, taken before the first run"],
        ),
        ("deviations", [odd if failed or missing else "none"]),
        *([("study file", [f"hash {study['code']}"])] if "code" in study else []),
        *([("headtohead", [f"version {study['version']}"])] if "version" in study else []),
    ]
    return Section("Do it again", [Code(command(study)), Facts(told)])
