"""What a study came to: the sections of its page from the verdict to the costs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from typing import Any

from headtohead.report import card, numbers
from headtohead.report.document import Block, Facts, Figure, Section, Table, Text
from headtohead.report.figures import APART, Axis, Difference, curves, differences, overview, stretch_of
from headtohead.report.folder import Folder, is_number, mean
from headtohead.report.glossary import MEASURES, VERDICTS
from headtohead.report.numbers import Scale
from headtohead.verdict.margins import LOG_RATIO

MANY = 4  # challengers beyond which each one's card is folded, and the answers are gathered by verdict


def answers(folder: Folder) -> list[str]:
    """The verdict in words: a sentence or two for each challenger, or, of many, which came to what."""
    verdict = folder.verdict
    if len(verdict["arms"]) <= MANY:
        return [card.answer(name, verdict) for name in verdict["arms"]]
    found: dict[str, list[str]] = {}
    for name in card.best_first(verdict):
        found.setdefault(verdict["arms"][name]["verdict"], []).append(name)
    return [f"{word} ({len(found[word])}): {', '.join(found[word])}." for word in VERDICTS if word in found]


def sections(folder: Folder) -> Iterator[Section]:
    """From the verdict to the costs."""
    names = list(folder.verdict["arms"])
    if len(names) > 1:
        yield _all(folder)
    for name in names:
        yield _challenger(folder, name)
    yield _curves(folder)
    if _has(folder, "loss") and _has(folder, "unigram"):
        yield _learned(folder)
    yield _measures(folder)
    yield _costs(folder)


# ---- the challengers -----------------------------------------------------------------------------------------------


def _all(folder: Folder) -> Section:
    verdict, names = folder.verdict, card.best_first(folder.verdict)
    columns = ["challenger", "verdict", "effect", "95 % interval", "of the baseline", "won", "p", "p adjusted"]
    columns[3] = f"{100 * (1 - verdict['alpha']):g} % interval"
    rows = [_summary(name, verdict["arms"][name]) for name in names]
    primary = verdict["primary"]
    caption = (
        f"Differences of {primary['name']} in{card.unit(primary)}, challenger − {verdict['baseline']['name']}; "
        f"{primary['better']} is better. Sorted by the effect: the best of several looks better than it is."
    )
    blocks: list[Block] = [Table(caption, columns, rows, frozenset({0, 1}))]
    drawn = [found for name in names if (found := _difference(name, verdict["arms"][name], verdict))]
    if drawn:
        blocks.append(_overview(drawn, verdict))
    return Section("All challengers", blocks)


def _summary(name: str, entry: card.Entry) -> list[str]:
    half, scale = numbers.half_width(entry["interval"]), card.effect_scale(entry)
    share = numbers.percent(entry["relative"], entry["effect"] or 0.0, half)
    won = f"{entry['won']} of {entry['seeds']}"
    ps = [numbers.probability(entry["p"]), numbers.probability(entry["p_adjusted"])]
    effect, interval = numbers.signed(entry["effect"], scale), card.interval(entry) or numbers.NOTHING
    return [name, entry["verdict"], effect, interval, share, won, *ps]


def _overview(drawn: list[Difference], verdict: dict[str, Any]) -> Figure:
    axis = _axis(verdict, "challenger")
    told = [f"{each.name} {card.effects(verdict['arms'][each.name], verdict['primary'])[0]}" for each in drawn]
    caption = (
        "Every challenger's mean difference with its interval (diamond and bar) and its seeds (circles). The band is the "
        "margin, the line at zero is the baseline."
    )
    return Figure("challengers", overview(drawn, axis), caption, f"{'; '.join(told)}.")


def _axis(verdict: dict[str, Any], challenger: str) -> Axis:
    primary = verdict["primary"]
    title = f"{primary['name']}: {challenger} − {verdict['baseline']['name']},{card.unit(primary)}"
    return Axis(title, primary["better"], verdict["margin"])


def _difference(name: str, entry: card.Entry, verdict: dict[str, Any]) -> Difference | None:
    """A challenger's paired differences, as its effect is their mean; None where there is no pair."""
    if entry["effect"] is None:
        return None
    pairs = {seed: _pair(entry, str(seed), verdict["primary"]) for seed in entry["paired_seeds"]}
    tone = VERDICTS[entry["verdict"]].tone
    return Difference(
        name, tone, {str(seed): found for seed, found in pairs.items()}, entry["effect"], entry["interval"]
    )


