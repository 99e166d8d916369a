"""Tuning: every arm the same rates, on text and seeds that no verdict has; what it finds goes into a study explicitly."""

import json
from pathlib import Path

import pytest

from headtohead.launch.folder import agree, lay_out
from headtohead.launch.made import TUNING, in_time, make, paced
from headtohead.launch.tune import plan_tuning, rates_of, trial, write_tuning
from headtohead.launch.worker import work
from headtohead.plan import arms_of, load_study
from headtohead.request import Options, folders, request
from headtohead.spec import Mistake
from headtohead.text.cache import prepare
from headtohead.train import Route
from headtohead.verdict.tuning import summary

STUDY = '''"""A question."""
from headtohead import Characters, Constant, File, Normalizer, Recipe, Study, Transformer, at


class Own(Normalizer):
    """exp(x) / Σ exp(x)."""

    def __call__(self, scores):
        return scores.softmax(-1)


baseline = Recipe(model=Transformer(layers=1, heads=2, width=8), text=File({text!r}), tokenizer=Characters(), length=8,
                  batch=4, steps=6, schedule=Constant(), held_out=400)
study = Study(baseline=baseline, challengers={{"own": at(baseline, {{"model.attention.normalizer": Own()}})}}, seeds=3, {more})
'''
RATES = (1e-3, 3e-3, 1e-2)


@pytest.fixture
def loaded(tmp_path, prose):
    def make_one(more=""):
        path = tmp_path / "mine.py"
        path.write_text(STUDY.format(text=str(prose), more=more))
        return load_study(path)

    return make_one


def planned(loaded, rates=RATES):
    asked = request(loaded.path, Options(), str(loaded.path))
    return plan_tuning(loaded, Options(), rates, 1) | {"request": asked}


def test_every_arm_has_every_rate_and_seeds_of_its_own(loaded):
    mine = loaded()
    plan = planned(mine)
    assert list(plan["arms"]) == [trial(arm, rate) for arm in ("baseline", "own") for rate in RATES]
    assert min(plan["seeds"]) >= 1_000_000  # --seeds and --confirm end at 20,000
    rates = [recipe["optimizer"]["rate"] for recipe in plan["arms"].values()]
    assert rates == [*RATES, *RATES]
    own = plan["arms"]["own.rate-0.003"]["model"]["attention"]["normalizer"]["part"]
    assert own.endswith(":Own") and set(plan["texts"]) == set(plan["arms"])


def tuned(loaded, tmp_path, out="tuning"):
    plan = planned(loaded)
    place = tmp_path / out
    place.mkdir()
    lay_out(plan, loaded.path, place, 2)
    return plan, place


def test_trials_are_scored_on_the_tuning_slice_alone(loaded, tmp_path):
    """The copy of the study's file is run, and each trial is made of the arm that it is a trial of."""
    mine = loaded()
    plan, place = tuned(mine, tmp_path)
    assert arms_of(place, plan, plan["code"])["own.rate-0.01"].optimizer.rate == 0.01
    assert work(place, plan["code"], 1) == 0
    found = write_tuning(place)
    recipe = mine.study.baseline
    tokens = prepare(recipe.text, recipe.tokenizer, recipe.split)
    slice_, verdict = tokens.for_tuning().validation, tokens.validation
    scored = {
        json.loads((folder / "measures.json").read_text())["scored_tokens"] for _, _, folder in folders(place, plan)
    }
    assert slice_.sha256 != verdict.sha256 and scored <= {len(slice_.ids) - 1, len(slice_.ids)}
    trials = found["arms"]["own"]["trials"]
    best = min(trials, key=lambda each: each["score"])
    assert found["arms"]["own"]["best"] == best["values"] and summary(found)["arms"]["own"]["failed"] == 0
    assert json.loads((place / TUNING).read_text()) == found


def write(place, **bests):
    """A tuning.json with these best rates, for the arms of a plan."""

    def of(plan):
        arms = {
            arm: {
                "recipe": plan["tried"]["recipes"][arm],
                "best": {"optimizer.rate": best},
                "trials": [
                    {"values": {"optimizer.rate": r}, "score": abs(r - best), "seconds": 1.0} for r in {*RATES, best}
                ],
            }
            for arm, best in bests.items()
        }
        told = {name: plan[name] for name in ("study", "primary", "seeds")} | {
            "address": "optimizer.rate",
            "arms": arms,
        }
        place.mkdir(exist_ok=True)
        (place / TUNING).write_text(json.dumps(told))

    return of


