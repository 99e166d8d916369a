"""Runs every case and prints the page: python tests/museum/figures.py > docs/museum.md."""

from __future__ import annotations

import re
import time
from types import ModuleType

import torch
from exhibit import Seen, cases, visit

HEAD = """# The museum

Claims that were wrong, or that nobody could have proved, each as a small case that is run by the tests: the lab must catch it, by
the component that is named, and must accuse no honest neighbour that differs in one thing. The cases are `tests/museum/cases/`,
one file each; "study 1" to "study 5" are the published studies that headtohead was built to be able to repeat, and whose settings
are in the docstrings of `headtohead/parts` and `headtohead/studies`. Every figure below is printed by
`python tests/museum/figures.py`, which trains and measures it anew; only what is called published is a constant.
"""


def heading(name: str) -> str:
    return name.replace("_", " ").capitalize()


def lead(case: ModuleType) -> str:
    """The docstring, as it stands in the file."""
    return (case.__doc__ or "").strip()


def section(name: str, case: ModuleType) -> str:
    """A case, and what was seen of each of its pairs."""
    text = [f"## {heading(name)}", lead(case)]
    for pair, things in case.PAIRS.items():
        wrong, honest = (visit(case, thing) for thing in things)
        rows = [
            f"| {by} | {' | '.join(told(wrong, honest, by, evidence))} |" for by, evidence in case.CAUGHT_BY.items()
        ]
        text.append("\n".join([f"| **{pair}** | wrong | honest neighbour |", "|---|---|---|", *rows]))
    return "\n\n".join(text)


def told(wrong: list[Seen], honest: list[Seen], by: str, evidence: str) -> tuple[str, str]:
    """What caught the wrong one, the last time where it looked more than once, and the same look at its neighbour."""
    caught = max(place for place, seen in enumerate(wrong) if seen.by == by and re.search(evidence, seen.evidence))
    beside = [seen for seen in honest if seen.by == by]
    there = honest[caught] if len(honest) == len(wrong) else beside[0]
    return wrong[caught].evidence, there.evidence


def main() -> None:
    torch.set_num_threads(1)
    print(HEAD)
    for name, case in cases().items():
        print(section(name, case), end="\n\n")
    print(f"All of it took {time.process_time():.0f} seconds of one core.")


if __name__ == "__main__":
    main()