def _pair(entry: card.Entry, seed: str, primary: dict[str, Any]) -> float:
    """Challenger minus baseline; of a measure that is compared by ratios, the logarithm of the ratio."""
    theirs, ours = (entry["values"][arm][seed] for arm in ("baseline", "challenger"))
    return math.log(ours / theirs) if primary["unit"] == LOG_RATIO else ours - theirs


def _challenger(folder: Folder, name: str) -> Section:
    verdict, entry = folder.verdict, folder.verdict["arms"][name]
    blocks: list[Block] = [Facts(card.facts(name, verdict))]
    found = _difference(name, entry, verdict)
    many = len(verdict["arms"]) > MANY
    if found and not many:
        blocks.append(_figure(found, entry, verdict))
    blocks.append(_pairs(entry, verdict))
    return Section(name, blocks, entry["verdict"], folded=many, within=len(verdict["arms"]) > 1)


def _figure(found: Difference, entry: card.Entry, verdict: dict[str, Any]) -> Figure:
    scale = card.effect_scale(entry)
    seeds = ", ".join(f"seed {seed} {numbers.signed(value, scale)}" for seed, value in found.seeds.items())
    caption = (
        f"The difference of each seed, their mean and its interval. The band is the margin "
        f"±{numbers.significant(verdict['margin'], 2)}, the line at zero is the baseline."
    )
    told = f"{found.name}: {'; '.join(card.effects(entry, verdict['primary']))}. {seeds}."
    return Figure(f"differences-{found.name}", differences(found, _axis(verdict, found.name)), caption, told)


def _pairs(entry: card.Entry, verdict: dict[str, Any]) -> Table:
    """What every declared seed came to."""
    primary, scale = verdict["primary"], card.effect_scale(entry)
    level = Scale(0, scale.decimals - scale.power)
    rows = []
    for seed in map(str, verdict["seeds"]):
        values = [_outcome(entry, arm, seed, level) for arm in ("baseline", "challenger")]
        paired = seed in map(str, entry["paired_seeds"])
        rows.append([f"seed {seed}", *values, numbers.signed(_pair(entry, seed, primary), scale) if paired else "–"])
    means = [
        mean([entry["values"][arm][str(seed)] for seed in entry["paired_seeds"]]) for arm in ("baseline", "challenger")
    ]
    ends = [numbers.written(value, level) for value in means]
    rows.append(["mean of the pairs", *ends, numbers.signed(entry["effect"], scale)])
    return Table(
        f"{primary['name']} of every seed, in{card.unit(primary)}",
        ["seed", verdict["baseline"]["name"], "challenger", "difference"],
        rows,
    )


def _outcome(entry: card.Entry, arm: str, seed: str, level: Scale) -> str:
    """A run's value, or why there is none."""
    if seed in entry["values"][arm]:
        return numbers.written(entry["values"][arm][seed], level)
    return "failed" if seed in entry["failures"][arm] else "missing"


# ---- curves and measures -------------------------------------------------------------------------------------------


