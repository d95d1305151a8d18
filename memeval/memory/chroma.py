"""The durable store: vectors and records in Chroma, words in an FTS5 sidecar, one collection a user."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from memeval.embedding.base import Embedder, Vectors
from memeval.errors import InputError
from memeval.memory.base import Candidates
from memeval.memory.codec import changed, decode, encode, narrowed, whole, writable
from memeval.memory.folder import Folder, disk_trouble
from memeval.memory.keywords import Keywords, fold
from memeval.memory.legs import OVERFETCH, best, cosines, merge, nothing, rounded
from memeval.records import EVERYTHING, Record, Where

# Under Chroma's defaults some 100 equal vectors make other records unreachable; with these, 300 do not.
# They decide at creation: a later change of ef_search takes effect only after reopening.
_INDEX = {"space": "cosine", "ef_search": 400, "ef_construction": 400, "max_neighbors": 64}
_BATCH = 1000  # Chroma takes 5461 rows a call, SQLite some 32,000 variables
_SHOWN = ["metadatas", "documents"]
_NO_ROWS: dict[str, Any] = {"ids": (), "documents": (), "metadatas": ()}
T = TypeVar("T")


def collection_name(collection: str, user: str) -> str:
    """The name of a user's collection. Chroma refuses most characters in names, so the user is hashed."""
    return f"{collection}-{hashlib.sha256(user.encode()).hexdigest()[:16]}"


