"""Studies 1, 2 and 5 trained each arm once: 4.46 against 4.44, 2.94 against 2.93, a grid of thirty cells.

One pair of runs compares two checkpoints and has no spread, so nothing tells a method from its luck. The verdict is capped
at UNREPLICATED, whatever the difference is. The neighbour is the same two arms with three seeds.
"""

from exhibit import by_table, by_verdict
from trained import losses, recipe

from headtohead import at

PAIRS = {"one seed": (1, 3)}
CAUGHT_BY = {"UNREPLICATED": r"UNREPLICATED"}


def look(seeds, folder):
    base = recipe(folder)
    arms = {"baseline": base, "wider": at(base, {"model.width": 32})}
    rows = [
        {"arm": name, "seed": seed, "value": loss}
        for name, arm in arms.items()
        for seed, loss in enumerate(losses(arm, seeds))
    ]
    return [by_verdict(by_table(rows, folder), "UNREPLICATED")]
