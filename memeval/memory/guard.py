"""A store as one call of a tool or one hook sees it: counted, refused where it may not write, taken away."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from memeval.embedding.base import Embedder
from memeval.errors import ReadOnlyError
from memeval.memory.base import Candidates, MemoryStore
from memeval.records import EVERYTHING, Record, Where


class GuardedStore:
    """A `MemoryStore` over another, for one use of it.

    Read-only, it refuses every write. Once revoked it refuses everything, so that a tool that ran out of
    time cannot write into a later turn. `writes` counts the writes that went through.
    """

    def __init__(self, store: MemoryStore, *, read_only: bool = False) -> None:
        self.user = store.user
        self.embedder: Embedder = store.embedder
        self.writes = 0
        self._store = store
        self._read_only = read_only
        self._revoked = False
        self._lock = threading.RLock()

    def revoke(self) -> bool:
        """Take the store away; False if a use of it is under way, which then cannot be stopped."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            self._revoked = True
        finally:
            self._lock.release()
        return True

    def put(self, record: Record) -> str:
        with self._lock:
            done = self._to_write().put(record)
            self.writes += 1
            return done

    def get(self, record_id: str) -> Record | None:
        with self._lock:
            return self._to_read().get(record_id)

    def patch(self, record_id: str, **changes: Any) -> bool:
        with self._lock:
            done = self._to_write().patch(record_id, **changes)
            self.writes += 1
            return done

    def delete(self, record_id: str) -> bool:
        with self._lock:
            done = self._to_write().delete(record_id)
            self.writes += 1
            return done

    def find(self, where: Where = EVERYTHING, limit: int | None = None) -> list[Record]:
        with self._lock:
            return self._to_read().find(where, limit)

    def candidates(
        self, query: str, where: Where = EVERYTHING, k: int = 20, *, words: bool | str = True
    ) -> Candidates:
        with self._lock:
            return self._to_read().candidates(query, where, k, words=words)

    def count(self, where: Where = EVERYTHING) -> int:
        with self._lock:
            return self._to_read().count(where)

    def snapshot(self) -> tuple[Record, ...]:
        with self._lock:
            return self._to_read().snapshot()

    def restore(self, snapshot: Sequence[Record]) -> None:
        with self._lock:
            self._to_write().restore(snapshot)
            self.writes += 1

    def close(self) -> None:
        """Nothing: the store below is the trial's to close."""

    def _to_read(self) -> MemoryStore:
        if self._revoked:
            raise ReadOnlyError("the time for this call is over; memory can no longer be used by it.")
        return self._store

    def _to_write(self) -> MemoryStore:
        store = self._to_read()
        if self._read_only:
            raise ReadOnlyError("memory is read-only here; nothing was written.")
        return store
