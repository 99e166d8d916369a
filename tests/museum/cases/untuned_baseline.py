"""Study 4 sets its networks beside another's after unequal searches for settings; the settings of its own are a TODO.

An arm that was tried at four rates is the best of four; the other one had one try. A-BUDGET counts trials and time of both
and says which was not tuned alike. The neighbour is the same two arms, both at four rates.
"""

from exhibit import by_audits
from trained import recipe, trained

from headtohead import SoftmaxN, at
from headtohead.verdict.tuning import Trial, budget

RATES = (3e-4, 1e-3, 3e-3, 1e-2)
PAIRS = {"a tuned challenger": (RATES[:1], RATES), "a baseline that was never tuned": ((), RATES)}
CAUGHT_BY = {"A-BUDGET": r"^[01] trials of the baseline, 4 of the challenger"}


def look(rates, folder):
    base = recipe(folder)
    own = at(base, {"model.attention.normalizer": SoftmaxN(n=1.0)})
    return by_audits([budget([trial(base, rate) for rate in rates], [trial(own, rate) for rate in RATES])])


def trial(arm, rate):
    """One rate, its held-out loss, and the time that is charged for it: that of its steps, which are equally many."""
    return Trial({"optimizer.rate": rate}, trained(at(arm, {"optimizer.rate": rate}), 0).loss, float(arm.steps))
