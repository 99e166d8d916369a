"""Was one arm restarted more often than the other? (A-RESTART)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headtohead.audit import Finding

Seed = int | str


def audit(baseline: Mapping[Seed, int], challenger: Mapping[Seed, int], unlike: Sequence[Seed] = ()) -> Finding:
    """Restarts that each arm itself asked for, by seed; `unlike` are seeds whose runs do not have the same ones."""
    ours, theirs = sum(challenger.values()), sum(baseline.values())
    evidence = f"{ours} of the challenger over {len(challenger)} runs, {theirs} of the baseline over {len(baseline)}"
    if unlike:
        seeds = ", ".join(map(str, unlike))
        sentence = "A restart of one arm was not repeated in the other, so these pairs did not see the same batches."
        return Finding("A-RESTART", "warn", "after", "fail", f"{evidence}; not repeated in seed {seeds}", sentence)
    if ours != theirs:
        sentence = "One arm had to be restarted more often than the other, which is a result of its own."
        return Finding("A-RESTART", "warn", "after", "fail", evidence, sentence)
    sentence = "Both arms were restarted equally often." if ours else "No run was restarted."
    return Finding("A-RESTART", "warn", "after", "pass", evidence, sentence)
