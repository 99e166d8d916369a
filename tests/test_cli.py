"""Mistakes at the command line: one line, the fix, exit 2, and nothing half-written."""

import itertools
import json
import os
import random
import shlex
import signal
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
    words, draw = ["The", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog."], random.Random(0)
    lines = [" ".join(draw.sample(words, len(words))) for _ in range(40)]  # the same one again would be contamination
    (tmp_path / "text.txt").write_text("\n".join(lines) + "\n")
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
    "no folder": (["verdict", "absent"], None, "there is no folder absent; give the folder of a study, e.g."),
    "a file for a folder": (["report", "good.py"], None, "good.py is a file; give the folder of a study"),
    "not a study's folder": (["verdict", "."], None, ". holds no study.json; give the folder of a study"),
    "no table": (["verdict", "absent.csv"], None, "absent.csv is no file"),
    "no run": (["score", "absent", "--text", "x"], None, "there is no folder absent; give one, <study>/arms/<arm>/seed<k>"),
    "no run to sample": (["sample", "good.py", "--prompt", "x"], None, "good.py is not the folder of a finished run; give one"),
    "nothing to audit": (["audit", "h2h-runs/absent"], None, "there is no folder h2h-runs/absent; give one"),
    "a text to audit": (["audit", "text.txt"], None, "text.txt is no study; give a .py file or a built-in name"),
    "a study without its ending": (["run", "good"], None, "did you mean your file good.py?"),
    "seeds in words": (["run", "good.py", "--seeds", "x"], None, "--seeds x: takes a whole number, e.g. --seeds 3"),
    "a fraction of a seed": (["run", "good.py", "--seeds", "2.5"], None, "--seeds 2.5: takes a whole number"),
    "a great many seeds": (["run", "good.py", "--seeds", 10**9], None, "--seeds 1000000000: at most 10,000"),
    "a great many fresh seeds": (["run", "good.py", "--confirm", 10**9], None, "--confirm 1000000000: at most 10,000"),
    "a great many seeds inside": (["run", "bad.py"], HEAD + ARM.replace("seeds=1", "seeds=10**9"), "bad.py:5: seeds = 1000000000: at most 10,000"),
    "steps in words": (["show", "good.py", "--steps", "few"], None, "--steps few: takes a whole number"),
    "jobs in words": (["run", "good.py", "--jobs", "all"], None, "--jobs all: takes a whole number"),
    "no fresh seeds": (["run", "good.py", "--confirm", 0], None, "--confirm 0: at least 1"),
    "tokens below none": (["sample", "x", "--prompt", "a", "--tokens", -1], None, "--tokens -1: at least 0"),
    "a temperature below 0": (["sample", "x", "--prompt", "a", "--temperature", -1], None, "--temperature -1: takes a number from 0 on"),
    "a temperature of none": (["sample", "x", "--prompt", "a", "--temperature", "nan"], None, "--temperature nan: takes a number from 0 on"),
    "a seed below 0": (["sample", "x", "--prompt", "a", "--seed", -1], None, "--seed -1: at least 0"),
    "no such option": (["run", "good.py", "--sed", 3], None, "No such option: --sed (Possible options: --seeds, --set, --size); see h2h run --help"),
    "no such command": (["runn"], None, "No such command 'runn'"),
    "no study named": (["run"], None, "Missing argument 'STUDY'; see h2h run --help"),
    "out is a file": (["run", "good.py", "--out", "text.txt"], None, "--out text.txt: text.txt is a file; name a new folder"),
    "out is in a file": (["run", "good.py", "--out", "text.txt/a/b"], None, "--out text.txt/a/b: text.txt is a file; name a new folder"),
    "out holds other things": (["run", "good.py", "--out", "."], None, "--out .: the folder holds other things and no study"),
    "out cannot be made": (["run", "good.py", "--out", "/proc/h2h"], None, "/proc/h2h cannot be made"),
    "out has a long name": (["run", "good.py", "--out", "a" * 300], None, "File name too long"),
    "settings for a run": (["audit", "./x", "--steps", 3], None, "--size, --steps and --set change a study; ./x is a folder"),
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


def test_a_folder_that_may_not_be_written_to(place: Path, monkeypatch, capsys):
    """As another user would see it; whoever runs the tests may be allowed everything."""
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != place / "theirs")
    (place / "theirs").mkdir()
    code, _, errors = call(monkeypatch, capsys, "run", "good.py", "--out", place / "theirs" / "new")
    assert code == 2 and f"{place / 'theirs'} cannot be written to; name a folder of your own" in errors


def test_a_full_disk_is_told_in_one_line(place: Path, monkeypatch, capsys):
    import errno

    from headtohead.launch import folder

    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "h2h-runs/good/study.py")

    monkeypatch.setattr(folder, "lay_out", full)
    code, _, errors = call(monkeypatch, capsys, "run", "good.py")
    assert code == 2 and errors.splitlines()[-1].startswith("h2h: h2h-runs/good/study.py: No space left on device")


