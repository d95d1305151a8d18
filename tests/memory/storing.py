"""Shared by the tests of this room: records and embedders without ceremony."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from memeval.embedding.base import Purpose, Vectors
from memeval.embedding.hashing import HashEncoder
from memeval.errors import TextTooLongError
from memeval.records import Record

START = datetime(2026, 5, 30, 9, tzinfo=UTC)


class Tiny:
    """Hash vectors without a cache. Counts what it embeds; refuses texts of more than 1,000 characters."""

    dim = 256

    def __init__(self, name: str = "tiny") -> None:
        self.name = name
        self.fingerprint = f"{name}-1"
        self.embedded: list[tuple[str, Purpose]] = []

    def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Vectors:
        if any(len(text) > 1000 for text in texts):
            raise TextTooLongError("a text has more than 1,000 characters")
        self.embedded += [(text, purpose) for text in texts]
        return HashEncoder().encode(texts) if texts else np.zeros((0, self.dim), dtype=np.float32)


def record(name: str, text: str = "a text", minute: int = 0, **changes: Any) -> Record:
    """A note, written some minutes into the story."""
    moment = START + timedelta(minutes=minute)
    given = {"kind": "note", "origin": "tool", "created_at": moment, "updated_at": moment}
    return Record(id=name, text=text, **{**given, **changes})
