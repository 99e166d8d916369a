"""The verdict as text of 80 columns, from whole folders and from a table of results made elsewhere."""

import csv
import json
import random
import re
import subprocess
import sys

import pytest
from report_folder import BASE, CHAL, audit, fail_run, write_study

from headtohead.report.glossary import CLAIMS, LABELS, VERDICTS, explain
from headtohead.report.terminal import verdict_table
from headtohead.verdict import words
from headtohead.verdict.judge import judge
from headtohead.verdict.sentence import sentence
from headtohead.verdict.table import judge_table


def told(text):
    """The text without its line breaks: what it says, wherever it was wrapped."""
    return " ".join(text.split())


def rewrite(path, value):
    path.write_text(json.dumps(value))


def table(path, arms, **about):
    """A results.csv of arm -> values by seed."""
    rows = [[arm, seed, value, *about.values()] for arm, values in arms.items() for seed, value in enumerate(values)]
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["arm", "seed", "value", *about], *rows])
    return judge_table(path)


# ---- one challenger ------------------------------------------------------------------------------------------------


def test_a_card_says_it_all_in_order(tmp_path):
    shown = verdict_table(judge(write_study(tmp_path / "s", {"baseline": BASE, "small": CHAL})))
    lines = shown.splitlines()
    assert lines[0] == "smaller: Does a smaller head lose anything?"
    assert "It was said" not in shown  # the question's further paragraphs stand on the page
    assert "BETTER small (negligible, untuned, single-budget)" in lines
    # By hand, METHOD.md's first oracle: m = -.0104, 95 % interval [-.0144805, -.0063195], baseline 3.4106
    said = told(shown)
    for part in (
        "changed model.head: Big(beta=1.0) -> Small(size=0)",
        "effect loss −0.0104 nats per token, 95 % interval −0.0145 to −0.0063",
        "−0.30 % of the baseline, perplexity ×0.9897",
        "margin ±0.017 nats per token, the usual one, for the study states none; the test of lying inside it (TOST) has p 0.0053, and shows it where p is small",
        "better in 5 of 5 pairs; the chance that a new seed is better: 98 %",
        "p 0.0021",
        "5 seeds find a true difference of 0.0055 nats per token with a chance of 80 %",
        "one of the margin, 0.017, takes 3 seeds of every arm (12.5 min, $0.25)",
        "audits 7 passed, 0 failed, 2 skipped",
        "at equal tokens, parameters ×0.80, FLOPs ×1.00, time ×1.50, memory ×1.00, dollars ×1.50",
        "no run failed, none is missing",
        "loss is not worse by the margin or more, margin 0.017 nats per token: yes",
        "; all runs as declared",
    ):
        assert part in said, part
    labels = [line[2:16].strip() for line in lines if re.match(r"  \S", line)]
    expected = "meaning changed effect seeds beside reach audits costs tuning stability claims lock"
    assert labels[: len(expected.split())] == expected.split()


def test_the_quotable_sentence_is_the_verdicts_own(tmp_path):
    verdict = judge(write_study(tmp_path / "s", {"baseline": BASE, "small": CHAL}))
    own = sentence("small", verdict["arms"]["small"], verdict)
    assert told(verdict_table(verdict)).endswith(f"to quote: {told(own)}")


def test_a_failed_audit_is_told_with_its_sentence_and_evidence(tmp_path):
    out = write_study(tmp_path / "s", {"baseline": BASE, "small": CHAL})
    found = [audit("fail"), audit("skip", id="A-NOISE"), audit(id="A-NOOP")]
    rewrite(out / "arms/small/seed1/audits.json", found)
    shown = told(verdict_table(judge(out)))
    assert "INVALID small (A-CAUSAL," in shown
    assert "7 passed, 1 failed, 3 skipped" in shown
    assert "A-CAUSAL failed (fatal, seed 1): It sees the future." in shown
    assert "moved by 0.374" in shown
    assert "descriptive only: loss −0.0104" in shown


def test_a_failed_audit_of_the_baseline_is_told_too(tmp_path):
    out = write_study(tmp_path / "s", {"baseline": BASE, "small": CHAL})
    rewrite(out / "arms/baseline/seed0/audits.json", [audit("fail")])
    shown = told(verdict_table(judge(out)))
    assert "INVALID small (A-CAUSAL of the baseline" in shown
    assert "A-CAUSAL of the baseline failed (fatal, seed 0): It sees the future." in shown


def test_a_failed_run_and_a_missing_one_are_outcomes(tmp_path):
    out = write_study(tmp_path / "s", {"baseline": [*BASE[:4], None], "small": CHAL})
    fail_run(out / "arms/small/seed3", "step 2: the loss is not finite")
    shown = told(verdict_table(judge(out)))
    assert "UNSTABLE small" in shown
    assert "challenger seed 3 failed: step 2: the loss is not finite" in shown
    assert "baseline seed 4 is missing" in shown
    assert "; 2 runs failed or missing" in shown


def test_what_is_open_comes_with_the_command_that_settles_it(tmp_path):
    out = write_study(tmp_path / "s", {"baseline": [3.4, 3.41, 3.42], "small": [3.389, 3.414, 3.411]}, margin=0.005)
    verdict = judge(out)
    entry = verdict["arms"]["small"]
    assert entry["verdict"] == "INCONCLUSIVE"
    shown = told(verdict_table(verdict))
    assert "INCONCLUSIVE small (untuned, single-budget)" in shown
    assert "loss −0.005 nats per token, 95 % interval −0.026 to +0.015" in shown  # half of it is .0202: digits to .001
    assert f"to settle it {entry['command']}" in shown
    low, high = entry["seeds_needed"]
    assert f"one of the margin, 0.0050, takes {low} to {high} seeds of every arm (" in shown


