"""How a plan differs from the one that a folder was locked with, in words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

SAID = 4  # differences that fit in a line
WORDS = {"study": "the study's name", "version": "headtohead", "alpha": "alpha", "margin": "margin"}
Change = tuple[str, str, str]  # address, before, now


def differences(before: Mapping[str, Any], plan: Mapping[str, Any], study_file: str) -> str:
    """What was locked, and what was asked for instead: the first few differences."""
    found = [*_plain(before, plan), *_arms(before["arms"], plan["arms"]), *_texts(before, plan)]
    if not found and before.get("code") != plan["code"]:
        found = [f"other code in {study_file}"]
    if before.get("imports", {}) != plan["imports"]:
        found += [f"other code in what {study_file} imports"]
    more = f" and {len(found) - SAID} more" if len(found) > SAID else ""
    return "; ".join(found[:SAID]) + more


def _plain(before: Mapping[str, Any], plan: Mapping[str, Any]) -> Iterator[str]:
    for name, words in WORDS.items():
        if before.get(name) != plan[name]:
            yield f"{words} {_say(before.get(name))}, not {_say(plan[name])}"
    if before.get("seeds") != plan["seeds"]:
        yield f"{_seeds(before['seeds'])}, not {_seeds(plan['seeds'])}"
    if before.get("primary") != plan["primary"]:
        yield f"the primary measure {_measure(before['primary'])}, not {_measure(plan['primary'])}"
    if list(before.get("looks") or ()) != list(plan.get("looks") or ()):
        yield f"{_looks(before.get('looks'))}, not {_looks(plan.get('looks'))}"
    for name, words in (("match", "match"), ("grid", "the grid")):
        if before.get(name) != plan.get(name):
            yield f"{words} {_say(before.get(name))}, not {_say(plan.get(name))}"
    if before.get("tuning") != plan.get("tuning"):
        yield "another tuning"
    if before.get("claims") != plan["claims"]:
        yield f"{_claims(before['claims'])}, not {_claims(plan['claims'])}"


def _looks(looks: list[int] | None) -> str:
    return f"looks at {', '.join(map(str, looks))} seeds" if looks else "no planned looks"


def _measure(primary: Mapping[str, str]) -> str:
    return f"{primary['name']} ({primary['unit']}, {primary['better']} is better)"


def _claims(claims: list[dict[str, Any]]) -> str:
    said = [
        f"{c['claim']}({', '.join(str(c[k]) for k in ('measure', 'challenger', 'margin') if c.get(k))})" for c in claims
    ]
    return f"claims {', '.join(said)}" if said else "no claims"


def _seeds(seeds: list[int]) -> str:
    if len(seeds) == 1:
        return f"seed {seeds[0]} alone"
    return f"{len(seeds)} seeds ({seeds[0]} to {seeds[-1]})"


def _arms(before: Mapping[str, Any], plan: Mapping[str, Any]) -> Iterator[str]:
    for one, other, word in ((before, plan, "the arm"), (plan, before, "without the arm")):
        for name in one:
            if name not in other:
                yield f"{word} {name}"
    common = [name for name in before if name in plan]
    changed = [(change, name) for name in common for change in _changed(before[name], plan[name], "")]
    for change, pairs in groupby(sorted(changed), key=lambda pair: pair[0]):
        names = [name for _, name in pairs]
        address, old, new = change
        where = "" if len(names) == len(common) else f" in arm {', '.join(names)}"
        yield f"{address} {old}, not {new}{where}"


def _changed(one: Any, other: Any, address: str) -> Iterator[Change]:
    """The addresses at which two described parts differ."""
    if isinstance(one, dict) and isinstance(other, dict) and one.get("part") == other.get("part"):
        for name in sorted(one.keys() | other.keys()):
            yield from _changed(one.get(name), other.get(name), f"{address}.{name}".lstrip("."))
    elif one != other:
        yield address, _say(one), _say(other)


def _say(value: Any) -> str:
    """A described value as a person would write it, without what lies inside."""
    if isinstance(value, dict):
        home = value.get("part") or value.get("call") or ""
        return home.rpartition(":")[2] + ("()" if "part" in value else "")
    return json.dumps(value, ensure_ascii=False)


def _texts(before: Mapping[str, Any], plan: Mapping[str, Any]) -> Iterator[str]:
    """Texts that changed though they are named alike."""
    for name in [name for name in plan["arms"] if name in before["arms"]]:
        old, text = before["texts"][name], plan["texts"][name]
        named = any(before["arms"][name].get(slot) != plan["arms"][name].get(slot) for slot in ("text", "tokenizer"))
        if old != text and not named:
            yield (
                f"a text {old['name']} of {old['train']:,} training tokens (hash {old['hash'][:8]}), "
                f"not {text['train']:,} (hash {text['hash'][:8]})"
            )
            return
