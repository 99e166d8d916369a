"""Study 3 claimed that writing 0 behind the softmax ("0-masking") wins: development perplexity 186.5 against 380.8.

The softmax is taken over all keys first, so each row's sum tells how much weight the future had: the model reads what it has
to predict. A-CAUSAL sees later tokens move earlier logits, A-NOISE sees pure noise predicted below its entropy, and A-PREFIX
sees the loss without the future. The neighbour makes the rows sum to 1 again, which is equal to −∞ and innocent.
"""

from exhibit import CAUSAL, by_network

from headtohead import ZeroAfter, ZeroThenRenormalize, at

PAIRS = {"zero after the softmax": (ZeroAfter(), ZeroThenRenormalize())}
CAUGHT_BY = {
    "A-CAUSAL": r"changed tokens move earlier logits by \d\.\de-0[0-4] ",
    "A-NOISE": r"^2\.[0-7]\d+ nats a letter after \d+ steps, entropy 2\.7726",
    "A-PREFIX": r"nats a token from whole rows",
}


def look(masking, folder):
    return by_network(at(CAUSAL, {"model.attention.masking": masking}), steps=200)
