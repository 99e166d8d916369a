"""Grids without replication: study 5's thirty cells, a regression, and how often levels are told apart for nothing."""

import numpy as np
import pytest
from printed import close
from scipy import stats

from headtohead.spec import Mistake
from headtohead.verdict.grid import grid

LAYERS, HEADS = ("5", "6", "8", "10", "12", "15"), ("5", "6", "8", "10", "12")
STUDY5 = np.array(
    [
        [1.223, 1.225, 1.221, 1.225, 1.245],
        [1.206, 1.181, 1.205, 1.227, 1.229],
        [1.196, 1.165, 1.155, 1.160, 1.220],
        [1.153, 1.128, 1.182, 1.218, 1.227],
        [1.133, 1.165, 1.180, 1.161, 1.168],
        [1.032, 1.025, 1.080, 1.074, 1.110],
    ]
)


def test_oracle_of_layers_and_heads():
    found = grid(STUDY5, LAYERS, HEADS)
    assert close(found.rows.f, "37.2") and close(found.rows.p, "1.8e-9") and found.rows.df == 5
    assert close(found.columns.f, "5.40") and close(found.columns.p, ".0041") and found.columns.df == 4
    assert close(found.sd, ".0210") and found.df == 20
    assert close(found.columns.apart, ".0362")
    # 5, 6, 8 and 10 heads cannot be separated; only 12 is worse than 5 and 6
    assert found.columns.told_apart() == [("6", "12"), ("5", "12")]
    assert ("15", "12") in found.rows.told_apart() and ("12", "10") not in found.rows.told_apart()
    assert found.caveats == ("no replication",)


def _rest(design: np.ndarray, values: np.ndarray) -> tuple[float, int]:
    """What a regression leaves over, and its degrees of freedom."""
    _, rest, rank, _ = np.linalg.lstsq(design, values, rcond=None)
    return float(rest[0]), len(values) - rank


@pytest.mark.parametrize("shape", [(3, 4), (6, 5)])
def test_f_is_that_of_dropping_a_factor_from_a_regression(shape):
    values = np.random.default_rng(0).normal(size=shape)
    row, column = np.indices(shape).reshape(2, -1)
    one = np.ones((values.size, 1))
    by_row = (row[:, None] == np.arange(1, shape[0])).astype(float)
    by_column = (column[:, None] == np.arange(1, shape[1])).astype(float)
    whole, df = _rest(np.hstack([one, by_row, by_column]), values.ravel())
    found = grid(values, [str(k) for k in range(shape[0])], [str(k) for k in range(shape[1])])
    assert found.df == df and found.sd**2 == pytest.approx(whole / df)
    for factor, other in ((found.rows, by_column), (found.columns, by_row)):
        without, free = _rest(np.hstack([one, other]), values.ravel())
        assert factor.f == pytest.approx((without - whole) / (free - df) / (whole / df))
        assert factor.p == pytest.approx(stats.f.sf(factor.f, factor.df, df))
    # Tukey's degree of freedom is one more column: the product of the fitted effects
    product = np.outer(values.mean(axis=1) - values.mean(), values.mean(axis=0) - values.mean()).reshape(-1, 1)
    less, free = _rest(np.hstack([one, by_row, by_column, product]), values.ravel())
    assert found.p_interaction == pytest.approx(stats.f.sf((whole - less) / (less / free), 1, free))


def test_a_product_of_effects_is_called_interaction():
    a, b = np.array([0.0, 1, 2, 3]), np.array([0.0, 1, 2, 4, 8])
    noise = np.random.default_rng(1).normal(0, 0.1, size=(4, 5))
    assert "interaction" not in grid(a[:, None] + b + noise, "wxyz", "abcde").caveats
    assert "interaction" in grid(a[:, None] + b + 0.3 * np.outer(a, b) + noise, "wxyz", "abcde").caveats


def test_levels_are_rarely_told_apart_for_nothing():
    draw = np.random.default_rng(2)
    apart = grid(draw.normal(size=(6, 5)), LAYERS, HEADS)
    relative = apart.columns.apart / apart.sd  # the same for every grid of this shape
    wrong = 0
    for values in draw.normal(size=(4000, 6, 5)):
        means = values.mean(axis=0)
        left = values - values.mean(axis=1, keepdims=True) - means + values.mean()
        wrong += np.ptp(means) > relative * np.sqrt((left**2).sum() / 20)
    assert wrong / 4000 == pytest.approx(0.05, abs=0.011)


def test_what_is_no_grid():
    with pytest.raises(Mistake, match="number in every cell"):
        grid(np.where(STUDY5 > 1.24, np.nan, STUDY5), LAYERS, HEADS)
    with pytest.raises(Mistake, match="two levels of either"):
        grid(STUDY5[:1], LAYERS[:1], HEADS)
    with pytest.raises(Mistake, match="no error"):
        grid(np.zeros((2, 2)), "ab", "cd")


# ---- in a study ----------------------------------------------------------------------------------------------------


def gridded(write, values, **changes):
    """A study whose arms are the cells of a grid, two seeds each; the first cell is the baseline."""
    names = {(r, c): f"l{row}h{column}" for r, row in enumerate(LAYERS) for c, column in enumerate(HEADS)}
    names[0, 0] = "baseline"
    cells = {names[place]: [LAYERS[place[0]], HEADS[place[1]]] for place in names}
    losses = {names[place]: [float(values[place]) - 0.01, float(values[place]) + 0.01] for place in names}
    return write(losses, grid={"addresses": ["model.layers", "model.heads"], "cells": cells}, changed={}, **changes)


def test_a_study_that_names_its_grid_is_analysed_over_the_means_of_its_cells(write):
    from headtohead.verdict.judge import judge

    found = judge(gridded(write, STUDY5))["grid"]
    layers, heads = found["factors"]["model.layers"], found["factors"]["model.heads"]
    assert close(layers["f"], "37.2") and close(layers["p"], "1.8e-9")
    assert close(heads["f"], "5.40") and close(heads["p"], ".0041") and close(heads["apart"], ".0362")
    assert close(found["sd"], ".0210") and found["caveats"] == ["no replication"]
    assert found["rows"] == list(LAYERS) and heads["told_apart"] == [["6", "12"], ["5", "12"]]
    assert np.allclose(found["means"], STUDY5)


def test_a_cell_that_lost_a_run_leaves_no_analysis(write):
    import json

    from headtohead.verdict.judge import judge

    out = gridded(write, STUDY5)
    status = out / "arms/l15h12/seed1/status.json"
    status.write_text(json.dumps(json.loads(status.read_text()) | {"state": "failed", "reason": "diverged"}))
    found = judge(out)["grid"]
    assert "needs a number in every cell" in found["reason"] and found["means"][-1][-1] is None
