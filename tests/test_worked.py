import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.special
import torch

from headtohead import worked
from headtohead.worked import KEYS, VALUES, attend, error, even, questions, softmax

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "attention-by-hand.md").read_text(encoding="utf-8")
FIRST_TWO = np.array([0.5, 0.5, 0.0, 0.0])
SCALES = [30.0, 100.0, 1e3, 1e4, 1e5]


def test_softmax_is_scipys():
    scores = np.random.default_rng(0).normal(size=(5, 7)) * 20
    np.testing.assert_allclose(softmax(scores), scipy.special.softmax(scores, axis=-1), rtol=1e-12)


def test_softmax_survives_scores_that_overflow_exp():
    scores = np.array([[1e5, 1e5 - 1.0], [-1e5, -1e5]])
    e = np.exp(-1.0)
    np.testing.assert_allclose(softmax(scores), [[1 / (1 + e), e / (1 + e)], [0.5, 0.5]], rtol=1e-12)


def test_attention_is_torchs_kernel():
    queries, keys, values = map(torch.from_numpy, (3 * KEYS[::-1].copy(), KEYS, VALUES[:, None]))
    theirs = torch.nn.functional.scaled_dot_product_attention(queries[None], keys[None], values[None], scale=1.0)
    np.testing.assert_allclose(attend(3 * KEYS[::-1]) @ VALUES, theirs[0, :, 0].numpy(), rtol=1e-12)


def test_even_is_the_hand_solution():
    """u = x k1 + y k2 lies in the keys' plane; k1·u = k2·u = 1 by Cramer's rule on a = |k1|², b = k1·k2, c = |k2|²."""
    a, b, c = 1.0034, 0.2718, 1.0077  # .2209 + .4225 + .36; .3008 + .325 - .354; .4096 + .25 + .3481
    x, y = (c - b) / (a * c - b * b), (a - b) / (a * c - b * b)
    np.testing.assert_allclose(even(KEYS[:2]), x * KEYS[0] + y * KEYS[1], rtol=1e-12)
    np.testing.assert_allclose(even(KEYS[:2]), [0.8686, 0.9006, 0.0106], atol=5e-5)


@pytest.mark.parametrize("scale", SCALES)
def test_right_queries_hit_their_targets(scale):
    for query, target in [
        (KEYS[2], np.eye(4)[2]),
        (KEYS, np.eye(4)),
        (np.zeros(3), np.full(4, 0.25)),
        (even(KEYS[:2]), FIRST_TWO),
    ]:
        weights = attend(scale * query)
        assert np.isfinite(weights).all()
        assert error(weights, target) < 1e-6


def test_a_scale_of_ten_misses_by_the_share_of_the_closest_outsider():
    outsider = 10 * (KEYS[3] @ even(KEYS[:2]) - 1)
    assert error(attend(10 * even(KEYS[:2])), FIRST_TWO) == pytest.approx(np.exp(outsider) / 2, rel=1e-5)
    assert np.exp(outsider) / 2 == pytest.approx(5.6e-7, rel=0.01)


def test_first_tries_miss_as_the_study_did():
    np.testing.assert_allclose(attend(KEYS.mean(axis=0)), [0.228, 0.286, 0.240, 0.246], atol=5e-4)
    between = KEYS[:2].mean(axis=0)
    np.testing.assert_allclose(attend(30 * between), [0.484, 0.516, 0.0, 0.0], atol=5e-4)
    np.testing.assert_allclose(attend(1e5 * between), [0.0, 1.0, 0.0, 0.0], atol=1e-12)


@pytest.mark.parametrize("scale", [30.0, 300.0, 3000.0])
def test_the_second_trap_is_a_logistic_in_the_squared_lengths(scale):
    first = attend(scale * KEYS[:2].mean(axis=0))[0]
    assert first == pytest.approx(scipy.special.expit(scale * (1.0034 - 1.0077) / 2), rel=1e-9)


def test_questions_called_right_are_right_and_first_tries_are_not():
    missed = {q.title: error(attend(q.scales[-1] * q.direction), q.target) for q in questions()}
    assert {title for title, by in missed.items() if by > 1e-6} == {title for title in missed if "first try" in title}
    assert len(missed) == 6


def test_command_prints_the_table_of_the_page():
    command = [sys.executable, "-X", "utf8", "-m", "headtohead.worked"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=True).stdout
    assert printed == re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)[-1]


def test_page_prints_what_it_says():
    blocks = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == PAGE.count("```python")
    names: dict[str, object] = {}
    with np.printoptions():
        for code, said in blocks:
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(code, names)
            assert printed.getvalue() == said


def test_decimals_in_the_prose_are_in_the_outputs():
    outputs = " ".join(re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL))
    prose = re.sub(r"```.*?```|## Three to try.*?(?=##)", "", PAGE, flags=re.DOTALL)  # the answers are the reader's
    said = re.findall(r"\d*\.\d+", prose)
    assert len(said) > 5
    known = {abs(float(number)) for number in re.findall(r"-?\d+\.\d*", outputs)}
    derived = {1.0057 - 0.26, 1 - -0.3703}
    for number in map(float, said):
        assert any(number == pytest.approx(value, abs=1e-9) for value in known | derived), number


def test_worked_needs_no_torch():
    code = "import sys, headtohead.worked; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
    assert not hasattr(worked, "torch")
