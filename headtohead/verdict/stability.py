"""Failed runs, counted: whether one arm fails more often than the other, and how often it may fail at all."""

from __future__ import annotations

from scipy.special import betaincinv


def fisher(failed: int, runs: int, failed_there: int, runs_there: int) -> float:
    """Two-sided p that both arms fail equally often, given how many failed in all. Fisher (1935), section 21.1."""
    from scipy.stats import fisher_exact

    table = [[failed, runs - failed], [failed_there, runs_there - failed_there]]
    return float(fisher_exact(table).pvalue)


def failure_rate(failed: int, runs: int, alpha: float = 0.05) -> tuple[float, float]:
    """The interval of the chance to fail: the binomial's own tails, as Clopper and Pearson (1934) have it."""
    low = float(betaincinv(failed, runs - failed + 1, alpha / 2)) if failed else 0.0
    high = float(betaincinv(failed + 1, runs - failed, 1 - alpha / 2)) if failed < runs else 1.0
    return low, high
