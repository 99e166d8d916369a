"""Study 2 calls ALiBi harmful on CoLA, MRPC and RTE: 69.1, 68.4 and 52.7 with the large model.

These are the rates of the majority class of the three development sets (721 of 1043, 279 of 408, 146 of 277): runs that have
collapsed and say the same of every example, no graded harm. A-MAJORITY says COLLAPSED, of predictions and of published figures.
The neighbours are the same classifier at a smaller rate, and study 2's base model (MRPC 80.9, RTE 63.9), which is no collapse.
"""

import torch
from exhibit import Seen, by_audits
from torch import nn

from headtohead.audit import majority

RATES = {"CoLA": 721 / 1043, "MRPC": 279 / 408, "RTE": 146 / 277}
LARGE = {"CoLA": 69.1, "MRPC": 68.4, "RTE": 52.7}
BASE = {"MRPC": 80.9, "RTE": 63.9}
PAIRS = {"a rate that is too high": (1.0, 0.003), "the published accuracies": (LARGE, BASE)}
CAUGHT_BY = {"A-MAJORITY": r"accuracy 68\.\d+, majority rate 68\.\d+|69\.1 of CoLA is 69\.13"}


def look(thing, folder):
    if isinstance(thing, dict):
        told = ", ".join(f"{found} of {task} is {100 * RATES[task]:.2f}" for task, found in thing.items())
        return [
            Seen("A-MAJORITY", any(majority.collapsed(found / 100, RATES[task]) for task, found in thing.items()), told)
        ]
    return by_audits([majority.audit(*fine_tuned(thing))])


def fine_tuned(rate):
    """Predictions and labels of MRPC's size and balance: whether a row of twelve tokens has token 0."""
    torch.manual_seed(0)
    ids, labels = examples(2_000)
    model = nn.Sequential(
        nn.Embedding(30, 32),
        nn.TransformerEncoderLayer(32, 2, 64, dropout=0.0, batch_first=True),
        Mean(),
        nn.Linear(32, 2),
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    for first in range(0, 3 * len(ids), 32):
        batch = torch.arange(first, first + 32) % len(ids)
        nn.functional.cross_entropy(model(ids[batch]), labels[batch]).backward()
        optimizer.step()
        optimizer.zero_grad()
    ids, labels = examples(408)
    with torch.no_grad():
        return model.eval()(ids).argmax(-1).tolist(), labels.tolist()


def examples(count):
    """So many rows, of which 279 in 408 have the token."""
    ids = torch.randint(1, 30, (count, 12))
    labels = (torch.randperm(count) < round(count * 279 / 408)).long()
    ids[labels == 1, 3] = 0
    return ids, labels


class Mean(nn.Module):
    def forward(self, x):
        return x.mean(1)
