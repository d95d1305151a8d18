"""The passages of long texts beyond their first, in a side collection that is made when one is needed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memeval.embedding.base import Vectors
from memeval.memory.chunking import pieces
from memeval.memory.collection import INDEX, batches
from memeval.memory.folder import SIDE, Folder
from memeval.memory.legs import cosines, rounded
from memeval.records import Record


class FurtherPassages:
    """The second and later passages of one collection's records; the first is the vector of the main row.

    A row's id is `<digest of the text>.<number>.<record id>`, so that writing the main row, which holds the
    text, is what makes rows count: those of any other text are passed over, and cleared sooner or later.
    Until a first one is written nothing is made and nothing is asked.
    """

    def __init__(self, folder: Folder, name: str) -> None:
        self._folder = folder
        self._name = name + SIDE
        self._opened: Any = None

    def __bool__(self) -> bool:
        """Whether there is a side collection."""
        return self._name in self._folder.sides

    def write(self, records: Sequence[Record], vectors: Sequence[Vectors]) -> None:
        """Add the rows of these records, whose vectors are float32[pieces, dim]; others stay as they are."""
        rows = [
            (_row(record, number), record.id, own[number])
            for record, own in zip(records, vectors, strict=True)
            for number in range(1, len(own))
        ]
        for some in batches(rows):
            ids, owners, further = zip(*some, strict=True)
            self._rows().upsert(
                ids=list(ids), embeddings=np.stack(further), metadatas=[{"owner": owner} for owner in owners]
            )

    def clear(self, ids: Sequence[str], current: Mapping[str, Record]) -> None:
        """Remove the rows of these ids that are not of the text in `current`; all, of an id not in it."""
        if not self:
            return
        for some in batches(ids):
            found = self._rows().get(where={"owner": {"$in": list(some)}}, include=[])["ids"]
            for stale in batches([row for row in found if not counts(row, current)]):
                self._rows().delete(ids=list(stale))

    def owners(self) -> list[str]:
        """The ids of all records that rows are of, whether these still count or not."""
        return sorted({owner(row) for row in self._rows().get(include=[])["ids"]}) if self else []

    def nearest(self, vector: NDArray[np.float32], limit: int) -> list[tuple[str, float]]:
        """The rows nearest to a query, best first, as `(row id, cosine)`."""
        answer = self._rows().query(query_embeddings=[vector], n_results=limit, include=["distances"])
        exact = rounded(1 - np.array(answer["distances"][0])).tolist()
        return list(zip(answer["ids"][0], exact, strict=True))

    def best(self, records: Sequence[Record], vector: NDArray[np.float32]) -> dict[str, tuple[float, int]]:
        """The cosine and the number of each record's best passage beyond its first, by record id."""
        found: dict[str, tuple[float, int]] = {}
        wanted = {
            _row(record, number): (record.id, number)
            for record in records
            for number in range(1, len(pieces(record)))
        }
        for some in batches(list(wanted)) if self else ():
            rows = self._rows().get(ids=list(some), include=["embeddings"])
            exact = cosines(np.asarray(rows["embeddings"]), vector).tolist() if rows["ids"] else ()
            for row, cosine in zip(rows["ids"], exact, strict=True):
                name, number = wanted[row]
                found[name] = max(found.get(name, (-2.0, 0)), (cosine, -number))
        return {name: (cosine, -number) for name, (cosine, number) in found.items()}

    def _rows(self) -> Any:
        if self._opened is None:
            # One that is there was made by this same call, so its configuration is this one.
            self._opened = self._folder.client.get_or_create_collection(
                self._name, configuration={"hnsw": INDEX}, embedding_function=None
            )
            self._folder.sides.add(self._name)
        return self._opened


def owner(row: str) -> str:
    """The id of the record that a row is of."""
    return row.split(".", 2)[2]


def counts(row: str, records: Mapping[str, Record]) -> bool:
    """Whether a row is of the text that its record has now."""
    record = records.get(owner(row))
    return record is not None and record.by_passage and row.startswith(_digest(record))


def _row(record: Record, number: int) -> str:
    return f"{_digest(record)}.{number}.{record.id}"


def _digest(record: Record) -> str:
    return hashlib.sha256(record.text.encode()).hexdigest()[:24]
