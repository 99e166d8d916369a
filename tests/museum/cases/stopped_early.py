"""Study 3 trains 1.41 million parameters on 1.56 million tokens and ranks its arms.

So early the arms are ranked by how fast they start, and a longer run may turn them round. A-UNDERTRAIN counts tokens for each
parameter, and looks whether the loss still falls and the rate has decayed; the verdict carries the label `under-trained`. The
neighbour is the same recipe over enough steps.
"""

from exhibit import Seen
from run_folder import finished
from trained import recipe

from headtohead import LinearDecay, at
from headtohead.audit.record import audit_record, read_steps

PAIRS = {"a twentieth of the steps": (20, 400)}
CAUGHT_BY = {"A-UNDERTRAIN": r"^\d\.\d+ tokens a parameter \(at least 5\)"}


def look(steps, folder):
    arm = at(recipe(folder), {"steps": steps, "schedule": LinearDecay(warmup=0), "model.width": 12})
    run, scored = finished(folder / "run", arm, 0)
    findings = audit_record(arm, run.tokens, scored, read_steps(folder / "run"))
    return [Seen(each.id, each.result == "fail", each.evidence) for each in findings if each.id in CAUGHT_BY]
