"""Fresh stores for trials: cheap, separate, and gone when the trial is over."""

from __future__ import annotations

import hashlib
import tempfile
import threading
from pathlib import Path

from memeval.embedding.base import Embedder
from memeval.errors import InputError, nearest
from memeval.memory import KINDS
from memeval.memory.base import MemoryStore


class Stores:
    """Gives an empty store for each namespace and user; safe to use from several threads.

    For Chroma, one client serves the whole run and each store is a collection of its own with its words in
    memory: making, using and dropping one costs 10 to 15 ms of CPU, a client each would cost 80 more.
    `path` None is a temporary folder. What a killed run left under the same namespace is thrown away.
    """

    def __init__(
        self, kind: str, path: Path | str | None, embedder: Embedder, collection: str = "local2.memory"
    ) -> None:
        if kind not in KINDS:
            raise InputError(f"there is no store {kind!r}{nearest(kind, KINDS)}")
        self.kind = kind
        self.embedder = embedder
        self._collection = collection
        self._lock = threading.Lock()
        self._open: dict[str, dict[str, MemoryStore]] = {}
        if kind == "chroma":
            from memeval.memory.folder import Folder, disk_trouble

            self._own = tempfile.TemporaryDirectory(prefix="memeval-") if path is None else None
            self._folder = Folder.hold(self._own.name if self._own else path or "")
            with disk_trouble(self._folder.path):
                self._stale = {rows.name for rows in self._folder.client.list_collections()}

    def fresh(self, namespace: str, user: str) -> MemoryStore:
        """A new empty store. The same namespace and user again, before `drop`, is an InputError."""
        with self._lock:
            if user in self._open.setdefault(namespace, {}):
                raise InputError(f"namespace {namespace!r} has a store of user {user!r} already; drop it")
            store = self._open[namespace][user] = self._make(namespace, user)
            return store

    def drop(self, namespace: str) -> None:
        """Close and remove the stores of a namespace; an unknown one is no error."""
        with self._lock:
            stores = self._open.pop(namespace, {})
            for user, store in stores.items():
                store.close()
                if self.kind == "chroma":
                    self._remove(self._name(namespace, user))

    def close(self) -> None:
        """Drop what is left and let go of the folder."""
        for namespace in list(self._open):
            self.drop(namespace)
        if self.kind == "chroma":
            self._folder.release()
            if self._own:
                self._own.cleanup()

    def _make(self, namespace: str, user: str) -> MemoryStore:
        if self.kind == "inmemory":
            from memeval.memory.inmemory import InMemoryStore

            return InMemoryStore(user, self.embedder)
        from memeval.memory.chroma import ChromaStore
        from memeval.memory.keywords import Keywords

        name = self._name(namespace, user)
        if name in self._stale:
            self._remove(name)
            self._stale.discard(name)
        return ChromaStore(
            self._folder.path, user, self.embedder, self._prefix(namespace), keywords=Keywords()
        )

    def _remove(self, name: str) -> None:
        from memeval.memory.collection import drop_collection
        from memeval.memory.folder import disk_trouble

        with disk_trouble(self._folder.path):
            drop_collection(self._folder, name)

    def _prefix(self, namespace: str) -> str:
        return f"{self._collection}.{hashlib.sha256(namespace.encode()).hexdigest()[:16]}"

    def _name(self, namespace: str, user: str) -> str:
        from memeval.memory.collection import collection_name

        return collection_name(self._prefix(namespace), user)
