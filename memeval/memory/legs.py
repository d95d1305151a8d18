"""The two legs of a search, by meaning and by word, brought together as `Candidates`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from memeval.memory.base import Candidates, Floats
from memeval.records import Record

OVERFETCH = 4
"""How many times more are asked for when some will not count: recall@5 was 1.000 with it at 100,000 rows."""


def rounded(cosine: NDArray[np.floating]) -> Floats:
    """Cosines to 6 places: float32 vectors carry no more, and equal texts tie, whichever leg found them."""
    exact: Floats = cosine.astype(np.float64)
    return exact.clip(-1.0, 1.0).round(6)


def looked_for(query: str, words: bool | str) -> str:
    """What the keyword leg looks for; nothing where it is to be skipped."""
    if isinstance(words, str):
        return words
    return query if words else ""


def cosines(matrix: NDArray[np.floating], vector: NDArray[np.floating]) -> Floats:
    """The cosine of each row, float[n, dim], with a vector, float[dim]; all of length 1."""
    return rounded(matrix @ vector)


def best(cosine: Floats, ids: Sequence[str], k: int) -> list[int]:
    """The places of the `k` highest cosines, best first, ties by id."""
    if k < len(cosine):
        # All that tie with the k-th stay in, so that the id decides among them and not the partition.
        floor = np.partition(cosine, len(cosine) - k)[len(cosine) - k]
        places = np.flatnonzero(cosine >= floor).tolist()
    else:
        places = list(range(len(cosine)))
    places.sort(key=lambda at: (-cosine[at], ids[at]))
    return places[:k]


def merge(
    records: Mapping[str, Record],
    cosine: Mapping[str, float],
    near: Sequence[str],
    worded: Sequence[str],
    bm25: Mapping[str, float],
    passages: Mapping[str, str],
) -> Candidates:
    """The union of both legs, nearest first, ties by id. `near` and `worded` are ids in their legs' order.

    `passages` holds the best passage of each record that has several.
    """
    ids = sorted({*near, *worded}, key=lambda name: (-cosine[name], name))
    near_rank = {name: rank for rank, name in enumerate(near, 1)}
    word_rank = {name: rank for rank, name in enumerate(worded, 1)}
    return Candidates(
        records=[records[name] for name in ids],
        cosine=np.array([cosine[name] for name in ids], dtype=np.float64),
        keyword=np.array([bm25.get(name, np.nan) for name in ids], dtype=np.float64),
        cosine_rank=np.array([near_rank.get(name, 0) for name in ids], dtype=np.int64),
        keyword_rank=np.array([word_rank.get(name, 0) for name in ids], dtype=np.int64),
        passages={name: passages[name] for name in ids if name in passages},
    )


def nothing() -> Candidates:
    """No candidates."""
    return merge({}, {}, (), (), {}, {})
