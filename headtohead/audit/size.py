"""Is the challenger larger, or does it compute more, than the baseline it is compared with? (A-PARAMS)"""

from __future__ import annotations

import math
from collections.abc import Mapping

from headtohead.audit import Finding

FAVOUR = 1.02
COMPARED = {"parameters": "parameters", "flops": "operations", "tokens": "tokens"}  # of a measure, what it counts


def audit(ratios: Mapping[str, float], matched: str = "tokens") -> Finding:
    """The challenger's figures over the baseline's; what the study matches by design is not held against it."""
    known = {name: value for name, value in ratios.items() if name in COMPARED and math.isfinite(value)}
    if not known:
        sentence = "No run says how large its network is."
        return Finding("A-PARAMS", "warn", "after", "skip", "no figures on record", sentence)
    evidence = ", ".join(f"{COMPARED[name]} ×{value:.3f}" for name, value in known.items())
    larger = [COMPARED[name] for name, value in known.items() if value > FAVOUR and name != matched]
    if larger:
        sentence = f"The challenger has more {' and '.join(larger)} than the baseline, which may be all that helps it."
        return Finding("A-PARAMS", "warn", "after", "fail", evidence, sentence)
    return Finding("A-PARAMS", "warn", "after", "pass", evidence, "The challenger is no larger than the baseline.")
