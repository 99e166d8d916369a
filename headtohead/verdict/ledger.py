"""Every challenger that was ever registered under a study's name. Holm over those that are shown alone is a fiction.

The ledger lies beside the studies' folders, where it outlives a folder that is deleted, and is only ever added to. Each
folder keeps a copy of what concerns it, so that its verdict is a function of its own files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headtohead.files import write_atomically
from headtohead.spec import Mistake

LEDGER = "ledger.jsonl"


def register(out: Path, plan: Mapping[str, Any]) -> None:
    """Enter a study's challengers beside its folder, and take over into the folder all that its name ever had."""
    beside, own = out.parent / LEDGER, out / LEDGER
    known = _read(own) + _read(beside)
    entered = {(entry["study"], entry["change"]) for entry in _read(beside)}
    fresh = [entry for entry in entries(plan) if (entry["study"], entry["change"]) not in entered]
    if fresh:
        with open(beside, "a", encoding="utf-8") as file:
            file.writelines(json.dumps(entry, ensure_ascii=False) + "\n" for entry in fresh)
    mine = {entry["change"]: entry for entry in [*known, *fresh] if entry["study"] == plan["study"]}
    text = "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in mine.values())
    if not own.exists() or own.read_text(encoding="utf-8") != text:
        write_atomically(own, text)


def entries(plan: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A line for each challenger: its name and what it changes; the baseline against itself is none.

    The same change under another name, or over other seeds or steps, is the same challenger. A class of the study's own
    that was rewritten under its old name cannot be told from what it was.
    """
    return [
        {"study": plan["study"], "challenger": name, "change": _hash(changed), "lock": plan.get("lock")}
        for name, changed in plan.get("changed", {}).items()
        if changed
    ]


def _hash(changed: Mapping[str, Any]) -> str:
    """Of the addresses and what stands there in the challenger."""
    content = json.dumps({address: new for address, (_, new) in changed.items()}, sort_keys=True)
    return hashlib.blake2b(content.encode(), digest_size=8).hexdigest()


def abandoned(out: Path, plan: Mapping[str, Any]) -> list[str]:
    """The challengers that this folder's copy of the ledger knows and the study no longer has."""
    present = {entry["change"] for entry in entries(plan)}
    found = {entry["change"]: entry["challenger"] for entry in _read(out / LEDGER) if entry["study"] == plan["study"]}
    return [name for change, name in found.items() if change not in present]


def _read(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    try:
        return [json.loads(line) for line in lines]
    except json.JSONDecodeError:
        raise Mistake(f"{path} has a line that is no JSON; take the broken line out, and leave the others in") from None
