"""The verdict on a table of results that were made elsewhere."""

import json

import pytest
from study_folder import BASE, CHAL

from headtohead.spec import Mistake
from headtohead.verdict.judge import judge
from headtohead.verdict.sentence import sentence
from headtohead.verdict.table import judge_table


@pytest.fixture
def table(tmp_path):
    def written(text):
        path = tmp_path / "results.csv"
        path.write_text(text, encoding="utf-8")
        return path

    return written


def rows(arms, header="arm,seed,value", more=""):
    lines = [f"{arm},{seed},{value}{more}" for arm, values in arms.items() for seed, value in enumerate(values)]
    return "\n".join([header, *lines]) + "\n"


def test_the_same_numbers_as_from_a_folder(table, write):
    found = judge_table(table(rows({"baseline": BASE, "small": CHAL})))
    folder = judge(write({"baseline": BASE, "small": CHAL}))
    entry, theirs = found["arms"]["small"], folder["arms"]["small"]
    assert entry.keys() == theirs.keys() and found.keys() == folder.keys()
    assert (entry["verdict"], entry["qualifiers"]) == ("BETTER", ["negligible", "untuned", "unaudited"])
    same = ("effect", "interval", "relative", "p", "p_adjusted", "seeds", "won", "detectable", "seeds_needed", "margin")
    assert [entry[key] for key in same] == [theirs[key] for key in same]
    assert entry["same_data"] is None and entry["command"] is None and entry["audits"] == []
    json.dumps(found, allow_nan=False)


def test_the_baseline_is_called_so_wherever_it_stands(table):
    first, last = (
        judge_table(table(rows(arms)))
        for arms in ({"baseline": BASE, "small": CHAL}, {"small": CHAL, "baseline": BASE})
    )
    assert first["baseline"]["name"] == last["baseline"]["name"] == "baseline"
    assert first["arms"]["small"]["effect"] == last["arms"]["small"]["effect"] == pytest.approx(-0.0104)


def test_columns_say_what_is_measured(table):
    header = "arm,seed,value,measure,unit,better,margin"
    arms = {"baseline": [70.0, 71.0, 69.0], "b": [80.0, 82.0, 79.0]}
    found = judge_table(table(rows(arms, header, ",mrpc,percent,higher,2")))
    assert found["primary"] == {"name": "mrpc", "unit": "percent", "better": "higher"} and found["margin"] == 2.0
    assert found["arms"]["b"]["verdict"] == "BETTER" and found["arms"]["b"]["effect"] == pytest.approx(31 / 3)
    found = judge_table(
        table(rows({"baseline": [0.7, 0.71, 0.69], "b": [0.8, 0.82, 0.79]}, "arm,seed,value,measure", ",accuracy"))
    )
    assert found["primary"]["better"] == "higher" and found["margin"] == 0.01


@pytest.mark.parametrize("value", ["", "nan", "inf"])
def test_a_run_without_a_value_has_failed(table, value):
    found = judge_table(table(rows({"baseline": BASE, "small": [*CHAL[:4], value]})))
    entry = found["arms"]["small"]
    assert (entry["verdict"], entry["seeds"]) == ("UNSTABLE", 4)
    assert list(entry["failures"]["challenger"]) == ["4"]


def test_unequal_seeds_are_paired_where_both_are(table):
    entry = judge_table(table(rows({"baseline": BASE, "small": CHAL[:4]})))["arms"]["small"]
    assert entry["seeds"] == 4 and entry["missing"] == {"baseline": [], "challenger": ["4"]}


