"""The figures' specifications hold the numbers they are to show, and the pictures drawn from them show them there."""

import re
import statistics
import xml.etree.ElementTree as ET

import pytest

from headtohead.report.figures import (
    APART,
    POINTS,
    TONES,
    Axis,
    Difference,
    averaged,
    curves,
    differences,
    mean_of,
    overview,
    stretch_of,
    svg,
)

SEEDS = {"0": -0.011, "1": -0.007, "2": -0.014}
FOUND = Difference("small", "good", SEEDS, -0.0107, (-0.0194, -0.0020))
AXIS = Axis("loss: small − baseline", "lower", 0.017)


def layers(spec):
    """The marks of a panel with their rows: (mark, rows), in the order they are drawn."""
    return [(layer["mark"]["type"], layer["data"]["values"]) for layer in spec["layer"]]


def text_of(picture):
    return ["".join(node.itertext()) for node in ET.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")]


# ---- differences ---------------------------------------------------------------------------------------------------


def test_a_panel_shows_every_seed_the_mean_its_interval_and_the_margin():
    band, zero, seeds, interval, mean = layers(differences(FOUND, AXIS))
    assert band == ("rect", [{"low": -0.017, "high": 0.017}])
    assert zero == ("rule", [{"value": 0}])
    assert seeds == ("point", [{"row": f"seed {seed}", "value": value} for seed, value in SEEDS.items()])
    assert interval == ("rule", [{"row": "mean", "value": -0.0107, "low": -0.0194, "high": -0.0020}])
    assert mean == ("point", interval[1])


def test_without_an_interval_there_is_no_bar():
    one = FOUND._replace(seeds={"0": -0.011}, interval=None)
    marks = layers(differences(one, AXIS))
    assert marks[3] == ("rule", []) and len(marks[4][1]) == 1


def test_small_differences_in_a_wide_margin_are_drawn_once_more_enlarged():
    tiny = Difference("same", "same", {"0": 4e-6, "1": 7e-6}, 5.5e-6, (-1.4e-5, 2.5e-5))
    far, near = differences(tiny, AXIS)["vconcat"]
    assert layers(far)[0] == ("rect", [{"low": -0.017, "high": 0.017}])
    assert [mark for mark, _ in layers(near)] == ["rule", "point", "rule", "point"]  # no band: it would fill the plot
    assert [row["value"] for row in layers(near)[1][1]] == pytest.approx([0.4, 0.7])
    assert "enlarged: in units of 10⁻⁵" in near["layer"][0]["encoding"]["x"]["axis"]["title"][0]
    assert "vconcat" not in differences(FOUND, AXIS)
    nothing = Difference("same", "same", {"0": 0.0, "1": 0.0}, 0.0, (0.0, 0.0))
    assert "vconcat" not in differences(nothing, AXIS)


@pytest.mark.parametrize(("better", "left"), [("lower", "better"), ("higher", "worse")])
def test_the_axis_says_which_side_is_better(better, left):
    shown = " ".join(text_of(svg(differences(FOUND, AXIS._replace(better=better)))))
    assert shown.index(left) < shown.index({"better": "worse", "worse": "better"}[left])


def test_the_picture_has_its_points_where_their_values_belong():
    picture = svg(differences(FOUND, AXIS))
    point = rf'transform="translate\(([\d.]+),[\d.]+\)"[^>]*fill="{TONES["good"]}"'
    places = [float(x) for x in re.findall(point, picture)]
    assert len(places) == 4
    values = [*SEEDS.values(), FOUND.effect]
    slope = (places[1] - places[0]) / (values[1] - values[0])
    assert slope > 0
    expected = [places[0] + slope * (value - values[0]) for value in values]
    assert places == pytest.approx(expected, abs=0.01)


def test_all_challengers_in_one_figure_in_the_order_given():
    worse = Difference("big", "bad", {"0": 0.05, "1": 0.06, "2": 0.055}, 0.055, (0.0426, 0.0674))
    spec = overview([FOUND, worse], AXIS)
    assert spec["layer"][2]["encoding"]["y"]["sort"] == ["small", "big"]
    shown = text_of(svg(spec))
    assert shown.index("small") < shown.index("big")
    tones = {row["row"]: row["tone"] for row in layers(spec)[4][1]}
    assert tones == {"small": "good", "big": "bad"}


def test_one_far_off_does_not_hide_the_others():
    far = Difference("broken", "bad", {"0": 3.1, "1": 2.9}, 3.0, (1.7, 4.3))
    scale = overview([FOUND, far], AXIS)["layer"][1]["encoding"]["x"]["scale"]
    assert scale == {"type": "symlog", "constant": 0.017}
    assert overview([FOUND], AXIS)["layer"][1]["encoding"]["x"]["scale"].get("type") is None
    assert overview([far], AXIS._replace(margin=0.0))["layer"][1]["encoding"]["x"]["scale"].get("type") is None
    shown = text_of(svg(overview([FOUND, far], AXIS)))
    assert {"0", "1"} <= set(shown) and any("logarithmic" in text for text in shown)


def test_a_long_name_keeps_both_its_ends():
    long = FOUND._replace(name="layers12-of-a-very-long-name-of-an-arm-77")
    [shown] = [text for text in text_of(svg(overview([long], AXIS))) if text.startswith("layers12")]
    assert shown.endswith("arm-77") and "…" in shown and len(shown) <= 26


def test_names_are_text_in_the_picture():
    evil = FOUND._replace(name="<script>alert(1)</script>\"'&")
    picture = svg(overview([evil], AXIS))
    assert "<script" not in picture
    assert any("<script" in text for text in text_of(picture))


# ---- curves --------------------------------------------------------------------------------------------------------


def losses(steps, start=5.0):
    return {step: start - 0.01 * step for step in range(steps)}


def test_stretches_are_averaged_at_their_last_step():
    assert averaged({0: 4.0, 1: 2.0, 2: 3.0, 3: 1.0, 4: 9.0}, 2) == {1: 3.0, 3: 2.0, 4: 9.0}
    assert averaged({0: 4.0, 3: 1.0}, 2) == {1: 4.0, 3: 1.0}  # steps 1 and 2 had no finite loss
    assert averaged({}, 3) == {}


def test_the_mean_is_that_of_the_runs_that_went_to_the_end():
    one, two = {0: 4.0, 1: 3.0, 2: 2.0}, {0: 5.0, 1: 4.0, 2: 3.0}
    assert mean_of([one, two]) == {0: 4.5, 1: 3.5, 2: 2.5}
    assert mean_of([one, two, {0: 9.0}]) == {0: 4.5, 1: 3.5, 2: 2.5}
    assert mean_of([one, {}]) == one
    assert mean_of([]) == {} == mean_of([{}])


@pytest.mark.parametrize("steps", [1, POINTS - 1, POINTS, POINTS + 1, 2000, 100_000])
def test_a_curve_has_no_more_points_than_can_be_seen(steps):
    stretch = stretch_of({"baseline": [dict.fromkeys(range(steps), 1.0)]})
    assert POINTS / 2 < -(-steps // stretch) <= POINTS or stretch == 1
    assert -(-steps // stretch) <= POINTS


def test_thin_lines_are_seeds_and_the_bold_one_their_mean():
    arms = {"baseline": [losses(6), losses(6, 6.0)], "small": [losses(6, 4.0), losses(6, 4.5)]}
    thin, bold = curves(arms, "baseline", "training loss")["layer"]
    assert thin["mark"]["strokeWidth"] < bold["mark"]["strokeWidth"]
    assert len(thin["data"]["values"]) == 24 and len(bold["data"]["values"]) == 12
    assert {row["line"] for row in thin["data"]["values"]} == {"baseline/0", "baseline/1", "small/0", "small/1"}
    means = {row["step"]: row["loss"] for row in bold["data"]["values"] if row["arm"] == "small"}
    assert means == {step: pytest.approx(statistics.fmean([4.0 - 0.01 * step, 4.5 - 0.01 * step])) for step in range(6)}
    assert {"baseline", "small", "step", "training loss"} <= set(
        text_of(svg(curves(arms, "baseline", "training loss")))
    )


def test_arms_differ_in_colour_and_in_dashes():
    arms = {"baseline": [losses(4)]} | {f"arm{n}": [losses(4, 4.0 + n)] for n in range(APART - 1)}
    encoding = curves(arms, "baseline", "loss")["layer"][1]["encoding"]
    for channel in ("color", "strokeDash"):
        looks = [str(look) for look in encoding[channel]["scale"]["range"]]
        assert len(looks) == len(set(looks)) == APART
        assert encoding[channel]["scale"]["domain"][0] == "baseline"


def test_many_arms_have_a_plot_each_beside_the_baseline():
    arms = {"baseline": [losses(4)]} | {f"arm{n}": [losses(4, 4.0 + n), losses(4, 4.1 + n)] for n in range(APART)}
    spec = curves(arms, "baseline", "loss")
    assert spec["facet"]["sort"] == [f"arm{n}" for n in range(APART)]
    rows = spec["data"]["values"]
    for name in spec["facet"]["sort"]:
        here = [row for row in rows if row["panel"] == name]
        assert {row["arm"] for row in here if not row["seed"]} == {"baseline", name}
        assert {row["line"] for row in here if row["seed"]} == {f"{name}/0", f"{name}/1"}
    assert set(spec["facet"]["sort"]) <= set(text_of(svg(spec)))
