"""Runs every case and prints the page: python tests/museum/figures.py > docs/museum.md."""

from __future__ import annotations

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
        rows = [f"| {by} | {told(wrong, by, True)} | {told(honest, by, False)} |" for by in case.CAUGHT_BY]
        text.append("\n".join([f"| **{pair}** | wrong | honest neighbour |", "|---|---|---|", *rows]))
    return "\n\n".join(text)


def told(seen: list[Seen], by: str, caught: bool) -> str:
    """The last word of a component: where it looked more than once, that on the trained network comes last."""
    found = [each.evidence for each in seen if each.by == by and each.caught == caught]
    return found[-1].replace("|", "/") if found else "not caught"


def main() -> None:
    torch.set_num_threads(1)
    print(HEAD)
    for name, case in cases().items():
        print(section(name, case), end="\n\n")
    print(f"All of it took {time.process_time():.0f} seconds of one core.")


if __name__ == "__main__":
    main()
