"""A challenger that changes nothing: a flag that is read by nobody, or a formula that is the baseline's in other words.

It is then "just as good", which is true and says nothing. A-NOOP compares the logits of both arms at the start and after a
step of training. The neighbour is a softmax with one more 1 in its denominator, which does change them.
"""

import torch
from exhibit import CAUSAL, by_audits

from headtohead import Normalizer, SoftmaxN, at
from headtohead.audit import wiring
from headtohead.audit.synthetic import noise


class OffByNothing(Normalizer):
    """exp x / Σ exp x, whatever `n` says."""

    n: float = 1.0

    def __call__(self, scores):
        return torch.softmax(scores, -1)


PAIRS = {"a change that nobody reads": (OffByNothing(), SoftmaxN(n=1.0))}
CAUGHT_BY = {"A-NOOP": r"logits differ by 0\.0e\+00 at the start and 0\.0e\+00 after one step"}


def look(normalizer, folder):
    tokens = noise(4_000, 1_000)
    return by_audits([wiring.noop(CAUSAL, at(CAUSAL, {"model.attention.normalizer": normalizer}), tokens)])
