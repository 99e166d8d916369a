"""The page's sections on a grid and on tuning, the noise of a control, and the sentence to quote, on page and terminal."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "verdict"))
from study_folder import write_study

from headtohead.report.folder import read_folder
from headtohead.report.markdown import render
from headtohead.report.page import compose, figures
from headtohead.report.terminal import verdict_table
from headtohead.verdict.judge import judge_and_write

BASE = [3.412, 3.405, 3.421]
CELLS = {"baseline": ["1", "2"], "a": ["1", "4"], "b": ["2", "2"], "c": ["2", "4"], "d": ["3", "2"], "e": ["3", "4"]}
CHANGES = {"changed": {}, "grid": {"addresses": ["model.layers", "model.heads"], "cells": CELLS}}


def page(out):
    judge_and_write(out)
    return compose(read_folder(out))


def test_a_grid_stands_on_the_page_with_its_caveat(tmp_path):
    losses = {arm: [value - 0.1 * k - 0.01 * (k % 2) ** 2 * k for value in BASE] for k, arm in enumerate(CELLS)}
    text = render(page(write_study(tmp_path / "s", losses, **CHANGES)))
    assert "## The grid" in text and "no replication: one number a cell" in text
    assert "model.heads = 2" in text and "Tukey's honestly significant difference" in text


def trials(best):
    rates = (1e-3, 2e-3, 4e-3, 8e-3)
    found = [{"values": {"optimizer.rate": r}, "score": 3 + abs(r - best) * 50, "seconds": 9.0} for r in rates]
    return {"recipe": "aa", "best": {"optimizer.rate": best}, "trials": found}


@pytest.fixture
def tuned(tmp_path):
    primary = {"name": "loss", "unit": "nats per token", "better": "lower"}
    tuning = {"study": "smaller", "primary": primary, "seeds": [1_000_000], "address": "optimizer.rate"}
    tuning["arms"] = {"baseline": trials(2e-3), "small": trials(8e-3)}
    return write_study(tmp_path / "s", {"baseline": BASE, "small": [v - 0.01 for v in BASE]}, tuning=tuning)


def test_tuning_stands_on_the_page_with_its_curve_and_what_lies_at_the_border(tuned):
    document = page(tuned)
    text = render(document)
    assert "## Tuning" in text and "The best setting of small lies at the border of the search" in text
    assert "tuning" in [figure.name for figure in figures(document)] and "tuning, besides" in text
    assert "small: optimizer.rate = 0.008, best of 4 trials" in text


def test_without_grid_or_tuning_neither_is_there(tmp_path):
    text = render(page(write_study(tmp_path / "s", {"baseline": BASE, "small": [v - 0.01 for v in BASE]})))
    assert "## The grid" not in text and "## Tuning" not in text


def test_the_noise_of_a_control_is_told(tmp_path):
    changes = {"changed": {"other-seeds": {}}, "fresh": {"other-seeds": 3}}
    out = write_study(tmp_path / "s", {"baseline": BASE, "other-seeds": [3.409, 3.414, 3.401]}, **changes)
    told = " ".join(verdict_table(judge_and_write(out)).split())
    assert (
        "two runs that differ in their seed alone are apart with a standard deviation of 0.015 nats per token" in told
    )
    assert "an upper bound for them" in told


def test_the_sentence_is_the_same_everywhere(tuned):
    found = judge_and_write(tuned)
    sentence = found["arms"]["small"]["sentence"]
    assert sentence in " ".join(verdict_table(found).split())
    document = compose(read_folder(tuned))
    assert any(sentence in getattr(block, "text", "") for section in document.sections for block in section.blocks)
