"""Rankers that look beyond nearness: at a run's score and rating, at age, at variety, at a critic's mark.

Their scores have scales of their own: compare them within one ranking, never across rankers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import Literal

import numpy as np

from memeval.errors import InputError
from memeval.memory.base import Candidates, Floats
from memeval.memory.ranking import Ranker, top
from memeval.records import Hit, Record

Scale = Literal["cosine", "unit"]
_HOUR = 3600.0


def quality_score(
    sim: float,
    final_score: float | None,
    rating: float | None,
    *,
    floor: float = 7.0,
    similarity_share: float = 0.7,
) -> float:
    """Seed 004's `_rank_score`: similarity and a run's quality, the whole times a person's rating.

    `final_score` is 0 to 10 and counts half below `floor`; a run without one counts as 5. A rating of +1
    multiplies by 1.15, of -1 by 0.85, at least by 0.2, which -3 to 3 never reaches.

    The formula is kept as its author wrote it, with what follows from it: quality jumps at the floor (6.9
    counts 0.345, 7.0 counts 0.70), a run nobody scored (0.5) comes before one scored 6.9, and a rating can
    lift the score beyond 1.
    """
    if final_score is not None and final_score < floor:
        quality = final_score / 10 * 0.5
    else:
        quality = (5.0 if final_score is None else final_score) / 10
    adjust = max(0.2, 1 + (rating or 0) * 0.15)
    return (similarity_share * sim + (1 - similarity_share) * quality) * adjust


@dataclass(frozen=True, slots=True)
class QualityWeighted:
    """By `quality_score`, of each record's `final_score` and `rating`. Nothing is left out.

    `scale` says what similarity is. Seed 004 writes `1 - dist / 2`: over squared L2 distances of unit vectors
    that is the `cosine`, over Chroma's cosine distances it is `unit`, (1 + cosine) / 2. Candidates found by
    word alone have their true cosine as well.
    """

    floor: float = 7.0
    similarity_share: float = 0.7
    scale: Scale = "cosine"

    def __post_init__(self) -> None:
        if not 0 <= self.similarity_share <= 1:
            raise InputError(f"the similarity share is {self.similarity_share}, but must be from 0 to 1")
        if self.scale not in ("cosine", "unit"):
            raise InputError(f"similarity scale {self.scale!r} is none of cosine, unit")

    def rank(self, candidates: Candidates, k: int) -> list[Hit]:
        """The best `k` by the weighted score."""
        sims = candidates.cosine if self.scale == "cosine" else (1 + candidates.cosine) / 2
        scores = [
            quality_score(sim, record.final_score, record.rating,
                          floor=self.floor, similarity_share=self.similarity_share)
            for sim, record in zip(sims.tolist(), candidates.records, strict=True)
        ]  # fmt: skip
        return top(candidates, np.array(scores), np.ones(len(candidates), dtype=bool), k)


@dataclass(frozen=True, slots=True)
class LinearRecency:
    """SynthOrg's linear ranking: `relevance` min(cosine + boost, 1) + `recency` exp(-decay age).

    Age is in hours, from a record's `updated_at` to `now`; what lies ahead of `now` has none. `boost` is
    what SynthOrg gives a personal memory over a shared one, and here every memory is personal. `min_score`
    applies to the combined score, as there: an old memory needs more nearness than a fresh one.
    """

    now: datetime
    relevance: float = 0.7
    recency: float = 0.3
    boost: float = 0.1
    decay_per_hour: float = 0.01
    min_score: float = 0.3

    def __post_init__(self) -> None:
        if self.now.tzinfo is None:
            raise InputError(f"now is {self.now} without a time zone; use UTC")

    def rank(self, candidates: Candidates, k: int) -> list[Hit]:
        """The best `k` at or above the floor by the combined score."""
        ages = [(self.now - record.updated_at).total_seconds() / _HOUR for record in candidates.records]
        fresh: Floats = np.exp(-self.decay_per_hour * np.maximum(ages, 0.0))
        near: Floats = np.minimum(candidates.cosine + self.boost, 1.0)
        scores = self.relevance * near + self.recency * fresh
        return top(candidates, scores, scores >= self.min_score, k)


@dataclass(frozen=True, slots=True)
class MMR:
    """Maximal marginal relevance: each next hit is near the query and unlike those before it.

    Of the inner ranker's best `pool` * k, the one with the highest `balance` score - (1 - `balance`) likeness
    is taken, again and again; likeness is the highest Jaccard share of word pairs with a hit taken before
    (Carbonell and Goldstein, SIGIR 1998; SynthOrg's bigrams). A hit keeps the inner ranker's score, so scores
    need not fall; that score should be about 0 to 1, as a cosine is: rrf's 0.016 would hardly count.
    """

    inner: Ranker
    balance: float = 0.7
    pool: int = 3

    def __post_init__(self) -> None:
        if not 0 <= self.balance <= 1:
            raise InputError(f"the balance is {self.balance}, but must be from 0 (unlike) to 1 (near)")
        if self.pool < 1:
            raise InputError(f"the pool is {self.pool}, but must be at least 1")

    def rank(self, candidates: Candidates, k: int) -> list[Hit]:
        """`k` hits in the order they were taken, ties by record id."""
        left = self.inner.rank(candidates, self.pool * k)
        pairs = {hit.record.id: _word_pairs(hit.record.text) for hit in left}
        likeness = dict.fromkeys(pairs, 0.0)
        taken: list[Hit] = []
        while left and len(taken) < k:
            best = min(left, key=lambda hit: (-self._gain(hit, likeness), hit.record.id))
            left.remove(best)
            taken.append(best)
            for hit in left:
                name = hit.record.id
                likeness[name] = max(likeness[name], _jaccard(pairs[name], pairs[best.record.id]))
        return taken

    def _gain(self, hit: Hit, likeness: Mapping[str, float]) -> float:
        return self.balance * hit.score - (1 - self.balance) * likeness[hit.record.id]


@dataclass(frozen=True, slots=True)
class Boosted:
    """LoCAL2's later scoring: the inner score, usually a cosine, moved by entities and by a critic's mark.

    `entity_boost` is added once if the query names one of the record's entities, its field `entities`,
    divided by commas, in any case; `critic_weight` for each point of `critic` above 3, and taken off below.
    The inner ranker's floor applies before, so a boost lets nothing in that was too far.
    """

    inner: Ranker
    entity_boost: float = 0.1
    critic_weight: float = 0.05
    query: str = ""

    def rank(self, candidates: Candidates, k: int) -> list[Hit]:
        """The best `k` by the moved score."""
        inner = self.inner.rank(candidates, len(candidates))
        hits = [replace(hit, score=hit.score + self._boost(hit.record)) for hit in inner]
        hits.sort(key=lambda hit: (-hit.score, hit.record.id))
        return hits[: max(k, 0)]

    def _boost(self, record: Record) -> float:
        asked = self.query.casefold()
        entities = (part.strip().casefold() for part in str(record.fields.get("entities", "")).split(","))
        named = any(entity and entity in asked for entity in entities)
        critic = 0.0 if record.critic is None else (record.critic - 3) * self.critic_weight
        return critic + (self.entity_boost if named else 0.0)


def _word_pairs(text: str) -> frozenset[tuple[str, ...]]:
    """The pairs of neighbouring words of a text; a text of one word is that word."""
    words = re.findall(r"\w+", text.casefold())
    return frozenset(pairwise(words)) if len(words) > 1 else frozenset((word,) for word in words)


def _jaccard(left: frozenset[tuple[str, ...]], right: frozenset[tuple[str, ...]]) -> float:
    return len(left & right) / len(left | right) if left and right else 0.0