def _curves(folder: Folder) -> Section:
    losses = {arm: [trace.losses for trace in folder.traces[arm].values()] for arm in folder.arms}
    stretch = stretch_of(losses)
    caption = "Loss of the training batches, with the dropout that the recipe has: it shows whether training was steady, and is no evidence of quality. "
    caption += "Thin lines are seeds, bold ones their mean. "
    if len(losses) > APART:
        caption += f"Each challenger (blue) with the mean of {folder.study['baseline']} (grey). "
    if stretch > 1:
        caption += f"A point is the mean of {stretch} steps."
    told = [f"{arm} {_from_to(seeds)}" for arm, seeds in losses.items() if any(seeds)]
    blocks: list[Block] = [Text("No run has a log of its steps.")]
    if told:
        spec = curves(losses, folder.study["baseline"], "training loss, nats per scored token")
        alternative = f"Training loss over steps, mean over seeds: {'; '.join(told)}."
        blocks = [Figure("curves", spec, caption.strip(), alternative)]
    return Section("Training", blocks)


def _from_to(seeds: list[dict[int, float]]) -> str:
    some = [losses for losses in seeds if losses]
    first, last = (mean([losses[pick(losses)] for losses in some]) for pick in (min, max))
    return f"from {numbers.significant(first)} at step {min(map(min, some))} to {numbers.significant(last)} at step {max(map(max, some))}"


def _has(folder: Folder, measure: str) -> bool:
    return any(folder.numbers(arm, measure) for arm in folder.arms)


def _scale(values: list[float]) -> Scale:
    """Two digits of the standard error over seeds; of a single seed four digits."""
    spread = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    if spread:
        return numbers.scale(values, numbers.place_of(spread))
    return numbers.scale(values, numbers.place_of(abs(values[0]), 4)) if values[0] else Scale(0, 0)


def _learned(folder: Folder) -> Section:
    """How far every arm's loss lies below what knowing no context gives."""
    rows, short = [], []
    for arm in folder.arms:
        losses, without = folder.numbers(arm, "loss"), mean(folder.numbers(arm, "unigram"))
        if not losses or without is None:
            continue
        scale = _scale(losses)
        gain = without - math.fsum(losses) / len(losses)
        short += [arm] if gain <= 0 else []
        share = f"{numbers.significant(100 * gain / without, 2)} %"
        rows.append(
            [
                arm,
                numbers.written(without - gain, scale),
                numbers.written(without, scale),
                numbers.signed(gain, scale),
                share,
            ]
        )
    caption = "Mean over seeds, in nats per scored token. A model that only knows how frequent each token is would have the unigram loss."
    blocks: list[Block] = [Table(caption, ["arm", "loss", "unigram loss", "below by", "of it"], rows)]
    if short:
        warning = f"Not below: {', '.join(short)}. There the model predicts no better than token frequencies alone, so it has not learnt to use context, and comparing such arms says little."
        return Section("Has it learnt anything?", [Text(warning, "warning"), *blocks])
    return Section(
        "Has it learnt anything?", [Text("Every arm's loss lies below the unigram loss of the same text."), *blocks]
    )


def _measures(folder: Folder) -> Section:
    """Every measure: those that are the same in all runs once, the others by arm and seed."""
    runs = [run.measures for mine in folder.runs.values() for run in mine.values() if run.measures]
    names = list(dict.fromkeys(name for measures in runs for name in measures))
    same = [name for name in names if all(measures.get(name) == runs[0].get(name) for measures in runs)]
    rows = []
    for name in (name for name in names if name not in same):
        rows.append([_explained(name, folder)])
        rows += [[arm, *_by_seed(folder, arm, name)] for arm in folder.arms]
    columns = ["arm", "mean", *(f"seed {seed}" for seed in folder.seeds)]
    caption = f"Measures of every run. Only {folder.verdict['primary']['name']} was tested; the others describe."
    constant = [[name, numbers.exact(runs[0][name]), *_meaning(name, folder)] for name in same]
    blocks: list[Block] = [Table(caption, columns, rows)] if rows else []
    if constant:
        blocks.append(
            Table("The same in every run", ["measure", "value", "unit", "meaning"], constant, frozenset({0, 2, 3}))
        )
    return Section("Measures", blocks or [Text("No run left measures.")])


