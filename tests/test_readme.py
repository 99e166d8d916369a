"""The README's files are written as they stand there and its commands run as they stand there, in its order.

Training is cut to a few steps here; `make demo` is the same command at full length.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SHORT = 2


def blocks(language: str) -> list[str]:
    fenced = re.findall(r"^```(\w*)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    return [text for name, text in fenced if name == language]


def commands() -> list[str]:
    """Every h2h line of the README, without its comment."""
    lines = [shlex.join(shlex.split(line, comments=True)) for block in blocks("bash") for line in block.splitlines()]
    return [line for line in lines if line.startswith("h2h ")]


def files() -> dict[str, str]:
    """The files that it tells the reader to write."""
    named = {block.splitlines()[0].removeprefix("# "): block for block in blocks("python")}
    return {name: text for name, text in named.items() if name.endswith(".py")}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("readme")
    for name, text in files().items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "results.csv").write_text("arm,seed,value\nbaseline,0,3.41\nbaseline,1,3.40\nnew,0,3.39\nnew,1,3.38\n")
    return folder


def h2h(line: str, folder: Path) -> subprocess.CompletedProcess:
    words = shlex.split(line)[1:]
    if words[0] == "run":
        # a schedule's warm-up shrinks with the steps, down to nothing
        words += ["--steps", str(SHORT), "--set", "held_out=500"]
    command = [sys.executable, "-c", "from headtohead.cli import main; main()", *words]
    environment = os.environ | {"COLUMNS": "100"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)


def test_the_readme_has_what_this_test_reads():
    assert {"mine.py", "volume.py", "recurrent.py", "look.py"} == set(files())
    assert len(commands()) >= 11


def test_every_command_runs_in_order(place: Path):
    for line in commands():
        done = h2h(line, place)
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
        assert done.stdout.strip(), line


@pytest.mark.parametrize("name", ["volume.py", "recurrent.py"])
def test_every_study_runs(name: str, place: Path):
    done = h2h(f"h2h run {name} --seeds 1", place)
    assert done.returncode == 0, done.stderr
    out = place / "h2h-runs" / name.removesuffix(".py")
    assert (out / "report.html").is_file()


def test_python_looks_at_a_run_from_another_process(place: Path):
    done = subprocess.run([sys.executable, "look.py"], cwd=place, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "torch.Size([3, 4, " in done.stdout


def test_the_tree_names_what_exists():
    tree = blocks("")[-1]
    for word in re.findall(r"\b([a-z_]+/|[a-z_]+\.py)", tree):
        assert list((ROOT / "headtohead").rglob(word.rstrip("/"))) or (ROOT / word.rstrip("/")).exists(), word
