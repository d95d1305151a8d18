"""Embedding models on an Ollama server, over `/api/embed`: exactly the text sent, nothing cut off.

Facts about the server are from a live v0.24.0: a chat model embeds without complaint, so its capability is
checked here; a too long text is refused only with `truncate: false`; an empty text gives no vector.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

import httpx
import numpy as np
import stamina

from memeval.embedding.base import Vectors
from memeval.embedding.embedder import problem, shown
from memeval.errors import InfrastructureError, InputError, TextTooLongError, nearest

MAX_CONTEXT = 8192
"""The longest context asked for: qwen3-embedding declares 32768, and would take gigabytes to serve it."""

BATCH = 8
AGREEMENT = 0.9999  # cosine; some servers gave other vectors in a batch than alone (ollama #6262)


class _BusyError(Exception):
    """The server asked to be left alone for a moment, or dropped the connection."""


def base_url(host: str | None = None) -> str:
    """A server's address from `host`, else `OLLAMA_HOST`, else the default, as Ollama itself reads them.

    `0.0.0.0` is an address to listen on, not one to call, and becomes 127.0.0.1.
    """
    given = (host or os.environ.get("OLLAMA_HOST") or "127.0.0.1").strip()
    try:
        url = httpx.URL(given if "://" in given else f"http://{given}")
    except httpx.InvalidURL as error:
        raise InputError(f"{given!r} is no server address ({error}); write http://HOST:11434") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise InputError(f"{given!r} is no server address; write http://HOST:11434")
    # A port is only the scheme's own where the scheme was written out, as in Ollama's client.
    port = url.port or ((443 if url.scheme == "https" else 80) if "://" in given else 11434)
    name = "127.0.0.1" if url.host == "0.0.0.0" else url.host
    shown_host = f"[{name}]" if ":" in name else name
    return f"{url.scheme}://{shown_host}:{port}{url.path.rstrip('/')}"


class OllamaEncoder:
    """One embedding model of one server. Opening it asks the server, so what is missing is said at once.

    Raises InputError (no such model, or no embedding model) and InfrastructureError (no or a bad server).
    `timeout` is the seconds one request may take in all, loading the model included.
    """

    def __init__(self, model: str, host: str | None = None, *, timeout: float = 120.0) -> None:
        self.model = model
        self.name = f"ollama:{model}"
        self.host = base_url(host)
        self._timeout = timeout
        # A proxy set for the web would swallow requests to this very machine.
        local = httpx.URL(self.host).host in ("127.0.0.1", "localhost", "::1")
        self._client = httpx.Client(base_url=self.host, timeout=timeout, trust_env=not local)
        self._batch: int | None = None
        self.digest = self._digest()
        facts = self._show()
        declared = _fact(facts, "context_length")
        self.num_ctx = min(declared or 2048, MAX_CONTEXT)
        self.dim = _fact(facts, "embedding_length") or len(self._embed(["dimension"])[0])

    def encode(self, texts: Sequence[str]) -> Vectors:
        """float32[n, dim], in order; batched once a batch was seen to give the vectors of single texts."""
        for at, text in enumerate(texts):
            if not text:
                raise InputError(f"text {at + 1} of {len(texts)} is empty; {self.name} has no vector for it")
        rows: list[list[float]] = []
        while len(rows) < len(texts):
            size = self._batch or BATCH
            part = list(texts[len(rows) : len(rows) + size])
            rows += self._rows(part, first=len(rows), total=len(texts))
        trouble = problem(rows, texts, self.dim) if rows else None
        if trouble:
            raise InfrastructureError(f"{self.name} {trouble}", kind="embedding")
        with np.errstate(over="ignore"):  # what does not fit becomes infinite, which the embedder refuses
            return np.asarray(rows, dtype=np.float32).reshape(len(texts), self.dim)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _rows(self, texts: list[str], first: int, total: int) -> list[list[float]]:
        if len(texts) > 1 and self._batch != 1:
            try:
                together = self._embed(texts)
            except (TextTooLongError, InfrastructureError) as error:
                if isinstance(error, InfrastructureError) and error.kind != "embedding":
                    raise
                # One bad text fails its whole batch: ask one by one to learn which.
            else:
                if self._batch is not None:
                    return together
                alone = [self._embed([text])[0] for text in texts]
                self._batch = BATCH if _agree(together, alone) else 1
                return alone
        rows = []
        for at, text in enumerate(texts, start=first + 1):
            try:
                rows += self._embed([text])
            except TextTooLongError as error:
                raise TextTooLongError(
                    f"text {at} of {total} is longer than the {self.num_ctx} tokens {self.name} reads:"
                    f" {shown(text)}; split it or choose a model with a longer context"
                ) from error
            except InfrastructureError as error:
                if error.kind != "embedding":
                    raise
                said = f"{error} (text {at} of {total}: {shown(text)})"
                raise InfrastructureError(said, kind="embedding") from error
        return rows

    def _embed(self, texts: list[str]) -> list[list[float]]:
        # num_batch too: it defaults to 2048 at most and would cut the context down to that (ollama #14259).
        options = {"num_ctx": self.num_ctx, "num_batch": self.num_ctx}
        body = {"model": self.model, "input": texts, "truncate": False, "options": options}
        reply = self._request("POST", "/api/embed", body)
        rows = reply.get("embeddings")
        if not isinstance(rows, list) or [type(row) for row in rows] != [list] * len(texts):
            raise self._bad("/api/embed", json.dumps(reply).encode())
        return rows

    def _digest(self) -> str:
        models = self._request("GET", "/api/tags").get("models")
        if not isinstance(models, list) or not all(isinstance(entry, dict) for entry in models):
            raise self._bad("/api/tags", json.dumps(models).encode())
        digests = {str(entry.get("name")): str(entry.get("digest", "")) for entry in models}
        wanted = self.model if ":" in self.model.rsplit("/", 1)[-1] else f"{self.model}:latest"
        if not digests.get(wanted):
            raise self._missing(digests)
        return digests[wanted]

    def _show(self) -> Mapping[str, Any]:
        shown_model = self._request("POST", "/api/show", {"model": self.model})
        capabilities, facts = shown_model.get("capabilities"), shown_model.get("model_info")
        if not isinstance(capabilities, list) or not isinstance(facts, dict):
            raise self._bad("/api/show", json.dumps(shown_model).encode())
        if "embedding" not in capabilities:
            can = ", ".join(map(str, capabilities)) or "nothing"
            raise InputError(
                f"{self.name} is no embedding model (it can do: {can}); choose one that"
                " embeds, such as: ollama pull nomic-embed-text"
            )
        return facts

    def _request(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        try:
            for attempt in stamina.retry_context(on=_BusyError, attempts=3, wait_initial=0.2, timeout=None):
                with attempt:
                    status, content = self._send(method, path, body)
        except _BusyError as error:
            raise InfrastructureError(f"Ollama at {self.host} is not serving: {error}") from error
        except httpx.ConnectTimeout as error:
            raise self._down(error) from error
        except httpx.TimeoutException as error:
            raise InfrastructureError(
                f"Ollama at {self.host} did not answer {path} for {self.name} within {self._timeout:g} s",
                kind="timeout",
            ) from error
        except httpx.ConnectError as error:
            raise self._down(error) from error
        except httpx.HTTPError as error:
            raise self._bad(path, str(error).encode()) from error
        return self._read(path, status, content)

    def _send(self, method: str, path: str, body: object) -> tuple[int, bytes]:
        deadline = time.monotonic() + self._timeout
        content = bytearray()
        try:
            with self._client.stream(method, path, json=body) as response:
                for chunk in response.iter_bytes():
                    content += chunk
                    # httpx limits the wait for each piece; a server that drips would hold us for ever.
                    if time.monotonic() > deadline:
                        raise httpx.ReadTimeout("the whole reply took too long")
        except (httpx.ReadError, httpx.WriteError, httpx.CloseError) as error:
            raise _BusyError(f"it dropped the connection ({error})") from error
        except httpx.RemoteProtocolError as error:
            if "disconnected" in str(error) or "closed connection" in str(error):
                raise _BusyError(f"it dropped the connection ({error})") from error
            raise
        if response.status_code == 503:
            raise _BusyError(_words(bytes(content)) or "it is busy (HTTP 503)")
        return response.status_code, bytes(content)

    def _read(self, path: str, status: int, content: bytes) -> dict[str, Any]:
        words = _words(content)
        if status == 404 and "not found" in words:
            raise self._missing()
        if status == 400 and "context length" in words:
            raise TextTooLongError(f"{self.name}: {words}")
        if status >= 500:
            # bge-m3 and nomic give NaN for some texts, always the same ones (ollama #14657, #9639).
            raise InfrastructureError(
                f"{self.name} at {self.host} failed with HTTP {status}: {words or repr(content[:200])}",
                kind="embedding" if re.search(r"\bNaN\b", words, re.IGNORECASE) else "server_error",
            )
        try:
            reply = json.loads(content)
        except ValueError:
            raise self._bad(path, content) from None
        if status != 200 or not isinstance(reply, dict) or "error" in reply:
            raise self._bad(path, content)
        return reply

    def _missing(self, there: Mapping[str, str] | None = None) -> InputError:
        hint = nearest(self.model, there) if there else ""
        return InputError(
            f"Ollama at {self.host} has no model {self.model!r}{hint}; get it with: ollama pull {self.model}"
        )

    def _down(self, error: Exception) -> InfrastructureError:
        return InfrastructureError(
            f"no Ollama server answers at {self.host} ({error}); start it with: ollama serve"
            " (or set OLLAMA_HOST to where it runs)",
            kind="server_down",
        )

    def _bad(self, path: str, content: bytes) -> InfrastructureError:
        return InfrastructureError(
            f"{self.host}{path} answered what no Ollama would: {content[:200]!r}", kind="bad_response"
        )


def _words(content: bytes) -> str:
    """The server's own error text, or nothing where there is none."""
    try:
        reply = json.loads(content)
    except ValueError:
        return ""
    return str(reply.get("error", "")) if isinstance(reply, dict) else ""


def _fact(facts: Mapping[str, Any], ending: str) -> int | None:
    value = facts.get(f"{facts.get('general.architecture')}.{ending}")
    return value if isinstance(value, int) and value > 0 else None


def _agree(together: list[list[float]], alone: list[list[float]]) -> bool:
    a, b = np.asarray(together, dtype=np.float64), np.asarray(alone, dtype=np.float64)
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return bool(np.all((a * b).sum(axis=1) > AGREEMENT * lengths))
