"""Figures as Vega-Lite specifications: plain dicts, from which the page's SVG and any other picture are drawn.

All colours are in LIGHT, as they stand on paper; the page's style gives each its counterpart for a dark screen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from headtohead.report.numbers import times_ten

Spec = dict[str, Any]
Row = dict[str, Any]

INK, FAINT, GRID, BAND = "#24292f", "#57606a", "#d8dee4", "#dbe7f3"
SERIES = ("#57606b", "#0b63b8", "#b4540a", "#7a3ea8", "#17803d", "#b3245a")  # the first is the baseline's
TONES = {"good": "#1a7f38", "bad": "#cf222f", "same": "#0b63b9", "open": "#9a6701", "refused": "#82071f"}
DARK = {
    INK: "#e6edf3", FAINT: "#9da7b3", GRID: "#30363d", BAND: "#1f3450",
    "#57606b": "#b1bac4", "#0b63b8": "#6cb6ff", "#b4540a": "#f0a35e", "#7a3ea8": "#d2a8ff", "#17803d": "#6bd68a",
    "#b3245a": "#ff8fb3", "#1a7f38": "#56d364", "#cf222f": "#ff7b72", "#0b63b9": "#79c0ff", "#9a6701": "#e3b341",
    "#82071f": "#ffa198",
}  # fmt: skip
DASHES = ((1, 0), (6, 3), (2, 2), (8, 3, 2, 3), (4, 4), (1, 3))

WIDTH, LINE = 330, 24  # of the plot, and of one row in it
NEAR = 8  # of the largest difference, when the margin is wider than so many of it, the differences are enlarged
FAR = 25  # margins beyond which a linear axis would hide what happens near zero
POINTS = 150  # of a curve; longer runs are averaged over stretches of steps
APART = len(SERIES)  # arms that fit into one plot of curves; more get a plot each


class Difference(NamedTuple):
    """A challenger's paired differences, in the measure's own direction."""

    name: str
    tone: str
    seeds: Mapping[str, float]
    effect: float
    interval: Sequence[float] | None


class Axis(NamedTuple):
    """What the differences are of. `better` is lower or higher."""

    title: str
    better: str
    margin: float
    squeezed: bool = False  # linear inside the margin, logarithmic beyond it


def _whole(spec: Spec) -> Spec:
    """A specification with what all figures have in common."""
    axis = {
        "labelColor": FAINT, "titleColor": INK, "domainColor": FAINT, "tickColor": FAINT, "gridColor": GRID,
        "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "titlePadding": 8,
        "labelFlush": False, "labelExpr": _shortened(26),
    }  # fmt: skip
    legend = {"labelColor": INK, "labelFontSize": 12, "title": None, "orient": "top", "labelLimit": 0, "columns": 2}
    header = {"labelColor": INK, "labelFontSize": 12, "title": None, "labelPadding": 4}
    header |= {"labelExpr": _shortened(18), "labelLimit": 0}
    config = {
        "aria": False,  # the page gives the whole figure one description
        "background": None,
        "font": "Arial, Helvetica, sans-serif",  # the widths that the layout is measured with
        "view": {"stroke": None},
        "axis": axis,
        "legend": legend
        | {"symbolStrokeWidth": 2.5, "symbolSize": 300, "symbolOpacity": 1, "labelExpr": _shortened(22)},
        "header": header,
    }
    return {"$schema": "https://vega.github.io/schema/vega-lite/v6.json", **spec, "config": config}


def _shortened(most: int) -> str:
    """Vega's expression for a label without its middle where it is too long: both ends tell arms apart."""
    front, back = most // 2, most - most // 2 - 1
    cut = f"substring(datum.label, 0, {front}) + '…' + slice(datum.label, -{back})"
    return f"length(datum.label) > {most} ? {cut} : datum.label"


# ---- differences ---------------------------------------------------------------------------------------------------


def differences(found: Difference, axis: Axis) -> Spec:
    """A point for each seed, the mean with its interval, and the margin as a band around zero.

    Where the band is so wide that the differences shrink to one spot, they are drawn once more, enlarged.
    """
    rows: list[Row] = [{"row": f"seed {seed}", "value": value} for seed, value in found.seeds.items()]
    rows.append({"row": "mean", "value": found.effect} | _ends(found.interval))
    order = [row["row"] for row in rows]
    panel = _panel(rows, order, axis, TONES[found.tone])
    reach = _reach(rows)
    if not 0 < reach < axis.margin / NEAR:
        return _whole(panel)
    power = math.floor(math.log10(reach))
    title = f"the same, enlarged: in units of {times_ten(power)[1:]}" if power else "the same, enlarged"
    grown = [_grown(row, 10.0**-power) for row in rows]
    near = _panel(grown, order, axis._replace(title=title, margin=0.0), TONES[found.tone])
    return _whole({"vconcat": [panel, near], "spacing": 22})


