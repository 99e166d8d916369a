"""From a file and options to arms: what may stand on the command line, what it changes, and how mistakes are told."""

import dataclasses
import re
import sys

import pytest

from headtohead import (
    AdamW,
    Embedding,
    File,
    Gate,
    Learned,
    MultiHead,
    Nothing,
    Recipe,
    SoftmaxN,
    Study,
    at,
    diff,
)
from headtohead.imports import changed
from headtohead.plan import arms_of, load_study, parse_value, with_options
from headtohead.request import Options, builtin_studies, file_hash, find_study, parse_settings, request
from headtohead.spec import Mistake, describe

HEAD = '''"""Is one more better?

Told at length.
"""
from headtohead import Additive, Custom, Normalizer, Recipe, SoftmaxN, Study, Transformer, at


class Own(Normalizer):
    power: float = 2.0


baseline = Recipe(model=Transformer(layers=1, heads=2, width=8), length=8, batch=4, steps=300)
'''
LINE = HEAD.count("\n") + 1  # the first one after it
ARMS = 'study = Study(baseline=baseline, challengers={"n": at(baseline, {"model.attention.normalizer": Own(power=3.0)})})\n'


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "mine.py"
        path.write_text(text)
        return path

    return write


@pytest.fixture
def loaded(write):
    return load_study(write(HEAD + ARMS))


def told(call, *arguments):
    with pytest.raises(Mistake) as raised:
        call(*arguments)
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("-3", -3),
        ("1e-3", 0.001),
        (" 3 ", 3),
        ("True", True),
        ("None", None),
        ("exact", "exact"),
        ('"exact"', "exact"),
        ("(0.9, 0.95)", (0.9, 0.95)),
        ("a/b c.txt", "a/b c.txt"),
        ("", ""),
        ("SoftmaxN()", SoftmaxN()),
        ("SoftmaxN(n=2)", SoftmaxN(n=2)),
        ("AdamW(betas=(0.9, 0.5), decay='matrices')", AdamW(betas=(0.9, 0.5), decay="matrices")),
        ("MultiHead(normalizer=SoftmaxN(n=-1), gate=Gate())", MultiHead(normalizer=SoftmaxN(n=-1), gate=Gate())),
        ('File(path="a.txt")', File("a.txt")),
        ('Embedding(mask="zero")', Embedding(mask="zero")),
        # text that is neither a literal nor a part is itself, and nothing in it is evaluated
        ("text.txt", "text.txt"),
        ("../my-texts/text 1.txt", "../my-texts/text 1.txt"),
        ("File(path=texts/a.txt)", File("texts/a.txt")),
        ("Embedding(mask=zero)", Embedding(mask="zero")),
        ("1 + 1", "1 + 1"),
        ("{[]: 1}", "{[]: 1}"),
        ("__import__('os').name", "__import__('os').name"),
        ("[x for x in (1,)]", "[x for x in (1,)]"),
        ("(" * 10_000, "(" * 10_000),
    ],
)
def test_values_and_parts_are_read(text, value):
    found = parse_value(text)
    assert found == value and type(found) is type(value)


def test_a_class_is_read_as_one_so_that_its_brackets_are_asked_for():
    assert parse_value("SoftmaxN") is SoftmaxN
    assert "write SoftmaxN()" in told(at, Recipe(), {"model.attention.normalizer": parse_value("SoftmaxN")})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Softmaxx()",
            "'Softmaxx()': there is no part 'Softmaxx'; did you mean 'Softmax'? (`h2h list parts` has them all)",
        ),
        ("open('x')", "there is no part 'open'; did you mean"),
        ("MultiHead(gate=Gat())", "there is no part 'Gat'; did you mean 'Gate'?"),
        ("SoftmaxN(m=2)", "SoftmaxN has no field 'm'; did you mean 'n'?"),
        ("Softmax(n=2)", "Softmax has no field 'n'; it has none"),
        ("SoftmaxN(2)", "'SoftmaxN(2)': name the fields, as in SoftmaxN(n=…)"),
        ("SoftmaxN(**{'n': 2})", "name the fields, as in SoftmaxN(n=…)"),
        ("File()", "'File()': File needs 'path'; write File(path=…)"),
    ],
)
def test_a_part_that_cannot_be_is_refused(text, expected):
    assert expected in told(parse_value, text)


