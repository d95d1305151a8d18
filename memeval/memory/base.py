"""The store contract: one user's memories, searched by meaning and by word. Two stores keep it alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from memeval.embedding.base import Embedder
from memeval.records import EVERYTHING, Hit, Record, Where

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Candidates:
    """What a query turned up, before anyone ranked it: parallel arrays, one place a record.

    The union of the `k` nearest by meaning and the `k` best by word. `cosine` is exact for all of them.
    `keyword` is FTS5's bm25 with its sign turned (more is better), NaN where no word matched.
    Ranks count from 1 within each leg; 0 means the leg did not return the record. A record of several
    passages has one place and its best passage's cosine; that passage stands in `passages` under its id.
    """

    records: Sequence[Record]
    cosine: Floats
    keyword: Floats
    cosine_rank: NDArray[np.int64]
    keyword_rank: NDArray[np.int64]
    passages: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.records)

    def hit(self, at: int, score: float) -> Hit:
        """The record at one place as a Hit, with its raw parts."""
        word = float(self.keyword[at])
        return Hit(
            record=self.records[at],
            score=float(score),
            cosine=float(self.cosine[at]),
            keyword=None if np.isnan(word) else word,
            passage=self.passages.get(self.records[at].id, ""),
        )


class MemoryStore(Protocol):
    """A handle on one user's memories. Nothing a model writes can change whose they are.

    Writes are all or nothing. Ids are the caller's: putting an id again replaces the record whole.
    """

    user: str
    embedder: Embedder

    def put(self, record: Record) -> str:
        """Store a record under its id and return the id.

        A text too long for the embedder is refused (TextTooLongError), unless it is kept by passage.
        """

    def get(self, record_id: str) -> Record | None:
        """The record, or None: an unknown id is an answer, not an error."""

    def patch(self, record_id: str, **changes: Any) -> bool:
        """Change some fields of a record, all or none; False if there is no such id.

        Any field of `Record` but `id`. `fields` is merged, not replaced. The text is embedded anew, all of
        its passages, only when it or `by_passage` changed.
        """

    def delete(self, record_id: str) -> bool:
        """Remove a record from every index; False if there is no such id."""

    def find(self, where: Where = EVERYTHING, limit: int | None = None) -> list[Record]:
        """Records that count, oldest first (`created_at`, then id)."""

    def candidates(
        self, query: str, where: Where = EVERYTHING, k: int = 20, *, words: bool | str = True
    ) -> Candidates:
        """What a query turns up among the records that count.

        `words` is what the keyword leg looks for where that is not the query; False or empty skips that leg.
        Cosines are those of the query, whichever leg found the record.
        """

    def count(self, where: Where = EVERYTHING) -> int:
        """How many records count."""

    def snapshot(self) -> tuple[Record, ...]:
        """All records, oldest first."""

    def restore(self, snapshot: Sequence[Record]) -> None:
        """Make the store hold just these records."""

    def close(self) -> None:
        """Let go of files and locks. A closed store is not used again."""
