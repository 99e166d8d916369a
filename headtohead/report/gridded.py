"""A study's grid on the page: the mean of every cell, and what each of the two changes does on average."""

from __future__ import annotations

from typing import Any

from headtohead.report import card, numbers
from headtohead.report.document import Block, Section, Table, Text
from headtohead.report.folder import Folder

CAVEATS = {
    "no replication": "no replication: one number a cell, so what both do together cannot be told from noise, and is taken "
    "for it. The two averages hold if there is no such interaction.",
    "interaction": "interaction: the two changes do something together, so that an average describes no cell.",
}


def sections(folder: Folder) -> list[Section]:
    """The page's section on the grid; none where the study names none."""
    found = folder.verdict.get("grid")
    if not found:
        return []
    rows, columns = found["addresses"]
    unit = card.unit(folder.verdict["primary"])
    cells = [
        [f"{rows} = {level}", *(numbers.significant(value, 4) if value is not None else "–" for value in means)]
        for level, means in zip(found["rows"], found["means"], strict=True)
    ]
    caption = f"{folder.verdict['primary']['name']} of every cell, mean over seeds, in{unit}"
    blocks: list[Block] = [Table(caption, ["", *(f"{columns} = {level}" for level in found["columns"])], cells)]
    if "reason" in found:
        return [Section("The grid", [*blocks, Text(f"No analysis of variance: {found['reason']}.", "warning")])]
    told = [_factor(address, each, unit) for address, each in found["factors"].items()]
    heads = ["address", "F", "p", "levels and their means", "apart if they differ by", "told apart"]
    about = (
        f"Two-way analysis of variance without replication; what is left over has a standard deviation of "
        f"{numbers.significant(found['sd'], 3)}{unit} with {found['df']} degrees of freedom. Levels are told apart by "
        "Tukey's honestly significant difference."
    )
    warnings = [Text(CAVEATS[caveat], "" if caveat == "no replication" else "warning") for caveat in found["caveats"]]
    return [Section("The grid", [*blocks, Table(about, heads, told, frozenset({0, 3, 5})), *warnings])]


def _factor(address: str, found: dict[str, Any], unit: str) -> list[str]:
    means = sorted(found["means"].items(), key=lambda pair: pair[1])
    levels = ", ".join(f"{level} ({numbers.significant(mean, 4)})" for level, mean in means)
    apart = ", ".join(f"{low} from {high}" for low, high in found["told_apart"]) or "none"
    test = [numbers.significant(found["f"], 3), numbers.probability(found["p"])]
    return [address, *test, levels, f"{numbers.significant(found['apart'], 3)}{unit}", apart]
