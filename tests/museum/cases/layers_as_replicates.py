"""Study 1 gives its kurtosis with a ±, which is the spread over the six layers of one network.

Layers, heads and batches of a run are no replicates: they share one start and one order of the data. A table that has a row a
layer is refused; one that calls the layers documents is told to be of one seed. (A table that calls
them seeds cannot be told from one of six seeds.) The neighbour has one value a run.
"""

from exhibit import Seen, by_table, by_verdict
from trained import recipe, trained

from headtohead import SoftmaxN, at
from headtohead.audit.evaluation import excess_kurtosis
from headtohead.spec import Mistake
from headtohead.text.cache import Tokens

LAYERS = 6
PAIRS = {
    "a row a layer": ("layer", "run"),
    "layers as documents": ("document", "run"),
}
CAUGHT_BY = {"ONE VALUE A RUN": r"keep one row a run|UNREPLICATED"}


def look(unit, folder):
    base = at(recipe(folder), {"model.layers": LAYERS, "steps": 10})
    arms = {"baseline": base, "softmax1": at(base, {"model.attention.normalizer": SoftmaxN(n=1.0)})}
    rows = []
    for name, arm in arms.items():
        for seed in range(3 if unit == "run" else 1):
            run = trained(arm, seed)
            found = kurtosis(run.learner, run.tokens)
            shown = [sum(found) / LAYERS] if unit == "run" else found
            rows += [{"arm": name, "seed": seed, unit: place, "value": x} for place, x in enumerate(shown)]
    for row in rows:
        row |= {"metric": "kurtosis", "unit": "excess", "better": "lower", "margin": 0.1}
    try:
        entry = by_table(rows, folder)
    except Mistake as mistake:
        return [Seen("ONE VALUE A RUN", True, str(mistake))]
    return [by_verdict(entry, "UNREPLICATED")._replace(by="ONE VALUE A RUN")]


def kurtosis(learner, tokens: Tokens) -> list[float]:
    """Of every layer's output, on one row of held-out text."""
    import torch

    found = []
    handles = [
        block.register_forward_hook(lambda module, given, out: found.append(excess_kurtosis(out)))
        for block in learner.model.blocks
    ]
    ids = torch.from_numpy(tokens.validation.ids[:64].astype("int64")).view(2, 32)
    with torch.no_grad():
        learner.model(ids, torch.arange(32)[None])
    for handle in handles:
        handle.remove()
    return found
