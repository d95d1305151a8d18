"""Text in, unit vectors out: the one contract that stores, designs and retrieval sweeps embed by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Purpose = Literal["document", "query"]
PrefixMode = Literal["card", "none", "swapped", "query-only", "document-only", "wrong"]


class Encoder(Protocol):
    """The bare model: exactly the text sent, one raw vector each; no prefix, no cache."""

    @property
    def name(self) -> str:
        """As a sweep writes it: `ollama:nomic-embed-text`, `bundled:minilm`, `hash`."""

    @property
    def digest(self) -> str:
        """What the weights are, so that a cache never mixes two models under one name."""

    @property
    def dim(self) -> int:
        """Length of a vector."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """float32[n, dim], one row a text, in order. Raises TextTooLongError or InfrastructureError."""


class Embedder(Protocol):
    """An encoder with its prefixes applied: what the rest of memeval sees.

    Callers pass raw text and a purpose; prefixes are added here and nowhere else.
    """

    @property
    def name(self) -> str:
        """The encoder's name."""

    @property
    def dim(self) -> int:
        """Length of a vector."""

    @property
    def fingerprint(self) -> str:
        """Changes whenever a stored vector would: model digest, prefixes, dimensions."""

    def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Vectors:
        """Unit vectors, float32[n, dim]; `n == len(texts)`, zero rows for no texts."""
