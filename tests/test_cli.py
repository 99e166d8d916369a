"""Mistakes at the command line: one line, the fix, exit 2, and nothing half-written."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from headtohead import cli

HEAD = '''"""A question."""
from headtohead import *  # noqa
from headtohead import Additive, Characters, Constant, File, Recipe, SoftmaxN, Study, Transformer, at
baseline = Recipe(model=Transformer(layers=1, heads=2, width=8), text=File("text.txt"), tokenizer=Characters(), length=8,
                  batch=4, steps=3, schedule=Constant(), held_out=50)
'''.replace("from headtohead import *  # noqa\n", "")
ARM = 'study = Study(baseline=baseline, challengers={"n": at(baseline, {"model.attention.normalizer": SoftmaxN()})}, seeds=1)\n'


def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, *arguments: object) -> tuple[int, str, str]:
    """A command in this process: exit code, output, errors."""
    monkeypatch.setattr(sys, "argv", ["h2h", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        cli.main()
        raise SystemExit(0)
    caught = capsys.readouterr()
    return int(stop.value.code or 0), caught.out, caught.err


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a text and a study in it, and the user in the folder."""
    (tmp_path / "text.txt").write_text("The quick brown fox jumps over the lazy dog.\n" * 40)
    (tmp_path / "good.py").write_text(HEAD + ARM)
    monkeypatch.chdir(tmp_path)
    return tmp_path


