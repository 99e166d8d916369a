"""What the judge says of the runs that train.py made: python tests/calibration/judge.py OUT STUDIES.

A/A: the baseline with three seeds against the baseline with three others, so many studies. Runs are taken in order, and where
there are not enough again in a random order, so that those studies are not independent of the first. Planted: disjoint
groups of 3, 5 and 8 seeds, with the power that the spread over all seeds predicts.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "verdict"))
from simulated import ALPHA, DIFFERENT, said

from headtohead.verdict.statistics import paired, power, sd_upper

GROUP = 3  # seeds in either arm of an A/A study


def losses(out: Path, arm: str) -> dict[int, float]:
    """The loss of every finished run, by seed."""
    found = {}
    for path in sorted((out / "arms" / arm).glob("seed*/measures.json")):
        if json.loads((path.parent / "status.json").read_text())["state"] == "finished":
            found[int(path.parent.name[4:])] = json.loads(path.read_text())["loss"]
    return dict(sorted(found.items()))


def against_itself(values: list[float], studies: int) -> None:
    """How many were called different."""
    draw, runs, words, differences = np.random.default_rng(0), list(values), [], []
    while len(words) < studies:
        for start in range(0, len(runs) - 2 * GROUP + 1, 2 * GROUP):
            block = np.array(runs[start : start + 2 * GROUP]).reshape(2, GROUP)
            words.append(said(block, 0.005 * float(block[0].mean()))[0][0])
            differences += list(block[1] - block[0])
        runs = list(draw.permutation(values))
    words = words[:studies]
    sd = float(np.std(values, ddof=1))
    fresh = min(studies, len(values) // (2 * GROUP))
    print(f"A/A: {len(values)} runs, {studies} studies of {GROUP} pairs, {fresh} of them with runs of their own")
    print(f"  called different: {sum(word in DIFFERENT for word in words)}; {dict(Counter(words))}")
    print(f"  among those with runs of their own: {sum(word in DIFFERENT for word in words[:fresh])} of {fresh}")
    print(f"  noise of one run: sd {sd:.5f}, of a difference of two {sd * 2**0.5:.5f}")


def planted(base: dict[int, float], arms: dict[str, dict[int, float]]) -> None:
    """How often each challenger was found, beside the predicted power."""
    seeds = sorted(set(base).intersection(*arms.values()))
    for name, own in arms.items():
        pair = paired([base[s] for s in seeds], [own[s] for s in seeds])
        print(
            f"planted {name}: {len(seeds)} seeds, difference {pair.mean:+.5f}, sd {pair.sd:.5f} (80 % upper limit "
            f"{sd_upper(pair.n, pair.sd):.5f}), dz {pair.dz:.2f}"
        )
        for group in (3, 5, 8):
            found, tried = 0, len(seeds) // group
            for k in range(tried):
                block = seeds[k * group : (k + 1) * group]
                runs = np.array([[base[s] for s in block], *([each[s] for s in block] for each in arms.values())])
                found += said(runs, 0.005 * float(runs[0].mean()))[0][list(arms).index(name)] == "WORSE"
            alone, family = (power(group, pair.dz, ALPHA / k) for k in (1, len(arms)))
            print(f"  {group} seeds: found {found} of {tried}; predicted {family:.2f} to {alone:.2f}")


if __name__ == "__main__":
    place = Path(sys.argv[1])
    baseline = losses(place, "baseline")
    planted(baseline, {name: losses(place, name) for name in ("fewer2", "fewer5", "fewer10")})
    against_itself(list(baseline.values()), int(sys.argv[2]))
