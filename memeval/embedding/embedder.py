"""An encoder with its prefixes, its checks and its cache: what stores, designs and sweeps embed by."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from hashlib import sha256

import numpy as np

from memeval.embedding.base import Encoder, PrefixMode, Purpose, Vectors
from memeval.embedding.cache import EmbeddingCache, cache_key
from memeval.embedding.prefixes import Prefixes, apply, lookup
from memeval.errors import InfrastructureError, InputError


class PrefixedEmbedder:
    """Applies a prefix mode, cuts to `dims` where the family allows it, checks, normalises, remembers.

    `prefix` is the mode, `prefixes` the family's row, `encoded` counts the texts the encoder was really
    given: a second run over the same texts leaves it at 0. Safe to use from several threads.
    """

    def __init__(
        self,
        encoder: Encoder,
        mode: PrefixMode = "card",
        dims: int | None = None,
        cache: EmbeddingCache | None = None,
        *,
        prefixes: Prefixes | None = None,
    ) -> None:
        self.encoder = encoder
        self.prefix: PrefixMode = mode
        self.prefixes = lookup(encoder.name) if prefixes is None else prefixes
        self.name = encoder.name
        self.dim = encoder.dim if dims is None else _checked_dims(dims, encoder, self.prefixes)
        self.encoded = 0
        document, query = apply(self.prefixes, mode)
        self._before: dict[Purpose, str] = {"document": document, "query": query}
        self._cache = cache
        self._lock = threading.Lock()
        written = json.dumps([encoder.digest, document, query, self.dim])
        self.fingerprint = sha256(written.encode()).hexdigest()

    @property
    def registered(self) -> bool:
        """Whether the model's prefixes are known; if not, none are written and reports say so."""
        return self.prefixes.registered

    @property
    def symmetric(self) -> bool:
        """Whether the model's card writes documents and queries alike."""
        return self.prefixes.symmetric

    def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Vectors:
        """Unit vectors, float32[n, dim], one row a text in order.

        Raises InputError for a blank text, TextTooLongError, and InfrastructureError (`embedding`) where the
        encoder returned something that is not `n` finite, non-zero vectors.
        """
        if isinstance(texts, str):
            raise InputError("embed takes a list of texts, not one text: write embed([text])")
        for at, text in enumerate(texts):
            if not text.strip():
                raise InputError(f"text {at + 1} of {len(texts)} for {self.name} is blank; embed some words")
        if not texts:
            return np.zeros((0, self.dim), dtype=np.float32)
        # A model's tool call can hold half a surrogate pair, which neither HTTP nor a tokenizer can carry.
        texts = [text.encode("utf-8", "surrogatepass").decode("utf-8", "replace") for text in texts]
        before = self._before[purpose]
        keys = [cache_key(self.encoder.digest, before + text, self.dim) for text in texts]
        fresh = dict(zip(keys, texts, strict=True))
        # One lock around asking and encoding: two threads with the same text embed it once.
        with self._lock:
            known = self._cache.get_many(fresh) if self._cache else {}
            missing = {key: text for key, text in fresh.items() if key not in known}
            if missing:
                new = dict(zip(missing, self._encode(list(missing.values()), before), strict=True))
                if self._cache:
                    self._cache.put_many(new)
                known |= new
        return np.stack([known[key] for key in keys])

    def _encode(self, texts: list[str], before: str) -> Vectors:
        raw = self.encoder.encode([before + text for text in texts])
        self.encoded += len(texts)
        trouble = problem(raw, texts, self.encoder.dim)
        if trouble:
            raise InfrastructureError(f"{self.name} {trouble}", kind="embedding")
        # In double precision: a model's raw vectors may be long enough for float32 squares to overflow.
        vectors = np.asarray(raw, dtype=np.float64)[:, : self.dim]
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not lengths.all():
            at = int(np.argmin(lengths))
            raise InfrastructureError(
                f"{self.name} returned only zeros in the first {self.dim} numbers for {shown(texts[at])}",
                kind="embedding",
            )
        return np.asarray(vectors / lengths, dtype=np.float32)


def problem(raw: object, texts: Sequence[str], dim: int) -> str | None:
    """What is wrong with what an encoder returned for some texts, naming the text; None if nothing is."""
    try:
        vectors = np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError) as error:
        return f"did not return {len(texts)} vectors of one length: {error}"
    if vectors.ndim != 2:
        return f"returned an array of shape {vectors.shape}, not ({len(texts)}, {dim})"
    if len(vectors) != len(texts):
        return f"returned {len(vectors)} vectors for {len(texts)} texts"
    if vectors.shape[1] != dim:
        return f"returned vectors of {vectors.shape[1]} numbers, not {dim}"
    for fault, bad in (
        ("a vector that is not finite", ~np.isfinite(vectors).all(axis=1)),
        ("a zero vector", ~vectors.any(axis=1)),
    ):
        if bad.any():
            at = int(np.argmax(bad))
            return f"returned {fault} for text {at + 1} of {len(texts)}: {shown(texts[at])}"
    return None


def shown(text: str) -> str:
    """A text as an error message names it: its beginning, quoted, and its length."""
    return repr(text) if len(text) <= 60 else f"{text[:60]!r}... ({len(text)} characters)"


def _checked_dims(dims: int, encoder: Encoder, prefixes: Prefixes) -> int:
    if dims == encoder.dim or (dims in prefixes.mrl and dims < encoder.dim):
        return dims
    if not prefixes.mrl:
        raise InputError(
            f"{encoder.name} cannot be cut to {dims} dimensions: its card names no shorter ones;"
            f" leave out dims (it has {encoder.dim})"
        )
    allowed = prefixes.mrl
    said = f"{allowed[0]} to {encoder.dim}" if isinstance(allowed, range) else ", ".join(map(str, allowed))
    raise InputError(
        f"{encoder.name} cannot be cut to {dims} dimensions; its card allows {said} of {encoder.dim}"
    )
