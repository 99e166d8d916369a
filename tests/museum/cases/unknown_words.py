"""Study 3 counts words as tokens, and rare ones as `<UNK>`: 80,663 types in 1.56 million tokens, and samples full of `<UNK>`.

A vocabulary that knows fewer words has less to predict: it says "unknown", which is easy. A-UNK compares the arms' shares of
unknown targets, and A-UNIT says that a loss for each token means something else in each. The neighbour asks for words seen
three times instead of two, which makes the same vocabulary.
"""

from exhibit import Seen
from run_folder import judged
from trained import recipe

from headtohead import Words, at

PAIRS = {"a vocabulary of common words": (Words(minimum_count=150), Words(minimum_count=3))}
CAUGHT_BY = {
    "A-UNK": r"^[2-9]\d\.\d+% of the challenger's targets are unknown, 1\d\.\d+% of the baseline's",
    "A-UNIT": r"loss is of each token, and 2 sets of tokens were scored",
}


def look(words, folder):
    base = at(recipe(folder), {"tokenizer": Words(minimum_count=2)})
    entry = judged(folder / "words", {"baseline": base, "other": at(base, {"tokenizer": words, "model.heads": 1})})
    found = [audit for audit in entry["audits"] if audit["id"] in CAUGHT_BY and audit["severity"] == "fatal"]
    return [Seen(audit["id"], audit["result"] == "fail", audit["evidence"]) for audit in found]
