"""Verdicts on whole folders, written here as runs leave them."""

import json
import re
import shutil

import pytest
from study_folder import BASE, CHAL, audit

from headtohead.spec import Mistake
from headtohead.verdict.judge import judge, judge_and_write
from headtohead.verdict.statistics import holm, paired

PROMISED = """verdict qualifiers changed effect interval relative p p_adjusted seeds won detectable seeds_needed ratios
claims audits"""


def rewrite(folder, name, **changes):
    path = folder / name
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def small(out):
    return judge(out)["arms"]["small"]


# ---- a finished study ----------------------------------------------------------------------------------------------


def test_a_finished_study(write):
    out = write({"baseline": BASE, "small": CHAL})
    found = judge(out)
    assert set(found) >= {"study", "question", "lock", "primary", "arms", "verdict version"}
    assert found["primary"] == {"name": "loss", "unit": "nats per token", "better": "lower"}
    assert found["lock"] == json.loads((out / "study.json").read_text())["lock"] and len(found["lock"]) == 32
    assert found["margin"] == pytest.approx(0.017053)
    entry = found["arms"]["small"]
    assert set(entry) >= set(PROMISED.split())
    assert (entry["verdict"], entry["qualifiers"]) == ("BETTER", ["negligible", "untuned", "single-budget"])
    assert entry["changed"] == ["model.head"]
    assert entry["effect"] == pytest.approx(-0.0104)
    assert entry["interval"] == pytest.approx([-0.0144805, -0.0063195], abs=1e-7)
    assert entry["relative"] == pytest.approx(-0.0104 / 3.4106)
    assert entry["p"] == entry["p_adjusted"] == pytest.approx(0.00210479, abs=1e-8)
    assert (entry["seeds"], entry["won"], entry["paired_seeds"]) == (5, 5, [0, 1, 2, 3, 4])
    assert entry["detectable"] == pytest.approx(1.682 * 0.00328634, rel=1e-3)
    assert entry["audits"][0] == audit() | {"seeds": [0, 1, 2, 3, 4]}
    crossing = entry["audits"][-1]
    assert (crossing["id"], crossing["result"], crossing["seeds"]) == ("A-CROSS", "skip", [0, 1, 2, 3, 4])
    assert entry["same_data"] is True and entry["different_data"] == {}
    assert entry["values"]["challenger"] == {str(seed): loss for seed, loss in enumerate(CHAL)}
    assert entry["failures"] == {"baseline": {}, "challenger": {}}
    assert entry["missing"] == {"baseline": [], "challenger": []}
    assert entry["command"] is None


def test_ratios_and_prices(write):
    found = judge(write({"baseline": BASE, "small": CHAL}))
    entry = found["arms"]["small"]
    assert entry["ratios"] == pytest.approx(
        {"parameters": 0.8, "flops": 1.0, "seconds": 1.5, "memory": 1.0, "dollars": 1.5}
    )
    assert entry["price"]["seed"] == pytest.approx({"seconds": 250.0, "dollars": 250 * 1.212 / 3600})
    counts = entry["seeds_needed"]
    assert entry["price"]["needed"]["seconds"] == pytest.approx([250.0 * n for n in counts])
    assert found["price"]["spent"] == pytest.approx({"seconds": 1250.0, "dollars": 1250 * 1.212 / 3600})
    assert (found["price"]["source"], found["price"]["date"]) == ("a price list", "2026-11-01")


def test_operations_are_those_of_all_tokens(write):
    out = write({"baseline": BASE, "small": CHAL})
    for seed in range(5):
        rewrite(out / f"arms/baseline/seed{seed}", "measures.json", tokens=1000)
        rewrite(out / f"arms/small/seed{seed}", "measures.json", tokens=1500, flops=4e9)
    assert small(out)["ratios"]["flops"] == pytest.approx(3.0)


def test_compilation_is_in_the_bill_and_not_in_the_ratio(write):
    """The first arm pays 60 s of compilation for both; a step takes as long in either."""
    out = write({"baseline": [3.4, 3.5, 3.6], "small": [3.3, 3.4, 3.5]})
    for seed in range(3):
        once = 60.0 if seed == 0 else 0.0
        rewrite(out / f"arms/baseline/seed{seed}", "status.json", seconds=100 + once, steady_seconds=100.0)
        rewrite(out / f"arms/small/seed{seed}", "status.json", seconds=100.0, steady_seconds=100.0)
    found = judge(out)
    assert found["arms"]["small"]["ratios"]["seconds"] == 1
    assert found["price"]["spent"]["seconds"] == 660


