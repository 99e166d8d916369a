"""Planned looks in the command: run to a look, judge, and go on only for what is still open."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "verdict"))
from study_folder import STUDY, write_run

from headtohead.cli import studies
from headtohead.request import first, folders

BASE = [3.412, 3.405, 3.421, 3.398, 3.417, 3.409, 3.411, 3.402]
CLEAR = [value - 0.2 - 0.001 * (k % 3) for k, value in enumerate(BASE)]
VAGUE = [3.401, 3.409, 3.407, 3.396, 3.404, 3.398, 3.416, 3.397]


@pytest.fixture
def looked(tmp_path, monkeypatch, capsys):
    """Runs are written by hand as soon as they are asked for; what was asked for is kept."""
    asked: list[int] = []

    def start(challenger):
        losses = {"baseline": BASE, "small": challenger}

        def run_all(out, plan, jobs):
            asked.append(len(plan["seeds"]))
            for arm, seed, folder in folders(out, plan):
                if not folder.exists():
                    write_run(out, arm, seed, losses[arm][seed])
            yield []

        monkeypatch.setattr("headtohead.launch.local.run_all", run_all)
        monkeypatch.setattr("headtohead.report.progress.follow", lambda states, route: list(states))
        plan = STUDY | {"seeds": list(range(8)), "looks": [3, 5, 8], "margin": 1e-4}
        (tmp_path / "study.json").write_text(json.dumps(plan))
        (tmp_path / "route.json").write_text("{}")
        studies._look_by_look(tmp_path, plan, 1)
        return asked, capsys.readouterr().err, plan

    return start


def test_a_clear_difference_ends_the_study_at_its_first_look(looked, tmp_path):
    asked, told, plan = looked(CLEAR)
    assert asked == [3] and told == "look 1 of 3, 3 seeds: small BETTER; all are settled\n"
    # the folder is finished as it is: nothing is left to run
    assert studies._as_far(tmp_path, plan) == first(plan, 3)
    assert not (tmp_path / "arms/baseline/seed3").exists()


def test_what_is_open_goes_on_to_the_last_look(looked, tmp_path):
    asked, told, plan = looked(VAGUE)
    assert asked == [3, 5, 8]
    assert "look 1 of 3, 3 seeds: small INCONCLUSIVE; going on to 5 seeds" in told
    assert studies._as_far(tmp_path, plan) == plan  # to its end


def test_another_plans_verdict_settles_nothing(looked, tmp_path):
    _, _, plan = looked(CLEAR)
    assert studies._as_far(tmp_path, plan | {"lock": "another"})["seeds"] == list(range(8))


def test_without_looks_all_seeds_are_run_at_once(looked, tmp_path, monkeypatch):
    asked, _, plan = looked(CLEAR)
    asked.clear()
    studies._look_by_look(tmp_path, plan | {"looks": []}, 1)
    assert asked == [8]
