"""One audit a file: what it looks for, how sure it is, and one sentence a person understands."""

from __future__ import annotations

from typing import NamedTuple


class Finding(NamedTuple):
    """An audit's answer. `severity` is fatal or warn; `result` pass, fail or skip; `evidence` has the figures."""

    id: str
    severity: str
    when: str
    result: str
    evidence: str
    sentence: str
