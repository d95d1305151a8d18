"""`hash`: words and letters hashed into a vector. It knows no meaning: a floor to compare with."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from hashlib import blake2b
from re import findall

import numpy as np

from memeval.embedding.base import Vectors


class HashEncoder:
    """Signed feature hashing (Weinberger et al. 2009) of words and letter trigrams into 256 numbers.

    The same text gives the same vector on every machine. Deterministic, symmetric, without prefixes.
    """

    name = "hash"
    digest = "memeval-hash-1"
    dim = 256

    def encode(self, texts: Sequence[str]) -> Vectors:
        """float32[n, 256], unit rows. Never fails; no text is too long."""
        vectors = np.zeros((len(texts), self.dim), dtype=np.float32)
        for row, text in zip(vectors, texts, strict=True):
            plain = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
            padded = f" {plain} "
            for word in findall(r"\w+", plain):
                self._add(row, "w", word, 1.0)
            for at in range(len(padded) - 2):
                self._add(row, "t", padded[at : at + 3], 1.0)
            # Half a count for the text as a whole: sums of ones can cancel, a half cannot be cancelled, so
            # no row is zero; and texts of the same words in another order differ.
            self._add(row, "x", plain, 0.5)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True) if len(texts) else 1
        return vectors

    def _add(self, row: Vectors, kind: str, feature: str, weight: float) -> None:
        written = f"{kind}:{feature}".encode(errors="surrogatepass")
        code = int.from_bytes(blake2b(written, digest_size=8).digest(), "little")
        row[(code >> 1) % self.dim] += weight if code & 1 else -weight