def test_a_study_has_its_name_its_question_and_its_file(loaded, tmp_path):
    assert (loaded.name, loaded.path, loaded.builtin) == ("mine", tmp_path / "mine.py", False)
    assert loaded.question == "Is one more better?\n\nTold at length."
    assert list(diff(*loaded.study.arms().values())) == ["model.attention.normalizer"]
    assert list(tmp_path.iterdir()) == [loaded.path]  # no cache beside it


def test_parts_of_the_study_file_may_be_set(loaded):
    value = parse_value("Own(power=5)", loaded.module)
    assert value == loaded.module.Own(power=5)
    assert parse_value("baseline", loaded.module) == "baseline"  # not a class of parts
    assert "there is no part 'Own'" in told(parse_value, "Own(power=5)")


@pytest.mark.parametrize("name", builtin_studies())
def test_built_in_studies_are_sound(name):
    found = load_study(find_study(name))
    assert found.builtin and "?" in found.question and found.name == name
    study = with_options(found, Options())
    assert study == found.study
    if isinstance(found.study.paper, Study):
        assert with_options(found, Options(size="paper")) == found.study.paper
    plan = {"request": request(found.path, Options()), "arms": {arm: describe(r) for arm, r in study.arms().items()}}
    assert arms_of(None, plan, None) == study.arms()


def test_without_options_a_study_is_as_written(loaded):
    assert with_options(loaded, Options()) is loaded.study


def test_seeds_and_itself(loaded):
    assert with_options(loaded, Options(seeds=7)) == dataclasses.replace(loaded.study, seeds=7)
    itself = with_options(loaded, Options(against_itself=True))
    assert list(itself.arms()) == ["baseline", "itself", "other-seeds"] and itself.claims == itself.looks == ()
    assert set(itself.arms().values()) == {loaded.study.baseline}


@pytest.mark.parametrize("steps", [1, 30, 900])
def test_steps_rescale_the_warm_up_of_every_arm(loaded, steps):
    study = with_options(loaded, Options(steps=steps))
    for name, recipe in study.arms().items():
        assert recipe == loaded.study.arms()[name].rescaled(steps)
        assert (recipe.steps, recipe.schedule.warmup) == (steps, round(steps / 3))
    assert list(diff(*study.arms().values())) == ["model.attention.normalizer"]


def test_settings_change_every_arm_alike(loaded):
    study = with_options(loaded, Options(settings=(("model.layers", "3"), ("model.position", "Nothing()"))))
    for name, recipe in study.arms().items():
        assert diff(loaded.study.arms()[name], recipe) == {
            "model.layers": (1, 3),
            "model.position": (Learned(), Nothing()),
        }


@pytest.mark.parametrize(
    ("address", "value"),
    [
        ("model.attention.normalizer", "Softmax()"),
        ("model.attention", "MultiHead()"),
        ("model", "Transformer(heads=2, width=8)"),
        ("model.attention.normalizer", "Own(power=3)"),
    ],
)
def test_a_setting_where_arms_differ_is_refused(loaded, address, value):
    expected = f"--set {address}: n differs from the baseline just there; change it in the study file"
    assert told(with_options, loaded, Options(settings=((address, value),))) == expected


def test_a_setting_inside_what_one_arm_alone_has_is_refused(loaded):
    message = told(with_options, loaded, Options(settings=(("model.attention.normalizer.power", "4"),)))
    assert "Softmax has no field 'power'" in message


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (Options(seeds=0), "seeds = 0: a study needs at least 1 seed, and 3 for a verdict; use --seeds 3"),
        (Options(steps=0), "--steps 0: at least 1"),
        (
            Options(size="paper"),
            "study mine has no paper size; give it Study(..., paper=Study(...)) or leave out --size",
        ),
        (
            Options(settings=(("model.heads", "3"),)),
            "arm baseline: model: width = 8 is not divisible by model.heads = 3; the nearest width is 9",
        ),
        (Options(settings=(("model.layers", "two"),)), "model.layers: takes int, got 'two' (str)"),
        (
            Options(settings=(("layers", "2"),)),
            "no address 'layers' (Recipe has no field 'layers'); did you mean 'model.layers'?",
        ),
    ],
)
def test_options_that_cannot_be_are_told_as_such(loaded, options, expected):
    assert told(with_options, loaded, options) == expected


def study_of(arms):
    return f"study = Study(baseline=baseline, challengers={arms})\n"