@pytest.mark.parametrize(("seconds", "dollars"), [(33340.6643, 11.2246), (33378.4977, 11.2374)])
def test_cost_oracle(write, seconds, dollars):
    out = write({"baseline": [3.0], "small": [3.1]})
    rewrite(out / "arms/baseline/seed0", "status.json", seconds=0)
    rewrite(out / "arms/small/seed0", "status.json", seconds=seconds)
    assert judge(out)["price"]["spent"]["dollars"] == pytest.approx(dollars, abs=1e-4)


def test_without_a_price(write):
    found = judge(write({"baseline": BASE, "small": CHAL}, price=None))
    assert found["arms"]["small"]["ratios"]["dollars"] is None
    assert found["arms"]["small"]["price"]["needed"]["dollars"] == [None, None]
    assert found["price"]["spent"] == {"seconds": 1250.0, "dollars": None}


def test_several_challengers_share_one_level(write):
    arms = {"baseline": BASE, "small": CHAL, "tiny": [3.5, 3.4, 3.6, 3.4, 3.5], "same": BASE}
    found = judge(write(arms))["arms"]
    alone = [paired(BASE, arms[name]).p for name in ("small", "tiny")]
    assert [entry["p_adjusted"] for entry in found.values()] == pytest.approx(holm([*alone, 1.0]))
    assert found["same"]["verdict"] == "IDENTICAL"
    assert found["small"]["detectable"] == pytest.approx(2.292 * 0.00328634, rel=1e-3)


def test_a_challenger_without_a_test_counts_in_the_family(write):
    out = write({"baseline": BASE, "small": CHAL, "broken": CHAL})
    for seed in range(5):
        rewrite(out / f"arms/broken/seed{seed}", "status.json", state="failed", reason="diverged")
    found = judge(out)["arms"]
    assert found["small"]["p_adjusted"] == pytest.approx(2 * found["small"]["p"])
    assert (found["broken"]["p"], found["broken"]["p_adjusted"]) == (None, 1.0)


def test_a_stated_margin_and_a_measure_where_higher_is_better(write, run):
    primary = {"name": "accuracy", "unit": "accuracy", "better": "higher"}
    out = write({"baseline": [None] * 3, "small": [None] * 3}, primary=primary, margin=0.02)
    for arm, values in {"baseline": [0.70, 0.71, 0.69], "small": [0.80, 0.82, 0.79]}.items():
        for seed, value in enumerate(values):
            run(out, arm, seed, 3.0, measures={"accuracy": value})
    entry = small(out)
    assert (entry["verdict"], entry["qualifiers"][0]) == ("BETTER", "substantial")
    assert entry["effect"] == pytest.approx(0.31 / 3) and entry["interval"][0] > 0
    assert entry["margin"] == 0.02 and entry["won"] == 3


def test_claims_are_answered(write):
    claims = [
        {"claim": "NoWorse", "measure": "loss", "challenger": None},
        {"claim": "Lower", "measure": "parameters", "challenger": "small"},
        {"claim": "Higher", "measure": "kurtosis", "challenger": "small"},
    ]
    found = small(write({"baseline": BASE, "small": CHAL}, claims=claims))["claims"]
    assert [answer["answer"] for answer in found] == ["yes", "yes", "not enough evidence"]
    assert found[1]["effect"] == -200.0 and "measured kurtosis" in found[2]["reason"]


# ---- what makes a comparison unfair --------------------------------------------------------------------------------


def test_a_fatal_audit_of_one_seed_is_enough(write):
    out = write({"baseline": BASE, "small": CHAL}, claims=[{"claim": "Better", "measure": "loss", "challenger": None}])
    leak = audit(result="fail", evidence="perturbed 5.1e-3")
    (out / "arms/small/seed3/audits.json").write_text(json.dumps([leak]))
    entry = small(out)
    assert (entry["verdict"], entry["qualifiers"][0]) == ("INVALID", "A-CAUSAL")
    assert entry["audits"][0] == leak | {"seeds": [3]}
    assert entry["effect"] == pytest.approx(-0.0104)  # still described
    assert entry["claims"][0]["answer"] == "not enough evidence"