def test_order_of_rows_and_a_byte_order_mark_do_not_matter(table):
    text = rows({"baseline": BASE, "small": CHAL})
    header, *lines = text.splitlines()
    mixed = "\ufeff" + "\r\n".join([header.replace(",", ", "), *sorted(lines, key=lambda line: line.split(",")[1])])
    one, other = (judge_table(table(each))["arms"]["small"] for each in (text, mixed))
    assert one == other


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "has no rows; its first line must be arm,seed,value"),
        ("arm,seed,value\n", "has no rows"),
        ("arm,run,loss\na,0,1\n", "has no seed, value; its first line must be arm,seed,value"),
        ("arm,seed,value\na,0,1\na,0,2\nb,0,1\n", "line 3 repeats arm a, seed 0; keep one row a run"),
        ("arm,seed,value\na,0,low\n", "line 2: value 'low' is no number; leave it empty if the run failed"),
        ("arm,seed,value\na,0,1\n", "has one arm, 'a'; add the rows"),
        ("arm,seed,value\na,0,1\nb,0,1\n", "has no arm called 'baseline', only 'a', 'b'; rename the one"),
        ("arm,seed,value,value\na,0,1,2\n", "names the column 'value' twice"),
        ("arm;seed;value\na;0;1\n", "is separated by semicolons; save it with commas"),
        ("arm,seed,value\n,0,1\n", "line 2 has no arm; name it"),
        ("arm,seed,value\nbaseline,0,1_0\n", "'1_0' is no number"),
        ("arm,seed,value\nbaseline,0,1e308\n", "too large to compute with"),
        ("arm,seed,value\nbaseline,0," + "1" * 200_000 + "\n", "cannot be read as a table"),
        ("arm,seed,value\na,0,1,9\n", "line 2 has more cells than the first line names"),
        ("arm,seed,value,unit\nbaseline,0,1,x\nb,0,1,y\n", "gives several values of unit; write one table for each"),
        ("arm,seed,value,measure\nbaseline,0,1,sinks\nb,0,1,sinks\n", "which way is 'sinks' better?"),
    ],
)
def test_mistakes_name_the_line_and_the_fix(table, text, told):
    with pytest.raises(Mistake) as caught:
        judge_table(table(text))
    assert told in str(caught.value) and "\n" not in str(caught.value)


def test_a_table_in_another_encoding_is_told(tmp_path):
    path = tmp_path / "results.csv"
    path.write_bytes("arm,seed,value\nbaseline,é,1\n".encode("latin-1"))
    with pytest.raises(Mistake, match=r"cannot be read as a table .*save it as UTF-8"):
        judge_table(path)


@pytest.mark.parametrize("more", [",nats per token,1e-300", ",nats per token,5"])
def test_absurd_numbers_break_nothing(table, more):
    arms = {"baseline": [1.0, 2.0, 3.0], "small": [1000.0, 2000.0, 3000.0]}
    found = judge_table(table(rows(arms, "arm,seed,value,unit,margin", more)))
    json.dumps(found, allow_nan=False)


def test_no_such_table(tmp_path):
    with pytest.raises(Mistake, match="is no file; give a table with the columns arm,seed,value"):
        judge_table(tmp_path / "results.csv")


def test_it_has_a_sentence(table):
    found = judge_table(table(rows({"baseline": [3.4, 3.41, 3.42], "small": [3.389, 3.414, 3.411]})))
    line = sentence("small", found["arms"]["small"], found)
    assert line.startswith("small: NOT WORSE (untuned, unaudited): loss -0.005333 unit not stated [95 % ")
    assert "fresh seeds" in line and "tokens" not in line and "×" not in line and "h2h" not in line


REFUSED = {
    "two kinds of rows": ("arm,seed,document,value\nbaseline,0,d1,1\nbaseline,0,,5\nsmall,0,d1,2\n", "line 3: arm baseline, seed 0 has rows of documents and one of its own"),
    "the other order": ("arm,seed,document,value\nbaseline,0,,5\nbaseline,0,d1,1\nsmall,0,d1,2\n", "line 3: arm baseline, seed 0 has rows of documents"),
    "other ends": ("arm,seed,step,value\nbaseline,0,10,3\nbaseline,0,200,2\nsmall,0,4000,1\n", "arm baseline, seed 0 ends at step 200 and arm small, seed 0 at 4000; leave the value of a failed run empty"),
    "less than nothing": ("arm,seed,seconds,value\nbaseline,0,5,3\nsmall,0,-5,2\n", "line 3: seconds -5 is below 0"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_would_be_judged_wrongly_is_refused(table, case):
    text, told = REFUSED[case]
    with pytest.raises(Mistake, match=told):
        judge_table(table(text))


@pytest.mark.parametrize("metric", ["trainLoss", "train/loss", "loss_train", "training_loss"])
def test_a_training_loss_by_any_spelling_is_no_evidence(table, metric):
    found = judge_table(
        table(rows({"baseline": BASE, "small": CHAL}, "arm,seed,value,metric,better,margin", f",{metric},lower,.01"))
    )
    assert found["arms"]["small"]["verdict"] == "INVALID"
