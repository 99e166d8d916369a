"""What is learned: how a batch of text becomes a batch with targets, and a batch a loss."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headtohead.model import Model, Network
from headtohead.spec import Part, short
from headtohead.text.examples import Rows
from headtohead.text.tokenizer import Vocabulary


class Batch(NamedTuple):
    """What a learner is given. Flat indices count positions row by row; a scored position of weight 0 does not count."""

    ids: Tensor  # rows × length
    position: Tensor  # rows or 1 × length
    document: Tensor | None  # rows × length, −1 is padding; None: one document and no padding
    segments: Tensor | None
    scored: Tensor | None  # flat indices of the scored positions; None: all of them
    target: Tensor
    weight: Tensor
    keys: Tensor | None = None  # row keys of the dropout; None in evaluation
    uniform: Tensor | None = None  # in [0, 1) for each scored position, where the objective draws something there


def cut(batch: Batch, pieces: int) -> list[Batch]:
    """A batch in equal pieces of rows; their scored positions together are the batch's."""
    if pieces == 1:
        return [batch]
    rows, length = batch.ids.shape
    height = rows // pieces
    return [_piece(batch, first, first + height, length) for first in range(0, rows, height)]


def _piece(batch: Batch, first: int, last: int, length: int) -> Batch:
    start, stop = first * length, last * length
    if batch.scored is None:
        inside, scored = torch.arange(start, stop), None
    else:
        inside = ((batch.scored >= start) & (batch.scored < stop) & (batch.weight > 0)).nonzero()[:, 0]
        scored = batch.scored[inside] - start
    shared = batch.position.shape[0] == 1 and len(batch.ids) > 1
    return Batch(
        ids=batch.ids[first:last],
        position=batch.position if shared else batch.position[first:last],
        document=None if batch.document is None else batch.document[first:last],
        segments=None if batch.segments is None else batch.segments[first:last],
        scored=scored,
        target=batch.target[inside],
        weight=batch.weight[inside],
        keys=None if batch.keys is None else batch.keys[first:last],
        uniform=None if batch.uniform is None else batch.uniform[inside],
    )


def to_device(batch: Batch, device: torch.device) -> Batch:
    """The batch where the network is."""
    moved = {name: column.to(device) for name, column in batch._asdict().items() if column is not None}
    return batch._replace(**moved)


class Exam(NamedTuple):
    """A batch to be scored, and where each scored position comes from."""

    batch: Batch
    source: np.ndarray  # the document of each scored position
    bytes: np.ndarray
    characters: np.ndarray


class Term(NamedTuple):
    """One part of a loss: weight · sum / count, the count taken over all micro-batches of a step."""

    sum: Tensor
    count: Tensor  # type: ignore[assignment]  # a field, not tuple.count
    weight: float = 1.0


def one_document(document: np.ndarray) -> Tensor | None:
    """The document numbers, or None where all tokens belong to one and nothing is padding."""
    return torch.from_numpy(np.ascontiguousarray(document)) if document.any() else None


def segments_of(rows: Rows) -> Tensor | None:
    """Which of two texts each token belongs to, or None where a row has but one."""
    return torch.from_numpy(np.ascontiguousarray(rows.segments)) if rows.segments.size else None


class Objective(Part):
    """`learner(model)` gives a module called as (batch) -> {name: Term}, with `.score(batch)` -> nll of each scored position.

    `prepare(rows, noise, vocabulary)` makes a batch with its targets, `exams(rows, vocabulary)` what is scored of
    held-out rows; both work on plain arrays, outside the network, so that a batch is the same for every arm.
    """

    ahead: ClassVar[int] = 0  # tokens a row holds beyond the context length
    masks: ClassVar[bool] = False  # whether it needs an id for the mask
    unit: ClassVar[str] = "nats per token"
    measured: ClassVar[tuple[str, ...]] = ()  # what its learner measures beside the likelihood

    def networks(self, model: Model) -> dict[str, tuple[Model, float]]:
        """What is trained: each model by name, with the share of positions it is scored at. "model" is the one judged."""
        return {"model": (model, 1.0)}

    def prepare(self, rows: Rows, noise: np.random.Generator, vocabulary: Vocabulary) -> Batch:
        """A training batch."""
        raise TypeError(f"{type(self).__name__} must define prepare(rows, noise, vocabulary)")

    def exams(self, rows: Rows, vocabulary: Vocabulary) -> Iterator[Exam]:
        """What is scored of held-out rows."""
        raise TypeError(f"{type(self).__name__} must define exams(rows, vocabulary)")

    def learner(self, model: Network, **others: Network) -> Prediction:
        """The networks, by their names, with this objective's loss."""
        return Prediction(model)


def no_tokens(model: Model, address: str = "model") -> Iterator[str]:
    """Why a model's head cannot predict tokens, where it has a number of outputs of its own."""
    head = getattr(model, "head", None)  # a user's own model may have none
    outputs = getattr(head, "outputs", None)
    if outputs is not None:
        yield f"predicts tokens and {address}.head = {short(head)} gives {outputs} values; take Tied() or BertHead()"


class Prediction(nn.Module):
    """Cross-entropy of the scored positions."""

    def __init__(self, model: Network) -> None:
        super().__init__()
        self.model = model

    def accelerate(self) -> None:
        """Compile what trains."""
        for network in self.children():
            if isinstance(network, Network):
                network.accelerate()

    def counts(self, batch: Batch) -> dict[str, Tensor]:
        """What each term will be divided by; a function of the batch alone."""
        return {"loss": batch.weight.sum()}

    def forward(self, batch: Batch) -> dict[str, Term]:
        return {"loss": Term((self.score(batch) * batch.weight).sum(), batch.weight.sum())}

    def score(self, batch: Batch) -> Tensor:
        """−ln p of each scored target."""
        logits = self.model(batch.ids, batch.position, batch.document, batch.segments, batch.scored, batch.keys)
        return F.cross_entropy(
            logits.to(torch.promote_types(logits.dtype, torch.float32)), batch.target, reduction="none"
        )

    def measures(self, exams: Iterable[Exam]) -> dict[str, Any]:
        """Figures for measures.json beside the likelihood; those that the objective says are `measured`."""
        return {}
