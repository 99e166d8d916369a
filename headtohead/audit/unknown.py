"""How much of the text is read as unknown, and does one arm have less to predict by it? (A-UNK)"""

from __future__ import annotations

import math
from collections.abc import Sequence

from headtohead.audit import Finding

WARN, APART = 0.01, 0.001  # shares of the scored tokens
SPELLING = math.log(256)  # nats a byte: the unknown token names no text, so its bytes are spelled out evenly


def spelled(nll: float, unknown_bytes: float) -> float:
    """Σ nll with every unknown target charged for its bytes: nll(UNK) + bytes · ln 256."""
    return nll + unknown_bytes * SPELLING


def audit(rate: float, share: float, loss: float, charged: float, when: str = "after") -> Finding:
    """One run's share of unknown targets, by tokens and by bytes, and its loss with and without spelling them."""
    evidence = (
        f"{rate:.2%} of the scored tokens, {share:.2%} of the bytes; loss {loss:.4f}, with them spelled {charged:.4f}"
    )
    if rate > WARN:
        sentence = "It may say 'unknown' instead of a word, which is easier than the text is."
        return Finding("A-UNK", "warn", when, "fail", evidence, sentence)
    return Finding("A-UNK", "warn", when, "pass", evidence, "Hardly any of the text is read as unknown.")


def compare(baseline: Sequence[float], challenger: Sequence[float], same: bool, charged: bool) -> Finding:
    """A pair's rates of unknown targets. `same` vocabulary, or a loss that is `charged` for them, makes them harmless."""
    ours, theirs = (sum(rates) / len(rates) if rates else 0.0 for rates in (challenger, baseline))
    evidence = f"{ours:.2%} of the challenger's targets are unknown, {theirs:.2%} of the baseline's"
    if abs(ours - theirs) > APART and not (same or charged):
        sentence = "One arm may say 'unknown' more often than the other: take the loss with unknown words spelled."
        return Finding("A-UNK", "fatal", "after", "fail", evidence, sentence)
    return Finding("A-UNK", "fatal", "after", "pass", evidence, "No arm gains by unknown words.")


def degenerate(samples: Sequence[Sequence[int]], unknown: int | None, when: str = "after") -> Finding:
    """Samples that are mostly the unknown token and the most frequent one."""
    every = [token for sample in samples for token in sample]
    if not every:
        return Finding("A-UNK", "warn", when, "skip", "no samples", "Nothing was sampled.")
    plain = [token for token in every if token != unknown]
    most = max((plain.count(token) for token in set(plain)), default=0)
    share = (len(every) - len(plain) + most) / len(every)
    evidence = f"{share:.0%} of {len(every):,} sampled tokens are unknown or the most frequent one"
    if share > 0.5:
        sentence = "DEGENERATE SAMPLES: most of what it writes is unknown or one and the same token."
        return Finding("A-UNK", "warn", when, "fail", evidence, sentence)
    return Finding("A-UNK", "warn", when, "pass", evidence, "What it writes is varied.")
