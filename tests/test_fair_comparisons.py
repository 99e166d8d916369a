"""docs/fair-comparisons.md: its study is one, and its commands are commands."""

import re
import shlex
from pathlib import Path

import typer

from headtohead.cli import app
from headtohead.launch.made import make
from headtohead.matching import parameters
from headtohead.plan import load_study
from headtohead.request import Options

DOCS = (Path(__file__).parents[1] / "docs" / "fair-comparisons.md").read_text()


def test_the_study_is_matched_as_it_says(tmp_path):
    code = re.search(r"```python\n# gated.py\n(.*?)```", DOCS, re.S)
    path = tmp_path / "gated.py"
    path.write_text(code[1])
    made = make(load_study(path), Options())
    base, own = made.study.arms().values()
    assert abs(parameters(own) / parameters(base) - 1) < 0.01 and own.model.feedforward.ratio < 3
    assert made.study.looks == (3, 5, 8)


def test_every_command_and_option_exists():
    known = typer.main.get_command(app).commands
    lines = [
        line.partition("#")[0] for block in re.findall(r"```bash\n(.*?)```", DOCS, re.S) for line in block.splitlines()
    ]
    asked = [shlex.split(line)[1:] for line in lines if line.strip()]
    assert len(asked) == 4
    for name, *rest in asked:
        options = {option for parameter in known[name].params for option in parameter.opts}
        assert {word for word in rest if word.startswith("--")} <= options, name
