"""The four methods of the author's MemoryService, a thin facade over any store."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from memeval.errors import InputError
from memeval.memory.base import MemoryStore
from memeval.memory.ranking import SimilarityFloor
from memeval.records import Clock, Hit, Ids, Origin, Record, Where, topic_id, utc_now
from memeval.settings import Settings

EPISODES = Where(kinds=("episodic",))


def random_ids(prefix: str) -> str:
    """Fresh ids for use outside trials, where nothing is replayed."""
    return f"{prefix}-{uuid4().hex}"


class MemoryService:
    """Topics are standing facts under an exact key; episodes accumulate and are found by meaning.

    Callers pass raw text: the store's embedder adds the prefixes its model needs. What is embedded is the
    content alone, as the author wrote it. Times, ids and the origin of what is written are from outside.
    """

    def __init__(
        self,
        store: MemoryStore,
        clock: Clock = utc_now,
        ids: Ids = random_ids,
        settings: Settings = Settings(),  # noqa: B008 - frozen
        origin: Origin = "tool",
    ) -> None:
        self.store = store
        self.clock = clock
        self.ids = ids
        self.settings = settings
        self.origin: Origin = origin

    @staticmethod
    def key(topic: str) -> str:
        """A topic key as it is kept: trimmed, lower case, spaces as `_`. Never matched more loosely."""
        return re.sub(r"\s+", "_", topic.strip().lower())

    def write_topic(self, topic: str, content: str) -> str:
        """Keep `content` under a key, in place of what stood there, and return the entry's id.

        When a topic was first written stays on record; `updated_at` says when it was last.
        """
        key = self.key(topic)
        if not key:
            raise InputError("a topic needs a key, such as user.name; this one is empty")
        now = self.clock()
        old = self.store.get(topic_id(key))
        record = Record(
            id=topic_id(key),
            kind="topic",
            text=content,
            origin=self.origin,
            created_at=old.created_at if old else now,
            updated_at=now,
            fields={"topic": key, "content": content},
        )
        return self.store.put(record)

    def recall_topic(self, topic: str) -> str | None:
        """The content under exactly this key, or None. Nothing is embedded."""
        record = self.topic_record(topic)
        return record.text if record else None

    def topic_record(self, topic: str) -> Record | None:
        """The record under exactly this key, or None."""
        return self.store.get(topic_id(self.key(topic)))

    def write_episodic(self, content: str, metadata: Mapping[str, Any]) -> str:
        """Add an episode and return its id. Equal contents are two. A None in `metadata` is left out."""
        now = self.clock()
        record = Record(
            id=self.ids("episodic"),
            kind="episodic",
            text=content,
            origin=self.origin,
            created_at=now,
            updated_at=now,
            fields={name: value for name, value in metadata.items() if value is not None},
        )
        return self.store.put(record)

    def search_episodic(self, query: str, top_k: int | None = None) -> list[dict[str, Any]]:
        """Episodes near a query, as `{id, content, score, metadata}`; none with cosine below `min_score`."""
        return [
            {
                "id": hit.record.id,
                "content": hit.record.text,
                "score": hit.score,
                "metadata": {**hit.record.fields, "type": hit.record.kind},
            }
            for hit in self.search_hits(query, top_k)
        ]

    def search_hits(self, query: str, top_k: int | None = None) -> list[Hit]:
        """The same as hits, for tools that format them on their own."""
        k = self.settings.top_k if top_k is None else top_k
        found = self.store.candidates(query, EPISODES, k, words=False)
        return SimilarityFloor(self.settings.min_score).rank(found, k)
