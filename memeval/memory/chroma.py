"""The durable store: vectors and records in Chroma, words in an FTS5 sidecar, one collection a user."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from memeval.embedding.base import Embedder, Vectors
from memeval.memory.base import Candidates
from memeval.memory.chunking import embedded
from memeval.memory.codec import changed, embeds_alike, encode, whole, writable
from memeval.memory.collection import SHOWN, batches, collection_name, decoded, open_collection, scan
from memeval.memory.folder import Folder, disk_trouble
from memeval.memory.further import FurtherPassages
from memeval.memory.keywords import Keywords, fold
from memeval.memory.legs import looked_for, merge, nothing
from memeval.memory.search import Search
from memeval.records import EVERYTHING, Record, Where


class ChromaStore:
    """One user's memories in a Chroma folder. See `MemoryStore` for the meaning of each method.

    Handles of one process share the folder's client; another process is refused. The collection's row of a
    record is the truth: the further passages of a long text are written before it and count once it says so,
    the words after it. Both are reconciled with it here, at opening, so that a crash leaves the old text or
    the new one, never some of each.
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
                self._rows = open_collection(self._folder, name, user, embedder, create=create)
                self._further = FurtherPassages(self._folder, name)
                self._keywords = (
                    _sidecar(self.path / f"{name}.words.sqlite3") if keywords is None else keywords
                )
                self._reconcile()
        except BaseException:
            self._folder.release()
            raise

    def put(self, record: Record) -> str:
        record = whole(record)
        self._write([record], embedded(self.embedder, [record]))
        return record.id

    def get(self, record_id: str) -> Record | None:
        if not writable(record_id):
            return None
        with disk_trouble(self.path):
            return decoded(self._rows.get(ids=[record_id], include=SHOWN)).get(record_id)

    def patch(self, record_id: str, **changes: Any) -> bool:
        with self._lock:
            old = self.get(record_id)
            if old is None:
                return False
            new = changed(old, changes)
            if embeds_alike(new, old):
                with disk_trouble(self.path):
                    self._rows.update(ids=[new.id], metadatas=[encode(new)])
            else:
                self._write([new], embedded(self.embedder, [new]))
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
        self, query: str, where: Where = EVERYTHING, k: int = 20, *, words: bool | str = True
    ) -> Candidates:
        with disk_trouble(self.path):
            empty = self._keywords.is_empty()
        if k < 1 or empty:
            return nothing()
        vector = self.embedder.embed([query], "query")[0]
        with disk_trouble(self.path):
            search = Search(self._rows, self._further, vector, where, k)
            near = search.by_meaning()
            asked = looked_for(query, words)
            worded, bm25 = search.by_word(self._keywords, asked) if asked else ([], {})
        return merge(search.records, search.cosine, near, worded, bm25, search.passages)

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
            same = [r for r in differing if r.id in held and embeds_alike(r, held[r.id])]
            new = [r for r in differing if r not in same]
            vectors = embedded(self.embedder, new)
            with disk_trouble(self.path):
                self._remove([name for name in held if name not in wanted])
                for some in batches(same):
                    self._rows.update(ids=[r.id for r in some], metadatas=[encode(r) for r in some])
            self._write(new, vectors)

    def close(self) -> None:
        with self._lock:
            if self._open:
                self._open = False
                self._keywords.close()
                self._folder.release()

    def _reconcile(self) -> None:
        """Make words and passages say what the rows say: a crash between two writes leaves them behind."""
        found = self._rows.get(include=["documents"])
        held = {name: fold(text) for name, text in zip(found["ids"], found["documents"], strict=True)}
        indexed = self._keywords.texts()
        if indexed != held:
            self._keywords.delete(indexed.keys() - held.keys())
            self._keywords.upsert({name: text for name, text in held.items() if indexed.get(name) != text})
        for some in batches(self._further.owners()):
            self._further.clear(some, decoded(self._rows.get(ids=list(some), include=SHOWN)))

    def _write(self, records: Sequence[Record], vectors: Sequence[Vectors]) -> None:
        with self._lock, disk_trouble(self.path):
            for some in batches(list(zip(records, vectors, strict=True))):
                current = {record.id: record for record, _ in some}
                self._further.write(*zip(*some, strict=True))
                self._rows.upsert(
                    ids=list(current),
                    embeddings=np.stack([own[0] for _, own in some]),
                    documents=[record.text for record in current.values()],
                    metadatas=[encode(record) for record in current.values()],
                )
                self._keywords.upsert({name: record.text for name, record in current.items()})
                self._further.clear(list(current), current)

    def _remove(self, ids: Sequence[str]) -> None:
        for some in batches(ids):
            self._rows.delete(ids=list(some))
            self._keywords.delete(some)
            self._further.clear(some, {})

    def _scan(self, where: Where) -> dict[str, Record]:
        with disk_trouble(self.path):
            return scan(self._rows, where)


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
