"""Looking into a store as a person: whose memories it holds, and a handle that makes nothing new."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from memeval.embedding.base import Embedder, Purpose, Vectors
from memeval.errors import InputError, nearest
from memeval.memory.chroma import ChromaStore
from memeval.memory.folder import Folder, disk_trouble


@dataclass(frozen=True, slots=True)
class Namespace:
    """One user's memories within a store: their collection, what embedded them, how many there are."""

    user: str
    collection: str
    embedder: str
    fingerprint: str
    count: int


def users(path: Path | str) -> list[Namespace]:
    """The user namespaces of a Chroma folder, by user. Raises InputError where there is no store."""
    folder = Folder.hold(path, create=False)
    try:
        with disk_trouble(folder.path):
            found = [
                Namespace(
                    user=rows.metadata["user"],
                    collection=rows.name.rpartition("-")[0],
                    embedder=rows.metadata["embedder"],
                    fingerprint=rows.metadata["fingerprint"],
                    count=rows.count(),
                )
                for rows in folder.client.list_collections()
                if "fingerprint" in (rows.metadata or {})  # others in the folder are not ours
            ]
    finally:
        folder.release()
    return sorted(found, key=lambda space: (space.user, space.collection))


def open_existing(
    path: Path | str, user: str, embedder: Embedder | None = None, collection: str | None = None
) -> ChromaStore:
    """A handle on memories that are there; nothing is made. Without an embedder they are read, not searched.

    Raises InputError if the store or the user is not there, if several collections hold memories of this user
    and none was named, or if the embedder is not the one they were embedded by.
    """
    found = users(path)
    own = [space for space in found if space.user == user and collection in (None, space.collection)]
    if not own:
        where = f"collection {collection} of " if collection else ""
        known = nearest(user, {space.user for space in found if collection in (None, space.collection)})
        raise InputError(f"{where}memory store {path} holds no memories of user {user!r}{known}")
    if len(own) > 1:
        names = ", ".join(space.collection for space in own)
        raise InputError(f"memory store {path} has several collections of user {user!r}, name one: {names}")
    space = own[0]
    return ChromaStore(path, user, embedder or _Unnamed(space), space.collection, create=False)


class _Unnamed:
    """Stands where no embedder was given: it matches what is stored, and embeds nothing."""

    dim = 0

    def __init__(self, space: Namespace) -> None:
        self.name = space.embedder
        self.fingerprint = space.fingerprint

    def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Vectors:
        raise InputError(f"this store was opened for reading; to search or write, open it with {self.name}")
