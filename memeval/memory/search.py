"""One search of a user's collection: its legs by meaning and by word, each asking as little as it can."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memeval.memory.chunking import pieces
from memeval.memory.codec import decode
from memeval.memory.collection import SHOWN, batches, decoded, scan
from memeval.memory.further import FurtherPassages, counts, owner
from memeval.memory.keywords import Keywords
from memeval.memory.legs import OVERFETCH, best, cosines, rounded
from memeval.records import EVERYTHING, Record, Where


class Search:
    """What the legs of one search found: `records`, their exact `cosine`, the best of several `passages`."""

    def __init__(
        self, rows: Any, further: FurtherPassages, vector: NDArray[np.float32], where: Where, k: int
    ) -> None:
        self._rows = rows
        self._further = further
        self._vector = vector
        self._where = where
        self._k = k
        self._limit = k if where is EVERYTHING else OVERFETCH * k
        self.records: dict[str, Record] = {}
        self.cosine: dict[str, float] = {}
        self.passages: dict[str, str] = {}

    def by_meaning(self) -> list[str]:
        """The `k` nearest that count, best first, ties by id.

        Asked without `where` and filtered after, since Chroma maps every matching row before it searches
        (1.6 s at 100,000 rows, 3 ms without). Only where too few of those count are all that count compared.
        """
        answer = self._rows.query(
            query_embeddings=[self._vector], n_results=self._limit, include=[*SHOWN, "distances"]
        )
        ids, texts, metadatas = (answer[name][0] for name in ("ids", "documents", "metadatas"))
        # The index is approximate in which records it finds; the distances of those it finds are exact.
        exact = rounded(1 - np.array(answer["distances"][0])).tolist()
        for at, name in enumerate(ids):
            if len(self.records) >= self._k and exact[at] < min(self.cosine.values()):
                break  # enough, and none of the rest ties with the last of them
            record = decode(name, texts[at], metadatas[at])
            if self._where(record):
                self.records[name], self.cosine[name] = record, exact[at]
        if len(self.records) >= self._k:
            self._by_further_passages()
        elif len(ids) < self._rows.count():
            everything = scan(self._rows, self._where)
            self.records = {name: record for name, record in everything.items() if self._where(record)}
            self.cosine = self._cosines(list(self.records))
        self._lift(self.records)
        found = list(self.records)
        near = [found[at] for at in best(np.array([self.cosine[name] for name in found]), found, self._k)]
        self.records = {name: self.records[name] for name in near}
        self.cosine = {name: self.cosine[name] for name in near}
        return near

    def by_word(self, keywords: Keywords, query: str) -> tuple[list[str], dict[str, float]]:
        """The `k` best by word that count, best first, and the scores of both legs' records."""
        limit = self._limit
        while True:
            found, bm25 = keywords.search_scored(query, limit, self.cosine)
            read, cosine = self._read(name for name, _ in found if name not in self.records)
            counting = [hit for hit in found if hit[0] in self.records or hit[0] in read][: self._k]
            if len(counting) == self._k or len(found) < limit:
                break
            limit *= OVERFETCH
        new = {name: read[name] for name, _ in counting if name in read}
        self.records |= new
        self.cosine |= {name: cosine[name] for name in new}
        self._lift(new)
        return [name for name, _ in counting], bm25 | dict(counting)

    def _by_further_passages(self) -> None:
        """Add the records whose later passages may bring them among the best.

        Asks for more until the last passage is farther than the k-th best record: so are all beyond it.
        """
        limit = OVERFETCH * self._k
        nearest = dict(self.cosine)
        while self._further:
            found = self._further.nearest(self._vector, limit)
            new, cosine = self._read({owner(row) for row, _ in found} - self.records.keys())
            self.records |= new
            self.cosine |= cosine
            for row, value in found:
                if counts(row, self.records):
                    nearest[owner(row)] = max(nearest.get(owner(row), value), value)
            if len(found) < limit or found[-1][1] < sorted(nearest.values())[-self._k]:
                break
            limit *= OVERFETCH

    def _read(self, names: Iterable[str]) -> tuple[dict[str, Record], dict[str, float]]:
        """Those of these records that count, and the cosines of their main rows."""
        read: dict[str, Record] = {}
        known: dict[str, float] = {}
        for some in batches(list(names)):
            rows = self._rows.get(ids=list(some), include=[*SHOWN, "embeddings"])
            read |= {name: record for name, record in decoded(rows).items() if self._where(record)}
            exact = cosines(np.asarray(rows["embeddings"]), self._vector).tolist() if rows["ids"] else ()
            known.update(zip(rows["ids"], exact, strict=True))
        return read, {name: known[name] for name in read}

    def _cosines(self, names: Sequence[str]) -> dict[str, float]:
        found: dict[str, float] = {}
        for some in batches(names):
            rows = self._rows.get(ids=list(some), include=["embeddings"])
            exact = cosines(np.asarray(rows["embeddings"]), self._vector).tolist()
            found.update(zip(rows["ids"], exact, strict=True))
        return found

    def _lift(self, records: Mapping[str, Record]) -> None:
        """Raise the cosines of records kept by passage to those of their best passages, and note these."""
        long = [record for record in records.values() if record.by_passage]
        further = self._further.best(long, self._vector) if long else {}
        for record in long:
            cosine, number = further.get(record.id, (-2.0, 0))
            if cosine > self.cosine[record.id]:
                self.cosine[record.id] = cosine
            else:
                number = 0
            parts = pieces(record)
            if len(parts) > 1:
                self.passages[record.id] = parts[number]
