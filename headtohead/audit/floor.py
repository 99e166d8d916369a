"""Has it learnt anything, and is it too good to be true? (A-FLOOR)"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headtohead.audit import Finding

TOO_GOOD, LARGE = 0.5, 100_000_000  # bits per byte of natural text, and the parameters that may reach it


def audit(measures: Mapping[str, Any], when: str = "after") -> Finding:
    """The loss against that of token frequencies and of token pairs, both of training, add-one smoothed."""
    loss, unigram, bigram = measures["loss"], measures["unigram"], measures.get("bigram")
    evidence = f"loss {loss:.4f}, token frequencies alone {unigram:.4f}"
    evidence += f", pairs of tokens {bigram:.4f}" if bigram is not None else ""
    bits = measures.get("bits_per_byte")
    if bits is not None and bits < TOO_GOOD and measures["parameters"] < LARGE:
        evidence += f", {bits:.3f} bits per byte"
        sentence = (
            "It is too good for its size: look for the held-out text in training, and for the future in its input."
        )
        return Finding("A-FLOOR", "warn", when, "fail", evidence, sentence)
    if not loss < unigram:
        sentence = "It has learnt nothing: knowing how frequent each token is predicts as well."
        return Finding("A-FLOOR", "warn", when, "fail", evidence, sentence)
    if bigram is not None and not loss < bigram:
        sentence = "It has learnt little: knowing which token follows which predicts as well."
        return Finding("A-FLOOR", "warn", when, "fail", evidence, sentence)
    return Finding("A-FLOOR", "warn", when, "pass", evidence, "It predicts better than token frequencies do.")
