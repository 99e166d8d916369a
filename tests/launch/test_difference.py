"""What differs from a locked plan is said by address, once for all arms or with the arms that it concerns."""

import copy

import pytest
from small import tiny

from headtohead import SoftmaxN, at
from headtohead.launch.difference import differences
from headtohead.spec import describe

BASELINE = tiny()
CHALLENGER = at(BASELINE, {"model.attention.normalizer": SoftmaxN()})
TEXT = {"name": "a.txt", "train": 24_000, "validation": 3_000, "hash": "0123456789", "vocabulary": 30}
PLAN = {
    "study": "mine",
    "primary": {"name": "loss", "unit": "nats per token", "better": "lower"},
    "margin": None,
    "alpha": 0.05,
    "seeds": [0, 1, 2],
    "claims": [],
    "arms": {"baseline": describe(BASELINE), "n": describe(CHALLENGER)},
    "texts": {"baseline": TEXT, "n": TEXT},
    "code": "aa",
    "imports": {},
    "version": "0.1.0",
}


def arms(**recipes):
    return {"arms": PLAN["arms"] | {name: describe(recipe) for name, recipe in recipes.items()}, "code": "bb"}


def in_all(changes):
    return arms(baseline=at(BASELINE, changes), n=at(CHALLENGER, changes))


SAID = {
    "seeds": ({"seeds": [0, 1, 2, 3, 4]}, "3 seeds (0 to 2), not 5 seeds (0 to 4)"),
    "one seed": ({"seeds": [0]}, "3 seeds (0 to 2), not seed 0 alone"),
    "margin": ({"margin": 0.02}, "margin null, not 0.02"),
    "alpha": ({"alpha": 0.01}, "alpha 0.05, not 0.01"),
    "measure": (
        {"primary": {"name": "perplexity", "unit": "perplexity", "better": "lower"}},
        "the primary measure loss (nats per token, lower is better), not perplexity (perplexity, lower is better)",
    ),
    "claims": (
        {"claims": [{"claim": "NoWorse", "challenger": None, "measure": "loss", "margin": 0.01}]},
        "no claims, not claims NoWorse(loss, 0.01)",
    ),
    "an import": ({"imports": {"mine_too": "cc"}}, "other code in what mine.py imports"),
    "version": ({"version": "0.2.0"}, 'headtohead "0.1.0", not "0.2.0"'),
    "every arm": (in_all({"steps": 7}), "steps 1000, not 7"),
    "a part": (
        arms(n=BASELINE),
        "model.attention.normalizer SoftmaxN(), not Softmax() in arm n",
    ),
    "a field of one arm": (
        arms(n=at(CHALLENGER, {"model.attention.normalizer.n": 2.0})),
        "model.attention.normalizer.n 1.0, not 2.0 in arm n",
    ),
    "an arm more": (arms(wide=BASELINE), "without the arm wide"),
    "an arm less": ({"arms": {"baseline": describe(BASELINE)}}, "the arm n"),
    "code alone": ({"code": "bb"}, "other code in mine.py"),
    "a text of the same name": (
        {"texts": {name: TEXT | {"train": 9, "hash": "ffff000011"} for name in ("baseline", "n")}},
        "a text a.txt of 24,000 training tokens (hash 01234567), not 9 (hash ffff0000)",
    ),
    "many": (
        in_all({"steps": 7, "length": 5, "batch": 4, "clip": 2.0, "model.layers": 3, "held_out": 9}),
        "batch 2, not 4; clip 1.0, not 2.0; held_out 0, not 9; length 6, not 5 and 2 more",
    ),
}


@pytest.mark.parametrize("case", SAID)
def test_what_differs_is_said(case):
    changes, said = SAID[case]
    before, plan = copy.deepcopy(PLAN), PLAN | changes
    assert differences(before, plan, "mine.py") == said
    assert before == PLAN