def test_a_fatal_audit_of_the_baseline_spoils_every_comparison(write):
    out = write({"baseline": BASE, "small": CHAL, "same": BASE})
    (out / "arms/baseline/seed0/audits.json").write_text(json.dumps([audit("A-CONTAM", "fail")]))
    found = judge(out)
    assert [entry["verdict"] for entry in found["arms"].values()] == ["INVALID", "INVALID"]
    assert found["arms"]["small"]["qualifiers"][0] == "A-CONTAM of the baseline"
    assert found["baseline"]["audits"][0]["result"] == "fail"


def test_a_warning_changes_no_verdict_and_may_bring_a_caveat(write):
    out = write({"baseline": BASE, "small": CHAL})
    audits = [audit(), audit("A-CROSS", "fail", "warn"), audit("A-FLOOR", "fail", "warn")]
    (out / "arms/small/seed1/audits.json").write_text(json.dumps(audits))
    assert small(out)["verdict"] == "BETTER"
    assert small(out)["qualifiers"] == ["negligible", "untuned", "crossing-curves", "single-budget"]


@pytest.mark.parametrize("audits", [[], [audit(result="skip")]])
def test_an_audit_that_was_not_done_is_said(write, audits):
    out = write({"baseline": BASE, "small": CHAL})
    assert "unaudited" not in small(out)["qualifiers"]
    for seed in range(5):
        (out / f"arms/baseline/seed{seed}/audits.json").write_text(json.dumps(audits))
    assert small(out)["verdict"] == "BETTER" and "unaudited" in small(out)["qualifiers"]


def test_another_evaluation_text_is_incomparable(write):
    out = write({"baseline": BASE, "small": CHAL})
    rewrite(out / "arms/small/seed4", "measures.json", evaluation="text-2")
    assert (small(out)["verdict"], small(out)["qualifiers"][0]) == ("INVALID", "INCOMPARABLE")


def test_different_batches_are_named_by_seed_and_step(write, run):
    out = write({"baseline": BASE, "small": CHAL})
    for seed, batches in ((1, ["1-0", "other", "1-2"]), (2, ["2-0", "2-1"])):
        shutil.rmtree(out / f"arms/small/seed{seed}")
        run(out, "small", seed, CHAL[seed], batches=batches)
    entry = small(out)
    assert entry["same_data"] is False and entry["different_data"] == {"1": 1, "2": 2}
    assert "unpaired" in entry["qualifiers"] and entry["verdict"] == "BETTER"


def test_a_step_that_was_repeated_after_a_resume_counts_once(write):
    out = write({"baseline": BASE, "small": CHAL})
    with open(out / "arms/small/seed0/steps.jsonl", "a") as file:
        file.write(json.dumps({"step": 2, "loss": 3.0, "batch": "0-2", "seconds": 9.0}) + "\n")
    assert small(out)["same_data"] is True


def log(out, arm, seed, losses, **more):
    steps = [
        {"step": step, "loss": loss, "batch": f"{step}", "seconds": 1.0} | more for step, loss in enumerate(losses)
    ]
    (out / f"arms/{arm}/seed{seed}/steps.jsonl").write_text("".join(json.dumps(step) + "\n" for step in steps))


def crossed(write, late, **changes):
    """The audit and labels of a challenger whose training loss lies `late` above the baseline's in the last steps."""
    out = write({"baseline": BASE, "small": CHAL}, **changes)
    for seed in range(5):
        log(out, "baseline", seed, [3.0] * 300)
        log(out, "small", seed, [2.9] * 240 + [3.0 + late + 1e-3 * seed] * 60)
    entry = small(out)
    return entry["audits"][-1], entry["qualifiers"]


def test_curves_that_cross_are_a_caveat(write):
    found, labels = crossed(write, 0.05)
    assert (found["id"], found["result"]) == ("A-CROSS", "fail") and "crossing-curves" in labels


def test_curves_that_do_not_cross_are_none(write):
    found, labels = crossed(write, -0.1)
    assert found["result"] == "pass" and labels == ["negligible", "untuned"]


@pytest.mark.parametrize("address", ["objective.rate", "model.dropout"])
def test_training_losses_that_mean_something_else_are_not_compared(write, address):
    found, labels = crossed(write, 0.05, changed={"small": {address: [0, 1]}})
    assert found["result"] == "skip" and labels[-1] == "single-budget"


# ---- failures and gaps ---------------------------------------------------------------------------------------------