IN_A_FILE = {
    "it raises": ("1 / 0\n", 1, "ZeroDivisionError: division by zero"),
    "it raises deep inside": ("def f():\n    return {}['x']\n\nf()\n", 2, "KeyError: 'x'"),
    "it raises in two lines": ("raise ValueError('one\\ntwo')\n", 1, "ValueError: one two"),
    "it raises without words": ("assert baseline is None\n", 1, "AssertionError"),
    "it ends": ("raise SystemExit(0)\n", 1, "SystemExit: 0"),
    "it does not parse": ("\nstudy = = 3\n", 2, "invalid syntax"),
    "it is not indented": ("def f():\nreturn 3\n", 2, "expected an indented block"),
    "it imports what is not there": ("from headtohead import Softmaxx\n", 1, "did you mean 'Softmax'?"),
    "an unknown address": (
        "at(baseline, {'model.attention.normaliser': SoftmaxN()})\n",
        1,
        "did you mean 'model.attention.normalizer'?",
    ),
    "an unknown field": ("\n\nSoftmaxN(m=1)\n", 3, "SoftmaxN has no field 'm'; did you mean 'n'?"),
    "a class": ("at(baseline, {'model.attention.normalizer': Own})\n", 1, "got the class Own; write Own()"),
    "another slot": (
        "at(baseline, {'model.attention.normalizer': Additive()})\n",
        1,
        "takes Normalizer, got Additive, which is a Score",
    ),
    "a part of none": (
        "from headtohead import Part\nclass Squared(Part):\n    pass\nat(baseline, {'model.attention.normalizer': Squared()})\n",
        4,
        "got Squared, which is derived from Part alone; write class Squared(Normalizer)",
    ),
    "a field is left out": ("Study(baseline=baseline)\n", 1, "TypeError: "),
    "an open class": (
        "import dataclasses\n@dataclasses.dataclass\nclass Mine(Own):\n    n: int = 3\n",
        2,
        "TypeError: cannot inherit non-frozen",
    ),
    "a changed part": ("baseline.length = 3\n", 1, "FrozenInstanceError: Recipe is frozen; make another one with at()"),
    "no challengers": (study_of("{}"), 1, "the study has no challengers; add one"),
    "no recipe": ("\n" + study_of("{'n': SoftmaxN()}"), 2, "challenger 'n' must be a Recipe, e.g. at(baseline, {...})"),
    "a name with a blank": (study_of("{'two words': baseline}"), 1, "'two words' cannot name a challenger"),
    "zero seeds": ("study = Study(baseline=baseline, challengers={'n': baseline}, seeds=0)\n", 1, "use --seeds 3"),
    "a width": (
        "study = 3\n" + study_of("{'n': at(baseline, {'model.heads': 3})}"),
        2,
        "arm n: model: width = 8 is not divisible by model.heads = 3; the nearest width is 9",
    ),
}


@pytest.mark.parametrize("name", IN_A_FILE)
def test_a_mistake_in_a_file_is_told_with_its_line(name, write):
    more, line, expected = IN_A_FILE[name]
    path = write(HEAD + more)
    message = told(lambda: with_options(load_study(path), Options()))
    assert message.startswith(f"{path}:{LINE + line - 1}: "), message
    assert expected in message


@pytest.mark.parametrize(
    ("text", "found"),
    [(HEAD, "found nothing of that name"), (HEAD + "study = 3\n", "found 3"), ("", "found nothing of that name")],
)
def test_a_file_without_a_study(write, text, found):
    path = write(text)
    assert told(load_study, path) == f"{path} must end in `study = Study(...)`, {found}"


def test_a_file_that_is_no_text(write, tmp_path):
    path = tmp_path / "mine.py"
    for raw in (b"study = '\xff\xfe'\n", b"\0\n"):
        path.write_bytes(raw)
        assert told(load_study, path).startswith(str(path))


def test_a_study_of_two_sizes_says_where_the_paper_one_is_wrong(write):
    path = write(HEAD + ARMS[:-2] + ", paper=Study(baseline=baseline, challengers={}))\n")
    asked = load_study(path)
    with_options(asked, Options())
    assert told(with_options, asked, Options(size="paper")).startswith(f"{path}:{LINE}: the study has no challengers")


