"""Study 3 sets additive attention beside the usual one as equal, for both have 1.41 million parameters; one took 20:29, one 3:35.

Equal parameters are neither equal operations nor equal time. A-PARAMS counts the operations too, those beside the matrix
products included, and the verdict's line of costs has both and the time. The neighbour is a score that costs what the
baseline's does.
"""

from exhibit import CAUSAL, by_audits

from headtohead import Additive, Cosine, at
from headtohead.audit import size
from headtohead.measure import cost
from headtohead.study import network_of

VOCABULARY = 100
PAIRS = {"a score that is computed for every pair": (Additive(shared=True), Cosine())}
CAUGHT_BY = {"A-PARAMS": r"parameters ×1\.0[01]\d, operations ×1\.[1-9]\d+"}


def look(score, folder):
    base, own = (counted(at(CAUSAL, {"length": 128, **change})) for change in ({}, {"model.attention.score": score}))
    return by_audits([size.audit({name: own[name] / base[name] for name in ("parameters", "flops")})])


def counted(recipe):
    network = network_of(recipe, VOCABULARY)
    return cost.operations(recipe, network, VOCABULARY) | cost.parameters(network)