def overview(found: Sequence[Difference], axis: Axis) -> Spec:
    """Every challenger's mean with its interval over its seeds' differences, in the order given."""
    rows: list[Row] = []
    for each in found:
        rows += [{"row": each.name, "value": value, "seed": True, "tone": each.tone} for value in each.seeds.values()]
        rows.append({"row": each.name, "value": each.effect, "seed": False, "tone": each.tone} | _ends(each.interval))
    far = 0 < FAR * axis.margin < _reach(rows)
    return _whole(_panel(rows, [each.name for each in found], axis._replace(squeezed=far), None))


def _ends(interval: Sequence[float] | None) -> Row:
    return {"low": interval[0], "high": interval[1]} if interval else {}


def _grown(row: Row, factor: float) -> Row:
    return {name: value * factor if isinstance(value, float) else value for name, value in row.items()}


def _panel(rows: Sequence[Row], order: Sequence[str], axis: Axis, colour: str | None) -> Spec:
    """Rows of points and intervals over a band; coloured by their tones where no one colour is given."""
    means = [row for row in rows if not row.get("seed", row["row"] != "mean")]
    seeds = [row for row in rows if row not in means]
    small = colour is None
    across = _across(axis, _reach(rows))
    paint: Row = {"value": colour} if colour else _tones()
    clear = {"title": None, "ticks": False, "domain": False}
    down: Row = {"field": "row", "type": "nominal", "sort": list(order), "axis": clear}
    dots = {"type": "point", "filled": not small, "size": 22 if small else 60, "opacity": 0.55 if small else 0.85}
    diamonds = {"type": "point", "shape": "diamond", "filled": True, "size": 90, "opacity": 1}
    here = {"x": across, "y": down, "color": paint}
    ends = {"x": across | {"field": "low"}, "x2": {"field": "high"}, "y": down, "color": paint}
    layers = [
        _layer({"type": "rule", "color": INK}, [{"value": 0}], {"x": across}),
        _layer(dots, seeds, here),
        _layer({"type": "rule", "strokeWidth": 2.5}, [row for row in means if "low" in row], ends),
        _layer(diamonds, means, here),
    ]
    if axis.margin:
        sides = {"x": across | {"field": "low"}, "x2": {"field": "high"}}
        layers.insert(0, _layer({"type": "rect", "color": BAND}, [{"low": -axis.margin, "high": axis.margin}], sides))
    return {"width": WIDTH, "height": {"step": LINE}, "layer": layers}


def _layer(mark: Row, rows: Sequence[Row], encoding: Row) -> Spec:
    return {"mark": mark, "data": {"values": list(rows)}, "encoding": encoding}


def _across(axis: Axis, reach: float) -> Row:
    ends = "←  better  ·  worse  →" if axis.better == "lower" else "←  worse  ·  better  →"
    shape: Row = {"title": [axis.title, ends], "grid": True, "tickCount": 5, "labelOverlap": True}
    if not axis.squeezed:
        return {"field": "value", "type": "quantitative", "axis": shape, "scale": {"zero": True, "padding": 6}}
    shape["title"] = [axis.title, "(logarithmic beyond the margin)", ends]
    shape |= _decades(axis.margin, reach)
    return {
        "field": "value",
        "type": "quantitative",
        "axis": shape,
        "scale": {"type": "symlog", "constant": axis.margin},
    }


def _decades(margin: float, reach: float) -> Row:
    """Marks at zero and at the powers of ten from beyond the margin to the farthest value, on both sides."""
    first, last = math.ceil(math.log10(margin)), math.floor(math.log10(reach))
    powers = [10.0**power for power in range(first, last + 1)]
    return {"values": [-power for power in reversed(powers)] + [0.0, *powers], "format": "~g"}


def _reach(rows: Sequence[Row]) -> float:
    return max((abs(row[end]) for row in rows for end in ("value", "low", "high") if end in row), default=0.0)


def _tones() -> Row:
    scale = {"domain": list(TONES), "range": list(TONES.values())}
    return {"field": "tone", "type": "nominal", "scale": scale, "legend": None}


# ---- curves --------------------------------------------------------------------------------------------------------

Losses = Mapping[int, float]  # by step