def test_two_studies_do_not_mix(write):
    """A class of the same name in the next file is that file's own."""
    first = load_study(write(HEAD + ARMS)).study
    second = load_study(write(HEAD.replace("2.0", "4.0") + ARMS)).study
    assert type(first.challengers["n"].model.attention.normalizer) is not type(
        second.challengers["n"].model.attention.normalizer
    )
    assert (
        with_options(load_study(write(HEAD + ARMS)), Options()).challengers["n"].model.attention.normalizer.power == 3.0
    )


def test_a_copy_is_run_only_if_it_is_the_file_that_was_locked_and_named(loaded, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "study.py").write_bytes(loaded.path.read_bytes())
    options = Options(steps=30, settings=(("model.layers", "2"),))
    wanted = with_options(loaded, options).arms()
    described = {name: describe(recipe) for name, recipe in wanted.items()}
    plan = {"request": request(loaded.path, options), "arms": described, "code": file_hash(loaded.path)}
    assert {name: describe(recipe) for name, recipe in arms_of(out, plan, plan["code"]).items()} == described
    assert "say --trust-study" in told(arms_of, out, plan, None)
    assert "say --trust-study" in told(arms_of, out, plan, "0" * 32)
    others = plan | {"arms": described | {"n": described["baseline"]}}
    assert "builds other arms than the lock says" in told(arms_of, out, others, plan["code"])
    (out / "study.py").write_text("raise SystemExit('this must not run')\n")
    assert "is not the file that was locked" in told(arms_of, out, plan, plan["code"])


def test_a_study_is_found_by_name_or_by_path(loaded):
    assert find_study("softmax_one").name == "softmax_one.py" and find_study(str(loaded.path)) == loaded.path
    assert "did you mean 'softmax_one'?" in told(find_study, "softmax1")
    assert "there is no study file absent.py" in told(find_study, "absent.py")
    assert "there is no study '__init__'" in told(find_study, "__init__")


def test_settings_are_taken_apart_at_the_first_sign():
    found = parse_settings(["model.layers = 3", "text=File(path='a=b')"])
    assert found == (("model.layers", "3"), ("text", "File(path='a=b')"))
    assert (
        told(parse_settings, ["model.layers"]) == "--set model.layers: write ADDRESS=VALUE, e.g. --set model.layers=3"
    )


def test_the_line_of_a_study_is_that_of_its_last_assignment(write):
    path = write(HEAD + "a = study = 3\n(b) = 4\n" + study_of("{}") + "del a\n")
    assert re.match(rf"{re.escape(str(path))}:{LINE + 2}: ", told(lambda: with_options(load_study(path), Options())))


def test_what_a_study_imports_is_locked_with_it(write, tmp_path, monkeypatch):
    """The study's file and what it imports from outside the installed packages, through any number of hands."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))  # what is imported here is forgotten afterwards
    (tmp_path / "mine_first.py").write_text("import mine_second\nfrom numpy import pi\n")
    (tmp_path / "mine_second.py").write_text("VALUE = 3.0\n")
    path = write(HEAD.replace("from headtohead", "import mine_first\nfrom headtohead", 1) + ARMS)
    before = load_study(path).imports
    assert before == {name: file_hash(tmp_path / f"{name}.py") for name in ("mine_first", "mine_second")}
    assert changed(before) == []
    (tmp_path / "mine_second.py").write_text("VALUE = 4.0\n")
    assert changed(before) == ["mine_second"]
    assert load_study(path).imports != before


def test_an_import_within_a_package_and_one_by_name_are_locked_too(write, tmp_path, monkeypatch):
    """What lies beside the study is found without being told where, as when Python runs the file."""
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "mine_package").mkdir()
    (tmp_path / "mine_package/__init__.py").write_text("")
    (tmp_path / "mine_package/outer.py").write_text(
        "from .inner import VALUE\nimport importlib\nimportlib.import_module('mine_late')\n"
    )
    (tmp_path / "mine_package/inner.py").write_text("VALUE = 1\n")
    (tmp_path / "mine_late.py").write_text("")
    path = write(HEAD.replace("from headtohead", "from mine_package.outer import VALUE\nfrom headtohead", 1) + ARMS)
    modules = {"mine_late", "mine_package", "mine_package.inner", "mine_package.outer"}
    assert load_study(path).imports.keys() == modules


@pytest.mark.parametrize("name", builtin_studies())
def test_a_built_in_study_imports_the_package_alone(name):
    assert load_study(find_study(name)).imports == {}
