"""Study 3 reports a training perplexity of 401 above a development perplexity of 381.

Text that was trained on is not harder than text that was not: the first is a running figure with dropout on, the second is
taken in evaluation mode, so the two are not of one kind. A-TRAINDEV finds held-out text predicted better than training text
by more than three standard errors. The neighbour is the same network on the same rows in evaluation mode.
"""

from itertools import islice

import numpy as np
import torch
from exhibit import by_audits
from trained import recipe, trained

from headtohead import Dropout, at
from headtohead.audit import gap
from headtohead.measure.likelihood import likelihood
from headtohead.run import batches

PAIRS = {"dropout on, on one side": (True, False)}
CAUGHT_BY = {"A-TRAINDEV": r"gap -0\.\d+ ±"}


def look(training, folder):
    arm = at(recipe(folder), {"steps": 100, "model.dropout": Dropout(0.3, 0.3, 0.3, 0.3)})
    run = trained(arm, 0)
    held_out = likelihood(run.learner, arm, run.tokens, arm.length).documents
    sums = []
    run.learner.train(training)
    with torch.no_grad():
        for _, (batch,), _ in islice(batches(arm, run.tokens, 1, 0), 60):
            term = run.learner(batch if training else batch._replace(keys=None))["loss"]
            sums.append((float(term.sum), float(term.count)))
    nll, tokens = np.array(sums).T
    return by_audits([gap.audit(held_out, {"nll": nll, "tokens": tokens})])
