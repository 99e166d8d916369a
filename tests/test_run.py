"""Runs as a user has them: killed, taken up again, repeated, without a compiler, and against themselves."""

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors.torch import load_file

from headtohead.request import folders, plan_of, state_of

STUDY = '''
"""Does one more layer help?"""
from headtohead import *
from headtohead import Dropout, Everyone, File, MaskedLM, MultiHead, Recipe, SoftmaxN, Study, Transformer, Words, at

model = Transformer(layers=1, heads=2, width=16, attention=MultiHead(visibility=Everyone()),
                    dropout=Dropout(embedding=.1, weights=.1, attention=.1, feedforward=.1))
baseline = Recipe(model=model, objective=MaskedLM(), text=File(TEXT), tokenizer=Words(minimum_count=1), length=16, batch=8,
                  accumulate=2, steps=STEPS, held_out=500)
study = Study(baseline=baseline, seeds=2, challengers={
    "softmax1": at(baseline, {"model.attention.normalizer": SoftmaxN()}), "deep": at(baseline, {"model.layers": 2})})
'''.replace("from headtohead import *\n", "")

KEPT = ("model.safetensors", "measures.json", "documents.npz", "audits.json", "recipe.json")


def study_file(folder: Path, text: Path, steps: int) -> Path:
    path = folder / "small.py"
    path.write_text(STUDY.replace("TEXT", repr(str(text))).replace("STEPS", str(steps)), encoding="utf-8")
    return path


def h2h(*arguments: object, **more: object) -> subprocess.CompletedProcess:
    return subprocess.run(command(*arguments), capture_output=True, text=True, timeout=600, **more)


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-c", "from headtohead.cli import main; main()", *map(str, arguments)]


def results(out: Path) -> dict[str, str]:
    """Everything that must not depend on when the study was stopped: left out are what clocks measure and the folder."""
    files = {p.relative_to(out): p.read_bytes() for p in out.rglob("*") if p.name in KEPT}
    found = {str(name): hashlib.sha256(content).hexdigest() for name, content in sorted(files.items())}
    losses = [json.loads(line) for path in sorted(out.rglob("steps.jsonl")) for line in path.read_text().splitlines()]
    verdict = json.loads((out / "verdict.json").read_text())
    return found | {
        "steps": json.dumps([{k: v for k, v in line.items() if k != "seconds"} for line in losses]),
        "verdict": json.dumps(_lasting(verdict)),
    }


def _lasting(value):
    if isinstance(value, dict):
        return {
            name: _lasting(inner)
            for name, inner in value.items()
            if name not in ("ratios", "price", "command", "sentence")
        }
    return [_lasting(inner) for inner in value] if isinstance(value, list) else value


def killed_until_done(arguments: list[object], kills: int, env: dict[str, str], seed: int = 0) -> None:
    """Run a command into the folder that it names last, kill it so many times, then let it end.

    The moments are drawn over the study's own progress and a little beyond, not over the clock: however busy the machine,
    none comes after the end, and the first come before any step.
    """
    draw, out = random.Random(seed), Path(str(arguments[-1]))
    for share in sorted(draw.uniform(-0.1, 0.9) for _ in range(kills)):
        process = subprocess.Popen(
            command(*arguments), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env, start_new_session=True
        )
        while share > 0 and _progress(out) < share:
            assert process.poll() is None, f"it ended by itself at {_progress(out):.0%}, before {share:.0%}"
            time.sleep(0.05)
        time.sleep(draw.uniform(0.0, 3.0) if share <= 0 else draw.uniform(0.0, 0.5))
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        time.sleep(0.3)  # the workers notice that their parent is gone
    finished = h2h(*arguments, env=env)
    assert finished.returncode == 0, finished.stderr


def _progress(out: Path) -> float:
    """The share of a study's steps that its runs say they have made."""
    plan = plan_of(out)
    if plan is None:
        return 0.0
    states = [state_of(folder) for _, _, folder in folders(out, plan)]
    return sum(state["step"] / state["steps"] for state in states if "step" in state) / len(states)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory, prose: Path) -> Path:
    """A finished small study of a user's own."""
    folder = tmp_path_factory.mktemp("study")
    finished = h2h("run", study_file(folder, prose, 150), "--out", folder / "out", cwd=folder)
    assert finished.returncode == 0, finished.stderr
    assert "the page:" in finished.stdout
    return folder / "out"


