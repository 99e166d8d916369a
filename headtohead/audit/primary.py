"""Does the verdict rest on text that was trained on? (A-TRAINLOSS, on the name of the measure)"""

from __future__ import annotations

import re

from headtohead.audit import Finding

TRAINING = re.compile(r"(^|[._/ -])(train|training|probe)($|[._/ -])", re.IGNORECASE)


def audit(measure: str) -> Finding:
    """A measure of training text, by any of its usual names, is no evidence of what was learnt."""
    if TRAINING.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", measure)):
        sentence = "The verdict rests on text that was trained on, where dropout and memory decide: take held-out text."
        return Finding("A-TRAINLOSS", "fatal", "after", "fail", f"the primary measure is {measure}", sentence)
    told = f"the primary measure is {measure}"
    return Finding("A-TRAINLOSS", "fatal", "after", "pass", told, "The verdict does not rest on the training loss.")