def test_a_failed_seed_is_unstable_and_described(write, run):
    out = write({"baseline": BASE, "small": [*CHAL[:2], None, *CHAL[3:]]})
    run(
        out, "small", 2, None, status={"state": "failed", "step": 1, "seconds": 50.0, "reason": "loss is nan at step 1"}
    )
    found = judge(out)
    entry = found["arms"]["small"]
    assert (entry["verdict"], entry["seeds"], entry["paired_seeds"]) == ("UNSTABLE", 4, [0, 1, 3, 4])
    assert entry["failures"] == {"baseline": {}, "challenger": {"2": "loss is nan at step 1"}}
    assert entry["missing"]["challenger"] == []
    kept = [0, 1, 3, 4]
    assert entry["effect"] == pytest.approx(paired([BASE[k] for k in kept], [CHAL[k] for k in kept]).mean)
    assert found["price"]["failed"]["seconds"] == 50.0 and found["price"]["spent"]["seconds"] == 1150.0
    assert entry["price"]["seed"]["seconds"] == 250.0  # a run that stopped half-way is no measure of a whole one


def test_a_failed_baseline_is_unstable_for_all(write):
    out = write({"baseline": BASE, "small": CHAL, "same": BASE})
    rewrite(out / "arms/baseline/seed0", "status.json", state="failed", reason="out of memory")
    assert [entry["verdict"] for entry in judge(out)["arms"].values()] == ["UNSTABLE", "UNSTABLE"]


def test_invalid_comes_before_unstable(write):
    out = write({"baseline": BASE, "small": CHAL})
    rewrite(out / "arms/small/seed0", "status.json", state="failed")
    (out / "arms/small/seed0/audits.json").write_text(json.dumps([audit("A-NOISE", "fail")]))
    assert small(out)["verdict"] == "INVALID"


@pytest.mark.parametrize("loss", ["null", "NaN", "Infinity"])
def test_a_loss_that_is_not_finite_is_a_failure(write, loss):
    out = write({"baseline": BASE, "small": CHAL})
    (out / "arms/small/seed1/measures.json").write_text(f'{{"loss": {loss}, "evaluation": "text-1"}}')
    entry = small(out)
    assert entry["verdict"] == "UNSTABLE"
    assert entry["failures"]["challenger"] == {"1": "loss is not finite"}


def test_all_seeds_failed(write):
    out = write({"baseline": BASE[:3], "small": CHAL[:3]})
    for seed in range(3):
        rewrite(out / f"arms/small/seed{seed}", "status.json", state="failed", reason="diverged")
    entry = small(out)
    assert (entry["verdict"], entry["seeds"], entry["effect"], entry["interval"]) == ("UNSTABLE", 0, None, None)
    assert entry["same_data"] is None and entry["ratios"]["seconds"] is None


def test_a_seed_that_only_one_arm_has_is_missing(write):
    out = write({"baseline": BASE, "small": [None, *CHAL[1:]]})
    entry = small(out)
    assert (entry["seeds"], entry["paired_seeds"]) == (4, [1, 2, 3, 4])
    assert entry["missing"] == {"baseline": [], "challenger": [0]}
    assert entry["p"] == pytest.approx(paired(BASE[1:], CHAL[1:]).p)


def test_identical(write):
    entry = small(write({"baseline": BASE, "small": BASE}))
    assert (entry["verdict"], entry["effect"], entry["interval"], entry["won"]) == ("IDENTICAL", 0.0, [0.0, 0.0], 0)
    assert entry["detectable"] is None and entry["seeds_needed"] is None


@pytest.mark.parametrize("count", [1, 2])
def test_too_few_seeds(write, count):
    entry = small(write({"baseline": BASE[:count], "small": CHAL[:count]}))
    assert entry["verdict"] == "UNREPLICATED" and entry["seeds"] == count
    assert (entry["interval"] is None) == (count == 1)
    assert entry["command"].startswith("h2h run smaller --confirm ")


@pytest.mark.parametrize(
    ("margin", "word", "needed"),
    [(0.0165, "NOT WORSE", [5, 11]), (0.01, "NOT WORSE", [8, 26]), (0.005, "INCONCLUSIVE", [23, 96])],
)
def test_what_is_open_says_what_would_settle_it(write, margin, word, needed):
    base = [3.4, 3.41, 3.42]
    chal = [loss + d for loss, d in zip(base, [-0.011, 0.004, -0.009], strict=True)]
    entry = small(write({"baseline": base, "small": chal}, margin=margin))
    assert (entry["verdict"], entry["seeds_needed"]) == (word, needed)
    assert entry["command"] == f"h2h run smaller --confirm {needed[1]}"
    assert entry["price"]["needed"]["seconds"] == pytest.approx([250 * n for n in needed])
    assert entry["detectable"] == pytest.approx(3.264 * 0.0081445, rel=1e-3)
    assert entry["power"] < 0.8


