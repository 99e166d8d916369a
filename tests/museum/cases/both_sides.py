"""An encoder reads both sides of a text, and no study was wrong to build one; a lab that accused it would be useless.

The same attention under an objective of the next token sees what it has to predict, and A-CAUSAL and A-NOISE say so; under a
masked objective it is honest. What is asked is decided by the objective, never by the name of a class.
"""

from exhibit import ENCODER, by_network

from headtohead import Alibi, CausalLM, MaskedLM, at

PAIRS = {"attention to both sides": (CausalLM(), MaskedLM())}
CAUGHT_BY = {
    "A-CAUSAL": r"changed tokens move earlier logits by \d\.\de[-+]0[0-4] ",
    "A-NOISE": r"^[012]\.\d+ nats a letter",
    "A-PREFIX": r"nats a token from whole rows",
}


def look(objective, folder):
    return by_network(at(ENCODER, {"objective": objective, "model.position": Alibi(shape="shifted")}))
