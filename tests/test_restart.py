"""A spike, what follows it, and that its pair repeats it: killed or not, in whatever order."""

import json
from pathlib import Path

import pytest
from small import tiny

from headtohead import Characters, File, Schedule, at
from headtohead.audit import arm
from headtohead.files import write_json
from headtohead.request import restarts_of, whole
from headtohead.restart import MOST, ask, furthest, points, reseeded, source
from headtohead.run import Run, Terms, batches
from headtohead.train import Route

STEPS = 330


class Bump(Schedule):
    """1, but for a few steps in which the rate is far too high."""

    at_step: int = 10_000

    def decay(self, step: int, steps: int) -> float:
        return 3e3 if self.at_step <= step < self.at_step + 3 else 1.0


def recipe(prose: Path, bump: int, restart: str):
    base = tiny({"model.width": 16}, text=File(str(prose)), tokenizer=Characters(), steps=STEPS, held_out=400)
    return at(
        base, {"length": 16, "batch": 8, "restart": restart, "schedule": Bump(at_step=bump), "optimizer.rate": 1e-3}
    )


@pytest.fixture(autouse=True)
def no_audits_of_arms(monkeypatch):
    """They have tests of their own."""
    monkeypatch.setattr(arm, "audit_arm", lambda *given: [])


def executed(out: Path, name: str, asked, seed: int = 0) -> Path:
    folder = out / "arms" / name / f"seed{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    Run(folder, asked, seed, Route(), Terms("lock")).execute()
    return folder


def log(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "steps.jsonl").read_text().splitlines()]


def lasting(folder: Path) -> list[tuple]:
    """Losses, norms and batches to the last bit; a loss hangs on every weight."""
    return [(line["step"], line["loss"], line["norm"], line["rate"], line["batch"]) for line in log(folder)]


def status(folder: Path) -> dict:
    return json.loads((folder / "status.json").read_text())


@pytest.mark.parametrize("policy", ["skip", "reseed"])
def test_a_spike_is_followed_by_a_restart_that_the_pair_repeats(policy, prose, tmp_path):
    calm = executed(tmp_path, "baseline", recipe(prose, 10_000, policy))
    assert status(calm)["restarts"] == [] and whole(calm)
    before = [line["batch"] for line in log(calm)]
    odd = executed(tmp_path, "odd", recipe(prose, 230, policy))
    asked = status(odd)["restarts"]
    assert len(asked) == MOST  # the rate is too high whatever the batches, so it comes again until no more is allowed
    for one in asked:
        assert (one["arm"], one["from"], one["reseed"]) == ("odd", 100, policy == "reseed") and 229 < one["spike"] < 240
        assert one["skip"] == (2 if policy == "skip" else 0) and one["z"] > 10
    assert [line["step"] for line in log(odd)] == list(range(STEPS)) and not points(odd)
    assert not whole(calm) and whole(odd)  # the calm arm has these restarts to repeat
    executed(tmp_path, "baseline", recipe(prose, 10_000, policy))
    assert whole(calm) and status(calm)["restarts"] == asked
    after = [line["batch"] for line in log(calm)]
    assert after == [line["batch"] for line in log(odd)]
    assert after[:100] == before[:100] and after[100] != before[100]
    assert policy == "reseed" or after[100] == before[104]


def test_a_run_that_returned_is_the_run_that_was_told_beforehand(prose, tmp_path):
    odd = executed(tmp_path / "one", "odd", recipe(prose, 230, "skip"))
    again = tmp_path / "two" / "arms" / "odd" / "seed0"
    (tmp_path / "two" / "restarts").mkdir(parents=True)
    write_json(tmp_path / "two" / "restarts" / "seed0.json", restarts_of(odd))
    executed(tmp_path / "two", "odd", recipe(prose, 230, "skip"))
    assert lasting(again) == lasting(odd) and len(restarts_of(odd)) == MOST


@pytest.mark.parametrize("stop", [232, *(pytest.param(n, marks=pytest.mark.slow) for n in (150, 290))])
def test_stopped_anywhere_it_ends_with_the_same_bits(stop, prose, tmp_path, monkeypatch):
    """An exception at some step: what is on disk then is all that the next call has."""
    asked = recipe(prose, 230, "skip")
    whole_run = executed(tmp_path / "whole", "odd", asked)
    steps = [0]

    def failing(self, step, loss, norm):
        steps[0] += 1
        if steps[0] == stop:
            raise KeyboardInterrupt
        return original(self, step, loss, norm)

    from headtohead import restart

    original = restart.Watch.restarted
    monkeypatch.setattr(restart.Watch, "restarted", failing)
    with pytest.raises(KeyboardInterrupt):
        executed(tmp_path / "cut", "odd", asked)
    cut = executed(tmp_path / "cut", "odd", asked)
    assert restarts_of(cut) == restarts_of(whole_run) and len(restarts_of(cut)) == MOST
    assert lasting(cut) == lasting(whole_run)


def test_without_a_policy_nothing_returns_and_nothing_is_kept(prose, tmp_path):
    odd = executed(tmp_path, "odd", recipe(prose, 230, "none"))
    assert "restarts" not in status(odd) and not (tmp_path / "restarts").exists() and not points(odd)
    assert status(odd)["state"] == "failed" and status(odd)["reason"].startswith("diverged: ")


def test_which_batch_a_step_has():
    skips = [{"from": 100, "skip": 3, "reseed": False}, {"from": 50, "skip": 2, "reseed": False}]
    assert [source(skips, 7, step) for step in (0, 49, 50, 99, 100)] == [(7, 0), (7, 49), (7, 52), (7, 101), (7, 105)]
    reseeds = [{"from": 100, "skip": 0, "reseed": True}, {"from": 200, "skip": 0, "reseed": True}]
    assert [source(reseeds, 7, step) for step in (99, 100, 200)] == [
        (7, 99),
        (reseeded(7, 1), 100),
        (reseeded(7, 2), 200),
    ]
    assert reseeded(7, 1) != reseeded(7, 2) != reseeded(8, 2)


def test_how_far_back_and_how_much_is_left_out(prose, tmp_path):
    for steps, spike, start, skip in (
        (400, 250, 100, 2),
        (400, 199, 0, 2),
        (20_000, 5_321, 5_200, 100),
        (10**6, 999_999, 999_800, 500),
    ):
        folder = tmp_path / str(spike) / "arms" / "odd" / "seed0"
        folder.mkdir(parents=True)
        asked = at(recipe(prose, 10_000, "skip"), {"steps": steps})
        assert (
            ask(folder, asked, spike, 33.8) and ask(folder, asked, spike, None) and not ask(folder, asked, spike, 11.0)
        )
        first, second = restarts_of(folder)
        assert first == {"arm": "odd", "spike": spike, "z": 33.8, "from": start, "skip": skip, "reseed": False}
        assert second["z"] is None
    assert furthest(folder, "lock", []) is None


def test_batches_are_as_they_were_without_restarts(prose):
    from headtohead.text.cache import prepare

    asked = recipe(prose, 10_000, "none")
    tokens = prepare(asked.text, asked.tokenizer, asked.split)
    plain = [mark for _, _, mark in batches(asked, tokens, 0, 320)]
    moved = [mark for _, _, mark in batches(asked, tokens, 0, 320, [{"from": 325, "skip": 1, "reseed": False}])]
    assert moved[:5] == plain[:5] and moved[5:9] == plain[6:10]
