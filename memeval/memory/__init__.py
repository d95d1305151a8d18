"""What is remembered: stores, rankers, and the author's MemoryService."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from memeval.embedding.base import Embedder
from memeval.errors import InputError, nearest
from memeval.memory.base import Candidates, MemoryStore

StoreKind = Literal["chroma", "inmemory"]
KINDS: tuple[StoreKind, ...] = ("chroma", "inmemory")

__all__ = ["KINDS", "Candidates", "MemoryStore", "StoreKind", "open_store"]


def open_store(
    kind: str, path: Path | str, user: str, embedder: Embedder, collection: str = "local2.memory"
) -> MemoryStore:
    """A handle on one user's memories. `path` and `collection` say nothing to a store in memory."""
    if kind == "chroma":
        from memeval.memory.chroma import ChromaStore

        return ChromaStore(path, user, embedder, collection)
    if kind == "inmemory":
        from memeval.memory.inmemory import InMemoryStore

        return InMemoryStore(user, embedder)
    raise InputError(f"there is no store {kind!r}{nearest(kind, KINDS)}")
