"""A study before it is run, as a person reads it."""

from __future__ import annotations

from typing import Any

from headtohead.report.progress import clock, how

MATCHED = {
    "parameters": "equal parameters, within 1 %",
    "flops": "equal training operations, within 1 %",
    "wallclock": "equal time: every challenger's steps are set when it is run, from the measured median step",
}


def _solved(found: dict[str, Any]) -> list[str]:
    """What was changed in an arm, so that it matches."""
    made = {
        name: ", ".join(f"{place} = {value}" for place, value in arm["made"].items())
        for name, arm in found["arms"].items()
    }
    return [f"  {name}: {what}" for name, what in made.items() if what]


def render(found: dict[str, Any]) -> str:
    """The preview as a person reads it."""
    lines = [f"{found['study']} ({found['size']} size, {len(found['seeds'])} seeds)", "", found["question"], ""]
    width = max(len(name) for name in found["arms"])
    for name, arm in found["arms"].items():
        shared = f"{arm['shared'] / arm['parameters']:.1%} of them start as the baseline's"
        lines.append(
            f"  {name:<{width}}  {arm['parameters']:,} parameters, {shared}, {arm['operations']:.2e} operations"
        )
        lines += [f"  {'':<{width}}  {address}: {one} -> {other}" for address, (one, other) in arm["changed"].items()]
    if found["match"] != "tokens":
        lines += ["", f"match: {MATCHED[found['match']]}", *_solved(found)]
    if found["looks"]:
        lines += ["", f"looks: judged at {', '.join(map(str, found['looks']))} seeds, and ended where all is settled"]
    text = found["text"]
    lines += ["", f"text: {text['name']}, {text['train']:,} training and {text['validation']:,} validation tokens"]
    lines += [f"route: {how(found['route'])}"]
    lines += [
        f"expected: about {clock(found['seconds'])} of training, ${found['dollars']:.2f}",
        "",
        "the baseline's model:",
    ]
    return "\n".join([*lines, found["model"]])
