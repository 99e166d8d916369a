"""Does a released causal model see the future? Perturbation and prefix tests on a transformers model as it was loaded.

By every road that leads to its logits: without a mask and with one, padded on either side, beside other texts, in training
mode, and with its cache token by token and in pieces. A mask that one of these roads forgets is a leak on that road alone.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from headtohead.audit import Finding
from headtohead.audit.causality import Logits, cuts, gap, gradient, perturb, prefix

LENGTH, PADDING, ROWS = 32, 5, 3
DOUBLE = 200_000_000  # parameters; a larger model is left in the precision that it was loaded in
TIGHT, LOOSE = 1e-9, 1e-4  # of 1 + a logit's size: what may move in float64, and where rounding decides
SLOPE = 1e-10


def audit(model: nn.Module, vocabulary: int, specials: set[int], length: int = LENGTH) -> list[Finding]:
    """All roads of one model; `specials` are ids that it may treat in its own way, and that are not drawn."""
    exact = sum(p.numel() for p in model.parameters()) <= DOUBLE
    model = (model.double() if exact else model).eval()
    plain = torch.tensor([token for token in range(vocabulary) if token not in specials])
    size = len(plain)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        found = [_causal(model, name, road, plain, length, exact) for name, road in _roads(model, plain)]
        found += [_gradient(model, plain, length, size), _prefix(model, plain, length, size)]
        found += [_neighbours(model, plain, length, exact), _padding(model, plain, length, exact)]
        found += _cached(model, plain, length, exact)
    return found


def _roads(model: nn.Module, plain: Tensor) -> Iterator[tuple[str, Logits]]:
    """The ways to ask for the logits of a whole text."""

    def bare(ids: Tensor) -> Tensor:
        return model(plain[ids]).logits

    def masked(ids: Tensor) -> Tensor:
        return model(plain[ids], attention_mask=torch.ones_like(ids)).logits

    def left(ids: Tensor) -> Tensor:
        return _padded(model, plain[ids], PADDING, 0)[:, PADDING:]

    def right(ids: Tensor) -> Tensor:
        return _padded(model, plain[ids], 0, PADDING)[:, : ids.shape[1]]

    def training(ids: Tensor) -> Tensor:
        # whatever else it draws, as dropout that is no module, it draws alike each time
        with _undropped(model), torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return model(plain[ids]).logits

    yield "no mask given", bare
    if _takes(model, "attention_mask"):
        yield "a mask of ones", masked
        yield "padded on the left", left
        yield "padded on the right", right
    yield "in training mode, dropout off", training


def _causal(model: nn.Module, name: str, road: Logits, plain: Tensor, length: int, exact: bool) -> Finding:
    """Every later token replaced: no earlier logit may move."""
    moved, bound = perturb(road, length, len(plain)), TIGHT if exact else LOOSE
    evidence = f"changed tokens move earlier logits by {moved:.1e} (allowed {bound:.1e})"
    return _told(moved, bound, name, evidence, "It sees the future: later tokens change earlier predictions.")


def _gradient(model: nn.Module, plain: Tensor, length: int, size: int) -> Finding:
    """The gradient of earlier logits at later embeddings, where a table looks the ids up."""
    tables = [module for module in model.modules() if isinstance(module, nn.Embedding)]
    # the tables see the drawn ids themselves: the map to plain ones is applied to both sides
    slope = gradient(lambda ids: model(ids).logits, tables, length, min(size, int(plain.max()) + 1))
    if slope is None:
        return Finding("A-CAUSAL", "warn", "gradient", "skip", "no table to take it at", "No gradient could be taken.")
    told = f"largest {slope:.1e} of all (allowed {SLOPE:.1e})"
    return _told(
        slope, SLOPE, "gradient", told, "It sees the future: earlier predictions have a slope at later tokens."
    )


def _prefix(model: nn.Module, plain: Tensor, length: int, size: int) -> Finding:
    """A text cut short against the same text whole."""
    shift = prefix(lambda ids: model(plain[ids]).logits, length, size)
    sentence = "A text cut short is predicted otherwise than in the whole: it sees the future, or how long the text is."
    return _told(shift, LOOSE, "prefix alone", f"logits differ by {shift:.1e} (allowed {LOOSE:.1e})", sentence)


def _neighbours(model: nn.Module, plain: Tensor, length: int, exact: bool) -> Finding:
    """Other rows of the batch replaced."""
    ids = torch.randint(len(plain), (ROWS, length))
    other = torch.randint(len(plain), (ROWS, length))
    other[0] = ids[0]
    with torch.no_grad():
        before, after = model(plain[ids]).logits, model(plain[other]).logits
    moved, bound = gap(after[0], before[0]), TIGHT if exact else LOOSE
    told = f"other texts move a text's logits by {moved:.1e} (allowed {bound:.1e})"
    return _told(moved, bound, "batch", told, "Its prediction of one text depends on the other texts in the batch.")


def _padding(model: nn.Module, plain: Tensor, length: int, exact: bool) -> Finding:
    """What stands behind a mask of 0, on the left and on the right, replaced."""
    if not _takes(model, "attention_mask"):
        return Finding(
            "A-CAUSAL", "warn", "padding", "skip", "it takes no attention_mask", "It cannot be told of padding."
        )
    ids = plain[torch.randint(len(plain), (ROWS, length))]
    moved, bound = 0.0, TIGHT if exact else LOOSE
    with torch.no_grad():
        for sides in ((PADDING, 0), (0, PADDING)):
            shown = slice(sides[0], sides[0] + length)
            outs = [_padded(model, ids, *sides, fill=int(plain[n]))[:, shown] for n in (0, len(plain) // 2)]
            moved = max(moved, gap(*outs))
    told = f"other padding moves logits by {moved:.1e} (allowed {bound:.1e})"
    return _told(moved, bound, "padding", told, "It reads what its mask says is padding.")


def _cached(model: nn.Module, plain: Tensor, length: int, exact: bool) -> Iterator[Finding]:
    """With its cache: token by token as whole, and pieces whose later tokens must not move the earlier ones."""
    ids = plain[torch.randint(len(plain), (ROWS, length))]
    with torch.no_grad():
        whole = model(ids).logits
        steps = _in_pieces(model, ids, [1] * length)
    if steps is None:
        yield Finding("A-CAUSAL", "warn", "cache", "skip", "it returns none", "It has no cache to look at.")
        return
    apart = gap(steps, whole)
    told = f"logits token by token differ from those of the whole text by {apart:.1e} (allowed {LOOSE:.1e})"
    sentence = (
        "Token by token with its cache it predicts otherwise than in one pass: one of the two is not what was trained."
    )
    yield _told(apart, LOOSE, "cache", told, sentence, "warn")
    half, rest = length // 2, length - length // 2
    moved, bound = 0.0, TIGHT if exact else LOOSE
    with torch.no_grad():
        before = _in_pieces(model, ids, [half, rest])
        for cut in cuts(rest):
            other = ids.clone()
            other[:, half + cut :] = plain[torch.randint(len(plain), (ROWS, rest - cut))]
            after = _in_pieces(model, other, [half, rest])
            moved = max(moved, gap(after[:, : half + cut], before[:, : half + cut]))  # type: ignore[index]
    told = f"later tokens of a piece move earlier logits by {moved:.1e} (allowed {bound:.1e})"
    yield _told(moved, bound, "cache, in pieces", told, "With its cache, a piece of text sees its own future.")


def _in_pieces(model: nn.Module, ids: Tensor, sizes: list[int]) -> Tensor | None:
    """Logits of a text given piece by piece, each with the cache of those before it; None where there is no cache."""
    if not _takes(model, "past_key_values"):
        return None
    past, outs = None, []
    for piece in ids.split(sizes, 1):
        out = model(piece, past_key_values=past, use_cache=True)
        past = getattr(out, "past_key_values", None)
        if past is None:
            return None
        outs.append(out.logits)
    return torch.cat(outs, 1)


def _padded(model: nn.Module, ids: Tensor, left: int, right: int, fill: int | None = None) -> Tensor:
    """Logits of texts with so many tokens of padding on either side, masked, positions counted from the text's start."""
    rows, length = ids.shape
    padding = ids[:, :1] if fill is None else torch.full_like(ids[:, :1], fill)
    given = torch.cat([padding.expand(rows, left), ids, padding.expand(rows, right)], 1)
    mask = torch.ones_like(given)
    mask[:, :left], mask[:, left + length :] = 0, 0
    more = {"position_ids": (mask.cumsum(1) - 1).clamp_min(0)} if _takes(model, "position_ids") else {}
    return model(given, attention_mask=mask, **more).logits


def _takes(model: nn.Module, name: str) -> bool:
    return name in inspect.signature(model.forward).parameters


@contextmanager
def _undropped(model: nn.Module) -> Iterator[None]:
    """A model in training mode without dropout, for as long as the block lasts."""
    rates = [(module, module.p) for module in model.modules() if isinstance(module, _DropoutNd)]
    model.train()
    try:
        for module, _ in rates:
            module.p = 0.0
        yield
    finally:
        for module, rate in rates:
            module.p = rate
        model.eval()


def _told(moved: float, bound: float, when: str, evidence: str, sentence: str, severity: str = "fatal") -> Finding:
    if moved <= bound:
        return Finding("A-CAUSAL", severity, when, "pass", evidence, "Nothing but what came before is used.")
    if not math.isfinite(moved):
        sentence = "Its logits are not all numbers, so nothing can be said of what it sees."
    return Finding("A-CAUSAL", severity, when, "fail", evidence, sentence)
