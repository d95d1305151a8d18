"""Retrieval metrics over a complete ranking, in numpy; checked against pytrec-eval in the tests.

The metrics take *ranked grades*: float64[queries, documents], the grade of each document in the order it was
ranked, all documents of the corpus. They give one number a question, NaN where nothing is relevant: such
questions would count as zeros or drop out, by library, and both poison a mean. They are scored apart, as
abstention: `false_recall` and `auroc`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def rank(scores: ArrayLike, ids: Sequence[str]) -> NDArray[np.int64]:
    """int64[queries, documents]: places of the documents, best first.

    The tie rule is score descending, then document id ascending. Libraries differ here (trec_eval takes the
    id descending, ranx the order of insertion), and equal scores are common: equal texts have them.
    """
    by_id = np.argsort(np.argsort(np.asarray(ids)))
    table = np.asarray(scores, dtype=np.float64)
    keys = np.broadcast_to(by_id, table.shape)
    return np.lexsort((keys, -table), axis=-1)


def ranked_grades(grades: Floats, ranking: NDArray[np.int64]) -> Floats:
    """The grades in the order of a ranking."""
    return np.take_along_axis(grades, ranking, axis=1)


def recall(ranked: Floats, k: int) -> Floats:
    """recall@k = relevant documents among the first k / all relevant documents (recall_all, not any)."""
    relevant = ranked > 0
    return _where_relevant(ranked, relevant[:, :k].sum(axis=1) / np.maximum(relevant.sum(axis=1), 1))


def hit(ranked: Floats, k: int) -> Floats:
    """hit@k = 1 if any of the first k is relevant, else 0 (also: recall_any, success@k)."""
    return _where_relevant(ranked, (ranked[:, :k] > 0).any(axis=1).astype(np.float64))


def mrr(ranked: Floats, k: int) -> Floats:
    """Reciprocal rank at k: 1 / place of the first relevant document, 0 if it is not among the first k.

    Its mean is MRR@k (Voorhees, TREC-8 question answering track, 1999).
    """
    relevant = ranked[:, :k] > 0
    return _where_relevant(ranked, relevant.any(axis=1) / (relevant.argmax(axis=1) + 1.0))


def ndcg(ranked: Floats, k: int) -> Floats:
    """nDCG@k = DCG@k / DCG@k of the best order; DCG@k = sum over places i of grade_i / log2(i + 1).

    Järvelin and Kekäläinen, ACM TOIS 20(4), 2002, with the grade itself as gain, as trec_eval has it.
    """
    discount = 1 / np.log2(np.arange(2, min(k, ranked.shape[1]) + 2))
    best = -np.sort(-ranked, axis=1)
    ideal = best[:, :k] @ discount
    return _where_relevant(ranked, (ranked[:, :k] @ discount) / np.where(ideal > 0, ideal, 1))


METRICS: Mapping[str, Callable[[Floats, int], Floats]] = {
    "recall": recall, "hit": hit, "mrr": mrr, "ndcg": ndcg,
}  # fmt: skip


def false_recall(top_scores: ArrayLike, min_score: float) -> float:
    """Share of unanswerable questions whose best score reaches `min_score`: something would be recalled."""
    values = np.asarray(top_scores, dtype=np.float64)
    return float((values >= min_score).mean()) if values.size else float("nan")


def auroc(answerable: ArrayLike, unanswerable: ArrayLike) -> float:
    """The chance that an answerable question's best score is above an unanswerable one's, ties counted half.

    The area under the ROC curve, as the Mann-Whitney statistic (Hanley and McNeil, Radiology 143, 1982).
    0.5: the score says nothing about whether there is an answer. NaN if either group is empty.
    """
    above, below = np.asarray(answerable, dtype=np.float64), np.asarray(unanswerable, dtype=np.float64)
    if not above.size or not below.size:
        return float("nan")
    differences = above[:, None] - below[None, :]
    return float((differences > 0).mean() + (differences == 0).mean() / 2)


def bootstrap(
    values: ArrayLike, n: int = 10_000, seed: int = 0, *,
    level: float = 0.95, low: float = 0.0, high: float = 1.0,
) -> tuple[float, float, float]:  # fmt: skip
    """(mean, lo, hi) of one number a question, NaN left out: a BCa bootstrap over questions.

    Efron, JASA 82, 1987; the percentile interval where BCa is not defined. Where all values are equal every
    resample is the same and a bootstrap claims certainty from a handful of questions; then the interval is
    Wilson's, for a mean between `low` and `high`: no variable in that range varies more than a yes or no.
    """
    from scipy.stats import bootstrap as resample
    from scipy.stats import norm

    data = np.asarray(values, dtype=np.float64)
    data = data[~np.isnan(data)]
    if not data.size:
        return float("nan"), float("nan"), float("nan")
    mean = float(data.mean())
    if np.ptp(data) == 0:
        z2, share = float(norm.ppf((1 + level) / 2)) ** 2, (mean - low) / (high - low)
        centre = share + z2 / (2 * data.size)
        spread = np.sqrt(z2 * (share * (1 - share) / data.size + z2 / (4 * data.size**2)))
        bounds = np.clip((centre + np.array([-spread, spread])) / (1 + z2 / data.size), 0, 1)
        below, above = low + (high - low) * bounds
        return mean, float(below), float(above)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scipy warns where BCa is undefined; the percentiles follow then
        for method in ("BCa", "percentile"):
            generator = np.random.default_rng(seed)
            found = resample(
                (data,), np.mean, n_resamples=n, confidence_level=level, method=method, random_state=generator
            ).confidence_interval
            if np.isfinite(found).all():
                break
    return mean, float(found.low), float(found.high)


def _where_relevant(ranked: Floats, values: ArrayLike) -> Floats:
    return np.where((ranked > 0).any(axis=1), values, np.nan)