def _meaning(name: str, folder: Folder) -> tuple[str, str]:
    """A measure's unit, which the study knows of its own, and what it is."""
    unit, meaning = MEASURES.get(name, ("", ""))
    primary = folder.verdict["primary"]
    return (primary["unit"] if name == primary["name"] else unit), meaning


def _explained(name: str, folder: Folder) -> str:
    unit, meaning = _meaning(name, folder)
    return f"{name}{f' ({unit})' if unit else ''}{f': {meaning}' if meaning else ''}"


def _by_seed(folder: Folder, arm: str, name: str) -> list[str]:
    """The mean and each seed's value. The primary measure has the digits that the differences of pairs support."""
    values, finite = folder.measured(arm, name), folder.numbers(arm, name)
    if len(set(map(str, values.values()))) == 1:
        only = numbers.exact(next(iter(values.values())))
        return [only, *(only if seed in values else numbers.NOTHING for seed in folder.seeds)]
    if not finite:
        return [numbers.NOTHING, *(numbers.exact(values.get(seed)) for seed in folder.seeds)]
    scale = _scale(finite)
    if name == folder.verdict["primary"]["name"]:
        entries = [entry for entry in folder.verdict["arms"].values() if numbers.half_width(entry["interval"])]
        scale = Scale(
            0, max([scale.decimals, *(card.effect_scale(e).decimals - card.effect_scale(e).power for e in entries)])
        )
    cells = [
        numbers.written(values[seed], scale) if is_number(values.get(seed)) else numbers.NOTHING
        for seed in folder.seeds
    ]
    return [numbers.written(mean(finite), scale), *cells]


# ---- costs ---------------------------------------------------------------------------------------------------------


def _costs(folder: Folder) -> Section:
    verdict, price = folder.verdict, folder.verdict["price"] or {}
    rate = price.get("dollars_per_hour") or 0.0
    columns = ["arm", "parameters", "training FLOPs", "seconds of training", "peak memory", "dollars"]
    rows = [[arm, *_cost(folder, arm, rate)] for arm in folder.arms]
    caption = "Each run, mean over seeds; the range over seeds in brackets. Times are as the machine was, with whatever ran beside."
    spent = (
        [f"{numbers.duration(price['spent']['seconds'])}, {numbers.dollars(price['spent']['dollars'])}"]
        if "spent" in price
        else []
    )
    lost = (
        [f"{numbers.duration(price['failed']['seconds'])}, {numbers.dollars(price['failed']['dollars'])}"]
        if "failed" in price
        else []
    )
    source = ", ".join(part for part in (price.get("source"), price.get("date")) if part)
    told = [
        ("price", [f"{numbers.dollars(rate)} an hour of one device" + (f" ({source})" if source else "")]),
        ("all runs", spent),
        ("of which failed", lost),
        *((f"{name} / {verdict['baseline']['name']}", [card.match(entry)]) for name, entry in verdict["arms"].items()),
    ]
    return Section("Costs", [Table(caption, columns, rows), Facts([(name, lines) for name, lines in told if lines])])


def _cost(folder: Folder, arm: str, rate: float) -> list[str]:
    runs = [run for run in folder.runs[arm].values() if run.seconds]
    seconds, memory = [run.seconds for run in runs], [float(run.memory) for run in runs if run.memory]
    time = numbers.duration(mean(seconds))
    if len(set(seconds)) > 1:
        time += f" ({numbers.span(numbers.duration(min(seconds)), numbers.duration(max(seconds)))})"
    operations = folder.study.get("operations", {}).get(arm)
    spent = [one * rate / 3600 for one in seconds]
    parameters = folder.study.get("shared", {}).get(arm, {}).get("parameters")
    return [
        numbers.whole(parameters),
        numbers.significant(operations),
        time,
        numbers.memory(mean(memory)),
        numbers.dollars(mean(spent)),
    ]