def test_a_tuned_study_has_each_arms_own_rate_and_its_lock_knows(loaded, tmp_path):
    mine, place = loaded(), tmp_path / "tuning"
    write(place, baseline=3e-3, own=1e-2)(planned(mine))
    plan = agree(mine, Options(tuned=str(place)), tmp_path / "out")
    assert plan["arms"]["baseline"]["optimizer"]["rate"] == 3e-3 and plan["arms"]["own"]["optimizer"]["rate"] == 1e-2
    assert plan["changed"]["own"]["optimizer.rate"] == ["0.003", "0.01"]  # a difference like any other
    assert plan["tuning"]["arms"]["own"]["best"] == {"optimizer.rate": 1e-2}
    assert plan["lock"] != agree(mine, Options(), tmp_path / "out")["lock"]
    # the copy of the file gives the untuned arms: what tuning put in place is put there again
    (tmp_path / "out").mkdir()
    lay_out(plan, mine.path, tmp_path / "out", 1)
    assert arms_of(tmp_path / "out", plan, plan["code"])["own"].optimizer.rate == 1e-2


def test_another_tuning_in_the_same_folder_is_refused(loaded, tmp_path):
    mine, place, out = loaded(), tmp_path / "tuning", tmp_path / "out"
    write(place, baseline=3e-3, own=1e-2)(planned(mine))
    out.mkdir()
    lay_out(agree(mine, Options(), out), mine.path, out, 1)
    with pytest.raises(Mistake, match=r"another tuning.*choose another folder with --out"):
        agree(mine, Options(tuned=str(place)), out)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (Options(tuned="absent"), "there is no tuning.json; name the folder that `h2h tune` wrote"),
        (Options(steps=3), "arm baseline is not the one that was tuned"),
    ],
)
def test_a_tuning_of_something_else_is_refused(loaded, tmp_path, options, told):
    mine, place = loaded(), tmp_path / "tuning"
    write(place, baseline=3e-3, own=1e-2)(planned(mine))
    asked = options if options.tuned else options._replace(tuned=str(place))
    with pytest.raises(Mistake) as caught:
        make(mine, asked)
    assert told in str(caught.value)


@pytest.mark.parametrize("text", ["1e-3", "1e-3,2e-3", "1e-3,-1,2", "a,b,c", "1e-3,inf,1"])
def test_rates_that_tune_nothing_are_refused(loaded, text):
    with pytest.raises(Mistake, match="takes 3 or more numbers above 0"):
        rates_of(text, loaded().study)


def test_the_usual_rates_lie_about_the_baselines(loaded):
    assert rates_of(None, loaded().study) == (2.5e-4, 5e-4, 1e-3, 2e-3, 4e-3)


# ---- equal time ----------------------------------------------------------------------------------------------------


def test_equal_time_gives_a_slower_arm_fewer_steps(loaded):
    made = make(loaded('match="wallclock"'), Options(steps=300))
    faster = in_time(made, {"baseline": 0.010, "own": 0.015})
    own = faster.study.challengers["own"]
    assert own.steps == 200 and own.schedule == made.study.challengers["own"].rescaled(200).schedule
    assert faster.values == {"own": {"steps": 200}} and faster.pace == {"baseline": 0.010, "own": 0.015}
    assert faster.study.baseline == made.study.baseline


def test_every_arm_is_timed_on_the_route(loaded):
    made = make(loaded('match="wallclock"'), Options())
    pace = paced(made.study, Route())
    assert list(pace) == ["baseline", "own"] and all(0 < seconds < 5 for seconds in pace.values())


def test_a_study_that_goes_on_keeps_the_steps_that_it_was_locked_with(loaded, tmp_path):
    """A second measurement would come out a little different, and the same command would be refused."""
    mine, out = loaded('match="wallclock"'), Path(tmp_path / "out")
    options = Options(steps=300)
    plan = agree(mine, options, out)
    out.mkdir()
    lay_out(plan, mine.path, out, 1)
    again = agree(mine, options, out)
    assert again["lock"] == plan["lock"] and again["pace"] == plan["pace"]
    assert (
        arms_of(out, plan | {"request": request(mine.path, options)}, plan["code"])["own"].steps
        == again["made"].get("own", ["own", {"steps": 300}])[1]["steps"]
    )


def test_a_tuning_is_no_verdict(loaded, tmp_path):
    from headtohead.verdict.judge import judge

    _, place = tuned(loaded(), tmp_path)
    with pytest.raises(
        Mistake, match=r"holds a tuning, on which no verdict rests; use it with: h2h run .*mine.py --tuned "
    ):
        judge(place)


def test_other_rates_go_into_another_folder(loaded, tmp_path):
    mine = loaded()
    _, place = tuned(mine, tmp_path)
    with pytest.raises(Mistake, match=r"choose another folder with --out, or delete this one"):
        lay_out(planned(mine, (1e-3, 2e-3, 4e-3)), mine.path, place, 2)


def test_a_best_that_the_trials_do_not_have_is_refused(loaded, tmp_path):
    mine, place = loaded(), tmp_path / "tuning"
    write(place, baseline=3e-3, own=1e-2)(planned(mine))
    told = json.loads((place / TUNING).read_text())
    told["arms"]["baseline"]["best"] = {"optimizer.rate": RATES[0]}
    (place / TUNING).write_text(json.dumps(told))
    with pytest.raises(Mistake, match="arm baseline has another best than its trials say; run `h2h tune` again"):
        make(mine, Options(tuned=str(place)))