class ChromaStore:
    """One user's memories in a Chroma folder. See `MemoryStore` for the meaning of each method.

    Handles of one process share the folder's client; another process is refused. Chroma is written first
    and is the truth; the sidecar follows, and is reconciled with it here, at opening, both ways.
    Raises InputError if the folder is locked, or was made for other vectors than this embedder's.
    """

    def __init__(
        self, path: Path | str, user: str, embedder: Embedder, collection: str = "local2.memory",
        *, create: bool = True, keywords: Keywords | None = None,
    ) -> None:  # fmt: skip
        self.user = user
        self.embedder = embedder
        self._lock = threading.RLock()
        self._open = True
        self._folder = Folder.hold(path, create=create)
        self.path = self._folder.path
        try:
            with disk_trouble(self.path):
                name = collection_name(collection, user)
                self._rows = self._collection(name, create)
                self._keywords = (
                    _sidecar(self.path / f"{name}.words.sqlite3") if keywords is None else keywords
                )
                self._reconcile()
        except BaseException:
            self._folder.release()
            raise

    def put(self, record: Record) -> str:
        record = whole(record)
        self._write([record], self.embedder.embed([record.text]))
        return record.id

    def get(self, record_id: str) -> Record | None:
        if not writable(record_id):
            return None
        with disk_trouble(self.path):
            return _decoded(self._rows.get(ids=[record_id], include=_SHOWN)).get(record_id)

    def patch(self, record_id: str, **changes: Any) -> bool:
        with self._lock:
            old = self.get(record_id)
            if old is None:
                return False
            new = changed(old, changes)
            if new.text != old.text:
                self._write([new], self.embedder.embed([new.text]))
            else:
                with disk_trouble(self.path):
                    self._rows.update(ids=[new.id], metadatas=[encode(new)])
            return True

    def delete(self, record_id: str) -> bool:
        with self._lock, disk_trouble(self.path):
            if self.get(record_id) is None:  # Chroma's own count of deleted rows counts ids never there
                return False
            self._remove([record_id])
            return True

    def find(self, where: Where = EVERYTHING, limit: int | None = None) -> list[Record]:
        found = [record for record in self._scan(where).values() if where(record)]
        found.sort(key=lambda record: (record.created_at, record.id))
        return found[:limit]

    def candidates(
        self, query: str, where: Where = EVERYTHING, k: int = 20, *, words: bool = True
    ) -> Candidates:
        with disk_trouble(self.path):
            empty = self._keywords.is_empty()
        if k < 1 or empty:
            return nothing()
        vector = self.embedder.embed([query], "query")[0]
        with disk_trouble(self.path):
            records, cosine = self._near(vector, where, k)
            near = list(records)
            worded, bm25 = self._worded(query, vector, where, k, records, cosine) if words else ([], {})
        return merge(records, cosine, near, worded, bm25)

    def count(self, where: Where = EVERYTHING) -> int:
        if where is not EVERYTHING:
            return sum(map(where, self._scan(where).values()))
        with disk_trouble(self.path):
            return int(self._rows.count())

    def snapshot(self) -> tuple[Record, ...]:
        return tuple(self.find())

    def restore(self, snapshot: Sequence[Record]) -> None:
        wanted = {record.id: whole(record) for record in snapshot}
        with self._lock:
            held = {record.id: record for record in self.find()}
            differing = [record for record in wanted.values() if held.get(record.id) != record]
            same = [r for r in differing if r.id in held and held[r.id].text == r.text]
            new = [r for r in differing if r not in same]
            vectors = self.embedder.embed([record.text for record in new])
            with disk_trouble(self.path):
                self._remove([name for name in held if name not in wanted])
                for some in _batches(same):
                    self._rows.update(ids=[r.id for r in some], metadatas=[encode(r) for r in some])
            self._write(new, vectors)

    def close(self) -> None:
        with self._lock:
            if self._open:
                self._open = False
                self._keywords.close()
                self._folder.release()

    def _collection(self, name: str, create: bool) -> Any:
        """The user's collection, made if absent, its index, owner and embedder as they must be."""
        from chromadb.errors import NotFoundError

        client = self._folder.client
        try:
            rows = client.get_collection(name, embedding_function=None)
        except NotFoundError:
            if not create:
                raise InputError(f"memory store {self.path} holds nothing of user {self.user!r}") from None
            by = self.embedder
            about = {"user": self.user, "embedder": by.name, "fingerprint": by.fingerprint}
            return client.create_collection(
                name, metadata=about, configuration={"hnsw": _INDEX}, embedding_function=None
            )
        about = rows.metadata or {}
        place = f"collection {name} in memory store {self.path}"
        if about.get("user") != self.user:
            raise InputError(f"{place} belongs to {about.get('user')!r}, not to {self.user!r}")
        if rows.configuration["hnsw"]["space"] != "cosine":
            raise InputError(f"{place} was not made by cosine; choose another collection")
        if about.get("fingerprint") != self.embedder.fingerprint:
            raise InputError(
                f"{place} was embedded by {about.get('embedder')} ({about.get('fingerprint')}), not by"
                f" {self.embedder.name} ({self.embedder.fingerprint}): use that embedder again, or choose"
                " another collection or chroma_path to start anew"
            )
        return rows

    def _reconcile(self) -> None:
        """Make the sidecar say what Chroma says: a crash between the two writes leaves it one behind."""
        found = self._rows.get(include=["documents"])
        held = {name: fold(text) for name, text in zip(found["ids"], found["documents"], strict=True)}
        indexed = self._keywords.texts()
        if indexed != held:
            self._keywords.delete(indexed.keys() - held.keys())
            self._keywords.upsert({name: text for name, text in held.items() if indexed.get(name) != text})

    def _write(self, records: Sequence[Record], vectors: Vectors) -> None:
        with self._lock, disk_trouble(self.path):
            for start in range(0, len(records), _BATCH):
                some = records[start : start + _BATCH]
                self._rows.upsert(
                    ids=[record.id for record in some],
                    embeddings=vectors[start : start + _BATCH],
                    documents=[record.text for record in some],
                    metadatas=[encode(record) for record in some],
                )
                self._keywords.upsert({record.id: record.text for record in some})

    def _remove(self, ids: Sequence[str]) -> None:
        for some in _batches(ids):
            self._rows.delete(ids=list(some))
            self._keywords.delete(some)

    def _scan(self, where: Where) -> dict[str, Record]:
        with disk_trouble(self.path):
            return _decoded(self._rows.get(where=narrowed(where), include=_SHOWN))

    def _near(
        self, vector: NDArray[np.float32], where: Where, k: int
    ) -> tuple[dict[str, Record], dict[str, float]]:
        """The leg by meaning, best first: records and their cosines.

        Asked without `where` and filtered after, since Chroma maps every matching row before it searches
        (1.6 s at 100,000 rows, 3 ms without). Only where too few of those count are all that count compared.
        """
        asked = k if where is EVERYTHING else OVERFETCH * k
        answer = self._rows.query(query_embeddings=[vector], n_results=asked, include=[*_SHOWN, "distances"])
        ids, texts, metadatas = (answer[name][0] for name in ("ids", "documents", "metadatas"))
        # The index is approximate in which records it finds; the distances of those it finds are exact.
        exact = rounded(1 - np.array(answer["distances"][0])).tolist()
        records: dict[str, Record] = {}
        cosine: dict[str, float] = {}
        for at, name in enumerate(ids):
            if len(records) >= k and exact[at] < min(cosine.values()):
                break  # enough, and none of the rest ties with the last of them
            record = decode(name, texts[at], metadatas[at])
            if where(record):
                records[name], cosine[name] = record, exact[at]
        if len(records) < k and len(ids) < self._rows.count():
            records = {name: record for name, record in self._scan(where).items() if where(record)}
            cosine = self._cosines(list(records), vector)
        ids = list(records)
        near = [ids[at] for at in best(np.array([cosine[name] for name in ids]), ids, k)]
        return {name: records[name] for name in near}, {name: cosine[name] for name in near}

    def _worded(
        self, query: str, vector: NDArray[np.float32], where: Where, k: int,
        records: dict[str, Record], cosine: dict[str, float],
    ) -> tuple[list[str], dict[str, float]]:  # fmt: skip
        """The leg by word: ids, best first, and the scores of both legs' records.

        Adds the records it found to `records` and `cosine`, which hold those of the other leg.
        """
        limit = k if where is EVERYTHING else OVERFETCH * k
        while True:
            found, bm25 = self._keywords.search_scored(query, limit, cosine)
            unknown = [name for name, _ in found if name not in records]
            rows = self._rows.get(ids=unknown, include=[*_SHOWN, "embeddings"]) if unknown else _NO_ROWS
            read = {name: record for name, record in _decoded(rows).items() if where(record)}
            counting = [hit for hit in found if hit[0] in records or hit[0] in read][:k]
            if len(counting) == k or len(found) < limit:
                break
            limit *= OVERFETCH
        if read:
            new = [name for name, _ in counting if name in read]
            exact = cosines(np.asarray(rows["embeddings"]), vector).tolist()
            known = dict(zip(rows["ids"], exact, strict=True))
            records |= {name: read[name] for name in new}
            cosine |= {name: known[name] for name in new}
        return [name for name, _ in counting], bm25 | dict(counting)

    def _cosines(self, ids: Sequence[str], vector: NDArray[np.float32]) -> dict[str, float]:
        found: dict[str, float] = {}
        for some in _batches(ids):
            rows = self._rows.get(ids=list(some), include=["embeddings"])
            exact = cosines(np.asarray(rows["embeddings"]), vector).tolist()
            found.update(zip(rows["ids"], exact, strict=True))
        return found


def _sidecar(file: Path) -> Keywords:
    """The index in a file. It can be made anew from Chroma at any time, so a damaged one is."""
    try:
        return Keywords(file)
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):  # locked, or not allowed: nothing is damaged
            raise
        for part in (file, Path(f"{file}-wal"), Path(f"{file}-shm")):
            part.unlink(missing_ok=True)
        return Keywords(file)


def _decoded(rows: Any) -> dict[str, Record]:
    parts = zip(rows["ids"], rows["documents"], rows["metadatas"], strict=True)
    return {name: decode(name, text, metadata) for name, text, metadata in parts}


def _batches(items: Sequence[T]) -> Iterable[Sequence[T]]:
    return (items[start : start + _BATCH] for start in range(0, len(items), _BATCH))
