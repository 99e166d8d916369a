"""What a study came to: the answers, and a section for each challenger."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from headtohead.report import card, numbers
from headtohead.report.document import Answer, Block, Facts, Figure, Section, Table
from headtohead.report.figures import Axis, Difference, differences, overview
from headtohead.report.folder import Folder, mean
from headtohead.report.glossary import VERDICTS
from headtohead.report.numbers import Scale
from headtohead.verdict.margins import LOG_RATIO

MANY = 4  # challengers beyond which each one's card is folded, and the answers are gathered by verdict


def answers(folder: Folder) -> list[Answer]:
    """The verdict in words: a few sentences for each challenger, or, of many, which came to what."""
    verdict = folder.verdict
    if len(verdict["arms"]) <= MANY:
        return [Answer(entry["verdict"], card.answer(name, verdict)) for name, entry in verdict["arms"].items()]
    found: dict[str, list[str]] = {}
    for name in card.best_first(verdict):
        found.setdefault(verdict["arms"][name]["verdict"], []).append(name)
    told = {word: f"{numbers.plural(len(names), 'challenger')}: {', '.join(names)}." for word, names in found.items()}
    return [Answer(word, told[word]) for word in VERDICTS if word in told]


def sections(folder: Folder) -> Iterator[Section]:
    """All challengers side by side, then one by one."""
    if len(folder.verdict["arms"]) > 1:
        yield _all(folder)
    for name in folder.verdict["arms"]:
        yield _challenger(folder, name)


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
    won = numbers.NOTHING if card.INCOMPARABLE in entry["qualifiers"] else f"{entry['won']} of {entry['seeds']}"
    ps = [numbers.probability(entry["p"]), numbers.probability(entry["p_adjusted"])]
    effect, interval = numbers.signed(entry["effect"], scale), card.interval(entry) or numbers.NOTHING
    return [name, entry["verdict"], effect, interval, share, won, *ps]


def _overview(drawn: list[Difference], verdict: dict[str, Any]) -> Figure:
    axis = _axis(verdict, "challenger")
    told = [f"{each.name} {card.effects(verdict['arms'][each.name], verdict['primary'])[0]}" for each in drawn]
    caption = (
        "Every challenger's mean difference with its interval (diamond and bar) and its seeds (circles). The band is "
        "the margin, the line at zero is the baseline."
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
