"""How often was the same text seen? (A-EPOCHS)"""

from __future__ import annotations

from headtohead.audit import Finding

MOST = 4.0  # Muennighoff et al. (2023): up to four epochs are about as good as fresh text


def audit(seen: int, unique: int, held_out: int, when: str = "after") -> Finding:
    """Tokens seen in training over those that there are; without held-out tokens nothing but memory is measured."""
    epochs = seen / max(unique, 1)
    evidence = f"{seen:,} tokens seen, {unique:,} in the training text: {epochs:.2f} epochs; {held_out:,} held out"
    if held_out < 1:
        sentence = "No text is held out, so nothing tells learning from remembering."
        return Finding("A-EPOCHS", "fatal", when, "fail", evidence, sentence)
    if epochs > MOST:
        sentence = (
            f"Every text was seen {epochs:.0f} times: a low training loss is memory, and held-out loss may suffer."
        )
        return Finding("A-EPOCHS", "warn", when, "fail", evidence, sentence)
    return Finding("A-EPOCHS", "warn", when, "pass", evidence, "The training text was not repeated too often.")