def test_a_single_seed_claims_nothing(tmp_path):
    shown = told(verdict_table(judge(write_study(tmp_path / "s", {"baseline": BASE[:1], "small": CHAL[:1]}))))
    assert "UNREPLICATED small" in shown
    assert "interval" not in shown and "TOST" not in shown and "chance of 80 %" not in shown


def test_no_change_at_all(tmp_path):
    shown = told(verdict_table(judge(write_study(tmp_path / "s", {"baseline": BASE, "same": BASE}))))
    assert "IDENTICAL same" in shown and "exactly 0 in every pair" in shown


# ---- many challengers ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def thirty(tmp_path_factory):
    draw = random.Random(3)
    arms = {"baseline": BASE}
    for number in range(30):
        shift = draw.gauss(0, 0.02)
        arms[f"layers{number}-of-a-name-so-long-that-no-table-holds-it-{number}"] = [
            value + shift + draw.gauss(0, 0.006) for value in BASE
        ]
    return judge(write_study(tmp_path_factory.mktemp("thirty") / "s", arms))


def test_many_challengers_begin_with_a_table_sorted_by_effect(thirty):
    blocks = verdict_table(thirty).split("\n\n")
    head, *rows = blocks[1].splitlines()
    assert head.split() == ["verdict", "challenger", "effect", "95", "%", "interval", "won", "p", "adj."]
    assert len(rows) == 30 and len({len(row) for row in rows}) == 1
    ranked = sorted(thirty["arms"].values(), key=lambda entry: entry["effect"])
    for row, entry in zip(rows, ranked, strict=True):
        assert row.startswith(entry["verdict"] + " ")
        assert f"{entry['won']}/5" in row
    shown = [re.search(r"([+−])([\d.]+)  ", row) for row in rows]
    effects = [float(found[2]) * (-1 if found[1] == "−" else 1) for found in shown]
    assert effects == pytest.approx([entry["effect"] for entry in ranked], abs=6e-4)


def test_what_is_the_same_of_all_is_told_once(thirty):
    shown = told(verdict_table(thirty))
    assert shown.count("; all runs as declared") == 1
    assert shown.count("none on record") == 1
    assert shown.count("model.head: Big(beta=1.0) -> Small(") == 30


def test_no_line_is_longer_than_80_columns(thirty, tmp_path):
    one = judge(write_study(tmp_path / "t", {"baseline": BASE, "x" * 100: CHAL}))
    for verdict in (thirty, one):
        assert max(map(len, verdict_table(verdict).splitlines())) <= 80


def test_colours_only_where_a_person_looks(thirty, monkeypatch):
    assert "\x1b" not in verdict_table(thirty)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    plain = verdict_table(thirty)
    assert "\x1b[" in plain
    monkeypatch.setenv("NO_COLOR", "1")
    assert verdict_table(thirty) == re.sub(r"\x1b\[[\d;]*m", "", plain)


# ---- results made elsewhere ----------------------------------------------------------------------------------------


def test_a_table_of_results(tmp_path):
    shown = verdict_table(table(tmp_path / "results.csv", {"baseline": BASE, "small": CHAL}))
    said = told(shown)
    assert "results: the results in results.csv" in said
    assert "BETTER small (negligible, untuned, unaudited)" in said
    assert "loss −0.0104 unit not stated, 95 % interval −0.0145 to −0.0063" in said
    assert "none on record" in said  # no audit
    assert "lock" not in said and "None" not in said and "nan" not in said


def test_a_table_in_which_higher_is_better(tmp_path):
    about = {"measure": "accuracy", "unit": "points", "better": "higher", "margin": "1"}
    arms = {"baseline": [70.1, 70.5, 69.9, 70.4], "big": [73.2, 73.1, 73.5, 73.3]}
    shown = told(verdict_table(table(tmp_path / "r.csv", arms, **about)))
    assert "accuracy in points, higher is better" in shown
    assert "BETTER big (substantial" in shown
    assert "accuracy +3.05 points" in shown and "perplexity" not in shown


def test_a_table_with_a_failed_run_and_without_a_pair(tmp_path):
    shown = told(verdict_table(table(tmp_path / "r.csv", {"baseline": ["", ""], "small": [3.0, 3.1]})))
    assert "UNSTABLE small" in shown and "no pair of finished runs" in shown
    assert "baseline seed 0 failed: the value is empty" in shown


@pytest.mark.parametrize("word", words.WORDS)
def test_every_word_has_a_meaning_and_a_tone(word):
    assert VERDICTS[word].text.endswith(".")
    assert VERDICTS[word].tone in ("good", "bad", "same", "open", "refused")
    assert (VERDICTS[word].tone == "refused") == (word in words.REFUSED)


def test_the_glossary_is_the_verdicts_own():
    assert list(VERDICTS) == list(words.WORDS)
    constants = {value for name, value in vars(words).items() if name.isupper() and isinstance(value, str)}
    labels = constants - set(words.WORDS) | set(words.AUDIT_CAVEATS.values())
    assert set(LABELS) == labels
    assert explain("skewed").startswith("skewed: ") and "A-CAUSAL" in explain("A-CAUSAL")


def test_every_kind_of_claim_has_words():
    from headtohead import study

    assert set(CLAIMS) == {cls.__name__ for cls in study.Claim.__subclasses__()}


def test_what_the_command_waits_for():
    """Fresh processes: the module needs nothing heavy to be there."""
    code = "import sys, headtohead.report.terminal; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"jinja2", "vl_convert", "scipy", "numpy", "torch"} & set(loaded)
