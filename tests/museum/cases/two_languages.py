"""Study 5 finds its Hebrew model (0.14) "better than" its English one (0.2), in nats a character of training text.

The two predict different texts in different letters, and no unit makes one number of both. A-EVALSET compares the hashes of the
raw held-out text and the verdict is INVALID: INCOMPARABLE. The neighbour is the same challenger on the baseline's own text.
"""

from exhibit import Seen, by_verdict
from run_folder import judged
from trained import ENGLISH, HEBREW, recipe, written

from headtohead import at

PAIRS = {"Hebrew against English": (HEBREW, ENGLISH)}
CAUGHT_BY = {"A-EVALSET": r"^2 texts: [0-9a-f]{12}, [0-9a-f]{12}$", "INCOMPARABLE": r"INVALID"}


def look(words, folder):
    base = recipe(folder)
    own = at(base, {"model.heads": 1, "text": written(folder, words)})
    entry = judged(folder / "languages", {"baseline": base, "other": own})
    audits = {audit["id"]: audit for audit in entry["audits"]}
    found = audits["A-EVALSET"]
    return [Seen("A-EVALSET", found["result"] == "fail", found["evidence"]), by_verdict(entry, "INCOMPARABLE")]
