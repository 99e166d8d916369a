"""What stands beside the paired t test in verdict.json. Nothing here changes a verdict."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from headtohead.verdict.compare import Comparison, unflipped
from headtohead.verdict.descriptors import posterior
from headtohead.verdict.moderated import moderated, prior_from
from headtohead.verdict.pooled import Companion, pooled, refusal
from headtohead.verdict.stability import failure_rate, fisher

Earlier = Sequence[Mapping[str, Any]]  # spreads of earlier locked comparisons: {"study", "challenger", "sd", "seeds"}


def companions(
    compared: Mapping[str, Comparison], earlier: Earlier, refused: Collection[str] = ()
) -> dict[str, dict[str, Any]]:
    """For each challenger: other estimates of the spread, the posterior, and how often runs fail.

    What was `refused` a verdict lends its spread to no other.
    """
    block = _block({name: each for name, each in compared.items() if name not in refused})
    return {
        name: {
            "pooled": block.get(name),
            "moderated": _moderated(each, earlier),
            "posterior": _posterior(each),
            "stability": stability(each),
        }
        for name, each in compared.items()
    }


def _block(compared: Mapping[str, Comparison]) -> dict[str, dict[str, Any]]:
    """The pooled test of the challengers that have all seeds and a spread."""
    whole = {name: each for name, each in compared.items() if each.seeds == each.rule.seeds and each.pair.sd > 0}
    if len(whole) < 2:
        return {}
    one = next(iter(whole.values()))
    arms = [one.baseline, *(each.challenger for each in whole.values())]
    values = np.array([one.rule.measure.oriented(arm.values[seed] for seed in one.seeds) for arm in arms])
    refused = refusal(values)
    if refused:
        return {name: {"refused": refused} for name in whole}
    found = pooled(values, one.rule.alpha)
    return {name: _shown(each, companion) for (name, each), companion in zip(whole.items(), found, strict=True)}


def _moderated(comparison: Comparison, earlier: Earlier) -> dict[str, Any] | None:
    prior = prior_from([(each["sd"], each["seeds"]) for each in earlier])
    if prior is None or comparison.pair.n < 2 or comparison.pair.identical:
        return None
    lent = {"sd": prior.sd, "df": prior.df, "comparisons": len(earlier)}
    return _shown(comparison, moderated(comparison.pair, prior)) | {"prior": lent}


def _shown(comparison: Comparison, found: Companion) -> dict[str, Any]:
    interval = unflipped(comparison.rule.measure, found.interval)
    return {"sd": found.sd, "df": found.df, "p": found.p, "interval": interval}


def _posterior(comparison: Comparison) -> dict[str, float] | None:
    found = posterior(comparison.pair, comparison.rule.margin)
    return None if found is None else found._asdict()


def stability(comparison: Comparison) -> dict[str, Any]:
    """Failed runs of either arm, the interval of its chance to fail, and whether the two differ."""
    counts = {
        name: (len(arm.failed), len(arm.failed) + len(arm.values))
        for name, arm in (("baseline", comparison.baseline), ("challenger", comparison.challenger))
    }
    told: dict[str, Any] = {
        name: {"failed": failed, "runs": runs, "rate": list(failure_rate(failed, runs)) if runs else None}
        for name, (failed, runs) in counts.items()
    }
    any_failed = any(failed for failed, _ in counts.values())  # without, Fisher's p is 1
    return told | {"p": fisher(*counts["baseline"], *counts["challenger"]) if any_failed else None}
