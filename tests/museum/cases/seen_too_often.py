"""Study 5 reaches a loss of 0.2 on 1.1 million characters that it saw hundreds of times, with no text held out.

3.2 million rows of 128 characters are 372 epochs; such a loss measures memory. A-EPOCHS counts tokens seen over tokens there
are, and is fatal where nothing is held out. The neighbour is the same run, stopped after less than four epochs.
"""

from exhibit import by_audits
from run_folder import finished
from trained import recipe

from headtohead import at
from headtohead.audit import epochs
from headtohead.measure.likelihood import at_most

PAIRS = {"two hundred steps on a short text": (200, 40)}
CAUGHT_BY = {"A-EPOCHS": r"tokens seen, [\d,]+ in the training text: 11\.\d+ epochs"}


def look(steps, folder):
    arm = at(recipe(folder), {"steps": steps, "batch": 32})
    run, scored = finished(folder / "run", arm, 0)
    tokens = at_most(arm, run.tokens)
    return by_audits([epochs.audit(scored.measures["tokens"], len(run.tokens.train.ids), len(tokens.validation.ids))])
