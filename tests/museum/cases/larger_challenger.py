"""Study 4 compares its 17 million parameters with ELECTRA-Small's 14 million.

Its tables of vectors are as wide as the network, those of the original half as wide; what is larger may be better for that
alone. A-PARAMS compares the parameters of both networks and warns beyond two per cent, unless the study holds them equal. The
neighbour has the original's width of the tables.
"""

from exhibit import by_audits

from headtohead import MaskedLM, Recipe, electra
from headtohead.audit import size
from headtohead.measure import cost
from headtohead.study import network_of

VOCABULARY = 30_522
PAIRS = {"wider tables": (256, 128)}
CAUGHT_BY = {"A-PARAMS": r"parameters ×1\.2\d\d"}


def look(width, folder):
    own, theirs = parameters(width), parameters(128)
    (seen,) = by_audits([size.audit({"parameters": own / theirs})])
    return [seen._replace(evidence=f"{seen.evidence}: {own:,} and {theirs:,}")]


def parameters(width):
    """Of the discriminator's body and its tables."""
    recipe = Recipe(model=electra(12, 4, 256, width), objective=MaskedLM())
    return cost.parameters(network_of(recipe, VOCABULARY))["parameters"]
