"""An Ollama server over HTTP: raw JSON in and out, and every way a request can break named."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from memeval.errors import InfrastructureError, InputError, MemevalError, ModelFailureError
from memeval.models.deadline import Deadline
from memeval.settings import ollama_url

QUICK_SECONDS = 10.0  # for requests that run no model
LARGEST_REPLY = 32 * 2**20  # bytes; a chat reply is a few thousand
_OVERFLOW = re.compile(r"exceeds? the (available )?context|longer than the context length", re.IGNORECASE)
REPEATS = 30  # tokens; Ollama gives up on a token after more than 30 in a row (llm/server.go)
_MALFORMED = "error parsing tool call"


class BusyError(InfrastructureError):
    """503: the server's queue is full; worth another try."""


class Server:
    """One Ollama server. Thread-safe; one connection a request.

    Connections are not kept alive: one costs 0.2 ms on the same machine, a stale one costs a trial.
    `timed_out` is set when a chat ran into its deadline: the server may go on working on it for minutes.
    """

    def __init__(self, host: str | None = None, transport: httpx.BaseTransport | None = None) -> None:
        url = httpx.URL(ollama_url(host))
        # Passwords in an URL never reach a message or a manifest.
        self.host = f"{url.scheme}://{url.host}" + (f":{url.port}" if url.port else "")
        self.timed_out = False
        self._client = httpx.Client(
            base_url=url, transport=transport, limits=httpx.Limits(max_keepalive_connections=0)
        )

    def get(self, path: str) -> dict[str, Any]:
        """The JSON object under a path."""
        return self.ask("GET", path, None)

    def ask(self, method: str, path: str, body: Any, seconds: float = QUICK_SECONDS) -> dict[str, Any]:
        """The JSON object that answers a request."""
        with self._open(method, path, body, seconds) as response:
            data = response.read()
            if response.status_code != 200:
                raise self._refusal(response.status_code, data, body)
            return self._object(data)

    def stream(self, body: Mapping[str, Any], seconds: float) -> Iterator[dict[str, Any]]:
        """The chunks of a streamed chat, up to the one with `done: true`.

        Ollama breaks a reply off without that chunk when the model writes one token more than 30 times in a
        row (seen on 0.24, the same for the same seed): the model's failure, not the server's. While a call is
        being written it holds the tokens back, so there they are asked for once more, with `logprobs`, which
        show them.
        """
        ends = time.monotonic() + seconds
        repeats = _Repeats()
        for chunk in self._chunks(body, seconds):
            yield chunk
            if chunk.get("done"):
                return
            repeats.count(_said(chunk))
        if not repeats.endless and body.get("tools"):
            repeats = _Repeats()
            for chunk in self._chunks({**body, "logprobs": True}, max(0.001, ends - time.monotonic())):
                for token in _tokens(chunk):
                    repeats.count(token)
        if repeats.endless:
            raise ModelFailureError(
                f"the reply repeats {repeats.last!r} without end, and the server broke it off",
                kind="runaway_length",
            )
        raise InfrastructureError(
            f"{self.host} ended a reply without `done: true`; it is not whole", kind="truncated"
        )

    def _chunks(self, body: Mapping[str, Any], seconds: float) -> Iterator[dict[str, Any]]:
        """Whatever the server sends of a chat."""
        with self._open("POST", "/api/chat", body, seconds) as response:
            if response.status_code != 200:
                raise self._refusal(response.status_code, response.read(), body)
            for line in self._lines(response):
                chunk = self._object(line)
                if "error" in chunk:  # under HTTP 200, when it happened after the first chunk
                    raise self._refusal(500, line, body)
                yield chunk
                if chunk.get("done"):
                    return

    def close(self) -> None:
        """Close the client."""
        self._client.close()

    @contextmanager
    def _open(self, method: str, path: str, body: Any, seconds: float) -> Iterator[httpx.Response]:
        """One request under one deadline, with every way it can break named."""
        deadline = Deadline(seconds)
        # Plain ASCII: a lone surrogate in a reply fed back would otherwise break the request's encoding.
        content = None if body is None else json.dumps(body).encode()
        try:
            with (
                deadline,
                self._client.stream(
                    method,
                    path,
                    content=content,
                    headers={"Content-Type": "application/json"},
                    timeout=deadline.timeout(),
                    extensions={"trace": deadline.trace},
                ) as response,
            ):
                yield response
                if deadline.passed:  # the cut looked like an ordinary end
                    raise httpx.ReadTimeout("deadline")
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol):
            raise InfrastructureError(
                f"no Ollama server answers at {self.host}: start one with `ollama serve`, or set OLLAMA_HOST",
                kind="server_down",
            ) from None
        except (httpx.HTTPError, OSError, ValueError, InfrastructureError) as error:
            # A TLS socket that is shut under its reader may raise ValueError, too.
            if deadline.passed or isinstance(error, httpx.TimeoutException):
                self.timed_out = self.timed_out or path == "/api/chat"
                raise InfrastructureError(
                    f"{self.host}{path} did not finish within {seconds:.3g} seconds", kind="timeout"
                ) from None
            if isinstance(error, InfrastructureError | ValueError):
                raise
            raise InfrastructureError(
                f"{self.host}{path} broke off: {str(error) or type(error).__name__}", kind="truncated"
            ) from None

    def _lines(self, response: httpx.Response) -> Iterator[bytes]:
        buffer, size = b"", 0
        for piece in response.iter_bytes():
            size += len(piece)
            if size > LARGEST_REPLY:
                raise InfrastructureError(
                    f"{self.host} sent more than {LARGEST_REPLY >> 20} MiB", kind="bad_response"
                )
            *whole, buffer = (buffer + piece).split(b"\n")
            yield from (line for line in whole if line.strip())
        # A last line without its line feed counts if it is whole; half of one means the stream was cut.
        if buffer.strip():
            try:
                json.loads(buffer)
            except ValueError:
                if not buffer.lstrip().startswith(b"{"):
                    raise self.garbage(buffer) from None
                return
            yield buffer

    def _object(self, line: bytes) -> dict[str, Any]:
        try:
            chunk = json.loads(line)
        except ValueError:
            raise self.garbage(line) from None
        if not isinstance(chunk, dict):
            raise self.garbage(line)
        return chunk

    def garbage(self, data: bytes) -> InfrastructureError:
        """The error for an answer that is not Ollama's; its first 200 bytes tell who sent it."""
        return InfrastructureError(
            f"{self.host} does not answer like Ollama; it sent {data[:200].decode(errors='replace')!r}",
            kind="bad_response",
        )

    def _refusal(self, status: int, data: bytes, body: Any) -> MemevalError:
        """What the server refused, and whose doing it is."""
        model = (body or {}).get("model", "")
        try:
            said = str(json.loads(data)["error"])
        except (ValueError, KeyError, TypeError):
            return BusyError(f"{self.host} is busy (503)") if status == 503 else self.garbage(data)
        if _MALFORMED in said:
            return ModelFailureError(f"{model} wrote no readable call: {said}", kind="malformed_call")
        if _OVERFLOW.search(said):
            return ModelFailureError(f"{model} got more than fits: {said}", kind="context_overflow")
        if status == 404:
            return InputError(f"{self.host} has no model {model!r}; `ollama pull {model}` gets it")
        if status == 400 and ("does not support" in said or "invalid model name" in said):
            way_out = "; use the calling mode `prompted` or `constrained`" if "support tools" in said else ""
            return InputError(f"{self.host} refused the model {model!r}: {said}{way_out}")
        if status == 503:
            return BusyError(f"{self.host} is busy: {said}")
        return InfrastructureError(f"{self.host} answered {status}: {said[:500]}", kind="server_error")


def _said(chunk: Mapping[str, Any]) -> str:
    """What a chunk of a chat adds to the reply, bare of space, as the server compares it."""
    message = chunk.get("message")
    said = message.get("content") if isinstance(message, dict) else None
    return said.strip() if isinstance(said, str) else ""


def _tokens(chunk: Mapping[str, Any]) -> list[str]:
    """The tokens that a chunk stands for, bare of space, where `logprobs` were asked for."""
    found = chunk.get("logprobs")
    tokens = [one.get("token") for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    return [token.strip() for token in tokens if isinstance(token, str)]


@dataclass(slots=True)
class _Repeats:
    """How often the last token came in a row."""

    last: str = ""
    same: int = 0

    def count(self, token: str) -> None:
        self.last, self.same = token, self.same + 1 if token == self.last else 1

    @property
    def endless(self) -> bool:
        return self.same >= REPEATS