BAD = {
    "missing study": (["run", "softmax_two"], None, "did you mean 'softmax_one'?"),
    "missing file": (["run", "absent.py"], None, "there is no study file absent.py"),
    "zero seeds": (["run", "good.py", "--seeds", 0], None, "at least 1 seed, and 3 for a verdict"),
    "zero steps": (["run", "good.py", "--steps", 0], None, "--steps 0: at least 1"),
    "zero jobs": (["run", "good.py", "--jobs", 0], None, "--jobs 0"),
    "no such size": (["run", "good.py", "--size", "large"], None, "choose demo or paper"),
    "no paper size": (["run", "good.py", "--size", "paper"], None, "has no paper size"),
    "heads do not divide": (["run", "good.py", "--set", "model.heads=3"], None, "the nearest width is 9"),
    "unknown address": (["run", "good.py", "--set", "model.normalizer=3"], None, "did you mean 'model.attention.normalizer'?"),
    "unknown part": (["run", "good.py", "--set", "model.head=Tide()"], None, "there is no part 'Tide'"),
    "unknown field": (["run", "good.py", "--set", "model.head=Tied(bia=True)"], None, "did you mean 'bias'?"),
    "wrong type": (["run", "good.py", "--set", "model.layers=two"], None, "model.layers: takes int, got 'two'"),
    "no value": (["run", "good.py", "--set", "model.layers"], None, "write ADDRESS=VALUE"),
    "a challenger's address": (["run", "good.py", "--set", "model.attention.normalizer=Softmax()"], None, "change it in the study file"),
    "missing text": (["run", "good.py", "--set", "text.path=absent.txt"], None, "absent.txt"),
    "length over the text": (["run", "good.py", "--set", "length=5000"], None, "smaller length or give more text"),
    "study raises": (["run", "bad.py"], HEAD + "1 / 0\n", "bad.py:5: ZeroDivisionError"),
    "study does not parse": (["run", "bad.py"], HEAD + "study = = 3\n", "bad.py:5: invalid syntax"),
    "no study inside": (["run", "bad.py"], HEAD, "must end in `study = Study(...)`"),
    "no challengers": (["run", "bad.py"], HEAD + "study = Study(baseline=baseline, challengers={})\n", "has no challengers"),
    "unknown address inside": (["run", "bad.py"], HEAD + 'at(baseline, {"model.attention.normaliser": SoftmaxN()})\n', "bad.py:5: no address"),
    "a class for a part": (["run", "bad.py"], HEAD + 'at(baseline, {"model.attention.normalizer": SoftmaxN})\n', "write SoftmaxN()"),
    "a part in the wrong slot": (["run", "bad.py"], HEAD + 'at(baseline, {"model.attention.normalizer": Additive()})\n', "takes Normalizer"),
    "a forward that raises": (["run", "bad.py"], HEAD + "class Bad(SoftmaxN):\n    def __call__(self, scores):\n        return scores.nothing\n" + ARM.replace("SoftmaxN()", "Bad()"), "arm n: AttributeError at bad.py:7"),
    "no folder": (["verdict", "absent"], None, "holds no study.json"),
    "no table": (["verdict", "absent.csv"], None, "absent.csv is no file"),
    "no run": (["score", "absent", "--text", "x"], None, "is not the folder of a finished run"),
    "list what": (["list", "things"], None, "choose studies, parts or texts"),
    "unknown primary": (["run", "bad.py"], HEAD + ARM.replace("seeds=1", 'seeds=1, primary="los"'), "did you mean 'loss'?"),
    "unknown claim": (["run", "bad.py"], HEAD + "from headtohead import NoWorse\n" + ARM.replace("seeds=1", 'seeds=1, claims=(NoWorse("perplexty"),)'), "did you mean 'perplexity'?"),
    "steps within the warm-up": (["run", "good.py", "--set", "schedule.warmup=3"], None, "--set schedule.warmup=0"),
    "list whom": (["list", "parts", "Softmaks"], None, "did you mean 'Softmax'?"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_mistake_is_one_line_with_the_fix(name: str, place: Path, monkeypatch, capsys):
    arguments, bad, expected = BAD[name]
    if bad is not None:
        (place / "bad.py").write_text(bad)
    before = sorted(place.rglob("*"))
    code, _, errors = call(monkeypatch, capsys, *arguments)
    lines = [line for line in errors.splitlines() if not line.startswith("preparing")]
    assert code == 2
    assert len(lines) == 1 and lines[0].startswith("h2h: "), errors
    assert expected in lines[0]
    assert [path for path in sorted(place.rglob("*")) if "__pycache__" not in path.parts] == before


def test_an_empty_text(place: Path, monkeypatch, capsys):
    (place / "text.txt").write_text("")
    code, _, errors = call(monkeypatch, capsys, "run", "good.py")
    assert code == 2 and "text.txt holds no text; give" in errors
    assert not (place / "h2h-runs").exists()


def test_lists_and_help_need_no_torch():
    script = "import sys; from headtohead.cli import app\nfor words in {0}:\n    app(words, standalone_mode=False)\n"
    script += "assert not {{'torch', 'numpy'}} & set(sys.modules), set(sys.modules)"
    calls = [
        ["list"],
        ["list", "parts"],
        ["list", "texts"],
        ["list", "studies", "softmax_one"],
        ["--help"],
        ["run", "--help"],
    ]
    done = subprocess.run([sys.executable, "-c", script.format(calls)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "softmax_one" in done.stdout and "ZeroThenRenormalize" in done.stdout


def test_every_slot_and_variant_is_listed(monkeypatch, capsys):
    from headtohead.catalogue import parts
    from headtohead.parts import normalizer

    _, out, _ = call(monkeypatch, capsys, "list", "parts", "--json")
    names = {entry["name"] for entry in json.loads(out)}
    written = {
        name
        for name, cls in vars(normalizer).items()
        if isinstance(cls, type) and issubclass(cls, normalizer.Normalizer)
    }
    assert written - {"Normalizer"} <= names
    assert parts()["SoftmaxN"].fields == {"n": "float = 1.0"}
    assert parts()["Gelu"].slot == "Feedforward" and set(parts()["Gelu"].fields) == {"ratio", "bias", "approximation"}


@pytest.mark.parametrize("name", ["Normalizer", "normalizer"])
def test_a_slot_is_listed_with_its_contract_and_its_variants(name, monkeypatch, capsys):
    _, out, _ = call(monkeypatch, capsys, "list", "parts", name)
    assert "Called as (scores) -> weights" in out and "SoftmaxN" in out and "model.attention.normalizer" in out


def test_what_a_recipe_and_a_study_hold_is_listed(monkeypatch, capsys):
    assert "held_out: int = 0" in call(monkeypatch, capsys, "list", "parts", "Recipe")[1]
    assert "margin: float | None = None" in call(monkeypatch, capsys, "list", "parts", "Study")[1]


def test_a_star_brings_every_public_name():
    names: dict = {}
    exec("from headtohead import *", names)
    assert {"Recipe", "Study", "at", "SoftmaxN"} <= names.keys()


def test_show_tells_arms_differences_and_cost(place: Path, monkeypatch, capsys):
    code, out, _ = call(monkeypatch, capsys, "show", "good.py", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["arms"]["n"]["changed"] == {"model.attention.normalizer": ["Softmax()", "SoftmaxN()"]}
    assert found["arms"]["n"]["shared"] == found["arms"]["n"]["parameters"] > 0
    assert not (place / "h2h-runs").exists()


def test_audit_before_a_seed_is_spent(place: Path, monkeypatch, capsys):
    leak = ARM.replace("normalizer", "masking").replace("SoftmaxN()", "ZeroAfter()")
    (place / "leak.py").write_text(HEAD + "from headtohead import ZeroAfter\n" + leak)
    code, out, _ = call(monkeypatch, capsys, "audit", "leak.py", "--json")
    found = json.loads(out)
    assert code == 1
    assert {f["result"] for f in found if f["arm"] == "n"} == {"fail"}
    assert {f["result"] for f in found if f["arm"] == "baseline"} == {"pass"}
    assert call(monkeypatch, capsys, "audit", "good.py")[0] == 0
