"""Rankers: candidates in, hits out. They work on the arrays; a floor applies to cosine, before any fusion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from memeval.errors import InputError
from memeval.memory.base import Candidates, Floats
from memeval.records import Hit

Fusion = Literal["rrf", "convex", "minmax"]
RRF_K = 60
"""The constant of reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009)."""


class Ranker(Protocol):
    """Orders candidates. Each design names its own."""

    def rank(self, candidates: Candidates, k: int) -> list[Hit]:
        """The best `k`, highest score first, ties by record id."""


def top(
    candidates: Candidates, scores: Floats, keep: NDArray[np.bool_], k: int, *, newest_first: bool = False
) -> list[Hit]:
    """Hits of the `k` highest scores among the candidates kept, ties by record id.

    `newest_first` has ties go by when they were last written, and by record id only then.
    """

    def place(at: int) -> tuple[float, float, str]:
        record = candidates.records[at]
        return -scores[at], -record.updated_at.timestamp() if newest_first else 0.0, record.id

    places: Sequence[int] = np.flatnonzero(keep).tolist()
    return [candidates.hit(at, scores[at]) for at in sorted(places, key=place)[: max(k, 0)]]


@dataclass(frozen=True, slots=True)
class SimilarityFloor:
    """By cosine alone; nothing whose cosine is below `min_score`. -1 lets everything through.

    A floor means something for one embedder only: E5's cosines all lie between 0.7 and 1.
    """

    min_score: float = 0.3

    def rank(self, candidates: Candidates, k: int) -> list[Hit]:
        """The best `k` at or above the floor; a hit's score is its cosine."""
        return top(candidates, candidates.cosine, candidates.cosine >= self.min_score, k)


@dataclass(frozen=True, slots=True)
class WeightedFusion:
    """Both legs together: `weight` is the keyword leg's share (0 to 1), the rest is the vector leg's.

    - `rrf`: the sum of w / (60 + rank) over the legs that returned the record. Needs no calibration.
    - `convex`: (1-w) (cosine+1)/2 + w bm25/max (Bruch et al., TOIS 2023, arXiv 2210.11934).
    - `minmax`: each leg stretched to 0..1 over the candidates; a leg with one value counts 1 for all it has.

    A record whose cosine is below `min_score` is left out before, also when a word matched. Fused scores
    have a scale of their own (rrf ends at 0.016), so a floor on them would mean nothing. Ties go by record
    id, where `newest_first` by when they were last written.
    """

    weight: float = 0.3
    method: Fusion = "rrf"
    min_score: float = -1.0
    newest_first: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.weight <= 1:
            raise InputError(f"the keyword weight is {self.weight}, but must be from 0 to 1")
        if self.method not in _FUSE:
            raise InputError(f"fusion {self.method!r} is none of {', '.join(_FUSE)}")

    def rank(self, candidates: Candidates, k: int) -> list[Hit]:
        """The best `k` by the fused score."""
        keep = candidates.cosine >= self.min_score
        vector, keyword = _FUSE[self.method](candidates, keep)
        scores = (1 - self.weight) * vector + self.weight * keyword
        return top(candidates, scores, keep, k, newest_first=self.newest_first)


def _rrf(candidates: Candidates, keep: NDArray[np.bool_]) -> tuple[Floats, Floats]:  # noqa: ARG001
    return _reciprocal(candidates.cosine_rank), _reciprocal(candidates.keyword_rank)


def _reciprocal(ranks: NDArray[np.int64]) -> Floats:
    return np.where(ranks > 0, 1.0 / (RRF_K + ranks), 0.0)


def _convex(candidates: Candidates, keep: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    words = np.nan_to_num(candidates.keyword, nan=0.0)
    top = words[keep].max(initial=0.0)
    return (candidates.cosine + 1) / 2, words / top if top > 0 else np.zeros_like(words)


def _minmax(candidates: Candidates, keep: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    return _stretched(candidates.cosine, keep), _stretched(candidates.keyword, keep)


def _stretched(values: Floats, keep: NDArray[np.bool_]) -> Floats:
    known = keep & ~np.isnan(values)
    if not known.any():
        return np.zeros_like(values)
    low, high = values[known].min(), values[known].max()
    if high == low:  # plain min-max would score a single hit 0, as if it were the worst
        return known.astype(np.float64)
    return np.where(known, (np.nan_to_num(values) - low) / (high - low), 0.0)


_FUSE = {"rrf": _rrf, "convex": _convex, "minmax": _minmax}
