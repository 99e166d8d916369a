"""Attention worked by hand: four keys, four questions, and queries whose answers can be checked on paper.

    weights = softmax(keys · query)        output = weights · values

The four keys come from a course exercise on attention. For two of the questions a query that looks right is wrong;
both are shown with their error, then the right one. docs/attention-by-hand.md explains what this module prints.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

KEYS: Array = np.array([[0.47, 0.65, 0.60], [0.64, 0.50, -0.59], [-0.03, -0.48, -0.88], [0.43, -0.83, 0.35]])
VALUES: Array = np.array([1.0, 2.0, 3.0, 4.0])


def softmax(scores: Array) -> Array:
    """exp(s_i) / Σ_j exp(s_j) over the last axis; the largest score is taken off first, or exp overflows past 709."""
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def attend(query: Array, keys: Array = KEYS) -> Array:
    """softmax(keys · query): how much of each value is taken. Several queries are rows, and give rows."""
    return softmax(query @ keys.T)


def even(keys: Array) -> Array:
    """The least-norm u with keys · u = 1: under the query S·u these keys score S exactly, whatever their lengths.

    They share all the weight at large S if every other key has a score below 1 with u; that is for the caller to see.
    """
    return np.linalg.pinv(keys) @ np.ones(len(keys))


def error(weights: Array, target: Array) -> float:
    """The largest distance of any weight from its target."""
    return float(np.abs(weights - target).max())


class Question(NamedTuple):
    """What is wanted, the direction of a query that may give it, and the scales S to try it at."""

    title: str
    direction: Array
    target: Array
    scales: tuple[float, ...]


def questions() -> list[Question]:
    """The four questions; the two means once as first tried and once right."""
    each, all_four, first_two = np.eye(4), np.full(4, 0.25), np.array([0.5, 0.5, 0.0, 0.0])
    middle, between = KEYS.mean(axis=0), KEYS[:2].mean(axis=0)
    return [
        Question("The third value: q = S·k3", KEYS[2], each[2], (1, 30, 1e5)),
        Question("All values in turn: Q = S·K, one query a row", KEYS, each, (30,)),
        Question("The mean of all, first try: q = S·(k1 + k2 + k3 + k4)/4", middle, all_four, (1, 30, 1e5)),
        Question("The mean of all, right: q = 0", np.zeros(3), all_four, (30, 1e5)),
        Question("The mean of the first two, first try: q = S·(k1 + k2)/2", between, first_two, (30, 1e5)),
        Question("The mean of the first two, right: q = S·u", even(KEYS[:2]), first_two, (10, 30, 1e5)),
    ]


def row(scale: float, weights: Array, target: Array) -> str:
    """One line of a table. An error below 1e-9 is called so: its digits are rounding, and differ between machines."""
    missed = error(weights, target)
    shown = f"{missed:.1e}" if missed >= 1e-9 else "< 1e-9"
    return f"{scale:>9,.0f}" + "".join(f"{w:9.4f}" for w in weights) + f"{weights @ VALUES:11.4f}{shown:>10}"


def main() -> None:
    """Print every question with the weights, the output and the error of its query."""
    print("weights = softmax(keys · query), output = weights · values\n")
    for number, (key, value) in enumerate(zip(KEYS, VALUES, strict=True), start=1):
        print(f"  k{number}" + "".join(f"{x:7.2f}" for x in key) + f"    value {value:.0f}")
    for question in questions():
        print(f"\n{question.title}\n{'S':>9}{'k1':>9}{'k2':>9}{'k3':>9}{'k4':>9}{'output':>11}{'error':>10}")
        for scale in question.scales:
            for direction, target in zip(*map(np.atleast_2d, (question.direction, question.target)), strict=True):
                print(row(scale, attend(scale * direction), target))


if __name__ == "__main__":
    main()
