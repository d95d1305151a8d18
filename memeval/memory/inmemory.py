"""The exact store: everything in memory, every cosine computed. Fast for trials, the oracle of the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memeval.embedding.base import Embedder, Vectors
from memeval.memory.base import Candidates, Floats
from memeval.memory.chunking import embedded, pieces
from memeval.memory.codec import changed, embeds_alike, whole
from memeval.memory.keywords import Keywords
from memeval.memory.legs import best, cosines, looked_for, merge, nothing
from memeval.records import EVERYTHING, Record, Where


class InMemoryStore:
    """One user's memories while the process lives. See `MemoryStore` for the meaning of each method."""

    def __init__(self, user: str, embedder: Embedder) -> None:
        self.user = user
        self.embedder = embedder
        self._records: dict[str, Record] = {}
        self._vectors: dict[str, Vectors] = {}  # float32[pieces, dim] each, in the order of _records
        self._matrix: Vectors | None = None  # all of them stacked
        self._keywords: Keywords | None = None  # made when a search by word asks for it: most trials never do

    def put(self, record: Record) -> str:
        record = whole(record)
        # Embedded at once, not at the first search: a text too long must fail the call that wrote it.
        self._keep(record, embedded(self.embedder, [record])[0])
        return record.id

    def get(self, record_id: str) -> Record | None:
        return self._records.get(record_id)

    def patch(self, record_id: str, **changes: Any) -> bool:
        old = self._records.get(record_id)
        if old is None:
            return False
        new = changed(old, changes)
        same = embeds_alike(new, old)
        self._keep(new, self._vectors[new.id] if same else embedded(self.embedder, [new])[0])
        return True

    def delete(self, record_id: str) -> bool:
        if self._records.pop(record_id, None) is None:
            return False
        del self._vectors[record_id]
        self._matrix = None
        if self._keywords is not None:
            self._keywords.delete([record_id])
        return True

    def find(self, where: Where = EVERYTHING, limit: int | None = None) -> list[Record]:
        found = [record for record in self._records.values() if where(record)]
        found.sort(key=lambda record: (record.created_at, record.id))
        return found[:limit]

    def candidates(
        self, query: str, where: Where = EVERYTHING, k: int = 20, *, words: bool | str = True
    ) -> Candidates:
        if k < 1 or not self._records:
            return nothing()
        vector = self.embedder.embed([query], "query")[0]
        ids = list(self._records)
        cosine = self._cosines(vector)
        if where is not EVERYTHING:
            counting = [at for at, record in enumerate(self._records.values()) if where(record)]
            ids, cosine = [ids[at] for at in counting], cosine[counting]
        near = [ids[at] for at in best(cosine, ids, k)]
        by_id = dict(zip(ids, cosine.tolist(), strict=True))
        asked = looked_for(query, words)
        found = [hit for hit in self._indexed().search(asked) if hit[0] in by_id] if asked else []
        worded = [name for name, _ in found[:k]]
        passages = {
            name: pieces(self._records[name])[int(np.argmax(cosines(self._vectors[name], vector)))]
            for name in {*near, *worded}
            if len(self._vectors[name]) > 1
        }
        return merge(self._records, by_id, near, worded, dict(found), passages)

    def count(self, where: Where = EVERYTHING) -> int:
        return sum(map(where, self._records.values()))

    def snapshot(self) -> tuple[Record, ...]:
        return tuple(self.find())

    def restore(self, snapshot: Sequence[Record]) -> None:
        records, held = {record.id: whole(record) for record in snapshot}, self._records
        new = [r for r in records.values() if r.id not in held or not embeds_alike(r, held[r.id])]
        vectors = self._vectors | dict(zip([r.id for r in new], embedded(self.embedder, new), strict=True))
        self._vectors = {name: vectors[name] for name in records}
        self._records = records
        self._matrix = None
        self._drop_index()

    def close(self) -> None:
        self._drop_index()

    def _keep(self, record: Record, vectors: Vectors) -> None:
        self._records[record.id] = record
        self._vectors[record.id] = vectors
        self._matrix = None
        if self._keywords is not None:
            self._keywords.upsert({record.id: record.text})

    def _cosines(self, vector: NDArray[np.float32]) -> Floats:
        """Each record's cosine with a query: of its best passage, where it has several."""
        if self._matrix is None:
            self._matrix = np.concatenate(list(self._vectors.values()))
        cosine = cosines(self._matrix, vector)
        if len(cosine) == len(self._records):
            return cosine
        counts = [len(own) for own in self._vectors.values()]
        grouped: Floats = np.maximum.reduceat(cosine, np.cumsum([0, *counts[:-1]]))
        return grouped

    def _indexed(self) -> Keywords:
        if self._keywords is None:
            self._keywords = Keywords()
            self._keywords.upsert({name: record.text for name, record in self._records.items()})
        return self._keywords

    def _drop_index(self) -> None:
        if self._keywords is not None:
            self._keywords.close()
            self._keywords = None
