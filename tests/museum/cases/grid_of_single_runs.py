"""Study 5 trains a grid of layers by heads, one run a cell, and settles on 15 layers with 6 heads.

With one run a cell nothing tells what a cell does from its luck, but rows and columns can be judged: of its heads only 12 are
told from 5 and 6, and none of 5, 6, 8 and 10 from another. The analysis of the grid says so: no replication, and which levels
Tukey's range tells apart. Here the columns differ in nothing but the draw of every start, and beside them in width.
"""

import numpy as np
from exhibit import Seen
from trained import losses, recipe

from cases.best_of_thirty import Otherwise
from headtohead import at
from headtohead.verdict.grid import grid

LAYERS = (1, 2, 3)
WIDTHS = (8, 16, 32)


def luck(row, column):
    """Every cell has a draw of its own."""
    return {"model.initialization": Otherwise(turn=1 + 3 * row + column)}


def width(row, column):
    return {"model.width": WIDTHS[column]}


PAIRS = {"columns that differ by luck": (luck, width)}
CAUGHT_BY = {"TUKEY": r"no replication; columns F = \d\.\d+, p = 0\.[1-9]\d*, 0 of 3 pairs told apart"}


def look(change, folder):
    base = recipe(folder)
    cells = [
        [losses(at(base, {"model.layers": layers, **change(row, column)}), 1)[0] for column in range(3)]
        for row, layers in enumerate(LAYERS)
    ]
    found = grid(np.array(cells), list(map(str, LAYERS)), ["first", "second", "third"])
    apart = found.columns.told_apart()
    told = f"{found.caveats[0]}; columns F = {found.columns.f:.2f}, p = {found.columns.p:.4f}, {len(apart)} of 3 pairs told apart"
    return [Seen("TUKEY", not apart, told)]
