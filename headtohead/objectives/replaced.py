"""Tell replaced tokens from original ones (ELECTRA)."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headtohead.bodies import electra_generator
from headtohead.model import Model, Network
from headtohead.objectives import Batch, Exam, Objective, Prediction, Term, no_tokens, to_device
from headtohead.objectives.masked import MaskedLM
from headtohead.parts.dropout import place, site
from headtohead.parts.precision import widen
from headtohead.spec import Size, short
from headtohead.text.examples import Rows
from headtohead.text.tokenizer import Vocabulary

GENERATOR = site("generator")

TOKENS = ("embedding.token.",)
EMBEDDINGS = (*TOKENS, "embedding.segment.", "embedding.norm.", "position.")
PROJECTION = (*EMBEDDINGS, "embedding.projection.")
SHARED = {
    "nothing": (),
    "tokens": TOKENS,
    "embeddings": EMBEDDINGS,
    "projection": PROJECTION,
    "encoder": (*PROJECTION, "blocks.", "final_norm."),
}


class Replaced(Objective):
    """A generator fills in masked tokens; the model says of each token whether it is the original (Clark et al. 2020).

    Loss: the generator's −ln p of masked tokens + `weight` · the discriminator's cross-entropy over all real tokens. One
    token is drawn at each masked position from softmax(logits / `temperature`); no gradient runs through the draw, and a
    draw that hits the original is an original. The model's head gives one value a token, or two of which the
    second speaks for "replaced" (study 4).

    `masking` is study 4's: each token with probability .15, all [MASK]; the official one is MaskedLM(masked=0.85,
    random=0.0, count="exact"). `tie` is what both networks share as one and the same tensor, each setting more than the one
    before: token vectors; all of the embeddings with positions and norm (official); their map up; the blocks.
    """

    generator: Model = electra_generator()
    masking: MaskedLM = MaskedLM(masked=1.0, random=0.0)
    tie: Literal["nothing", "tokens", "embeddings", "projection", "encoder"] = "embeddings"
    weight: float = 50.0
    temperature: float = 1.0
    masks: ClassVar[bool] = True
    unit: ClassVar[str] = "nats per masked token of the generator"
    measured: ClassVar[tuple[str, ...]] = (
        "auc",
        "auc.masked",
        "discriminator.loss",
        "discriminator.accuracy",
        "discriminator.precision",
        "discriminator.recall",
        "generator.accuracy",
        "generator.sampled",
        "replaced",
    )

    def refuse(self, size: Size, recipe: Any) -> Iterator[str]:
        if self.weight < 0 or self.temperature <= 0:
            yield f"needs weight ≥ 0 and temperature > 0, got {self.weight} and {self.temperature}"
        head = getattr(recipe.model, "head", None)
        if head is not None and getattr(head, "outputs", None) not in (1, 2):
            yield f"judges each token, which model.head = {short(head)} cannot; take PerToken(outputs=1, dense=True)"
        yield from no_tokens(self.generator, "objective.generator")
        yield from self._cannot_tie(recipe)

    def _cannot_tie(self, recipe: Any) -> Iterator[str]:
        """Tensors to be shared that only one network has, or that have two shapes."""
        if self.tie == "nothing":
            return
        with torch.device("meta"):
            theirs, ours = ({n: p.shape for n, p in to_share(x, self.tie)} for x in recipe.networks(2, 0).values())
        for name in sorted(ours.keys() | theirs.keys()):
            if ours.get(name) != theirs.get(name):
                told = [list(shapes[name]) if name in shapes else "missing" for shapes in (ours, theirs)]
                yield f"tie = {self.tie!r} shares {name}, which is {told[0]} in model and {told[1]} in its generator"

    def networks(self, model: Model) -> dict[str, tuple[Model, float]]:
        return {"generator": (self.generator, self.masking.rate), "model": (model, 1.0)}

    def prepare(self, rows: Rows, noise: np.random.Generator, vocabulary: Vocabulary) -> Batch:
        batch = self.masking.prepare(rows, noise, vocabulary)
        return _with(batch, noise.random(rows.ids.shape))

    def exams(self, rows: Rows, vocabulary: Vocabulary) -> Iterator[Exam]:
        """Those of masked tokens; what is drawn is a function of the masked row alone and of the generator."""
        for exam in self.masking.exams(rows, vocabulary):
            uniform = np.stack([_chances(row) for row in exam.batch.ids.numpy()])
            yield exam._replace(batch=_with(exam.batch, uniform))

    def learner(self, model: Network, **others: Network) -> Prediction:
        generator = others["generator"]
        share(generator, model, self.tie)
        return Detection(model, generator, self.weight, self.temperature)


def _chances(row: np.ndarray) -> np.ndarray:
    """Uniform numbers for a row's places, a function of its ids."""
    key = hashlib.blake2b(b"drawn" + row.tobytes(), digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(key, "little"))).random(len(row))


