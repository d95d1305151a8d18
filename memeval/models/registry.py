"""Chat models by the names a sweep writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memeval.errors import InputError, nearest
from memeval.models.base import ChatModel

Factory = Callable[..., ChatModel]
KINDS = ("ollama:<name>", "gguf:<path>", "recorded:<path>", "bundled:smollm2", "bundled:router")
_registered: dict[str, Factory] = {}


def register_model(name: str, factory: Factory) -> None:
    """Give a model of your own a name: `factory(**kw)` makes it whenever the name is opened."""
    _registered[name] = factory


def open_model(name: str, host: str | None = None, **kw: Any) -> ChatModel:
    """The chat model of a name. `host` is for Ollama; `kw` goes to the model as it is.

    Nothing is loaded or asked yet. Raises InputError for an unknown name, with the nearest one.
    """
    if name in _registered:
        return _registered[name](**kw)
    kind, _, rest = name.partition(":")
    if kind in ("ollama", "gguf", "recorded") and rest:
        return _open(kind, rest, host, **kw)
    # Imported here: each brings libraries that a run without it need not load.
    if name == "bundled:smollm2":
        from memeval.models.bundled import open_smollm2

        return open_smollm2(**kw)
    if name == "bundled:router":
        from memeval.models.router import RouterModel

        return RouterModel(**kw)
    known = [*KINDS, *_registered]
    hint = nearest(name, known)
    if kind not in ("bundled", "ollama", "gguf", "recorded") and "did you mean" not in hint:
        hint = f"; did you mean 'ollama:{name}'?"  # the usual slip: `qwen3:4b`
    raise InputError(f"there is no model {name!r}{hint}")


def _open(kind: str, rest: str, host: str | None, **kw: Any) -> ChatModel:
    if kind == "ollama":
        from memeval.models.ollama import OllamaModel

        return OllamaModel(rest, host, **kw)
    if kind == "gguf":
        from memeval.models.gguf import GgufModel

        return GgufModel(rest, **kw)
    from memeval.models.recorded import RecordedModel

    return RecordedModel(rest, **kw)
