"""Tables that other trainers leave: metrics, documents, amounts, logs of steps, and the exports that the docs show."""

import csv
import io
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from headtohead.spec import Mistake
from headtohead.verdict.documents import crossed
from headtohead.verdict.statistics import paired
from headtohead.verdict.table import judge_table

BASE = [3.412, 3.405, 3.421, 3.398, 3.417]
CHAL = [3.401, 3.398, 3.407, 3.391, 3.404]
DOCS = Path(__file__).parents[2] / "docs" / "your-own-runs.md"


@pytest.fixture
def table(tmp_path):
    def make(rows, name="results.csv"):
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
        (tmp_path / name).write_text(text.getvalue())
        return tmp_path / name

    return make


def runs(**more):
    arms = {"baseline": BASE, "small": CHAL}
    return [
        {"arm": arm, "seed": seed, "metric": "loss", "value": value} | {name: of(arm) for name, of in more.items()}
        for arm, values in arms.items()
        for seed, value in enumerate(values)
    ]


def test_the_metric_is_named_in_a_column_and_the_loss_is_the_usual_one(table):
    other = [row | {"metric": "accuracy", "value": 1 - row["value"] / 10} for row in runs()]
    path = table(runs() + other)
    found = judge_table(path)
    assert found["primary"]["name"] == "loss" and found["arms"]["small"]["p"] == pytest.approx(paired(BASE, CHAL).p)
    assert found["arms"]["small"]["verdict"] == "BETTER" and "unaudited" in found["arms"]["small"]["qualifiers"]
    accuracy = judge_table(path, "accuracy")
    assert accuracy["primary"]["better"] == "higher" and accuracy["arms"]["small"]["effect"] == pytest.approx(0.00104)


def test_of_several_metrics_without_a_loss_one_must_be_named(table):
    rows = [row | {"metric": name} for row in runs() for name in ("accuracy", "perplexity")]
    with pytest.raises(Mistake, match="--metric accuracy"):
        judge_table(table(rows))
    with pytest.raises(Mistake, match=r"--metric los: .* has accuracy, perplexity"):
        judge_table(table(rows), "los")


def test_amounts_become_ratios(table):
    amounts = {"tokens": 1e6, "parameters": 1000, "seconds": 50.0}
    of = {name: (lambda arm, n=number, f=f: n * (f if arm == "small" else 1)) for (name, number), f in zip(amounts.items(), (1, 0.8, 1.5), strict=True)}  # fmt: skip
    entry = judge_table(table(runs(**of)))["arms"]["small"]
    assert entry["ratios"]["parameters"] == pytest.approx(0.8) and entry["ratios"]["seconds"] == pytest.approx(1.5)
    assert (
        entry["match"] == {"by": "tokens", "tokens": 1.0} and "at equal tokens, ×0.80 parameters" in entry["sentence"]
    )
    fewer = judge_table(table(runs(tokens=lambda arm: 950 if arm == "small" else 1000)))["arms"]["small"]
    assert "tokens ×0.95" in fewer["sentence"] and "at equal tokens" not in fewer["sentence"]


def of_documents(seeds=3, documents=40):
    draw = np.random.default_rng(5)
    text, seed = draw.normal(3, 0.5, documents), draw.normal(0, 0.02, (2, seeds, 1))
    values = text + seed + draw.normal(0, 0.01, (2, seeds, documents)) + np.array([0.0, -0.03])[:, None, None]
    rows = [
        {"arm": arm, "seed": s, "metric": "loss", "document": f"d{d}", "value": values[k, s, d]}
        for k, arm in enumerate(("baseline", "small"))
        for s in range(seeds)
        for d in range(documents)
    ]
    return rows, values


def test_documents_are_crossed_with_seeds(table):
    rows, values = of_documents()
    entry = judge_table(table(rows))["arms"]["small"]
    assert entry["p"] == pytest.approx(paired(*values.mean(axis=2)).p)  # a run's value is the mean of its documents
    own = crossed(values[1] - values[0])
    assert entry["new_text"]["effect"] == pytest.approx(own.effect) and entry["new_text"]["df"] == pytest.approx(own.df)
    assert entry["new_text"]["interval"] == pytest.approx(list(own.interval)) and entry["new_text"]["documents"] == 40


def test_more_of_a_measure_being_better_turns_no_sign(table):
    rows, values = of_documents()
    entry = judge_table(table([row | {"metric": "accuracy"} for row in rows]))["arms"]["small"]
    own = crossed(values[1] - values[0])
    assert entry["effect"] < 0 and entry["new_text"]["effect"] == pytest.approx(own.effect)
    assert entry["new_text"]["interval"] == pytest.approx(list(own.interval))