def test_a_finished_study_has_the_files_that_stay_put(done: Path):
    top = "study.json study.py study.lock route.json verdict.json report.html report.md"
    run = (
        "recipe.json environment.json status.json steps.jsonl model.safetensors measures.json audits.json documents.npz"
    )
    assert all((done / name).is_file() for name in top.split())
    for arm in ("baseline", "softmax1", "deep"):
        for seed in (0, 1):
            assert all((done / "arms" / arm / f"seed{seed}" / name).is_file() for name in run.split())
    assert not list(done.rglob("*.tmp")) and not list(done.rglob("checkpoint*"))


def test_killed_at_random_moments_it_ends_with_the_same_bits(done: Path, tmp_path: Path):
    env = os.environ | {"H2H_CHECKPOINT_SECONDS": "0.05"}
    arguments = ["run", done.parent / "small.py", "--out", tmp_path / "out"]
    killed_until_done(arguments, kills=3, env=env)
    assert results(tmp_path / "out") == results(done)


def test_a_checkpoint_is_taken_up_and_not_begun_anew(done: Path, tmp_path: Path):
    """Cut back to a checkpoint of step 100, a run trains 50 steps, and ends with the same bits."""
    from headtohead.plan import arms_of
    from headtohead.request import file_hash, plan_of
    from headtohead.run import Run
    from headtohead.train import Route

    recipe = arms_of(done, plan_of(done), file_hash(done / "study.py"))["softmax1"]
    route = Route(threads=json.loads((done / "route.json").read_text())["threads"])
    run = Run(tmp_path, recipe, 0, route)
    _stop_at(run, 100)
    again = Run(tmp_path, recipe, 0, route)
    again.train()
    kept = load_file(done / "arms/softmax1/seed0/model.safetensors")
    assert all(bool((dict(again.learner.named_parameters())[name] == tensor).all()) for name, tensor in kept.items())
    whole = [json.loads(line)["loss"] for line in (done / "arms/softmax1/seed0/steps.jsonl").read_text().splitlines()]
    assert [json.loads(line)["loss"] for line in (tmp_path / "steps.jsonl").read_text().splitlines()] == whole


def _stop_at(run, steps: int) -> None:
    from headtohead.checkpoint import save_checkpoint
    from headtohead.run import batches
    from headtohead.train import train

    stream = batches(run.recipe, run.tokens, run.seed, 0)
    lines = []
    for step in train(run.learner, run.optimizers, stream, run.rate, run.recipe.clip, run.route):
        lines.append(json.dumps({"step": step.step, "loss": step.loss}) + "\n")
        if len(lines) == steps:
            break
    (run.folder / "steps.jsonl").write_text("".join(lines) + "{a torn line")
    save_checkpoint(
        run.folder / "checkpoint.safetensors",
        run.learner,
        run.optimizers,
        {"lock": run.lock, "steps": steps, "seconds": 1.0, "restarts": []},
    )


def test_the_second_call_has_nothing_to_do_and_needs_no_torch(done: Path):
    script = "import sys; from headtohead.cli import app; app(standalone_mode=False); assert 'torch' not in sys.modules"
    arguments = ["run", str(done.parent / "small.py"), "--out", str(done)]
    began = time.monotonic()
    again = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, timeout=60)
    assert again.returncode == 0, again.stderr
    assert "the page:" in again.stdout
    assert time.monotonic() - began < 3.0


def test_the_arms_had_the_same_batches_and_different_seeds_others(done: Path):
    def marks(arm: str, seed: int) -> list[str]:
        lines = (done / "arms" / arm / f"seed{seed}" / "steps.jsonl").read_text().splitlines()
        return [json.loads(line)["batch"] for line in lines]

    assert marks("baseline", 0) == marks("softmax1", 0) == marks("deep", 0)
    assert len(set(marks("baseline", 0)) & set(marks("baseline", 1))) == 0


def test_same_seed_twice_gives_the_same_weights_and_itself_is_identical(done: Path, tmp_path: Path):
    arguments = ["run", done.parent / "small.py", "--against-itself", "--seeds", 3, "--steps", 20, "--out", tmp_path]
    assert h2h(*arguments).returncode == 0
    verdict = json.loads((tmp_path / "verdict.json").read_text())
    assert verdict["arms"]["itself"]["verdict"] == "IDENTICAL"
    one, other = (tmp_path / "arms" / arm / "seed0/model.safetensors" for arm in ("baseline", "itself"))
    assert one.read_bytes() == other.read_bytes()