def _with(batch: Batch, uniform: np.ndarray) -> Batch:
    scored = torch.arange(batch.ids.numel()) if batch.scored is None else batch.scored
    return batch._replace(uniform=torch.from_numpy(uniform.reshape(-1).astype(np.float32))[scored])


def to_share(network: nn.Module, tie: str) -> Iterator[tuple[str, nn.Parameter]]:
    """The parameters of a network that a setting shares, by name."""
    yield from ((name, p) for name, p in network.named_parameters() if name.startswith(SHARED[tie]))


def share(generator: nn.Module, model: nn.Module, tie: str) -> None:
    """Put the model's own tensors into the generator: one parameter from then on, whose gradient is the sum of both."""
    ours = dict(to_share(model, tie))
    for name in [name for name, _ in to_share(generator, tie)]:
        owner, _, own = name.rpartition(".")
        setattr(generator.get_submodule(owner), own, ours[name])


def draw(logits: Tensor, uniform: Tensor, temperature: float = 1.0) -> Tensor:
    """One token a row from softmax(logits / temperature): the first whose cumulative share exceeds the uniform number.

    In two levels of about √vocabulary: a running sum over all of it would be long, and in float32 inexact.
    """
    weights = torch.softmax(widen(logits) / temperature, -1)
    side = math.ceil(weights.shape[-1] ** 0.5)
    blocks = F.pad(weights, (0, side * side - weights.shape[-1])).unflatten(-1, (side, side))
    ends = blocks.sum(-1).cumsum(-1)
    goal = uniform[:, None].to(ends.dtype) * ends[:, -1:]
    block = _first_above(ends, goal)
    inside = blocks.take_along_dim(block[..., None], 1)[:, 0].cumsum(-1)
    before = F.pad(ends, (1, 0)).take_along_dim(block, -1)
    return (block * side + _first_above(inside, goal - before))[:, 0]


def _first_above(ends: Tensor, goal: Tensor) -> Tensor:
    """The first place whose running sum is above the goal; rounding may not carry it past the last one that adds any."""
    below = torch.minimum(goal.clamp_min(0.0), ends[:, -1:] * (1 - 1e-6))
    return torch.searchsorted(ends, below, right=True)


class Played(NamedTuple):
    """What both networks made of a batch."""

    logits: Tensor  # the generator's, at the masked positions
    drawn: Tensor  # the token drawn at each
    fake: Tensor  # rows × length: whether a token is another than the original
    verdict: Tensor  # rows × length: the discriminator's logit of "replaced"