def test_a_text_is_set_by_its_bare_name(place: Path, monkeypatch, capsys):
    (place / "other.txt").write_text("Pack my box with five dozen liquor jugs.\n" * 40)
    code, out, _ = call(monkeypatch, capsys, "show", "good.py", "--set", "text.path=other.txt", "--json")
    assert code == 0 and json.loads(out)["text"]["name"] == "other"


def test_stopping_ends_with_one_line(place: Path):
    """Ctrl-C reaches the whole process group, as in a terminal."""
    command = [sys.executable, "-c", "from headtohead.cli import main; main()", "run", "good.py", "--steps", "100000"]
    # a shell may have told this process to ignore the signal, and a child inherits that
    heeded = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.default_int_handler), "start_new_session": True}
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **heeded)
    assert child.stderr is not None
    assert child.stderr.readline().startswith("preparing")
    child.stderr.readline()  # the route: the workers are started
    os.killpg(child.pid, signal.SIGINT)
    out, errors = child.communicate(timeout=60)
    assert (child.returncode, out) == (130, "")
    assert [line for line in errors.splitlines() if " runs · " not in line] == [
        "h2h: stopped; the same command goes on from here"
    ]


LOCKED = {
    "seeds": (["--seeds", 2], "locked with seed 0 alone, not 2 seeds (0 to 1); choose another folder with --out, or ask for fresh seeds with --confirm N"),
    "steps": (["--steps", 2], "locked with steps 3, not 2; choose another folder with --out, or delete"),
    "an address": (["--set", "model.layers=2"], "locked with model.layers 1, not 2; choose"),
}  # fmt: skip


def test_what_was_locked_is_refused_with_what_differs_and_the_way_out(place: Path, monkeypatch, capsys):
    assert call(monkeypatch, capsys, "run", "good.py", "--out", "kept")[0] == 0
    before = {path: path.read_bytes() for path in sorted(place.rglob("*")) if path.is_file()}
    for words, expected in LOCKED.values():
        code, _, errors = call(monkeypatch, capsys, "run", "good.py", "--out", "kept", *words)
        assert code == 2 and expected in errors.splitlines()[-1], errors
    assert {path: path.read_bytes() for path in sorted(place.rglob("*")) if path.is_file()} == before


def test_what_settles_it_can_be_copied_and_run(place: Path, monkeypatch, capsys):
    """The study is named as it was typed, and so is its folder: fresh seeds, fresh folder, twice over."""
    (place / "my studies").mkdir()
    (place / "good.py").rename(place / "my studies" / "mine.py")
    given = ["run", "my studies/mine.py", "--set", "model.layers=2", "--out", "deep/er"]
    seen: list[int] = []
    for _ in range(3):
        assert call(monkeypatch, capsys, *given)[0] == 0
        out = Path(given[-1])
        seeds = json.loads((out / "study.json").read_text())["seeds"]
        assert not set(seeds) & set(seen)
        seen += seeds
        words = shlex.split(json.loads((out / "verdict.json").read_text())["arms"]["n"]["command"] or "")
        if not words:
            break
        given = ["1" if before == "--confirm" else word for before, word in itertools.pairwise(words)]
    assert seen == [0, 1, 2]


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
    failed = {f["id"] for f in found if f["arm"] == "n" and f["result"] == "fail"}
    assert {"A-CAUSAL", "A-NOISE"} <= failed
    assert {f["result"] for f in found if f["arm"] == "baseline"} == {"pass"}
    assert call(monkeypatch, capsys, "audit", "good.py")[0] == 0
    mended = call(monkeypatch, capsys, "audit", "leak.py", "--set", "model.attention.visibility=Everyone()", "--json")
    assert {"A-CAUSAL", "A-NOISE"} <= {
        f["id"] for f in json.loads(mended[1]) if (f["arm"], f["result"]) == ("baseline", "fail")
    }  # every arm, as for `run`


def test_what_was_deleted_or_is_younger_is_made_again(place: Path, monkeypatch, capsys):
    """A finished study is answered from its files only while they are all there, and no older than what they rest on."""
    assert call(monkeypatch, capsys, "run", "good.py", "--out", "kept")[0] == 0
    weights, verdict = place / "kept/arms/n/seed0/model.safetensors", place / "kept/verdict.json"
    before = weights.read_bytes()
    weights.unlink()
    assert call(monkeypatch, capsys, "run", "good.py", "--out", "kept")[0] == 0
    assert weights.read_bytes() == before
    measures = place / "kept/arms/n/seed0/measures.json"
    measures.write_text(json.dumps(json.loads(measures.read_text()) | {"loss": 1.25}))
    assert call(monkeypatch, capsys, "run", "good.py", "--out", "kept")[0] == 0
    assert json.loads(verdict.read_text())["arms"]["n"]["values"]["challenger"] == {"0": 1.25}