def test_another_plan_in_the_same_folder_is_refused_and_nothing_changes(done: Path):
    before = results(done)
    refused = h2h("run", done.parent / "small.py", "--seeds", 3, "--out", done)
    assert refused.returncode == 2 and refused.stderr.count("h2h: ") == 1
    assert "locked with 2 seeds (0 to 1), not 3 seeds (0 to 2)" in refused.stderr and "--out" in refused.stderr
    assert results(done) == before


def test_a_copied_study_runs_only_where_it_is_named_or_trusted(done: Path, tmp_path: Path):
    run = done / "arms/softmax1/seed0"
    assert "--trust-study" in h2h("score", run, "--text", "the cat").stderr
    assert h2h("score", run, "--text", "the cat", "--study", done.parent / "small.py").returncode == 0
    assert h2h("score", run, "--text", "the cat", "--trust-study").returncode == 0
    other = tmp_path / "other.py"
    other.write_text((done.parent / "small.py").read_text() + "\n# changed\n")
    assert h2h("score", run, "--text", "the cat", "--study", other).returncode == 2
    altered = tmp_path / "altered"
    shutil.copytree(done, altered)
    (altered / "study.py").write_text("raise SystemExit('this must not run')\n")
    refused = h2h("score", altered / "arms/softmax1/seed0", "--text", "the cat", "--trust-study")
    assert refused.returncode == 2 and "locked" in refused.stderr


def test_without_a_compiler_everything_runs_eager_and_says_so(done: Path, tmp_path: Path):
    env = os.environ | {"PATH": str(tmp_path)}
    arguments = ["run", done.parent / "small.py", "--steps", 3, "--seeds", 1, "--out", tmp_path / "out"]
    ended = h2h(*arguments, env=env)
    assert ended.returncode == 0, ended.stderr
    assert "eager (no C++ compiler on PATH)" in ended.stderr
    assert "no C++ compiler on PATH" in (tmp_path / "out/report.html").read_text()
    assert json.loads((tmp_path / "out/route.json").read_text())["compiled"] is False


def test_a_diverged_run_is_an_outcome(done: Path, tmp_path: Path):
    """A rate that breaks every seed: failed runs, UNSTABLE, exit 1, and no training again on the second call."""
    arguments = ["run", done.parent / "small.py", "--set", "optimizer.rate=1e30", "--steps", 30, "--out", tmp_path]
    ended = h2h(*arguments)
    assert ended.returncode == 1, ended.stderr
    status = json.loads((tmp_path / "arms/baseline/seed0/status.json").read_text())
    assert status["state"] == "failed" and "step" in status["reason"]
    assert {arm["verdict"] for arm in json.loads((tmp_path / "verdict.json").read_text())["arms"].values()} == {
        "UNSTABLE"
    }
    assert h2h(*arguments).returncode == 1


def test_two_commands_do_not_work_in_one_folder(done: Path, tmp_path: Path):
    from headtohead.launch.local import study_claimed
    from headtohead.spec import Mistake

    with study_claimed(tmp_path), pytest.raises(Mistake, match="another h2h run is at work"), study_claimed(tmp_path):
        pass


def test_a_broken_run_is_reported_with_its_error(done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """An exception after the rehearsal is no outcome: its traceback is kept, and the next call tries the run again."""
    from headtohead.launch import local, worker
    from headtohead.request import plan_of, state_of

    out = tmp_path / "out"
    shutil.copytree(done, out)
    shutil.rmtree(out / "arms/deep/seed1")
    plan = plan_of(out)
    monkeypatch.setattr(worker.Run, "execute", lambda run: 1 / 0)
    assert worker.work(out, plan["code"], len(plan["seeds"])) == 1
    assert state_of(out / "arms/deep/seed1")["state"] == "absent"
    with pytest.raises(local.Breakdown, match="deep, seed 1: ZeroDivisionError"):
        local.report_breakdowns(out, plan, [1])
    monkeypatch.undo()
    assert h2h("run", done.parent / "small.py", "--out", out).returncode == 0
    assert results(out) == results(done)


@pytest.mark.slow
def test_the_demo_killed_at_ten_random_moments(tmp_path: Path):
    alone, killed = tmp_path / "alone", tmp_path / "killed"
    assert h2h("run", "softmax_one", "--out", alone).returncode == 0
    killed_until_done(["run", "softmax_one", "--out", killed], 10, os.environ | {"H2H_CHECKPOINT_SECONDS": "3"})
    assert results(killed) == results(alone)
