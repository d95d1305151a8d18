"""Exchanges with a real Ollama server, kept in a small JSON file and played back as if it were there."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections import defaultdict
from pathlib import Path
from typing import Any, Literal

import httpx

from memeval.errors import InputError
from memeval.models.ollama import OllamaModel

FORMAT = "memeval-exchanges-1"
# Parts of /api/show that are long, or tell about the machine, and that nothing here reads.
_DROPPED = ("modelfile", "tensors", "license", "messages", "projector_info")


class Recorder(httpx.BaseTransport):
    """A transport that keeps what it carries: `OllamaModel(name, transport=Recorder())`, then `save(path)`.

    The body of a chat is kept line by line as the server sent it; of `/api/show` and `/api/tags` only what
    describes the model. A reply is read whole before it is passed on, so a deadline covers each read only.
    """

    def __init__(self, inner: httpx.BaseTransport | None = None) -> None:
        self.exchanges: list[dict[str, Any]] = []
        self._inner = inner or httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Pass a request on, and keep it with its answer."""
        sent = json.loads(request.read() or b"null")
        response = self._inner.handle_request(request)
        data = response.read()
        exchange = {"method": request.method, "path": request.url.path, "request": sent}
        kept = {**exchange, "status": response.status_code, "lines": _kept(request.url.path, data)}
        if request.method != "GET" or kept not in self.exchanges:
            self.exchanges.append(kept)
        response.close()
        return httpx.Response(response.status_code, content=data)

    def save(self, path: Path | str, model: str) -> None:
        """Write the exchanges as a file that `RecordedModel` reads."""
        data = {"format": FORMAT, "model": model, "exchanges": self.exchanges}
        text = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
        Path(path).write_text(text, encoding="utf-8")

    def close(self) -> None:
        """Close the network."""
        self._inner.close()


class RecordedModel(OllamaModel):
    """A model that answers from a file of exchanges, through the same code that reads a live server.

    `match="content"`: a request is answered by a recorded one of equal content (all of it but the model's
    tag and `keep_alive`); recorded more than once, they are taken in turn, the last one again and again.
    `match="order"`: chats are answered in the order recorded, whatever they ask. A request that was not
    recorded is an InputError naming the nearest one that was.
    """

    smoke = True  # a replay measures nothing anew

    def __init__(self, path: Path | str, *, match: Literal["content", "order"] = "content") -> None:
        file = Path(path)
        data = _load(file)
        super().__init__(data["model"], "http://recorded", transport=_Player(file, data["exchanges"], match))
        self._path = file
        self._digest = hashlib.sha256(file.read_bytes()).hexdigest()

    @property
    def name(self) -> str:
        """`recorded:` and the path."""
        return f"recorded:{self._path.as_posix()}"

    @property
    def digest(self) -> str:
        """The file's SHA-256."""
        return self._digest

    def describe(self) -> dict[str, Any]:
        """Which model was recorded, and the file."""
        return {"model": self.tag, "digest": self.digest, "capabilities": list(self.capabilities)}

    def healthy(self) -> bool:
        """Always: a file does not go down."""
        return True


class _Player(httpx.BaseTransport):
    def __init__(self, file: Path, exchanges: list[dict[str, Any]], match: str) -> None:
        self._file, self._in_order = file, match == "order"
        self._answers: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for exchange in exchanges:
            key = self._key(exchange["method"], exchange["path"], exchange["request"])
            self._answers[key].append(exchange)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        sent = json.loads(request.read() or b"null")
        key = self._key(request.method, request.url.path, sent)
        answers = self._answers.get(key)
        if not answers:
            raise InputError(
                f"{self._file} holds no answer to {_brief(key)}; the nearest is {self._near(key)}"
            )
        # In order, a chat that is answered is gone; by content, the last answer stays for the next asker.
        spent = self._in_order and request.url.path == "/api/chat"
        exchange = answers.pop(0) if spent or len(answers) > 1 else answers[0]
        body = "\n".join(exchange["lines"]) + "\n"
        return httpx.Response(exchange["status"], content=body.encode())

    def _key(self, method: str, path: str, request: Any) -> str:
        if self._in_order and path == "/api/chat":
            return "POST /api/chat"
        body = {k: v for k, v in (request or {}).items() if k not in ("model", "keep_alive")}
        return f"{method} {path} {json.dumps(body, sort_keys=True, ensure_ascii=False)}"

    def _near(self, key: str) -> str:
        close = difflib.get_close_matches(key, self._answers, n=1, cutoff=0.0)
        return _brief(close[0]) if close else "none at all"


def _brief(key: str) -> str:
    """A request as a person tells it from others: where it goes, and its last words."""
    head, _, body = key.partition(" {")
    said = [m.get("content", "") for m in json.loads("{" + body).get("messages", [])] if body else []
    return f"{head} {said[-1][:80]!r}" if said else key[:120]


def _kept(path: str, data: bytes) -> list[str]:
    if path not in ("/api/show", "/api/tags"):
        return [line for line in data.decode(errors="replace").split("\n") if line]
    try:
        answer = json.loads(data)
    except ValueError:
        return [data.decode(errors="replace")]
    for key in _DROPPED:
        answer.pop(key, None)
    answer.get("details", {}).pop("parent_model", None)
    info = answer.get("model_info", {})
    answer["model_info"] = {k: v for k, v in info.items() if k.endswith(".context_length")}
    return [json.dumps(answer)]


def _load(file: Path) -> dict[str, Any]:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{file}: recorded exchanges cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"{file}: not JSON: {error}") from None
    wanted = ("method", "path", "request", "status", "lines")
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InputError(f"{file}: not recorded exchanges; `format` must be {FORMAT!r}")
    exchanges = data.get("exchanges")
    if not isinstance(exchanges, list) or any(k not in e for e in exchanges for k in wanted):
        raise InputError(f"{file}: every exchange needs {', '.join(wanted)}")
    return data
