"""How well a model predicts sentences: −ln p of every token, and what that comes to."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from headtohead.text.vocabulary import Encoded

ROWS = 32  # how many masked copies of a text are looked at together; no result depends on it
# study 3's own; its tables 2 and 3 are their losses and perplexities
SENTENCES = (
    "After learning language models model natural language.",
    "The quick brown fox jumps over the lazy dog.",
    "Amidst the twilight, the ancient ruins whispered secrets long forgotten.",
    "Quantum entanglement fascinates physicists and philosophers alike, bridging worlds with invisible threads.",
)

Logits = Callable[[Tensor, Tensor | None], Tensor]  # (ids, flat indices of the scored positions or None) -> logits


def ahead(logits: Logits, ids: Tensor, length: int) -> list[float | None]:
    """−ln p of each token given those before it; the first has nothing before it.

    A text longer than the context is taken in rows that start every half of it, as held-out text is.
    """
    found: list[float | None] = [None]
    for first in range(0, max(1, len(ids) - 1 - length // 2), max(1, length // 2)):
        row, target = ids[None, first : first + length], ids[first + 1 : first + 1 + length]
        nll = F.cross_entropy(logits(row, None)[: len(target)], target, reduction="none")
        found += nll[len(found) - 1 - first :].tolist()
    return found


def each_masked(logits: Logits, ids: Tensor, hidden: list[list[int]], mask: int, length: int) -> list[float | None]:
    """−ln p of each token with the places in `hidden` masked, its own among them; one that hides nothing has no score."""
    found: list[float | None] = [None] * len(ids)
    for first in range(0, len(ids), length):
        row = ids[first : first + length]
        asked = [place for place in range(first, first + len(row)) if hidden[place]]
        for start in range(0, len(asked), ROWS):
            places = asked[start : start + ROWS]
            masked = row.repeat(len(places), 1)
            for copy, place in enumerate(places):
                masked[copy, [other - first for other in hidden[place] if first <= other < first + len(row)]] = mask
            here = torch.arange(len(places)) * len(row) + torch.tensor(places) - first
            nll = F.cross_entropy(logits(masked, here), ids[places], reduction="none")
            for place, value in zip(places, nll.tolist(), strict=True):
                found[place] = value
    return found


def hidden_with(text: str, encoded: Encoded, specials: tuple[int, ...]) -> list[list[int]]:
    """For each token the places to mask before it is asked: itself and what is right of it in its word (PLL-word-l2r,
    Kauf & Ivanova 2023), for a rest of the word would give it away. Specials are not asked.

    A word is a run of letters and digits, or of what is neither nor space. Where every token is a character, a word
    would be hidden nearly whole, so each is masked alone (the original of Salazar et al. 2020).
    """
    words = _words(text, encoded) if encoded.characters.max(initial=0) > 1 else list(range(len(encoded.ids)))
    ends: list[int] = [0] * len(words)
    for place in reversed(range(len(words))):
        goes_on = place + 1 < len(words) and words[place + 1] == words[place]
        ends[place] = ends[place + 1] if goes_on else place + 1
    special = np.isin(encoded.ids, specials)
    return [[] if special[place] else list(range(place, ends[place])) for place in range(len(words))]


def _words(text: str, encoded: Encoded) -> list[int]:
    """The word of each token: that of its last character that is no space; a token of spaces is a word of its own."""
    owner = np.full(len(text) + 1, -1)
    for number, match in enumerate(re.finditer(r"\w+|[^\w\s]+", text)):
        owner[match.start() : match.end()] = number
    found, end = [], 0
    for place, characters in enumerate(encoded.characters.tolist()):
        inside = owner[end : end + characters]
        end += characters
        found.append(int(inside.max()) if len(inside) and inside.max() >= 0 else -2 - place)
    return found


def told(tokens: list[str], nll: list[float | None], bytes_: np.ndarray, masked: bool) -> dict[str, Any]:
    """What a sentence's scores come to. Bits per byte are no code length where a model sees both sides."""
    scored = [value for value in nll if value is not None]
    loss = sum(scored) / len(scored)
    figures = {"tokens": tokens, "nll": nll, "loss": loss, "perplexity": math.exp(min(loss, 700.0))}
    if masked:
        return figures | {"pseudo_log_likelihood": -sum(scored)}
    covered = sum(int(size) for size, value in zip(bytes_, nll, strict=True) if value is not None)
    return figures | {"bits_per_byte": sum(scored) / math.log(2) / covered if covered else None}
