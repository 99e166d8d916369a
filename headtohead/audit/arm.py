"""The audits of an arm before any seed is spent, and of a network: which ones, and on what copy."""

from __future__ import annotations

import fcntl
from pathlib import Path

from torch import nn

from headtohead.audit import Finding, causality, evaluation, independence, noise, prefix, target, wiring
from headtohead.audit.synthetic import small
from headtohead.files import read_json, write_json
from headtohead.objectives import Prediction
from headtohead.spec import fingerprint
from headtohead.study import Recipe, network_of
from headtohead.text.cache import Tokens

LARGEST = 5_000_000  # parameters; a larger arm is looked at in small, as its trained weights are in full


def audit_arm(recipe: Recipe, tokens: Tokens, baseline: Recipe | None = None) -> list[Finding]:
    """Everything that can be known of an arm before it is trained; `baseline` is None for the baseline itself."""
    size = tokens.vocabulary.size
    shown = recipe if parameters(recipe, size) <= LARGEST else small(recipe) or recipe
    found = [*audit_start(shown, size, 0), audit_neighbours(shown, size, packs(shown, tokens))]
    found += [noise.audit_once(recipe), target.audit(recipe, tokens)]
    if shown is recipe:
        found.append(wiring.tied(recipe, tokens))
    if baseline is not None and shown is recipe:
        found.append(wiring.noop(baseline, recipe, tokens))
    return found


def kept_with_arm(
    folder: Path, recipe: Recipe, tokens: Tokens, baseline: Recipe | None = None, lock: str = ""
) -> list[Finding]:
    """The same, once for all seeds: the first run to ask does the work and leaves it in the arm's folder."""
    path = folder / "audits.json"
    mark = " ".join([fingerprint(recipe), fingerprint(baseline), tokens.fingerprint, lock])
    with open(folder / "audits.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # another seed may be at it; the system takes the lock back if it dies
        kept = read_json(path) if path.is_file() else {}
        if kept.get("of") != mark:
            kept = {"of": mark, "findings": [each._asdict() for each in audit_arm(recipe, tokens, baseline)]}
            write_json(path, kept)
    return [Finding(**each) for each in kept["findings"]]


def parameters(recipe: Recipe, vocabulary: int) -> int:
    """How many there are."""
    return sum(p.numel() for p in network_of(recipe, vocabulary).parameters())


def packs(recipe: Recipe, tokens: Tokens) -> bool:
    """Whether rows of a batch hold several documents that are said to be apart."""
    width = recipe.length + recipe.objective.ahead
    document = recipe.examples.rows(tokens, width, recipe.batch, 0, 0).document
    return any(len(set(row[row >= 0].tolist())) > 1 for row in document)


def audit_start(recipe: Recipe, vocabulary: int, seed: int) -> list[Finding]:
    """Audits of a network as initialized, and with every parameter redrawn."""
    network = recipe.learner(vocabulary, seed).model
    redrawn, what = _redrawn(network, recipe.length, vocabulary)
    return [
        audit_network(recipe, network, vocabulary, "before"),
        audit_network(recipe, redrawn, vocabulary, f"before, {what}"),
    ]


def audit_neighbours(recipe: Recipe, vocabulary: int, packed: bool) -> Finding:
    """Whether the redrawn network mixes the rows of a batch, or the documents of a row."""
    redrawn, what = _redrawn(recipe.learner(vocabulary, 0).model, recipe.length, vocabulary)
    return independence.audit(redrawn, recipe.length, vocabulary, f"before, {what}", packed)


def _redrawn(network: nn.Module, length: int, vocabulary: int) -> tuple[nn.Module, str]:
    redrawn = causality.redrawn(network)
    if causality.gives_numbers(redrawn, min(length, causality.LONGEST), vocabulary):
        return redrawn, "redrawn"
    return causality.redrawn(network, vectors=False), "matrices redrawn"


def audit_network(recipe: Recipe, network: nn.Module, vocabulary: int, when: str) -> Finding:
    """Whether a network sees what it is asked to predict."""
    if not recipe.objective.ahead:
        sentence = "It may read both sides: it does not predict what comes next."
        return Finding("A-CAUSAL", "fatal", when, "pass", "not an objective of the next token", sentence)
    return causality.audit(network, recipe.length, vocabulary, when)


def audit_trained(recipe: Recipe, learner: Prediction, tokens: Tokens, baseline: Recipe | None = None) -> list[Finding]:
    """What is asked of trained weights; `baseline` is None for the baseline itself."""
    size, model = tokens.vocabulary.size, learner.model
    found = [
        audit_network(recipe, model, size, "after"),
        independence.audit(model, recipe.length, size, "after", packs(recipe, tokens)),
        prefix.audit(learner, recipe, tokens),
        evaluation.audit(model, recipe.length, size),
    ]
    if baseline is not None:
        found.append(wiring.active(learner, baseline, recipe, tokens))
    return found
