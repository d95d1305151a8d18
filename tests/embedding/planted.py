"""An encoder with a planted asymmetry: it understands a statement only after `passage: `, a question only
after `query: `. Whatever else it is sent keeps a little of its meaning and drowns in noise."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

DIM = 48
NAME = "ollama:someone/e5-small-v2"
STATEMENTS = [f"The user keeps item{n:02d} in the cellar." for n in range(40)]
QUESTIONS = [f"Where is item{n:02d}?" for n in range(40)]


def _direction(seed: str) -> np.ndarray:
    number = int.from_bytes(blake2b(seed.encode(), digest_size=8).digest(), "little")
    vector = np.random.default_rng(number).standard_normal(DIM)
    return vector / np.linalg.norm(vector)


class PlantedEncoder:
    name = NAME
    digest = "planted-1"
    dim = DIM

    def __init__(self) -> None:
        self.sent: list[str] = []

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        self.sent += texts
        return np.array([self._vector(text) for text in texts], dtype=np.float32)

    def _vector(self, text: str) -> np.ndarray:
        understood = text.startswith("query: " if text.endswith("?") else "passage: ")
        item = re.search(r"item\d+", text)
        meaning = _direction(item[0] if item else text)
        return 3.0 * (meaning if understood else 0.3 * meaning + _direction(text))


def hit_at_1(embedder) -> float:
    """The share of questions whose own statement is the nearest."""
    documents = embedder.embed(STATEMENTS, "document")
    queries = embedder.embed(QUESTIONS, "query")
    return float(np.mean(np.argmax(queries @ documents.T, axis=1) == np.arange(len(QUESTIONS))))
