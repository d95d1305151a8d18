"""Vectors kept on disk, so that no text is embedded twice by the same model.

The key is a hash of the model's digest, the full text sent (prefix included) and the dimensions asked for;
no text is stored. A cache never stops a run: a damaged file is set aside, and where nothing can be written
the vectors are kept in memory, both with a warning.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import numpy as np
import platformdirs

from memeval.embedding.base import Vectors

T = TypeVar("T")
_IN_MEMORY = Path(":memory:")
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_CHUNK = 500  # keys in one SELECT; SQLite's oldest limit on variables is 999


def default_path() -> Path:
    """Where the cache lies: `MEMEVAL_CACHE` if set, else the user's cache directory."""
    override = os.environ.get("MEMEVAL_CACHE")
    return Path(override) if override else Path(platformdirs.user_cache_dir("memeval")) / "embeddings.sqlite"


def cache_key(digest: str, sent: str, dims: int) -> bytes:
    """The key of one vector: 32 bytes."""
    return sha256(json.dumps([digest, sent, dims]).encode()).digest()


class EmbeddingCache:
    """A SQLite file of unit vectors, safe to share between threads and processes and to kill at any time."""

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = Path(path) if path is not None else default_path()
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def get_many(self, keys: Iterable[bytes]) -> dict[bytes, Vectors]:
        """The vectors there are, float32[dim] each; keys that are not there are left out."""
        wanted = list(keys)
        return self._guarded(lambda connection: _read(connection, wanted))

    def put_many(self, vectors: Mapping[bytes, Vectors]) -> None:
        """Keep unit vectors, all or none."""
        rows = [(key, np.asarray(vector, dtype="<f4").tobytes()) for key, vector in vectors.items()]

        def write(connection: sqlite3.Connection) -> None:
            with connection:
                connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)

        self._guarded(write)

    def count(self) -> int:
        """How many vectors are kept."""
        return self._guarded(lambda c: int(c.execute("SELECT count(*) FROM vectors").fetchone()[0]))

    def close(self) -> None:
        """Let go of the file; the next use opens it again."""
        with self._lock:
            self._drop()

    def _guarded(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with self._lock:
            for _ in range(2):
                try:
                    return work(self._open())
                except sqlite3.Error as error:
                    self._give_way(error)
            return work(self._open())

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            if self.path != _IN_MEMORY:
                try:
                    self.path.parent.mkdir(parents=True, exist_ok=True)
                except OSError as error:
                    raise sqlite3.OperationalError(str(error)) from error
            connection = sqlite3.connect(self.path, timeout=30, check_same_thread=False)
            self._connection = connection
            # A write-ahead log survives kill -9 and lets others read while one writes.
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute(
                "CREATE TABLE IF NOT EXISTS vectors"
                " (key BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID"
            )
        return self._connection

    def _drop(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def _give_way(self, error: sqlite3.Error) -> None:
        self._drop()
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED:
            aside = self.path.with_name(f"{self.path.name}.damaged-{time.time_ns()}")
            with suppress(OSError):
                self.path.replace(aside)
            for ending in ("-wal", "-shm"):
                with suppress(OSError):
                    self.path.with_name(self.path.name + ending).replace(f"{aside}{ending}")
            message = f"the embedding cache {self.path} is damaged ({error}); set aside as {aside.name}"
        else:
            message = (
                f"the embedding cache {self.path} cannot be used ({error}); vectors are kept in memory only"
                " (set MEMEVAL_CACHE to a file that can be written)"
            )
            self.path = _IN_MEMORY
        warnings.warn(message, RuntimeWarning, stacklevel=4)


def _read(connection: sqlite3.Connection, keys: list[bytes]) -> dict[bytes, Vectors]:
    found: dict[bytes, Vectors] = {}
    for start in range(0, len(keys), _CHUNK):
        part = keys[start : start + _CHUNK]
        marks = ",".join("?" * len(part))
        for key, blob in connection.execute(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", part):
            if len(blob) % 4 == 0:
                vector = np.frombuffer(blob, dtype="<f4").astype(np.float32)
                # All vectors kept are unit vectors: whatever is not has been damaged, and is embedded anew.
                if abs(float(vector @ vector) - 1.0) < 1e-3:
                    found[bytes(key)] = vector
    return found
