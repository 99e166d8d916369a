"""Study 4 reports tied embeddings of generator and discriminator; its `tie_weights` clones them.

Two tensors that start equal are trained apart from the first step on, so the published numbers are those of untied embeddings.
A-TIED finds tensors that start as copies of one another and are different after one step. The neighbour has one tensor.
"""

import torch
from exhibit import ENCODER, by_audits

from headtohead import PerToken, Replaced, Transformer, at
from headtohead.audit import wiring
from headtohead.audit.synthetic import noise


class Cloned(Replaced):
    """The generator's table is made equal to the model's, and left to itself."""

    def learner(self, model, **others):
        with torch.no_grad():
            others["generator"].embedding.token.weight.copy_(model.embedding.token.weight)
        return Replaced.learner(self, model, **others)


GENERATOR = Transformer(layers=1, heads=2, width=64, attention=ENCODER.model.attention)
PAIRS = {
    "weights copied at the start": (
        Cloned(generator=GENERATOR, tie="nothing"),
        Replaced(generator=GENERATOR, tie="tokens"),
    )
}
CAUGHT_BY = {"A-TIED": r"generator\.embedding\.token\.weight.* differ by \d\.\de-0\d after one step"}


def look(objective, folder):
    recipe = at(ENCODER, {"model.head": PerToken(outputs=1, dense=True), "objective": objective})
    return by_audits([wiring.tied(recipe, noise(4_000, 1_000))])
