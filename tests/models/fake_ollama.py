"""An Ollama server for tests: real HTTP on a free port, with a script of what it does to each chat."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TEMPLATE = "{{ range .Tools }}{{ json .Function }}{{ end }}"


@dataclass(frozen=True)
class Answer:
    """What one chat gets: a status, bytes in pieces, `delay` seconds before each; `cut` ends the connection.

    `endless` repeats the pieces until the client goes away. `silent` accepts the request and never answers.
    With `chunked` the end of the body is marked, so that a cut shows; without, the connection's end is it.
    """

    pieces: Sequence[bytes] = ()
    status: int = 200
    delay: float = 0.0
    cut: bool = False
    endless: bool = False
    silent: bool = False
    chunked: bool = False
    content_type: str = "application/x-ndjson"


def line(**chunk: Any) -> bytes:
    return json.dumps(chunk).encode() + b"\n"


def said(text: str, *, prompt: int = 500, output: int = 5, done_reason: str = "stop") -> bytes:
    """A whole reply in two chunks, as bytes."""
    first = line(model="fake", message={"role": "assistant", "content": text}, done=False)
    return first + line(
        model="fake",
        message={"role": "assistant", "content": ""},
        done=True,
        done_reason=done_reason,
        load_duration=2_000_000_000,
        prompt_eval_count=prompt,
        eval_count=output,
    )


def failed(status: int, text: str) -> Answer:
    return Answer([json.dumps({"error": text}).encode()], status=status, content_type="application/json")


class FakeOllama:
    """`with FakeOllama([Answer(...), ...]) as fake: OllamaModel("fake", fake.host)`.

    The last answer stays for every later chat. `requests` keeps (path, body) of each request.
    """

    def __init__(self, script: Sequence[Answer] = (), capabilities: Sequence[str] = ("completion", "tools")):
        self.script = list(script) or [Answer([said("Hello.")])]
        self.capabilities = list(capabilities)
        self.rendered: str | None = None
        self.requests: list[tuple[str, Any]] = []
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.host = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> FakeOllama:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._server.shutdown()
        self._server.server_close()

    def chats(self) -> list[Any]:
        """The bodies of the chats that were asked for."""
        return [body for path, body in self.requests if path == "/api/chat"]

    def _next(self) -> Answer:
        with self._lock:
            return self.script.pop(0) if len(self.script) > 1 else self.script[0]

    def _plain(self, path: str, body: Any) -> Any:
        if path == "/api/version":
            return {"version": "0.24.0"}
        if path == "/api/tags":
            return {"models": [{"name": "fake:latest", "digest": "d1"}, {"name": "other:1b", "digest": "d2"}]}
        if path == "/api/ps":
            return {"models": [{"name": "fake:latest", "digest": "d1", "context_length": 4096}]}
        if path == "/api/show":
            details = {"family": "qwen2", "parameter_size": "0.5B", "quantization_level": "Q4_K_M"}
            info = {"qwen2.context_length": 32768}
            return {
                "capabilities": self.capabilities,
                "details": details,
                "template": TEMPLATE,
                "model_info": info,
            }
        if path == "/api/chat" and body.get("_debug_render_only") and self.rendered is not None:
            return {
                "message": {"role": "", "content": ""},
                "_debug_info": {"rendered_template": self.rendered},
            }
        return None

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                self._serve(None)

            def do_POST(self) -> None:
                self._serve(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def _serve(self, body: Any) -> None:
                fake.requests.append((self.path, body))
                self.close_connection = True
                plain = fake._plain(self.path, body)
                with contextlib.suppress(OSError):  # the client may go away
                    if plain is not None:
                        self._send(Answer([json.dumps(plain).encode()], content_type="application/json"))
                    else:
                        self._send(fake._next())

            def _send(self, answer: Answer) -> None:
                if answer.silent:
                    fake._stop.wait(30)
                    return
                self.send_response(answer.status)
                self.send_header("Content-Type", answer.content_type)
                if answer.chunked:
                    self.send_header("Transfer-Encoding", "chunked")
                else:
                    self.send_header("Connection", "close")
                self.end_headers()
                for piece in self._pieces(answer):
                    if answer.delay and fake._stop.wait(answer.delay):
                        return
                    if answer.chunked:
                        piece = b"%x\r\n%s\r\n" % (len(piece), piece)
                    self.wfile.write(piece)
                    self.wfile.flush()
                if answer.chunked and not answer.cut:
                    self.wfile.write(b"0\r\n\r\n")

            def _pieces(self, answer: Answer) -> Iterator[bytes]:
                yield from answer.pieces
                while answer.endless and not fake._stop.is_set():
                    yield from answer.pieces

        return Handler
