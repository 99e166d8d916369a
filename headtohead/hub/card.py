"""The page that travels with an exported model: verdict, audits, data, cost and how to make it again, from its files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from headtohead.files import read_json
from headtohead.request import plan_of

Read = Mapping[str, Any]


def card(run: Path, architecture: str, own: bool) -> str:
    """README.md in Markdown, with the header that the Hub reads."""
    out = run.resolve().parent.parent.parent
    arm, seed = run.resolve().parent.name, run.resolve().name.removeprefix("seed")
    plan = plan_of(out) if run.resolve().parent.parent.name == "arms" else None
    title = f"{plan['study']}: {arm}" if plan else f"{run.resolve().name}"
    lines = ["---", "library_name: transformers", "tags: [headtohead]", "---", "", f"# {title}", ""]
    lines += _use(architecture, own)
    if plan:
        lines += ["## The question", "", plan["question"], ""]
        lines += ["## The verdict", "", *_verdict(out, arm), ""]
    lines += ["## Audits", "", *_audits(run), ""]
    lines += ["## Data", "", *_data(run, plan, arm), ""]
    lines += ["## Cost", "", *_cost(run), ""]
    lines += ["## How to make it again", "", *_again(run, plan, arm, seed), ""]
    return "\n".join(lines)


def _use(architecture: str, own: bool) -> list[str]:
    auto = architecture.replace("HeadToHead", "AutoModel") if own else architecture
    more = ", trust_remote_code=True" if own else ""
    note = (
        "Its parts are none that transformers has; their source lies beside the weights, and headtohead is not needed."
    )
    code = [
        f"from transformers import {auto}",
        "",
        f'model = {auto}.from_pretrained("FOLDER_OR_NAME"{more})',
    ]
    return ["```python", *code, "```", "", *([note, ""] if own else [])]


def _verdict(out: Path, arm: str) -> Iterator[str]:
    found = read_json(out / "verdict.json") if (out / "verdict.json").is_file() else None
    if found is None:
        yield "The study was not judged yet."
        return
    primary = found["primary"]
    if arm not in found["arms"]:
        yield f"This is the baseline, mean {primary['name']} {found['baseline']['mean']:.4f} {primary['unit']}. Its challengers:"
        yield ""
        for name, entry in found["arms"].items():
            yield f"- {name}: **{_words(entry)}**"
        return
    entry = found["arms"][arm]
    yield f"- **{_words(entry)}** against the baseline; seeds: {entry['seeds']}"
    changed = "; ".join(f"{address}: {old} → {new}" for address, (old, new) in entry.get("changes", {}).items())
    yield f"- changed: {changed or 'nothing'}"
    if entry["effect"] is not None:
        interval = entry["interval"]
        between = f" [{interval[0]:+.4f}, {interval[1]:+.4f}]" if interval else ", no interval"
        difference = f"{entry['effect']:+.4f}{between} {primary['unit']}"
        yield f"- difference in {primary['name']}: {difference}, {primary['better']} is better"


def _words(entry: Read) -> str:
    return f"{entry['verdict']} ({', '.join(entry['qualifiers'])})" if entry["qualifiers"] else entry["verdict"]


def _audits(run: Path) -> list[str]:
    if not (run / "audits.json").is_file():
        return ["None: this model was imported, not trained here. `h2h audit` takes its run's folder."]
    found = read_json(run / "audits.json", list)
    return [f"- {one['id']} ({one['when']}): **{one['result']}**. {one['sentence']} {one['evidence']}" for one in found]


def _data(run: Path, plan: Read | None, arm: str) -> Iterator[str]:
    source = read_json(run / "status.json").get("imported")
    if source:
        yield f"Imported from a {source['architecture']} named {source['from']}; what it was trained on is told there."
    if plan:
        text = plan["texts"][arm]
        yield f"{text['name']}: {text['train']:,} training and {text['validation']:,} held-out tokens of {text['vocabulary']:,}."
        yield f"{text['note']} (hash {text['hash']})" if text["note"] else f"Hash {text['hash']}."
    if (run / "measures.json").is_file():
        figures = read_json(run / "measures.json")
        yield ""
        yield "| held out | |"
        yield "|---|---|"
        for name in ("loss", "perplexity", "bits_per_byte", "unigram"):
            if name in figures:
                yield f"| {name} | {figures[name]:.4f} |"


def _cost(run: Path) -> Iterator[str]:
    state = read_json(run / "status.json")
    if (run / "measures.json").is_file():
        figures = read_json(run / "measures.json")
        yield f"- {figures['parameters']:,} parameters; {figures['tokens']:,} tokens read in {state['steps']:,} steps"
        if figures.get("flops"):
            yield f"- {figures['flops'] * figures['tokens']:.2e} floating-point operations of training"
    if (run / "environment.json").is_file():
        place = read_json(run / "environment.json")
        yield f"- {state['seconds']:.0f} s of training on {place['device']}, torch {place['torch']}, {place['route']['dtype']}"
    elif not state["steps"]:
        yield "- no training here"


def _again(run: Path, plan: Read | None, arm: str, seed: str) -> list[str]:
    if plan is None:
        return ["```", "h2h import MODEL_DIR", "```"]
    asked = plan["request"]
    words = ["h2h run", asked["study"] if asked["builtin"] else f"{asked['study']}.py"]
    words += ["" if asked["size"] == "demo" else f"--size {asked['size']}"]
    words += [f"--{name} {asked[name]}" for name in ("seeds", "steps", "confirm") if asked.get(name) is not None]
    words += [f"--set {address}={value}" for address, value in asked["settings"]]
    words += ["--against-itself" if asked["against_itself"] else ""]
    told = f"Arm {arm}, seed {seed}; headtohead {plan['version']}, lock {plan['lock']}; the recipe is headtohead.json."
    return ["```", " ".join(filter(None, words)), "```", "", told]
