"""What was measured: the sections of a study's page on training, on every measure and on the costs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from typing import Any

from headtohead.measure import MEASURES
from headtohead.report import card, numbers
from headtohead.report.document import Block, Facts, Figure, Section, Table, Text
from headtohead.report.figures import APART, curves, mean_of, stretch_of
from headtohead.report.folder import Folder, is_number, mean
from headtohead.report.numbers import Scale

LEARNT = "Has it learnt anything?"


def sections(folder: Folder) -> Iterator[Section]:
    """From the training to the costs."""
    yield _curves(folder)
    if any(folder.numbers(arm, "loss") and folder.numbers(arm, "unigram") for arm in folder.arms):
        yield _learnt(folder)
    yield _measures(folder)
    yield _costs(folder)


# ---- training ------------------------------------------------------------------------------------------------------


def _curves(folder: Folder) -> Section:
    losses = {arm: [trace.losses for trace in folder.traces[arm].values()] for arm in folder.arms}
    told = [f"{arm} {_from_to(seeds)}" for arm, seeds in losses.items() if any(seeds)]
    if not told:
        return Section("Training", [Text("No run has a log of its steps.")])
    baseline, stretch = folder.study["baseline"], stretch_of(losses)
    caption = "Loss of the training batches, with the recipe's dropout: it shows whether training was steady, no more. "
    caption += "Thin lines are seeds, bold ones their mean, without runs that failed."
    if len(losses) > APART:
        caption += f" Each challenger stands beside the mean of {baseline} (grey)."
    if stretch > 1:
        caption += f" A point is the mean of {stretch} steps."
    primary = folder.verdict["primary"]
    title = "training loss" + (f", {primary['unit']}" if primary["name"] == "loss" and primary["unit"] else "")
    alternative = f"Training loss over steps, mean over seeds: {'; '.join(told)}."
    return Section("Training", [Figure("training", curves(losses, baseline, title), caption, alternative)])


def _from_to(seeds: list[dict[int, float]]) -> str:
    """Where the mean curve begins and ends."""
    steps = mean_of(seeds)
    first, last = min(steps), max(steps)
    ends = numbers.significant(steps[first]), numbers.significant(steps[last])
    return f"from {ends[0]} at step {first} to {ends[1]} at step {last}"


def _learnt(folder: Folder) -> Section:
    """How far every arm's loss lies below what knowing no context gives."""
    rows, short = [], []
    for arm in folder.arms:
        loss, without = mean(folder.numbers(arm, "loss")), mean(folder.numbers(arm, "unigram"))
        if loss is None or without is None:
            continue
        scale, gain = _scale(folder.numbers(arm, "loss")), without - loss
        short += [arm] if gain <= 0 else []
        share = f"{numbers.significant(100 * gain / without, 2)} %"
        figures = numbers.written(loss, scale), numbers.written(without, scale), numbers.signed(gain, scale)
        rows.append([arm, *figures, share])
    told = Text("Every arm's loss lies below the unigram loss of the same text.")
    if short:
        warning = (
            f"The loss of {', '.join(short)} is not below the unigram loss: it predicts no better than one who knows "
            "how frequent each token is and never looks at the text. A comparison of arms that have learnt so little "
            "says little."
        )
        told = Text(warning, "warning")
    caption = (
        "Mean over seeds, in nats per scored token. The unigram loss is that of the training text's token frequencies."
    )
    return Section(LEARNT, [told, Table(caption, ["arm", "loss", "unigram loss", "below by", "of it"], rows)])


# ---- measures ------------------------------------------------------------------------------------------------------


def _scale(values: list[float]) -> Scale:
    """Two digits of the standard error over seeds; of a single seed four digits."""
    spread = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    if spread:
        return numbers.scale(values, numbers.place_of(spread))
    return numbers.scale(values, numbers.place_of(abs(values[0]), 4)) if values[0] else Scale(0, 0)


def _measures(folder: Folder) -> Section:
    """Every measure: those that are the same in all runs once, the others by arm and seed."""
    runs = [run.measures for mine in folder.runs.values() for run in mine.values() if run.measures]
    names = list(dict.fromkeys(name for measures in runs for name in measures))
    same = [name for name in names if all(measures.get(name) == runs[0].get(name) for measures in runs)]
    rows = []
    for name in (name for name in names if name not in same):
        rows.append([_explained(name, folder)])
        rows += [[arm, *_by_seed(folder, arm, name)] for arm in folder.arms]
    primary = folder.verdict["primary"]["name"]
    caption = (
        f"Measures of every run. The verdict rests on {primary} alone; a claim may test another, the rest describe."
    )
    blocks: list[Block] = []
    if rows:
        blocks.append(Table(caption, ["arm", "mean", *(f"seed {seed}" for seed in folder.seeds)], rows))
    if same:
        constant = [[name, numbers.exact(runs[0][name]), *_meaning(name, folder)] for name in same]
        columns = ["measure", "value", "unit", "meaning"]
        blocks.append(Table("The same in every run", columns, constant, frozenset(range(4))))
    return Section("Measures", blocks or [Text("No run left measures.")])


