"""A Chroma folder held by this process: one client and one lock, shared by all handles on it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memeval.errors import InfrastructureError, InputError

LOCK = "memeval.lock"
SIDE = ".passages"
"""How the name of a side collection ends: the passages of one collection's long texts."""
_held: dict[Path, Folder] = {}
_registry = threading.Lock()


class Folder:
    """A Chroma folder, open. Made by `Folder.hold`; the last `release` closes the client and the lock.

    The lock is there because two processes that write one Chroma folder silently lose vectors: 16 to 28 % of
    a writer's were unfindable after reopening (1.5.9, batches of 500), without any error. It covers reading
    as well, since a reader that replays the log may write the index. `sides` are the names of the side
    collections that are there: known here, since only this process can make or drop one.
    """

    def __init__(self, path: Path) -> None:
        from filelock import FileLock, Timeout

        self.path = path
        self._handles = 1
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(path / LOCK, timeout=0, thread_local=False)
            self._lock.acquire()
        except Timeout:
            raise InputError(
                f"memory store {path} is in use by another process; wait until that has ended, or choose"
                " another chroma_path"
            ) from None
        except OSError as error:
            raise InputError(f"memory store {path} is no folder that can be written: {error}") from None
        try:
            self.client: Any
            self.client, self.sides = _connect(path)
        except BaseException:
            self._lock.release()
            raise

    @staticmethod
    def hold(path: Path | str, *, create: bool = True) -> Folder:
        """The folder at a path, opened or shared. Raises InputError if it is locked, absent or no store."""
        place = Path(path).resolve()
        with _registry:
            folder = _held.get(place)
            if folder is not None:
                folder._handles += 1
                return folder
            if not create and not (place / "chroma.sqlite3").is_file():
                raise InputError(f"there is no memory store in {place}")
            folder = _held[place] = Folder(place)
            return folder

    def release(self) -> None:
        """Give one handle back."""
        with _registry:
            self._handles -= 1
            if self._handles:
                return
            del _held[self.path]
            try:
                self.client.close()
            finally:
                self._lock.release()


def _connect(path: Path) -> tuple[Any, set[str]]:
    import chromadb
    from chromadb.api.shared_system_client import SharedSystemClient
    from chromadb.config import Settings
    from chromadb.errors import ChromaError

    try:
        client = chromadb.PersistentClient(str(path), settings=Settings(anonymized_telemetry=False))
        names = (rows.name for rows in client.list_collections())
        return client, {name for name in names if name.endswith(SIDE)}
    except (ChromaError, ValueError) as error:
        # Chroma keeps the half-started system under this path, and every later client would be given it.
        SharedSystemClient._identifier_to_system.pop(str(path), None)
        raise InputError(f"{path} cannot be opened as a Chroma store: {error}") from None


@contextmanager
def disk_trouble(path: Path) -> Iterator[None]:
    """What Chroma or SQLite could not do, as an InfrastructureError that names the folder."""
    import sqlite3

    from chromadb.errors import ChromaError

    try:
        yield
    except (ChromaError, sqlite3.Error) as error:
        raise InfrastructureError(f"memory store {path} could not be read or written: {error}") from error
