"""Documents beside seeds: what the held-out text adds to the uncertainty, and whether seeds or text should be bought.

A document is the unit that could be drawn again: an article, a docstring, a block of one long stream. Tokens are not.
Differences are challenger minus baseline in the loss's own unit, so lower is better.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from headtohead.spec import Mistake

FEWEST_DOCUMENTS = 30  # below which nothing is said of new documents
FEWEST_RESAMPLED = 20  # a bootstrap over fewer units covers too little
ACCELERATED = 50  # documents from which the bootstrap is corrected for bias and skew (BCa)
RESAMPLES = 10_000
MORE_SEEDS = "train more seeds"
MORE_TEXT = "evaluate on more text"


@dataclass(frozen=True)
class Checkpoints:
    """E_ckpt: whether two trained networks differ on this distribution of text. It says nothing of the method."""

    documents: int
    effect: float
    se: float
    interval: tuple[float, float]
    p: float


def checkpoints(z: np.ndarray, n: np.ndarray, alpha: float = 0.05) -> Checkpoints:
    """The ratio Σz / Σn of two sums over documents: z differences of summed losses, n scored units.

    Linearised: u = z - effect n, se = sqrt(D / (D - 1) Σu²) / Σn, t with D - 1 degrees of freedom.
    Cochran (1977), "Sampling techniques", chapter 6. It is no mean of the documents' means: long ones weigh more.
    """
    z, n = np.asarray(z, dtype=float), np.asarray(n, dtype=float)
    documents = len(z)
    effect = float(z.sum() / n.sum())
    if documents < 2:
        return Checkpoints(documents, effect, math.nan, (math.nan, math.nan), math.nan)
    u = z - effect * n
    se = math.sqrt(documents / (documents - 1) * float(u @ u)) / float(n.sum())
    half = float(stdtrit(documents - 1, 1 - alpha / 2)) * se
    p = 2 * float(stdtr(documents - 1, -abs(effect) / se)) if se else float(effect == 0)
    return Checkpoints(documents, effect, se, (effect - half, effect + half), p)


def resampled(z: np.ndarray, n: np.ndarray, alpha: float = 0.05, resamples: int = RESAMPLES) -> tuple[float, float]:
    """The same effect's interval by drawing whole documents again: percentile, or BCa from 50 documents on.

    Efron (1987), "Better bootstrap confidence intervals". The draws are the same whenever it is asked.
    """
    if len(z) < FEWEST_RESAMPLED:
        raise Mistake(f"{len(z)} documents are too few to draw from again, at least {FEWEST_RESAMPLED}; give more text")
    from scipy.stats import bootstrap

    columns = np.asarray(z, dtype=float), np.asarray(n, dtype=float)
    found = bootstrap(
        columns,
        lambda z, n, axis: z.sum(axis=axis) / n.sum(axis=axis),
        n_resamples=resamples,
        batch=max(1, 4_000_000 // len(z)),  # numbers held at a time
        paired=True,
        vectorized=True,
        confidence_level=1 - alpha,
        method="BCa" if len(z) >= ACCELERATED else "percentile",
        rng=np.random.default_rng(0),
    )
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


@dataclass(frozen=True)
class Crossed:
    """E_both: whether the method differs over new seeds and new documents of this distribution."""

    seeds: int
    documents: int
    effect: float
    se: float
    df: float
    interval: tuple[float, float]
    p: float
    mean_squares: tuple[float, float, float]  # of seeds, of documents, of what is left
    variances: tuple[float, float, float]  # components: seed, document, seed × document
    share_seed: float  # of the variance over seeds on this text, what more text would not take away

    @property
    def advice(self) -> str | None:
        """What would narrow the interval of the seeds."""
        if math.isnan(self.share_seed):
            return None
        return MORE_TEXT if self.share_seed < 0.5 else MORE_SEEDS


def effects_by_document(z: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Seeds × documents: X = θ_s + u D / Σn, whose mean over documents is the seed's own ratio θ_s = Σz / Σn."""
    z, n = np.asarray(z, dtype=float), np.asarray(n, dtype=float)
    theta = z.sum(axis=1, keepdims=True) / n.sum()
    return theta + (z - theta * n) * z.shape[1] / n.sum()


def crossed(x: np.ndarray, alpha: float = 0.05) -> Crossed:
    """Two crossed random factors without replication, Satterthwaite's degrees of freedom.

    V = (MS_seed + MS_document - MS_rest) / (S D), at least the larger of the first two;
    df = (MS_seed + MS_document - MS_rest)² / Σ MS² / df_of_MS, at least 1.
    Satterthwaite (1946), "An approximate distribution of estimates of variance components".
    """
    x = np.asarray(x, dtype=float)
    seeds, documents = x.shape
    squares = mean_squares(x)
    by_seed, by_document, rest = squares
    total = by_seed + by_document - rest
    se = math.sqrt(max(total, by_seed, by_document) / (seeds * documents))
    freedom = (seeds - 1, documents - 1, (seeds - 1) * (documents - 1))
    spread = sum(square**2 / df for square, df in zip(squares, freedom, strict=True))
    df = max(1.0, total**2 / spread) if spread else 1.0
    effect, half = float(x.mean()), float(stdtrit(df, 1 - alpha / 2)) * se
    parts = max(0.0, (by_seed - rest) / documents), max(0.0, (by_document - rest) / seeds), rest
    on_this_text = parts[0] + rest / documents
    return Crossed(
        seeds=seeds,
        documents=documents,
        effect=effect,
        se=se,
        df=df,
        interval=(effect - half, effect + half),
        p=2 * float(stdtr(df, -abs(effect) / se)) if se else float(effect == 0),
        mean_squares=squares,
        variances=parts,
        share_seed=parts[0] / on_this_text if on_this_text else math.nan,
    )


def mean_squares(x: np.ndarray) -> tuple[float, float, float]:
    """Of rows, of columns, and of what neither explains."""
    rows, columns = x.shape
    mean, of_row, of_column = x.mean(), x.mean(axis=1, keepdims=True), x.mean(axis=0, keepdims=True)
    rest = x - of_row - of_column + mean
    return (
        float(columns * ((of_row - mean) ** 2).sum() / (rows - 1)),
        float(rows * ((of_column - mean) ** 2).sum() / (columns - 1)),
        float((rest**2).sum() / ((rows - 1) * (columns - 1))),
    )
