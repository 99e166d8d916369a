"""Were both arms asked the same, in a unit that means the same? (A-EVALSET, A-UNIT)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headtohead.audit import Finding

# of a measure's name: each unit of text, so that it means the same however the text is cut into tokens
BY_TEXT = ("bits_per_byte", "bits_per_character")
# of the network and its cost, not of held-out text
NOT_OF_TEXT = ("parameters", "flops", "tokens", "scored", "unknown", "evaluation")
UNSCORED = 0.001  # of the text's bytes; the first token of all has nothing before it to be predicted from


def evaluation_set(baseline: Sequence[Mapping[str, Any]], challenger: Sequence[Mapping[str, Any]]) -> Finding:
    """A-EVALSET: one hash of the raw text over all runs, and as many bytes scored."""
    runs = [*baseline, *challenger]
    texts = {run["evaluation.text"] for run in runs if run.get("evaluation.text")}
    hashes = {run["evaluation"] for run in runs if run.get("evaluation")}
    if len(texts) > 1:
        sentence = "The arms were scored on different texts, which no unit makes comparable."
        return _finding("A-EVALSET", "fail", f"{len(texts)} texts: {_named(texts)}", sentence)
    if not texts and len(hashes) != 1:
        told = f"no hash of the raw text, {len(hashes)} of what was scored"
        result = "fail" if hashes else "skip"
        sentence = "Nothing shows that the arms were scored on the same text."
        return _finding("A-EVALSET", result, told, sentence)
    scored = {int(run["scored_bytes"]) for run in runs if run.get("scored_bytes") is not None}
    evidence = f"text {_named(texts or hashes)}" + (f", {_range(scored)} bytes scored" if scored else "")
    if len(hashes) > 1 and scored and min(scored) < (1 - UNSCORED) * max(scored):
        sentence = "One arm was scored on more of the text than the other."
        return _finding("A-EVALSET", "fail", evidence, sentence)
    return _finding("A-EVALSET", "pass", evidence, "Both arms were scored on the same text.")


def unit(measure: str, baseline: Sequence[Mapping[str, Any]], challenger: Sequence[Mapping[str, Any]]) -> Finding:
    """A-UNIT: a number for each token means the same only where the tokens are the same."""
    hashes = {run["evaluation"] for run in [*baseline, *challenger] if run.get("evaluation")}
    if measure.startswith(BY_TEXT) or measure.startswith(NOT_OF_TEXT):
        return _finding("A-UNIT", "pass", f"{measure}, whatever the tokens", "The unit means the same in both arms.")
    if len(hashes) > 1:
        sentence = "The arms cut the text into different tokens: compare them in bits per byte."
        return _finding(
            "A-UNIT", "fail", f"{measure} is of each token, and {len(hashes)} sets of tokens were scored", sentence
        )
    return _finding("A-UNIT", "pass", f"{measure}, of the same tokens", "The unit means the same in both arms.")


def bits_per_byte(nll: float, size: int) -> float:
    """Σ nll / (ln 2 · bytes) over raw UTF-8 bytes."""
    import math

    return nll / (math.log(2) * size)


def _finding(name: str, result: str, evidence: str, sentence: str) -> Finding:
    return Finding(name, "fatal", "after", result, evidence, sentence)


def _named(hashes: set[str]) -> str:
    return ", ".join(sorted(value[:12] for value in hashes))


def _range(counts: set[int]) -> str:
    return f"{min(counts):,}" if len(counts) == 1 else f"{min(counts):,} to {max(counts):,}"
