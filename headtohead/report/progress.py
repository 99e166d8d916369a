"""The live line of a study at work."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from typing import Any

State = dict[str, Any]


def follow(snapshots: Iterable[list[State]], route: dict[str, Any]) -> None:
    """Show the runs' states as they come: one line that is drawn again in a terminal, a line now and then elsewhere."""
    print(how(route), file=sys.stderr)
    live, began, printed, text = sys.stderr.isatty(), time.monotonic(), float("-inf"), ""
    started: tuple[float, float] | None = None  # when the first step was seen, and how much was done by then
    for states in snapshots:
        now = time.monotonic()
        share = sum(map(progress, states)) / len(states)
        started = started or ((now, share) if share else None)
        text = line(states, now - began, _left(share, now, started))
        if not share and route["compiled"]:
            text += " · compiling"
        if live:
            print(f"\r\x1b[2K{text}", end="", file=sys.stderr, flush=True)
        elif now - printed > 15:
            printed = now
            print(text, file=sys.stderr, flush=True)
    print(f"\r\x1b[2K{text}" if live else text, file=sys.stderr, flush=True)


def how(route: dict[str, Any]) -> str:
    """The route in words."""
    made = "compiled" if route["compiled"] else "eager"
    why = f" ({route['why']})" if route.get("why") else ""
    threads = f"{route['threads']} thread{'s' if route['threads'] > 1 else ''} a run"
    return f"on {route['device']}, {made}{why}, {route['dtype']}, {threads}"


def _left(share: float, now: float, started: tuple[float, float] | None) -> float | None:
    """Seconds left at the pace since the first step; what went before, such as compiling, is not done again."""
    if started is None or share >= 1 or now - started[0] < 5 or share - started[1] < 0.01:
        return None
    return (now - started[0]) * (1 - share) / (share - started[1])


def line(states: list[State], elapsed: float, seconds_left: float | None = None) -> str:
    """Runs done, steps done, what is running with its loss, and the time left."""
    ended = sum(state["state"] in ("finished", "failed") for state in states)
    share = sum(progress(state) for state in states) / len(states)
    running = [state for state in states if state["state"] == "running" and "loss" in state]
    doing = " · ".join(
        f"{s['arm']}/{s['seed']} step {s['step']}/{s['steps']} loss {s['loss']:.3f}" for s in running[:4]
    )
    left = "" if seconds_left is None else f" · {clock(seconds_left)} left"
    return f"{ended}/{len(states)} runs · {share:4.0%} · {clock(elapsed)}{left}" + (f" · {doing}" if doing else "")


def progress(state: State) -> float:
    """How much of a run is done."""
    if state["state"] in ("finished", "failed"):
        return 1.0
    return state.get("step", 0) / state.get("steps", 1)


def clock(seconds: float) -> str:
    """Seconds as a person reads them."""
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02}"
    return f"{whole // 3600}:{whole % 3600 // 60:02}:{whole % 60:02}"
