"""The pictures of the page: that they stand alone, can be seen by day and by night, and draw what was measured."""

import json
import re

import numpy as np
import pytest
from report_folder import BASE, CHAL, fail_run, judged, write_study

from headtohead.report.figures import (
    APART,
    BAND,
    DARK,
    DASHES,
    FAINT,
    GRID,
    INK,
    SERIES,
    TONES,
    Axis,
    Difference,
    averaged,
    curves,
    differences,
    overview,
    svg,
)
from headtohead.report.folder import read_folder
from headtohead.report.page import compose, figures

AXIS = Axis("loss: small − baseline, nats per token", "lower", 0.017)
SEEDS = {str(seed): ours - theirs for seed, (ours, theirs) in enumerate(zip(CHAL, BASE, strict=True))}
FOUND = Difference("small", "good", SEEDS, -0.0104, [-0.0144805, -0.0063195])


def every():
    """A picture of each kind, in all colours."""
    losses = {f"arm{n}": [{0: 3.1, 1: 2.2}] for n in range(APART)}
    toned = [FOUND._replace(name=tone, tone=tone) for tone in TONES]
    found = [differences(FOUND, AXIS), overview(toned, AXIS)]
    return [*found, *(curves(arms, "arm0", "loss") for arms in (losses, losses | {"more": [{0: 3.1, 1: 2.2}]}))]


@pytest.mark.parametrize("spec", every())
def test_a_picture_stands_alone(spec):
    json.dumps(spec, allow_nan=False)
    picture = svg(spec)
    assert not re.search(r'\bid="|href|<script|<style|url\(|javascript', picture)
    colours = set(re.findall(r'(?:fill|stroke)="(#\w+)"', picture))
    assert colours and colours <= set(DARK)


def luminance(colour):
    """Relative luminance, as the Web Content Accessibility Guidelines 2 define it."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colour", [INK, FAINT, *SERIES, *TONES.values()])
def test_colours_can_be_told_from_the_paper_by_day_and_by_night(colour):
    assert contrast(colour, "#ffffff") > 4.5 and contrast(DARK[colour], "#0d1117") > 4.5
    if colour in TONES.values():  # these are drawn upon the band as well
        assert contrast(colour, BAND) > 3 and contrast(DARK[colour], DARK[BAND]) > 3


def test_every_colour_stands_for_one_thing():
    used = [INK, FAINT, GRID, BAND, *SERIES, *TONES.values()]
    assert len(used) == len(set(used)) and set(used) == set(DARK)
    assert len(DASHES) == len(SERIES) == len(set(DASHES))


def test_the_bar_reaches_from_one_end_of_the_interval_to_the_other():
    picture = svg(differences(FOUND, AXIS))
    places = [float(x) for x in re.findall(r'<path transform="translate\(([\d.]+),', picture)]
    bars = re.findall(r'<line transform="translate\(([\d.]+),[^>]* x2="(-?[\d.]+)"[^>]*"#1a7f38"', picture)
    [(start, length)] = [tuple(map(float, bar)) for bar in bars]
    # Two seeds' points fix the axis; the bar's ends must lie on it where the interval's do.
    per_place = (SEEDS["1"] - SEEDS["0"]) / (places[1] - places[0])
    ends = sorted(SEEDS["0"] + (end - places[0]) * per_place for end in (start, start + length))
    assert ends == pytest.approx([-0.0144805, -0.0063195], rel=1e-6)


@pytest.mark.parametrize("arms", [2, APART, APART + 1, 30])
def test_as_many_lines_are_drawn_as_there_are_runs(arms):
    names = ["baseline", *(f"arm{n}" for n in range(arms - 1))]
    losses = {name: [{step: 5.0 / (step + 1) for step in range(400)} for _ in range(3)] for name in names}
    picture = svg(curves(losses, "baseline", "loss"))
    widths = re.findall(r'<path [^>]*stroke-width="([\d.]+)"', picture)
    if arms <= APART:
        assert (widths.count("1"), widths.count("2.5")) == (3 * arms, 2 * arms)  # the legend has a bold one as well
    else:  # every plot has the baseline's mean beside the challenger's
        assert (widths.count("1"), widths.count("2.5")) == (3 * (arms - 1), 2 * (arms - 1))
    assert len(picture) < 500_000


def test_averages_are_those_of_numpy():
    found = averaged({step: float(np.sin(step)) for step in range(100)}, 10)
    assert list(found) == list(range(9, 100, 10))
    assert list(found.values()) == pytest.approx(np.sin(np.arange(100)).reshape(10, 10).mean(1).tolist())


def drawn(out):
    """The points of a judged study's first figure."""
    spec = figures(compose(read_folder(out)))[0].spec
    points = [layer["data"]["values"] for layer in spec["layer"] if layer["mark"]["type"] == "point"]
    return {row["row"]: row["value"] for rows in points for row in rows}


def test_ratios_are_drawn_as_logarithms(tmp_path):
    primary = {"name": "loss", "unit": "log ratio", "better": "lower"}
    losses = {"baseline": BASE, "small": [loss - 0.3 + 0.1 * seed for seed, loss in enumerate(CHAL)]}
    out = judged(write_study(tmp_path / "s", losses, primary=primary))
    logs = (np.log(losses["small"]) - np.log(BASE)).tolist()
    expected = {f"seed {seed}": value for seed, value in enumerate(logs)} | {"mean": float(np.mean(logs))}
    assert drawn(out) == pytest.approx(expected)


def test_a_loss_that_is_no_number_is_not_drawn(tmp_path):
    out = write_study(tmp_path / "s", {"baseline": BASE, "small": CHAL})
    fail_run(out / "arms/small/seed4", "step 2: the loss is nan")
    folder = read_folder(judged(out))
    failed = folder.traces["small"][4]
    assert set(failed.losses) == {0, 1} and failed.batches == 3
    assert set(drawn(out)) == {"seed 0", "seed 1", "seed 2", "seed 3", "mean"}
    for figure in figures(compose(folder)):
        json.dumps(figure.spec, allow_nan=False)
