"""Study 2 restarts its large baseline with another seed after a spike, and no other arm; 2.55 against 2.65 is what it reports.

An arm that may go on from a better place has had two tries. A-RESTART counts the restarts that each arm asked for, and
whether the other arm of the seed repeated them. Here one arm's rate jumps for ten steps; the neighbour's does not.
"""

from exhibit import Seen
from run_folder import judged
from trained import recipe

from headtohead import Schedule, at


class Jump(Schedule):
    """1, and `height` for ten steps after the hundred and fiftieth."""

    height: float = 1.0

    def decay(self, step, steps):
        return self.height if 150 <= step < 160 else 1.0


PAIRS = {"one arm was restarted": (Jump(height=300.0), Jump(height=1.0))}
CAUGHT_BY = {"A-RESTART": r"^[1-9] of the challenger over 3 runs, 0 of the baseline over 3; not repeated in seed 0"}


def look(schedule, folder):
    base = at(recipe(folder), {"steps": 165, "restart": "reseed", "schedule": Jump()})
    entry = judged(
        folder / "spike", {"baseline": base, "restarted": at(base, {"schedule": schedule, "model.heads": 1})}
    )
    (found,) = [audit for audit in entry["audits"] if audit["id"] == "A-RESTART"]
    return [Seen("A-RESTART", found["result"] == "fail", found["evidence"])]