class Detection(Prediction):
    """A generator and the network that is judged."""

    def __init__(self, model: Network, generator: Network, weight: float, temperature: float) -> None:
        super().__init__(model)
        self.generator, self.weight, self.temperature = generator, weight, temperature

    def counts(self, batch: Batch) -> dict[str, Tensor]:
        return {"generator": batch.weight.sum(), "discriminator": _real(batch).sum()}

    def forward(self, batch: Batch) -> dict[str, Term]:
        played, counts = self.play(batch), self.counts(batch)
        guess = (_nll(played.logits, batch.target) * batch.weight).sum()
        judged = (_surprise(played) * _real(batch)).sum()
        return {
            "generator": Term(guess, counts["generator"]),
            "discriminator": Term(judged, counts["discriminator"], self.weight),
        }

    def score(self, batch: Batch) -> Tensor:
        """The generator's −ln p of each masked token."""
        return _nll(self.guess(batch), batch.target)

    def guess(self, batch: Batch) -> Tensor:
        """The generator's logits at the masked positions."""
        # noise of its own: the two networks are no copies of each other
        keys = None if batch.keys is None else place(batch.keys, GENERATOR)
        return self.generator(batch.ids, batch.position, batch.document, batch.segments, batch.scored, keys)

    def play(self, batch: Batch) -> Played:
        """Fill in what is masked and judge the result."""
        if batch.uniform is None:
            raise RuntimeError("the batch has no uniform numbers to draw tokens with")
        logits = self.guess(batch)
        drawn = draw(logits.detach(), batch.uniform, self.temperature)
        original, corrupted = put(batch, batch.target), put(batch, drawn)
        out = self.model(corrupted, batch.position, batch.document, batch.segments, None, batch.keys)
        verdict = widen(out[:, 0] if out.shape[1] == 1 else out[:, 1] - out[:, 0])
        return Played(logits, drawn, corrupted != original, verdict.view(batch.ids.shape))

    def measures(self, exams: Iterable[Exam]) -> dict[str, Any]:
        device = next(self.parameters()).device
        mark, columns = hashlib.blake2b(b"replaced", digest_size=16), []
        for exam in exams:
            batch = to_device(exam.batch, device)
            played = self.play(batch)
            masked = put(batch._replace(ids=torch.zeros_like(batch.ids)), torch.ones_like(batch.target)) > 0
            real = _real(batch) > 0
            columns.append([x[real] for x in (played.verdict, played.fake, masked, _surprise(played))])
            columns[-1] += [played.logits.argmax(-1) == batch.target, played.drawn == batch.target]
            mark.update(exam.batch.target.numpy().tobytes() + exam.source.tobytes())
        told = [torch.cat(column).cpu().numpy() for column in zip(*columns, strict=True)]
        # the hash says that this was asked, so that no loss of a generator is set beside that of a whole model
        return _figures(*told) | {"evaluation": mark.hexdigest()}


def put(batch: Batch, tokens: Tensor) -> Tensor:
    """The batch's ids with these tokens at the masked positions. Places that do not count write past the end."""
    flat = F.pad(batch.ids.flatten(), (0, 1))
    scored = torch.arange(batch.ids.numel(), device=flat.device) if batch.scored is None else batch.scored
    where = torch.where(batch.weight > 0, scored, len(flat) - 1)
    return flat.scatter(0, where, tokens)[:-1].view(batch.ids.shape)


def _real(batch: Batch) -> Tensor:
    """1 at every token that is not padding."""
    shape = batch.ids.shape
    here = batch.weight.new_ones(shape)
    return here if batch.document is None else here * (batch.document >= 0)


def _nll(logits: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(widen(logits), target, reduction="none")


def _surprise(played: Played) -> Tensor:
    """−ln p of whether each token was replaced."""
    return F.binary_cross_entropy_with_logits(played.verdict, played.fake.to(played.verdict.dtype), reduction="none")


def _figures(
    verdict: np.ndarray, fake: np.ndarray, masked: np.ndarray, surprise: np.ndarray, best: np.ndarray, hit: np.ndarray
) -> dict[str, float]:
    called = verdict > 0
    right = float((called & fake).sum())
    figures = {
        "auc": auc(verdict, fake),
        "auc.masked": auc(verdict[masked], fake[masked]),
        "discriminator.loss": surprise.astype(np.float64).mean(),
        "discriminator.accuracy": (called == fake).mean(),
        "discriminator.precision": right / max(1, called.sum()),  # 0 where it calls nothing replaced
        "discriminator.recall": right / max(1, fake.sum()),
        "generator.accuracy": best.mean(),
        "generator.sampled": hit.mean(),
        "replaced": fake.mean(),
    }
    return {name: float(value) for name, value in figures.items()}


def auc(score: np.ndarray, positive: np.ndarray) -> float:
    """P(score of a positive > that of a negative) + ½ P(equal), from mid-ranks (Mann & Whitney 1947); ½ without both."""
    from scipy.stats import rankdata

    ones, zeros = int(positive.sum()), int((~positive).sum())
    if not ones or not zeros:
        return 0.5
    return (rankdata(score)[positive].sum() - ones * (ones + 1) / 2) / (ones * zeros)
