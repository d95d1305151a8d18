"""A user's collection in a Chroma folder: its name, how it is made and dropped, its rows as records."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from memeval.embedding.base import Embedder
from memeval.errors import InputError
from memeval.memory.codec import decode, narrowed
from memeval.memory.folder import SIDE, Folder
from memeval.records import Record, Where

# Under Chroma's defaults some 100 equal vectors make other records unreachable; with these, 300 do not.
# They decide at creation: a later change of ef_search takes effect only after reopening.
INDEX = {"space": "cosine", "ef_search": 400, "ef_construction": 400, "max_neighbors": 64}
BATCH = 1000  # Chroma takes 5461 rows a call, SQLite some 32,000 variables
SHOWN = ["metadatas", "documents"]
T = TypeVar("T")


def collection_name(collection: str, user: str) -> str:
    """The name of a user's collection. Chroma refuses most characters in names, so the user is hashed."""
    return f"{collection}-{hashlib.sha256(user.encode()).hexdigest()[:16]}"


def open_collection(folder: Folder, name: str, user: str, embedder: Embedder, *, create: bool) -> Any:
    """The user's collection, made if absent, its index, owner and embedder as they must be."""
    from chromadb.errors import NotFoundError

    try:
        rows = folder.client.get_collection(name, embedding_function=None)
    except NotFoundError:
        if not create:
            raise InputError(f"memory store {folder.path} holds nothing of user {user!r}") from None
        _drop_side(folder, name)  # a crash while dropping may have left it behind
        about = {"user": user, "embedder": embedder.name, "fingerprint": embedder.fingerprint}
        return folder.client.create_collection(
            name, metadata=about, configuration={"hnsw": INDEX}, embedding_function=None
        )
    about = rows.metadata or {}
    place = f"collection {name} in memory store {folder.path}"
    if about.get("user") != user:
        raise InputError(f"{place} belongs to {about.get('user')!r}, not to {user!r}")
    if rows.configuration["hnsw"]["space"] != "cosine":
        raise InputError(f"{place} was not made by cosine; choose another collection")
    if about.get("fingerprint") != embedder.fingerprint:
        raise InputError(
            f"{place} was embedded by {about.get('embedder')} ({about.get('fingerprint')}), not by"
            f" {embedder.name} ({embedder.fingerprint}): use that embedder again, or choose"
            " another collection or chroma_path to start anew"
        )
    return rows


def drop_collection(folder: Folder, name: str) -> None:
    """Remove a user's collection, and then its side collection if it has one."""
    folder.client.delete_collection(name)
    _drop_side(folder, name)


def _drop_side(folder: Folder, name: str) -> None:
    if name + SIDE in folder.sides:
        folder.client.delete_collection(name + SIDE)
        folder.sides.discard(name + SIDE)


def scan(rows: Any, where: Where) -> dict[str, Record]:
    """At least all the records that count, by id."""
    return decoded(rows.get(where=narrowed(where), include=SHOWN))


def decoded(rows: Any) -> dict[str, Record]:
    """What Chroma's `get` gave, by id."""
    parts = zip(rows["ids"], rows["documents"], rows["metadatas"], strict=True)
    return {name: decode(name, text, metadata) for name, text, metadata in parts}


def batches(items: Sequence[T]) -> Iterable[Sequence[T]]:
    """As many at once as a call of Chroma takes."""
    return (items[start : start + BATCH] for start in range(0, len(items), BATCH))
