"""Arms that were scored on different texts: why nothing is compared, and what can be said of each by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headtohead.report import numbers
from headtohead.report.card import INCOMPARABLE
from headtohead.report.document import Section, Table, Text
from headtohead.report.folder import Folder, mean

PARTS = 50  # stretches that a run is cut into, so that a mean over one is steadier than a single batch
GAIN = 0.9
WHY = (
    "scored on another text than the baseline, so that the losses cannot be compared, in any unit. A text has an "
    "entropy of its own, which no model can go below: a lower loss may mean a better model or a more predictable text. Nor "
    "is a character the same amount of text everywhere, in bytes or in meaning, so that changing the unit does not help."
)
OTHER_TOKENS = (
    "scored on the baseline's text in other tokens, or on another part of it, so that losses per token cannot be "
    "compared: one token is not the same amount of text. Bits per byte are the unit for that, where all of it was scored."
)
BESIDE = (
    "What stands side by side below describes each arm on its own text. The share that was gained is (unigram entropy − "
    "loss) / unigram entropy: how much of what the frequencies of single tokens leave open the model has learnt to foresee. "
    "That entropy is the held-out text's under the training text's frequencies. It takes out how many letters there are "
    "and how often each occurs, and nothing else."
)


def sections(folder: Folder) -> Iterator[Section]:
    """Nothing where all arms were scored on one text."""
    entries = folder.verdict["arms"]
    apart = [name for name, entry in entries.items() if INCOMPARABLE in entry["qualifiers"]]
    if not apart:
        return
    names = {arm: text.get("name") for arm, text in folder.study.get("texts", {}).items()}
    ours = names.get(folder.study["baseline"])
    told = [
        Text(f"{INCOMPARABLE}: {', '.join(mine)}, {why}", "warning")
        for mine, why in (
            ([name for name in apart if names.get(name) != ours], WHY),
            ([name for name in apart if names.get(name) == ours], OTHER_TOKENS),
        )
        if mine
    ]
    figures = ["text", "different tokens", "unigram entropy", "loss", "gained", "bits per character", "bits per byte"]
    figures.append(f"steps to {100 * GAIN:.0f} % of the gain")
    rows = [list(row) for row in zip(figures, *(_figures(folder, arm) for arm in folder.arms), strict=True)]
    caption = (
        "Means over seeds, with the range in brackets. Entropy and loss in nats per token of the arm's own text. Steps: "
        f"until the mean training loss over a {PARTS}th of the run has come {100 * GAIN:.0f} % of the way from the unigram "
        "entropy to where the run ended."
    )
    yield Section("Different texts", [*told, Text(BESIDE), Table(caption, ["", *folder.arms], rows)])


def _figures(folder: Folder, arm: str) -> list[str]:
    text = folder.study.get("texts", {}).get(arm, {})
    loss, entropy = folder.measured(arm, "loss"), folder.measured(arm, "unigram")
    gained = [100 * (entropy[seed] - loss[seed]) / entropy[seed] for seed in loss if seed in entropy]
    reached = [_steps(folder.traces[arm][seed].losses, entropy[seed]) for seed in loss if seed in entropy]
    steps = [float(found) for found in reached if found is not None]
    return [
        text.get("name", numbers.NOTHING),
        numbers.whole(text.get("vocabulary")),
        _told(list(map(float, entropy.values()))),
        _told(list(map(float, loss.values()))),
        _told(gained, 3, " %"),
        _told(folder.numbers(arm, "bits_per_character")),
        _told(folder.numbers(arm, "bits_per_byte")),
        _told(steps, 3),
    ]


def _told(values: list[float], digits: int = 4, unit: str = "") -> str:
    """The mean, and the range where there is one."""
    middle = mean(values)
    if middle is None:
        return numbers.NOTHING
    ends = [f"{numbers.significant(end, digits)}{unit}" for end in (min(values), max(values))]
    about = f" ({numbers.span(*ends)})" if ends[0] != ends[1] else ""
    return f"{numbers.significant(middle, digits)}{unit}{about}"


def _steps(losses: Mapping[int, float], entropy: float) -> int | None:
    """Steps until the training loss has come GAIN of its way; None where it went no way, or nothing is on record."""
    values: list[Any] = [losses[step] for step in sorted(losses)]
    size = max(1, len(values) // PARTS)
    means = [sum(values[at : at + size]) / size for at in range(0, len(values) - size + 1, size)]
    if not means or means[-1] >= entropy:
        return None
    goal = entropy - GAIN * (entropy - means[-1])
    return next(size * (number + 1) for number, value in enumerate(means) if value <= goal)