def _meaning(name: str, folder: Folder) -> tuple[str, str]:
    """A measure's unit, which the study itself states for its own, and what it is."""
    primary = folder.verdict["primary"]
    if name not in MEASURES:
        return (primary["unit"] if name == primary["name"] else ""), ""
    return (primary["unit"] if name == primary["name"] else MEASURES[name].unit), MEASURES[name].meaning


def _explained(name: str, folder: Folder) -> str:
    unit, meaning = _meaning(name, folder)
    return f"{name}{f' ({unit})' if unit else ''}{f': {meaning}' if meaning else ''}"


def _by_seed(folder: Folder, arm: str, name: str) -> list[str]:
    """The mean and each seed's value."""
    values, finite = folder.measured(arm, name), folder.numbers(arm, name)
    if len(set(map(str, values.values()))) == 1:
        only = numbers.exact(next(iter(values.values())))
        return [only, *(only if seed in values else numbers.NOTHING for seed in folder.seeds)]
    if not finite:
        return [numbers.NOTHING, *(numbers.exact(values.get(seed)) for seed in folder.seeds)]
    scale = _paired_scale(folder) if name == folder.verdict["primary"]["name"] else None
    scale = scale or _scale(finite)
    cells = (values[seed] if is_number(values.get(seed)) else None for seed in folder.seeds)
    return [numbers.written(mean(finite), scale), *(numbers.written(cell, scale) for cell in cells)]


def _paired_scale(folder: Folder) -> Scale | None:
    """The digits of the primary measure that the differences of pairs support, so that they can be recomputed."""
    entries = [entry for entry in folder.verdict["arms"].values() if numbers.half_width(entry["interval"])]
    scales = [card.effect_scale(entry) for entry in entries]
    return Scale(0, max(scale.decimals - scale.power for scale in scales)) if scales else None


# ---- costs ---------------------------------------------------------------------------------------------------------


def _costs(folder: Folder) -> Section:
    verdict, price = folder.verdict, folder.verdict["price"] or {}
    rate = price.get("dollars_per_hour")
    source = ", ".join(part for part in (price.get("source"), price.get("date")) if part)
    told: list[card.Fact] = []
    if rate is not None:
        told = [("price", [f"${rate:g} an hour of one device" + (f" ({source})" if source else "")])]
    kinds = (("all runs", "spent"), ("of which failed", "failed"), ("tuning, besides", "tuning"))
    told += [(label, [_spent(price[key])]) for label, key in kinds if key in price]
    told += [
        (f"{name} to {verdict['baseline']['name']}", [card.match(entry)]) for name, entry in verdict["arms"].items()
    ]
    caption = (
        "Each run: the mean over seeds, its range in brackets. Times are those of a machine that may have had other "
        "runs beside, with compilation in them; the ratio of times has the median step instead."
    )
    columns = ["arm", "parameters", "training FLOPs", "time of training", "peak memory", "dollars"]
    return Section(
        "Costs", [Table(caption, columns, [[arm, *_cost(folder, arm, rate)] for arm in folder.arms]), Facts(told)]
    )


def _spent(cost: dict[str, Any]) -> str:
    """Seconds, and dollars where an hour has a price."""
    paid = [] if cost["dollars"] is None else [numbers.dollars(cost["dollars"])]
    return ", ".join([numbers.duration(cost["seconds"]), *paid])


def _cost(folder: Folder, arm: str, rate: float | None) -> list[str]:
    """A run of an arm. One that failed took less, so it counts only where none was finished."""
    finished = [run for run in folder.runs[arm].values() if run.measures]
    runs = [run for run in finished or folder.runs[arm].values() if run.seconds]
    seconds, memory = [run.seconds for run in runs], [float(run.memory) for run in runs if run.memory]
    time, each = numbers.duration(mean(seconds)), mean(seconds)
    if len(set(seconds)) > 1:
        time += f" ({numbers.span(numbers.duration(min(seconds)), numbers.duration(max(seconds)))})"
    return [
        numbers.whole(folder.study.get("shared", {}).get(arm, {}).get("parameters")),
        numbers.significant(folder.study.get("operations", {}).get(arm)),
        time,
        numbers.memory(mean(memory)),
        numbers.NOTHING if each is None or rate is None else numbers.dollars(each * rate / 3600),
    ]
