"""What a challenger must be changed to, so that it has as much of one thing as the baseline: a value, or its steps.

The result is an ordinary recipe whose difference to the baseline shows the address that was solved for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headtohead.measure import cost
from headtohead.spec import Mistake, Size, at, get
from headtohead.study import Recipe, Study, network_of, refuse
from headtohead.text.cache import prepare

CLOSE = 0.01  # of the baseline's: nearer than this is matched
MOST = 1 << 20  # times the value that the study has; beyond it no solution is looked for
NEIGHBOURS = 256  # values tried on either side for one that the model can have
FINE = 20  # halvings between two real values
Amount = Callable[[Recipe], float]


def matched(study: Study) -> dict[str, dict[str, Any]]:
    """Arm -> the value that matches it to the baseline, by address, for the arms that need one.

    Time is matched by what was measured, not here.
    """
    if study.match not in ("parameters", "flops"):
        return {}
    amount = parameters if study.match == "parameters" else operations
    wanted, solved = amount(study.baseline), {}
    for name, recipe in study.challengers.items():
        if not close(amount(recipe), wanted):
            solved[name] = _solve(name, recipe, study, amount, wanted)
    return solved


def close(amount: float, wanted: float) -> bool:
    """Whether two amounts differ by at most one in a hundred."""
    return abs(amount - wanted) <= CLOSE * wanted


def parameters(recipe: Recipe) -> float:
    """Trained numbers, a shared tensor once."""
    vocabulary = prepare(recipe.text, recipe.tokenizer, recipe.split).vocabulary.size
    return float(cost.parameters(network_of(recipe, vocabulary))["parameters"])


def operations(recipe: Recipe) -> float:
    """Of the whole training."""
    vocabulary = prepare(recipe.text, recipe.tokenizer, recipe.split).vocabulary.size
    each = cost.operations(recipe, network_of(recipe, vocabulary), vocabulary)["flops"]
    return each * recipe.steps * recipe.batch * recipe.length


def _solve(name: str, recipe: Recipe, study: Study, amount: Amount, wanted: float) -> dict[str, Any]:
    if not study.by:
        return {"steps": steps_for(name, recipe, amount(recipe) / recipe.steps, wanted)}
    found = _value(recipe, study.by, amount, wanted)
    if found is None:
        raise Mistake(
            f"arm {name}: no value of {study.by} brings its {study.match} near the baseline's; choose another by=…"
        )
    got = amount(at(recipe, {study.by: found}))
    if not close(got, wanted):
        raise Mistake(
            f"arm {name}: {study.by} = {found} is nearest and leaves ×{got / wanted:.3f} of the baseline's {study.match}, "
            "more than 1 % off; choose another by=…, e.g. model.feedforward.ratio"
        )
    return {study.by: found}


def steps_for(name: str, recipe: Recipe, each: float, wanted: float) -> int:
    """The number of steps, each taking so much, that come to what is wanted."""
    steps = max(1, round(wanted / each))
    if not close(steps * each, wanted):
        raise Mistake(f"arm {name}: {steps} steps are not within 1 % of the baseline's; train for more steps")
    refuse(recipe.rescaled(steps))
    return steps


def _value(recipe: Recipe, address: str, amount: Amount, wanted: float) -> Any:
    """The value at an address with the amount nearest to what is wanted; the amount must rise with it."""
    now = get(recipe, address)
    whole = isinstance(now, int)

    def gives(value: Any) -> float | None:
        return amount(at(recipe, {address: value})) if possible(recipe, address, value) else None

    low = high = now
    while (gives(low) or 0.0) > wanted and low > (1 if whole else now / MOST):
        low = max(1, low // 2) if whole else low / 2
    while (gives(high) or 0.0) < wanted and high < now * MOST:
        high *= 2
    return _between(low, high, gives, wanted) if whole else _real(low, high, gives, wanted)


def _between(low: int, high: int, gives: Callable[[int], float | None], wanted: float) -> int | None:
    """Of the whole numbers that are possible, the nearest; by halving, past those that are not possible."""
    while high - low > 1:
        middle = (low + high) // 2
        tried = next((value for value in _around(middle, low, high) if gives(value) is not None), None)
        if tried is None:
            break
        low, high = (tried, high) if (gives(tried) or 0.0) < wanted else (low, tried)
    found = [(abs(amount - wanted), value) for value in (low, high) if (amount := gives(value)) is not None]
    return min(found)[1] if found else None


def _around(middle: int, low: int, high: int) -> list[int]:
    """The numbers strictly between two others, from the middle outwards."""
    near = [middle + sign * step for step in range(NEIGHBOURS) for sign in (1, -1)]
    return list(dict.fromkeys(value for value in near if low < value < high))


def _real(low: float, high: float, gives: Callable[[float], float | None], wanted: float) -> float | None:
    """A real number of four digits; halved no more once it is well within what is close."""
    best: tuple[float, float] | None = None
    for _ in range(FINE):
        middle = float(f"{(low + high) / 2:.4g}")
        amount = gives(middle)
        if amount is None or not low < middle < high:
            break
        best = min(best or (abs(amount - wanted), middle), (abs(amount - wanted), middle))
        if best[0] < CLOSE / 10 * wanted:
            break
        low, high = (middle, high) if amount < wanted else (low, middle)
    return best[1] if best else None


def possible(recipe: Recipe, address: str, value: Any) -> bool:
    """Whether every part can work with that value."""
    try:
        changed = at(recipe, {address: value})
        changed.model.complete(Size(vocabulary=2, length=recipe.length))
        refuse(changed)
    except Mistake:
        return False
    return True
