"""Studies drawn from a normal distribution and judged by the functions that judge real ones.

`python tests/verdict/simulated.py 10000` prints every figure at full size; test_calibration.py holds them to their limits.
"""

import sys
from collections.abc import Callable, Iterator

import numpy as np

from headtohead.verdict import words
from headtohead.verdict.compare import Comparison, Outcome, Rule, compare
from headtohead.verdict.judge import adjust
from headtohead.verdict.looks import planned, settled
from headtohead.verdict.margins import Measure
from headtohead.verdict.statistics import detectable, equatable
from headtohead.verdict.words import decide

LOSS = Measure("loss", "nats per token", "lower")
ALPHA, NEVER = 0.05, 1e-9  # a margin that nothing is shown to lie inside of
NARROW = 0.3  # sds: a margin at which WORSE is too rare to be said first
DIFFERENT = {words.BETTER, words.WORSE}
LOOKS = (3, 5, 8)
Draw = np.random.Generator


def outcome(values: np.ndarray) -> Outcome:
    return Outcome(dict(enumerate(map(float, values))))


def said(runs: np.ndarray, margin: float, alpha: float = ALPHA) -> tuple[list[str], dict[str, Comparison]]:
    """The verdicts on arms × seeds, the baseline first, as a study's judge reaches them."""
    arms, seeds = runs.shape
    rule = Rule(LOSS, margin, alpha, tuple(range(seeds)), arms - 1)
    base = outcome(runs[0])
    compared = {str(k): compare(rule, base, outcome(own)) for k, own in enumerate(runs[1:])}
    adjusted = adjust(compared, rule.family)
    return [decide(each.pair, margin, adjusted[name]).word for name, each in compared.items()], compared


def drawn(draw: Draw, challengers: int, seeds: int, shift: float = 0.0) -> np.ndarray:
    """Runs whose paired differences have a standard deviation of 1; the seeds' own effect cancels in each pair."""
    common = draw.normal(3.0, 5.0, size=(1, seeds))
    noise = draw.normal(size=(1 + challengers, seeds)) / np.sqrt(2)
    noise[1:] += shift
    return common + noise


def looked(draw: Draw) -> list[str]:
    """A study with planned looks: it ends at the first that settles it."""
    runs = drawn(draw, 1, LOOKS[-1])
    for look in planned(LOOKS, ALPHA):
        found, _ = said(runs[:, : look.seeds], NEVER, look.alpha)
        if settled(found):
            break
    return found


def rate(studies: int, one: Callable[[Draw], bool], seed: int) -> float:
    """The share of studies in which something happened."""
    draw = np.random.default_rng(seed)
    return sum(one(draw) for _ in range(studies)) / studies


def _covers(draw: Draw, seeds: int) -> bool:
    _, compared = said(drawn(draw, 1, seeds, 0.7), NEVER)
    low, high = compared["0"].pair.interval
    return low <= 0.7 <= high


def errors(studies: int) -> Iterator[tuple[str, float]]:
    """How often something is said that is not so; at most one time in twenty."""
    for seeds in (3, 5, 8):
        yield (
            f"alone, {seeds} seeds",
            rate(studies, lambda d, s=seeds: said(drawn(d, 1, s), NEVER)[0][0] in DIFFERENT, seeds),
        )
        yield (
            f"a family of 4, {seeds} seeds",
            rate(studies, lambda d, s=seeds: bool(DIFFERENT & set(said(drawn(d, 4, s), NEVER)[0])), 10 + seeds),
        )
    yield "planned looks at 3, 5, 8", rate(studies, lambda d: looked(d)[0] in DIFFERENT, 20)
    for seeds in (3, 5, 8):
        inside = equatable(seeds, 1.0)
        for word, margin, shift in (
            (words.EQUIVALENT, inside, inside),
            (words.NOT_WORSE, NARROW, NARROW),
            (words.NOT_BETTER, NARROW, -NARROW),
        ):
            # each of these says that the difference lies inside the margin, where it does not
            wrong = {words.EQUIVALENT, word, words.BETTER if shift > 0 else words.WORSE}
            yield (
                f"{word} at the margin, {seeds} seeds",
                rate(studies, at_the_margin(seeds, shift, margin, wrong), 30 + seeds),
            )


def at_the_margin(seeds: int, shift: float, margin: float, wrong: set[str]) -> Callable[[Draw], bool]:
    """Whether a study whose true difference is the margin says that it is less."""
    return lambda draw: said(drawn(draw, 1, seeds, shift), margin)[0][0] in wrong


def coverage(studies: int) -> Iterator[tuple[str, float]]:
    """How often an interval holds the true difference; it should be .95."""
    for seeds in (3, 5, 8):
        yield f"interval, {seeds} seeds", rate(studies, lambda d, s=seeds: _covers(d, s), 40 + seeds)


def powers(studies: int) -> Iterator[tuple[str, float]]:
    """How often a difference is found that should be found with a chance of .80."""
    for seeds in (3, 5, 8):
        shift = -detectable(seeds, 1.0)
        yield (
            f"detectable with {seeds} seeds",
            rate(studies, lambda d, s=seeds, x=shift: said(drawn(d, 1, s, x), NEVER)[0][0] == words.BETTER, 50 + seeds),
        )
        margin = equatable(seeds, 1.0)
        yield (
            f"equal within the margin, {seeds} seeds",
            rate(studies, lambda d, s=seeds, m=margin: _shown_inside(drawn(d, 1, s), m), 60 + seeds),
        )


def _shown_inside(runs: np.ndarray, margin: float) -> bool:
    """Equivalent, or different by less than the margin: either way it is shown to lie inside."""
    rule = Rule(LOSS, margin, ALPHA, tuple(range(runs.shape[1])))
    pair = compare(rule, outcome(runs[0]), outcome(runs[1])).pair
    verdict = decide(pair, margin, pair.p)
    return verdict.word == words.EQUIVALENT or words.NEGLIGIBLE in verdict.qualifiers


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    for title, figures in (("wrong", errors), ("covered", coverage), ("found", powers)):
        for what, share in figures(count):
            print(f"{title:8} {share:.4f}  {what}", flush=True)
