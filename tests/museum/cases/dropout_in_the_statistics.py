"""Study 1 reports "no meaningful difference" in kurtosis, taken in training mode over the whole of training.

Dropout at rate p turns an excess kurtosis k into (k + 3) / (1 − p) − 3: of its figures 0.74 becomes 1.156 (reported 1.15),
1.96 becomes 2.511 (reported 2.51), and of one layer 0.8938 becomes 1.3265 (reported 1.3264). A-DROPSIG knows the mark on the
published figures and on a network; the neighbours are the figures before the dropout, and the network in evaluation mode.
"""

import torch
from exhibit import by_audits

from headtohead.audit import evaluation

PUBLISHED = ([0.74, 1.96, 0.8938], [1.15, 2.51, 1.3264], 0.1)  # before and behind dropout, and its rate
BEFORE = (PUBLISHED[0], PUBLISHED[0], 0.1)
PAIRS = {"a network in training mode": (True, False), "the published figures": (PUBLISHED, BEFORE)}
CAUGHT_BY = {"A-DROPSIG": r"behind dropout is ×1\.1[01]\d\d of that before it, at rate 0\.1 ×1\.1111 is expected"}


def look(thing, folder):
    if isinstance(thing, tuple):
        return by_audits([evaluation.signature(*thing)])
    return by_audits([evaluation.dropout_signature(roberta(steps=10).train(thing), [draw(seed) for seed in range(8)])])


def roberta(steps):
    """A small RoBERTa of transformers, as study 1's, trained for some steps to fill in one token in seven."""
    from transformers import RobertaConfig, RobertaForMaskedLM

    torch.manual_seed(0)
    sizes = {"hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 96}
    model = RobertaForMaskedLM(RobertaConfig(vocab_size=64, **sizes)).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for seed in range(steps):
        ids = draw(seed)
        hidden = torch.rand(ids.shape) < 0.15
        model(ids.masked_fill(hidden, 4), labels=ids.masked_fill(~hidden, -100)).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return model


def draw(seed):
    """Sixteen rows in which every token is likely to come again."""
    rows = torch.randint(5, 64, (16, 4), generator=torch.Generator().manual_seed(seed))
    return rows.repeat_interleave(8, 1)