# ---- unfinished studies and broken files ---------------------------------------------------------------------------


def finish(out):
    return f"finish it with: h2h run smaller --out {out}"


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda run: rewrite(run, "status.json", state="running", step=2), "small seed 1 (running, step 2 of 3)"),
        (lambda run: (run / "status.json").unlink(), "small seed 1 (no status.json)"),
        (lambda run: (run / "measures.json").unlink(), "small seed 1 (no measures.json)"),
        (lambda run: (run / "audits.json").unlink(), "small seed 1 (no audits.json)"),
        (lambda run: (run / "steps.jsonl").unlink(), "small seed 1 (no steps.jsonl)"),
        (lambda run: (run / "measures.json").write_text("{}"), "small seed 1 (measures.json has no 'loss')"),
        (lambda run: shutil.rmtree(run.parent), "small (not begun)"),
        (
            lambda run: [shutil.rmtree(run.parents[1] / arm / "seed1") for arm in ("baseline", "small")],
            "seed 1 (not begun)",
        ),
    ],
)
def test_an_unfinished_study_says_what_is_left_and_how(write, spoil, told):
    out = write({"baseline": BASE, "small": CHAL})
    spoil(out / "arms/small/seed1")
    with pytest.raises(Mistake) as caught:
        judge(out)
    line = str(caught.value)
    assert told in line and line.endswith(finish(out)) and "\n" not in line
    assert line.count("(") == 1  # and nothing that is finished


def test_the_command_asks_for_the_same_as_before(write):
    request = {"builtin": False, "seeds": 3, "steps": 20, "settings": [["model.layers", "3"]], "against_itself": True}
    out = write({"baseline": BASE[:3], "small": CHAL[:3]}, size="paper", request=request)
    same = "h2h run smaller.py --size paper --seeds 3 --steps 20 --set model.layers=3 --against-itself"
    (out / "arms/small/seed1/status.json").unlink()
    with pytest.raises(Mistake) as caught:
        judge(out)
    assert str(caught.value).endswith(f": {same} --out {out}")
    shutil.rmtree(out / "arms/small/seed1")
    assert small(out)["command"].startswith(f"{same} --confirm ")


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, "h2h run 'my studies/a.py' --confirm N"),
        ({"seeds": 2}, "h2h run 'my studies/a.py' --seeds 2 --confirm N"),
        ({"out": "deep/er/"}, "h2h run 'my studies/a.py' --confirm N --out deep/er-confirm"),
        ({"confirm": 2}, "h2h run 'my studies/a.py' --seeds 2 --confirm N --out h2h-runs/smaller-confirm-confirm"),
        ({"confirm": 2, "seeds": 1, "out": "b"}, "h2h run 'my studies/a.py' --seeds 2 --confirm N --out b-confirm"),
    ],
)
def test_the_command_for_fresh_seeds_can_be_copied(write, asked, expected):
    """It names the study as it was typed, asks for seeds that nobody has seen, and for a folder that is free."""
    request = {"builtin": False, "reference": "my studies/a.py", "size": "demo", "steps": None, "settings": []}
    request |= {"seeds": None, "against_itself": False, "confirm": None, "out": None} | asked
    out = write({"baseline": BASE[:2], "small": CHAL[:2]}, request=request)
    assert re.sub(r"--confirm \d+", "--confirm N", small(out)["command"]) == expected


def test_no_study_and_broken_files(write, tmp_path):
    with pytest.raises(Mistake, match=r"no study\.json; name the folder"):
        judge(tmp_path)
    out = write({"baseline": BASE, "small": CHAL})
    steps = out / "arms/small/seed0/steps.jsonl"
    steps.write_text(steps.read_text() + '{"step": 3, "ba')
    with pytest.raises(Mistake, match=r"steps\.jsonl line 4 is not JSON"):
        judge(out)
    (out / "arms/small/seed0/measures.json").write_text('{"loss": ')
    with pytest.raises(Mistake, match=r"measures\.json is damaged"):
        judge(out)


# ---- the file ------------------------------------------------------------------------------------------------------


