"""Study 1 offered 4.46 against 4.44 for softmax1: the mean of the training loss from the first step on, dropout included.

Study 5 found in the same way that dropout lowers performance; neither had held-out text. A mean over all of training, with
dropout on, orders arms by how fast they start and how much they are disturbed. A-TRAINLOSS makes a verdict on it INVALID, by
the measure's name; the same runs judged by their held-out loss stand beside it.
"""

from exhibit import Seen, by_table, by_verdict
from trained import recipe, trained

from headtohead import Dropout, at

PAIRS = {"the training loss as evidence": ("train_loss", "eval_loss")}
CAUGHT_BY = {
    "INVALID": r"INVALID",
    "A-TRAINLOSS": r"the primary measure is train_loss, baseline 3\.\d+, dropout 3\.\d+",
}


def look(metric, folder):
    base = recipe(folder)
    arms = {"baseline": base, "dropout": at(base, {"model.dropout": Dropout(0.2, 0.2, 0.2, 0.2)})}
    rows, told = [], []
    for name, arm in arms.items():
        runs = [trained(arm, seed) for seed in range(3)]
        values = [run.train_loss if metric == "train_loss" else run.loss for run in runs]
        rows += [{"arm": name, "seed": seed, "metric": metric, "value": x} for seed, x in enumerate(values)]
        told.append(f"{name} {sum(values) / len(values):.3f}")
    entry = by_table(rows, folder)
    found = [audit["evidence"] for audit in entry["audits"] if audit["id"] == "A-TRAINLOSS"]
    evidence = ", ".join([*found, *told])
    return [by_verdict(entry, "INVALID"), Seen("A-TRAINLOSS", bool(found), evidence)]
