"""Every challenger that was ever registered under a study's name. Holm over those that are shown alone is a fiction.

The ledger lies beside the studies' folders, where it outlives a folder that is deleted, and is only ever added to. Each
folder keeps a copy of what concerns it, so that its verdict is a function of its own files.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headtohead.files import write_atomically
from headtohead.spec import Mistake

LEDGER = "ledger.jsonl"


def register(out: Path, plan: Mapping[str, Any]) -> None:
    """Enter a study's challengers beside its folder, and take over into the folder all that its name ever had."""
    own = out / LEDGER
    known = [*_read(own), *_enter(out.parent / LEDGER, entries(plan))]
    mine = {entry["change"]: entry for entry in known if entry["study"] == plan["study"]}
    text = "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in mine.values())
    if not own.exists() or own.read_text(encoding="utf-8") != text:
        write_atomically(own, text)


def _enter(beside: Path, mine: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All that the ledger has, these lines added that it did not have; one command at a time."""
    import fcntl

    with open(beside, "a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        known = _read(beside)
        entered = {(entry["study"], entry["change"]) for entry in known}
        fresh = [entry for entry in mine if (entry["study"], entry["change"]) not in entered]
        if fresh:
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)  # a line that a power cut tore is no line
            file.write("".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in fresh).encode())
            file.flush()
            os.fsync(file.fileno())
    return known + fresh


def entries(plan: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A line for each challenger: its name and what it changes; the baseline against itself is none.

    The same change under another name, or over other seeds or steps, is the same challenger. A class of the study's own
    that was rewritten under its old name cannot be told from what it was.
    """
    return [
        {
            "study": plan["study"],
            "challenger": name,
            "change": _hash(changed, _made(plan, name)),
            "lock": plan.get("lock"),
        }
        for name, changed in plan.get("changed", {}).items()
        if changed
    ]


def _made(plan: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """What tuning or matching put in place: another rate or number of steps makes no other challenger."""
    made: Mapping[str, Any] = plan.get("made", {}).get(name, (name, {}))[1]
    return made


def _hash(changed: Mapping[str, Any], made: Mapping[str, Any]) -> str:
    """Of the addresses and what stands there in the challenger."""
    own = {address: new for address, (_, new) in changed.items() if address not in made}
    content = json.dumps(own, sort_keys=True)
    return hashlib.blake2b(content.encode(), digest_size=8).hexdigest()


def abandoned(out: Path, plan: Mapping[str, Any]) -> list[str]:
    """The challengers that this folder's copy of the ledger knows and the study no longer has."""
    present = {entry["change"] for entry in entries(plan)}
    found = {entry["change"]: entry["challenger"] for entry in _read(out / LEDGER) if entry["study"] == plan["study"]}
    return [name for change, name in found.items() if change not in present]


def _read(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    lines = text[: text.rfind("\n") + 1].splitlines()
    try:
        return [json.loads(line) for line in lines]
    except json.JSONDecodeError:
        raise Mistake(f"{path} has a line that is no JSON; take the broken line out, and leave the others in") from None