def test_the_file_holds_the_verdict(write):
    out = write({"baseline": BASE, "small": CHAL, "same": BASE})
    found = judge_and_write(out)
    assert json.loads((out / "verdict.json").read_text()) == found
    assert judge_and_write(out) == found  # the file itself changes nothing


def test_only_ratios_and_price_know_how_fast_the_machine_was(write, tmp_path):
    base, chal = [3.4, 3.41, 3.42], [3.389, 3.414, 3.411]
    out = write({"baseline": base, "small": chal}, claims=[{"claim": "NoWorse", "measure": "loss", "challenger": None}])
    slow = tmp_path / "elsewhere"
    shutil.copytree(out, slow)
    for seed in range(3):
        rewrite(slow / f"arms/small/seed{seed}", "status.json", seconds=777.7 + seed, peak_memory=4321)
    one, other = judge(out), judge(slow)
    assert one != other
    for verdict in (one, other):
        del verdict["price"], verdict["arms"]["small"]["price"], verdict["arms"]["small"]["ratios"]
        del verdict["arms"]["small"]["sentence"]  # which quotes them
    assert json.dumps(one) == json.dumps(other)


def test_a_run_of_another_lock_is_refused(write):
    out = write({"baseline": BASE, "small": CHAL})
    rewrite(out / "arms/small/seed2", "status.json", lock=judge(out)["lock"])
    judge(out)
    rewrite(out / "arms/small/seed2", "status.json", lock="cd34")
    with pytest.raises(Mistake, match="small/seed2 is of another study: it was run under another lock"):
        judge(out)


@pytest.mark.parametrize("changed", [{"margin": 1e-5}, {"alpha": 0.6}, {"seeds": [0, 1, 2]}])
def test_what_is_declared_after_the_runs_is_exploratory(write, changed):
    out = write({"baseline": BASE, "small": CHAL})
    assert "exploratory" not in small(out)["qualifiers"]
    rewrite(out, "study.json", **changed)
    assert "exploratory" in small(out)["qualifiers"]


def test_without_its_lock_a_study_is_exploratory(write):
    out = write({"baseline": BASE, "small": CHAL})
    (out / "study.lock").unlink()
    assert "exploratory" in small(out)["qualifiers"]


def test_an_unfair_test_makes_no_honest_p_smaller(write):
    """A challenger that cheated has the smallest p; Holm must not spend the family's first place on it."""
    out = write({"baseline": BASE, "small": CHAL, "cheat": [value - 1 for value in BASE[::-1]]})
    honest = judge(out)["arms"]["small"]["p"]
    assert judge(out)["arms"]["cheat"]["p"] < honest
    (out / "arms/cheat/seed0/audits.json").write_text(json.dumps([audit(result="fail")]))
    found = judge(out)["arms"]
    assert found["cheat"]["verdict"] == "INVALID" and found["cheat"]["p_adjusted"] == 1.0
    assert found["small"]["p_adjusted"] == pytest.approx(2 * honest)
    assert found["small"]["pooled"] is None  # nor does it lend its spread


def test_a_claim_on_a_number_for_each_token_has_no_answer_between_tokenizers(write):
    """Judged in bits per byte, two tokenizers compare; their losses do not, whatever was claimed of them."""
    claims = [{"claim": "Lower", "measure": name, "challenger": None} for name in ("bits_per_byte", "loss")]
    primary = {"name": "bits_per_byte", "unit": "bits per byte", "better": "lower"}
    out = write({"baseline": BASE, "small": CHAL}, primary=primary, claims=claims)
    for arm, losses in {"baseline": BASE, "small": CHAL}.items():
        for seed, loss in enumerate(losses):
            own = {"bits_per_byte": loss / 2, "evaluation": arm, "evaluation.text": "one text", "scored_bytes": 4000}
            rewrite(out / f"arms/{arm}/seed{seed}", "measures.json", **own)
    entry = small(out)
    assert entry["verdict"] == "BETTER"
    assert [answer["answer"] for answer in entry["claims"]] == ["yes", "not enough evidence"]
    assert "in bits per byte" in entry["claims"][1]["reason"]


def test_a_pair_that_is_not_there_is_a_label(write):
    """A deleted run must not look like a study that was planned with fewer seeds."""
    out = write({"baseline": BASE, "small": [*CHAL[:4], None]})
    entry = small(out)
    assert "incomplete" in entry["qualifiers"] and entry["seeds"] == 4