def test_other_documents_cannot_be_compared(table):
    rows, _ = of_documents()
    entry = judge_table(table(rows[:-1]))["arms"]["small"]  # one document of one run is not there
    assert entry["verdict"] == "INVALID" and entry["qualifiers"][0] == "INCOMPARABLE"


def test_a_document_twice_is_refused_with_its_line(table):
    rows, _ = of_documents()
    with pytest.raises(Mistake, match=r"line 242 repeats arm baseline, seed 0, document d0"):
        judge_table(table([*rows, rows[0]]))


@pytest.mark.parametrize(
    "name", ["{arm}/seed{seed}", "{arm}-seed{seed}", "{arm}_{seed}", "{arm} seed={seed}", "{arm}{seed}"]
)
def test_a_runs_name_holds_arm_and_seed(table, name):
    rows = [{"run": name.format(**row), "value": row["value"]} for row in runs()]
    assert judge_table(table(rows))["arms"]["small"]["p"] == pytest.approx(paired(BASE, CHAL).p)


def test_of_a_log_the_last_step_counts(table):
    rows = [row | {"step": step, "value": row["value"] + (200 - step)} for row in runs() for step in (200, 0, 100)]
    assert judge_table(table(rows))["arms"]["small"]["p"] == pytest.approx(paired(BASE, CHAL).p)


# ---- the exports of the docs ---------------------------------------------------------------------------------------

WANDB = ["Name", "State", "Runtime", "arm", "seed", "val_loss", "learning_rate"]
TENSORBOARD = ["run", "tag", "step", "value", "wall_time"]


def exported(place):
    """The two files as those tools write them: every cell quoted, and every step of every scalar."""
    with open(place / "wandb.csv", "w", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(WANDB)
        for row in runs():
            writer.writerow([f"fine-{row['seed']}", "finished", 61.2, row["arm"], row["seed"], row["value"], 0.001])
    with open(place / "scalars.csv", "w", newline="") as file:
        log = csv.writer(file)
        log.writerow(TENSORBOARD)
        for row in runs():
            for step in (100, 200):
                value = row["value"] + (200 - step) / 100
                log.writerow([f"{row['arm']}/seed{row['seed']}", "val/loss", step, value, 1.7e9 + step])
                log.writerow([f"{row['arm']}/seed{row['seed']}", "train/loss", step, 9 - step / 100, 1.7e9 + step])


def commands(text):
    """The shell blocks of the docs, one command a line."""
    return [line for block in re.findall(r"```bash\n(.*?)```", text, re.S) for line in block.splitlines() if line]


def test_the_commands_of_the_docs_judge_the_exports(tmp_path, monkeypatch, capsys):
    from test_cli import call

    exported(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results.csv").write_text(
        "arm,seed,value\n" + "".join(f"{r['arm']},{r['seed']},{r['value']}\n" for r in runs())
    )
    judged = 0
    for line in commands(DOCS.read_text()):
        if line.startswith("h2h "):
            code, out, _ = call(monkeypatch, capsys, *line.split()[1:])
            assert code == 0 and "BETTER small" in out and "−0.0104" in out, line
            judged += 1
        else:
            subprocess.run(line, shell=True, check=True)
    assert judged == 3


def test_the_docs_write_what_tensorboard_holds(tmp_path, monkeypatch):
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    from torch.utils.tensorboard import SummaryWriter

    for row in runs():
        with SummaryWriter(str(tmp_path / f"logs/{row['arm']}/seed{row['seed']}")) as log:
            for step in (100, 200):
                log.add_scalar("val/loss", row["value"] + (200 - step) / 100, step)
                log.add_scalar("train/loss", 9 - step / 100, step)
    monkeypatch.chdir(tmp_path)
    exec(re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.S)[0], {})
    renamed = (tmp_path / "scalars.csv").read_text().replace("tag", "metric", 1)
    (tmp_path / "results.csv").write_text(renamed)
    entry = judge_table(tmp_path / "results.csv", "val/loss")["arms"]["small"]
    assert entry["effect"] == pytest.approx(-0.0104, abs=1e-6)  # the logs are float32


@pytest.mark.parametrize(
    ("metric", "word"), [("train_loss", "INVALID"), ("train/loss", "INVALID"), ("eval_loss", "BETTER")]
)
def test_the_training_loss_is_no_evidence(table, metric, word):
    """By its name, which is all that a table says."""
    entry = judge_table(table([row | {"metric": metric} for row in runs()]))["arms"]["small"]
    assert entry["verdict"] == word
    assert ("A-TRAINLOSS" in entry["qualifiers"]) == (word == "INVALID")
    assert [audit["evidence"] for audit in entry["audits"]] == [f"the primary measure is {metric}"] * (
        word == "INVALID"
    )