def curves(arms: Mapping[str, Sequence[Losses]], baseline: str, title: str) -> Spec:
    """Training loss over steps: a thin line for each seed, the mean bold. Of many arms each has a plot to itself."""
    stretch = stretch_of(arms)
    panels: dict[str, tuple[str, ...]] = {"": tuple(arms)}
    if len(arms) > APART:
        panels = {name: (baseline, name) for name in arms if name != baseline}
    thin, bold = [], []
    for panel, members in panels.items():
        for arm in members:
            seeds = [averaged(losses, stretch) for losses in arms[arm]]
            thin += [
                {"panel": panel, "arm": arm, "line": f"{arm}/{seed}", "step": step, "loss": loss}
                for seed, losses in enumerate(seeds)
                for step, loss in losses.items()
                if len(arms) <= APART or arm != baseline
            ]
            bold += [{"panel": panel, "arm": arm, "step": step, "loss": loss} for step, loss in mean_of(seeds).items()]
    layer = [_lines(thin, title, True, _kinds(arms, baseline)), _lines(bold, title, False, _kinds(arms, baseline))]
    if len(arms) <= APART:
        return _whole({"width": WIDTH, "height": 240, "layer": layer})
    facet = {"field": "panel", "type": "nominal", "sort": list(panels)}
    values = [row | {"seed": "line" in row} for row in (*thin, *bold)]
    for each, seed in zip(layer, (True, False), strict=True):
        del each["data"]
        each["transform"] = [{"filter": {"field": "seed", "equal": seed}}]
    inner = {"width": 100, "height": 80, "layer": layer}
    return _whole({"data": {"values": values}, "facet": facet, "columns": 3, "spec": inner, "spacing": 14})


def best_of(curves_of: Mapping[str, Sequence[float]], baseline: str, title: str) -> Spec:
    """The expected best of 1, 2, … trials of each arm; of more arms than colours, the first."""
    shown = dict(list(curves_of.items())[:APART])
    rows = [{"arm": arm, "step": n, "loss": value} for arm, found in shown.items() for n, value in enumerate(found, 1)]
    layer = _lines(rows, title, False, _kinds(shown, baseline))
    layer["encoding"]["x"]["axis"] |= {"title": "trials", "tickMinStep": 1, "format": "d"}
    return _whole({"width": WIDTH, "height": 200, "layer": [layer]})


def _kinds(arms: Mapping[str, Any], baseline: str) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Each arm's colour and dashes; where every arm has a plot of its own, all challengers look alike."""
    others = [name for name in arms if name != baseline]
    looks = [(SERIES[place], DASHES[place]) for place in range(1, APART)]
    if len(arms) > APART:
        looks = [(SERIES[1], DASHES[0])] * len(others)
    return {baseline: (SERIES[0], DASHES[0])} | dict(zip(others, looks, strict=False))


def _lines(rows: Sequence[Row], title: str, thin: bool, kinds: Mapping[str, tuple[str, tuple[int, ...]]]) -> Spec:
    names, alone = list(kinds), len(kinds) > APART
    colours = {"domain": names, "range": [colour for colour, _ in kinds.values()]}
    dashes = {"domain": names, "range": [list(dash) for _, dash in kinds.values()]}
    hidden = {"legend": None} if alone else {}
    titles: tuple[str | None, str | None] = (None, None) if alone else ("step", title)
    axis = {"tickCount": 3 if alone else 6, "grid": True, "labelOverlap": True, "labelFlush": alone, "domain": False}
    encoding: dict[str, Any] = {
        "x": {"field": "step", "type": "quantitative", "axis": axis | {"title": titles[0]}},
        "y": {"field": "loss", "type": "quantitative", "scale": {"zero": False}, "axis": axis | {"title": titles[1]}},
        "color": {"field": "arm", "type": "nominal", "scale": colours, **hidden},
    }
    if thin:
        encoding["detail"] = {"field": "line"}
    else:
        encoding["strokeDash"] = {"field": "arm", "type": "nominal", "scale": dashes, **hidden}
    mark = {"type": "line", "strokeWidth": 1, "opacity": 0.35} if thin else {"type": "line", "strokeWidth": 2.5}
    return {"mark": mark, "data": {"values": list(rows)}, "encoding": encoding}


def stretch_of(arms: Mapping[str, Sequence[Losses]]) -> int:
    """Steps that one point of a curve stands for."""
    points = POINTS if len(arms) <= APART else POINTS // 3
    longest = max((max(losses, default=0) + 1 for seeds in arms.values() for losses in seeds), default=1)
    return math.ceil(longest / points)


def averaged(losses: Losses, stretch: int) -> dict[int, float]:
    """The mean over each stretch of steps, at its last step. An unfinished stretch counts with the steps it has."""
    found: dict[int, list[float]] = {}
    for step, loss in losses.items():
        found.setdefault(step // stretch, []).append(loss)
    last = max(losses, default=0)
    return {min(last, (place + 1) * stretch - 1): math.fsum(some) / len(some) for place, some in found.items()}


def mean_of(seeds: Sequence[Losses]) -> dict[int, float]:
    """The mean over the seeds that went on to the last step: a run that failed would break the line where it ends."""
    last = max((max(losses, default=-1) for losses in seeds), default=-1)
    whole = [losses for losses in seeds if last in losses]
    steps = sorted(set.intersection(*(set(losses) for losses in whole))) if whole else []
    return {step: math.fsum(losses[step] for losses in whole) / len(whole) for step in steps}


def svg(spec: Spec) -> str:
    """The picture as SVG: text, with neither script nor reference to anything outside."""
    import vl_convert

    return vl_convert.vegalite_to_svg(spec)
