"""Embedders by name: the built-in ones, those of an Ollama server, and a person's own."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from typing import Any, Literal, TypeVar

from memeval.embedding.base import Encoder, PrefixMode
from memeval.embedding.cache import EmbeddingCache, default_path
from memeval.embedding.embedder import PrefixedEmbedder
from memeval.embedding.hashing import HashEncoder
from memeval.embedding.own import OWN_MODES, EmbedFunction, EncodeFunction, FunctionEncoder, Registration
from memeval.embedding.prefixes import PREFIX_MODES, REGISTRY, Prefixes, UnsupportedPrefix
from memeval.errors import InputError, nearest

F = TypeVar("F", bound=Callable[..., Any])

BUILT_IN = ("bundled:minilm", "hash")
_HASH = Prefixes(family="hash", dims=(HashEncoder.dim,), source="", checked_on="")
_own: dict[str, Registration] = {}
_caches: dict[str, EmbeddingCache] = {}
_guard = threading.Lock()


def open_embedder(
    name: str,
    prefix: PrefixMode = "card",
    dims: int | None = None,
    cache: EmbeddingCache | Literal["default"] | None = "default",
    host: str | None = None,
) -> PrefixedEmbedder:
    """An embedder by the name a sweep writes: `ollama:<name>`, `bundled:minilm`, `hash`, or one's own.

    `dims` cuts to fewer dimensions where the model's card allows it. `cache=None` embeds anew every time.
    `host` is for `ollama:` only, default `OLLAMA_HOST`. Raises InputError with the nearest name there is,
    UnsupportedPrefix, and whatever opening the model raises.
    """
    if prefix not in PREFIX_MODES:
        raise InputError(f"no prefix mode {prefix!r}{nearest(prefix, PREFIX_MODES)}")
    encoder, prefixes = _encoder(name, prefix, host)
    kept = _default_cache() if cache == "default" else cache
    return PrefixedEmbedder(encoder, prefix, dims, kept, prefixes=prefixes)


def _encoder(name: str, prefix: PrefixMode, host: str | None) -> tuple[Encoder, Prefixes | None]:
    if name in _own:
        own = _own[name]
        if own.by_purpose and prefix not in OWN_MODES:
            raise UnsupportedPrefix(
                f"the embedder {name!r} writes its own prefixes, so it cannot be had with prefix {prefix!r};"
                f" it can do: {', '.join(OWN_MODES)}"
            )
        return FunctionEncoder(own), own.prefixes
    if name == "hash":
        return HashEncoder(), _HASH
    if name == "bundled:minilm":
        from memeval.embedding.minilm import MiniLMEncoder

        return MiniLMEncoder(), None
    engine, _, model = name.partition(":")
    if engine == "ollama" and model:
        from memeval.embedding.ollama import OllamaEncoder

        return OllamaEncoder(model, host), None
    known = {*embedder_names(), *(f"ollama:{row.family}" for row in REGISTRY)}
    hint = nearest(f"ollama:{name}" if f"ollama:{name}" in known else name, known)
    raise InputError(f"no embedder {name!r}{hint}")


def _default_cache() -> EmbeddingCache:
    path = default_path()
    with _guard:
        return _caches.setdefault(str(path), EmbeddingCache(path))


def register(
    name: str,
    encode: EncodeFunction | None = None,
    *,
    embed: EmbedFunction | None = None,
    document_prefix: str = "",
    query_prefix: str = "",
    digest: str | None = None,
) -> Callable[[F], F]:
    """Make a function of your own an embedder, under a name that sweeps can use.

    `encode(texts)` gets texts with the prefixes given here already written before them; all six prefix modes
    work. `embed(texts, purpose)` is for engines that write their own prefixes; only `card` and `swapped` can
    be had. Both return one vector a text, of any length but zero. As a decorator, a function with a parameter
    `purpose` is of the second kind:

        @register("mine", query_prefix="query: ")
        def mine(texts):
            return my_model.encode(texts)

    `digest` names the weights in caches and fingerprints; by default it is a hash of the function's source,
    so an edited function is a new embedder: give one when the weights change and the source does not.
    Registering a name again replaces it, as running a notebook cell twice must.
    """
    if not name or name in BUILT_IN or name.startswith(("ollama:", "bundled:")):
        raise InputError(f"{name!r} is not free for an embedder of your own; choose another name")
    if encode is not None and embed is not None:
        raise InputError(f"register({name!r}) got both encode and embed; give the one your engine has")

    def keep(function: F, by_purpose: bool) -> F:
        if not callable(function):
            raise InputError(f"register({name!r}) needs a function, not {type(function).__name__}")
        if by_purpose and (document_prefix or query_prefix):
            raise InputError(f"register({name!r}) takes no prefixes with embed: that engine writes its own")
        _own[name] = Registration.of(name, function, digest, by_purpose, document_prefix, query_prefix)
        return function

    if embed is not None:
        keep(embed, True)
    elif encode is not None:
        keep(encode, False)
    return lambda function: keep(function, "purpose" in inspect.signature(function).parameters)


def unregister(name: str) -> None:
    """Forget an embedder of one's own. Raises InputError if there is none of that name."""
    if name not in _own:
        raise InputError(f"no embedder of your own is named {name!r}{nearest(name, _own)}")
    del _own[name]


def embedder_names() -> list[str]:
    """The names that can be opened without a server: the built-in ones and those registered, sorted."""
    return sorted((*BUILT_IN, *_own))
