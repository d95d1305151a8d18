"""The keyword leg: one user's texts in SQLite FTS5, searched by word. Nothing a person types is a query."""

from __future__ import annotations

import json
import re
import sqlite3
import threading
import unicodedata
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path

MAX_TERMS = 32
_SCHEMA = """
CREATE TABLE IF NOT EXISTS rows (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, text TEXT NOT NULL);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (
    text, content=rows, content_rowid=n, tokenize='porter unicode61 remove_diacritics 2'
);
CREATE TRIGGER IF NOT EXISTS added AFTER INSERT ON rows BEGIN
    INSERT INTO words (rowid, text) VALUES (new.n, new.text);
END;
CREATE TRIGGER IF NOT EXISTS removed AFTER DELETE ON rows BEGIN
    INSERT INTO words (words, rowid, text) VALUES ('delete', old.n, old.text);
END;
"""
_SEARCH = """
WITH found AS (
    SELECT rows.id AS id, -bm25(words) AS score
    FROM words JOIN rows ON rows.n = words.rowid WHERE words MATCH ?
)
SELECT * FROM (SELECT id, score, 1 FROM found ORDER BY score DESC, id LIMIT ?)
UNION ALL SELECT id, score, 0 FROM found WHERE id IN (SELECT value FROM json_each(?))
"""


def fold(text: str) -> str:
    """A text as it is indexed and asked for: compatibility forms (ligatures, full width) made plain."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def terms(text: str) -> list[str]:
    """The words of a text, each once, the first 32. Signs are never passed on.

    Of 27 probes of raw user text (`C++`, `user's`, `BA-117`, `topic:travel`), FTS5 refused 17 and misread
    others, so words are allowed in instead of signs kept out.
    """
    return list(dict.fromkeys(re.findall(r"\w+", fold(text))))[:MAX_TERMS]


class Keywords:
    """FTS5 over `id -> text`, in a file or in memory; safe to share between threads."""

    def __init__(self, path: Path | str = ":memory:") -> None:
        self._lock = threading.Lock()
        self._db = sqlite3.connect(path, check_same_thread=False, timeout=30)
        # The vectors' store is the truth and this index is reconciled with it when opened, so a commit lost
        # to a power cut costs nothing, while an fsync each would cost milliseconds.
        self._db.executescript(f"PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; {_SCHEMA}")

    def upsert(self, texts: Mapping[str, str]) -> None:
        """Index texts under their ids, in place of what stood there; all or none."""
        with self._lock, self._db:
            self._db.executemany("DELETE FROM rows WHERE id = ?", [(name,) for name in texts])
            rows = [(name, fold(text)) for name, text in texts.items()]
            self._db.executemany("INSERT INTO rows (id, text) VALUES (?, ?)", rows)

    def delete(self, ids: Iterable[str]) -> None:
        """Forget ids; unknown ones are no error."""
        with self._lock, self._db:
            self._db.executemany("DELETE FROM rows WHERE id = ?", [(name,) for name in ids])

    def search(self, query: str, limit: int = -1) -> list[tuple[str, float]]:
        """The best `(id, score)`: bm25 with its sign turned, so more is better; ties by id.

        A record matches if any word does. Scores are unbounded and near 0 in tiny stores: use their order.
        """
        return self.search_scored(query, limit, ())[0]

    def search_scored(
        self, query: str, limit: int, also: Iterable[str]
    ) -> tuple[list[tuple[str, float]], dict[str, float]]:
        """What `search` finds, and the scores of the ids in `also`; those that match no word are left out.

        One statement for both: bm25 counts every word's rows once a statement, and that is what costs.
        """
        words = terms(query)
        if not words:
            return [], {}
        match = " OR ".join(f'"{word}"' for word in words)
        with self._lock:
            rows = self._db.execute(_SEARCH, [match, limit, json.dumps(list(also))]).fetchall()
        return [(name, score) for name, score, top in rows if top], {n: s for n, s, top in rows if not top}

    def texts(self) -> dict[str, str]:
        """Everything indexed, as `id -> folded text`."""
        with self._lock, closing(self._db.execute("SELECT id, text FROM rows")) as rows:
            return dict(rows.fetchall())

    def is_empty(self) -> bool:
        """Whether nothing is indexed; at once, while `len` counts the rows."""
        with self._lock:
            return self._db.execute("SELECT 1 FROM rows LIMIT 1").fetchone() is None

    def __len__(self) -> int:
        with self._lock:
            return int(self._db.execute("SELECT count(*) FROM rows").fetchone()[0])

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._db.close()
