"""What ChromaStore costs over the same raw chromadb calls and FTS5 statements, and a fresh store per trial.

    python tests/benchmarks/bench_store.py [ROWS]

Raw and ours take turns within one run, so a busy machine slows both alike; the CPU ratio is the steadier.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import chromadb
import numpy as np
from chromadb.config import Settings

from memeval.memory.chroma import ChromaStore
from memeval.memory.collection import INDEX
from memeval.memory.factory import Stores
from memeval.records import EVERYTHING, Record, Where

DIM = 384
NOW = datetime(2026, 1, 1, tzinfo=UTC)
WORDS = np.array([f"word{n}" for n in range(2000)])


class Precomputed:
    """Vectors at no cost, so that the store alone is measured."""

    name, dim, fingerprint = "precomputed", DIM, "precomputed"

    def embed(self, texts: Any, purpose: str = "document") -> Any:
        return np.stack([vector(text) for text in texts])


_vectors: dict[str, Any] = {}


def vector(text: str) -> Any:
    if text not in _vectors:
        made = np.random.default_rng(len(_vectors)).normal(size=DIM).astype(np.float32)
        _vectors[text] = made / np.linalg.norm(made)
    return _vectors[text]


def turns(times: int, raw: Callable[[int], Any], ours: Callable[[int], Any]) -> Any:
    """Median seconds, [raw or ours, of wall or of CPU], called in turn."""
    spent = np.zeros((times, 2, 2))
    for at in range(times):
        for who, call in ((0, raw), (1, ours)) if at % 2 else ((1, ours), (0, raw)):
            wall, cpu = time.perf_counter(), time.process_time()
            call(at)
            spent[at, who] = time.perf_counter() - wall, time.process_time() - cpu
    return np.median(spent, axis=0)


def main(rows: int = 1000, times: int = 100) -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, 30)) for _ in range(rows + times)]
    kinds = ["topic" if n % 5 == 0 else "episodic" for n in range(len(texts))]
    rest = json.dumps(
        {"created_at": NOW.isoformat(), "updated_at": NOW.isoformat(), "fields": {}, "tags": []}
    )
    metadata = [{"type": kind, "topic": "", "origin": "tool", "record": rest} for kind in kinds]
    records = [
        Record(id=f"{n}", kind=kind, text=text, origin="tool", created_at=NOW, updated_at=NOW)
        for n, (text, kind) in enumerate(zip(texts, kinds, strict=True))
    ]  # fmt: skip
    vectors = np.stack([vector(text) for text in texts])

    with tempfile.TemporaryDirectory() as folder:
        client = chromadb.PersistentClient(f"{folder}/raw", settings=Settings(anonymized_telemetry=False))
        raw = client.create_collection("raw", configuration={"hnsw": INDEX}, embedding_function=None)
        words = sqlite3.connect(f"{folder}/raw.sqlite3")
        words.executescript(
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; CREATE VIRTUAL TABLE words USING"
            " fts5(id UNINDEXED, text, tokenize='porter unicode61 remove_diacritics 2')"
        )
        store = ChromaStore(Path(folder, "ours"), "user", Precomputed())
        ids = [record.id for record in records]
        raw.upsert(
            ids=ids[:rows], embeddings=vectors[:rows], documents=texts[:rows], metadatas=metadata[:rows]
        )
        words.executemany("INSERT INTO words VALUES (?, ?)", zip(ids[:rows], texts[:rows], strict=True))
        words.commit()
        store.restore(records[:rows])

        def raw_upsert(at: int) -> None:
            n = rows + at
            raw.upsert(ids=[ids[n]], embeddings=[vectors[n]], documents=[texts[n]], metadatas=[metadata[n]])
            with words:
                words.execute("INSERT INTO words VALUES (?, ?)", (ids[n], texts[n]))

        def raw_search(at: int, asked: int = 5) -> Any:
            return raw.query(
                query_embeddings=[vectors[at]],
                n_results=asked,
                include=["metadatas", "documents", "distances"],
            )

        def raw_hybrid(at: int) -> None:
            near = raw_search(at)["ids"][0]
            match = " OR ".join(f'"{word}"' for word in dict.fromkeys(texts[at].split()))
            found = words.execute(
                "SELECT id, -bm25(words) FROM words WHERE words MATCH ? ORDER BY bm25(words) LIMIT 5", [match]
            ).fetchall()
            missing = [name for name, _ in found if name not in near]
            if missing:
                raw.get(ids=missing, include=["metadatas", "documents", "embeddings"])

        episodes = Where(kinds=("episodic",))
        looks = [
            ("upsert", raw_upsert, lambda at: store.put(records[rows + at])),
            ("search k=5", raw_search, lambda at: store.candidates(texts[at], EVERYTHING, 5, words=False)),
            (
                "search k=5, episodic (raw: 20 asked)",
                lambda at: raw_search(at, 20),
                lambda at: store.candidates(texts[at], episodes, 5, words=False),
            ),
            (
                "search k=5, episodic (raw: where)",
                lambda at: raw.query(
                    query_embeddings=[vectors[at]],
                    n_results=5,
                    where={"type": "episodic"},
                    include=["metadatas", "documents", "distances"],
                ),
                lambda at: store.candidates(texts[at], episodes, 5, words=False),
            ),
            ("search k=5 by word as well", raw_hybrid, lambda at: store.candidates(texts[at], EVERYTHING, 5)),
            (
                "get by id",
                lambda at: raw.get(ids=[ids[at]], include=["metadatas", "documents"]),
                lambda at: store.get(ids[at]),
            ),
        ]
        print(f"{rows} rows of {DIM} numbers; medians of {times}, of wall and CPU time")
        print(f"{'':40}raw ms   ours ms     ratio")
        for name, theirs, own in looks:
            slow, mine = turns(times, theirs, own)
            (raw_wall, raw_cpu), (wall, cpu) = slow * 1e3, mine * 1e3
            ratios = f"{wall / raw_wall:5.2f} {cpu / raw_cpu:5.2f}"
            print(f"{name:36}{raw_wall:5.2f} {raw_cpu:5.2f}{wall:6.2f} {cpu:5.2f} {ratios}")
        store.close()
        client.close()

        for kind in ("inmemory", "chroma"):
            stores = Stores(kind, Path(folder, "trials"), Precomputed())
            spent, cpu = time.perf_counter(), time.process_time()
            for n in range(20):
                fresh = stores.fresh(f"trial {n}", "user")
                fresh.put(records[n])
                fresh.get(records[n].id)
                fresh.candidates(texts[n], EVERYTHING, 5, words=False)
                stores.drop(f"trial {n}")
            spent, cpu = time.perf_counter() - spent, time.process_time() - cpu
            print(f"a trial's store, {kind}: fresh, put, get, search, drop: {spent / 20 * 1e3:.2f} ms,"
                  f" of CPU {cpu / 20 * 1e3:.2f} ms")  # fmt: skip
            stores.close()


if __name__ == "__main__":
    main(*(int(given) for given in sys.argv[1:2]))
