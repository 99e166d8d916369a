"""Targets shifted the wrong way: the model is asked for the token that it has just read, and its loss goes to nothing.

The network itself is honest, so A-CAUSAL has nothing to say. A-TARGET finds the targets among the inputs, and A-NOISE finds
noise predicted below its entropy. The neighbour is the same objective with its targets one to the right.
"""

from exhibit import CAUSAL, by_network

from headtohead import CausalLM, at


class Shifted(CausalLM):
    """What was read last is what is asked for."""

    def prepare(self, rows, noise, vocabulary):
        batch = CausalLM.prepare(self, rows, noise, vocabulary)
        return batch._replace(target=batch.ids.reshape(-1))


PAIRS = {"targets shifted the wrong way": (Shifted(), CausalLM())}
CAUGHT_BY = {
    "A-TARGET": r"100% of the targets stand in the very place among the inputs \(chance 6%\)",
    "A-NOISE": r"^[012]\.\d+ nats a letter",
}


def look(objective, folder):
    return by_network(at(CAUSAL, {"objective": objective}))
