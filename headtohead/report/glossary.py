"""What the words on the page mean. A verdict's word and a label are given by headtohead/verdict/words.py."""

from __future__ import annotations

from typing import NamedTuple


class Meaning(NamedTuple):
    """How a verdict looks, and what it says in words."""

    tone: str  # good, bad, same, open or refused
    text: str


# In the order in which they are tried: the first that fits is the verdict.
VERDICTS = {
    "INVALID": Meaning("refused", "The comparison was not fair, so there is no verdict; its numbers only describe."),
    "UNSTABLE": Meaning("refused", "A run failed, so there is no verdict; the pairs that are left only describe."),
    "IDENTICAL": Meaning("same", "Every difference is exactly zero: the change did nothing."),
    "UNREPLICATED": Meaning("open", "Fewer than 3 pairs of seeds: this speaks of these runs, not of the method."),
    "BETTER": Meaning("good", "A difference was shown: its whole interval is on the good side of zero."),
    "WORSE": Meaning("bad", "A difference was shown: its whole interval is on the bad side of zero."),
    "EQUIVALENT": Meaning("same", "The difference was shown to be smaller than the margin, whichever its sign."),
    "NOT WORSE": Meaning("open", "Shown not to be worse by the margin or more; whether it is better stays open."),
    "NOT BETTER": Meaning("open", "Shown not to be better by the margin or more; whether it is worse stays open."),
    "INCONCLUSIVE": Meaning("open", "These seeds cannot tell. That is no evidence that there is no difference."),
}

SIZES = ("substantial", "negligible", "size uncertain")
LABELS = {
    "substantial": "the whole interval lies beyond the margin",
    "negligible": "the difference is real, and shown to be smaller than the margin",
    "size uncertain": "whether the difference exceeds the margin is not known",
    "INCOMPARABLE": "the arms were not scored on the same text",
    "skewed": "the differences are lopsided, so that the interval is somewhat too short",
    "no spread": "all differences are equal, so that a smallest spread had to be assumed",
    "untuned": "no tuning is on record, so neither arm is known to have had its own best settings",
    "untuned-challenger": "the challenger was not tuned as the baseline was",
    "unaudited": "an audit that can refuse a comparison was not done",
    "unpaired": "the arms did not see the same batches",
    "incomplete": "a run that was declared is missing, so its pair was left out",
    "exploratory": "what was declared before the first run was changed after it",
    "single-budget": "nothing shows where the difference was heading, so it is known at this length of training alone",
    "crossing-curves": "the arms' curves cross, or may soon",
    "under-trained": "training stopped while the loss was still falling, or on little text",
}

CLAIMS = {
    "NoWorse": "is not worse by the margin or more",
    "Better": "is better",
    "Equivalent": "differs by less than the margin",
    "Lower": "is lower",
    "Higher": "is higher",
}


def explain(qualifier: str) -> str:
    """A qualifier with its meaning. One that is no label is the id of an audit that refused the comparison."""
    return f"{qualifier}: {LABELS.get(qualifier, 'a failed audit, told below')}"
