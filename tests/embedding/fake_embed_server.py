"""A server that speaks enough of Ollama's API to be wrong in every way that was seen."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DIM = 4


def vector(text: str) -> list[float]:
    return [float(len(text)), 1.0, float(text.count("a")), 2.0]


class FakeOllama:
    """`embed` may be replaced by a function from the request's body to (status, body)."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict]] = []
        self.capabilities: object = ["embedding"]
        self.context_length = 512
        self.embed = self.well
        self.release = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def well(self, body: dict) -> tuple[int, object]:
        return 200, {"embeddings": [vector(text) for text in body["input"]]}

    def embeds(self) -> list[dict]:
        return [body for path, body in self.requests if path == "/api/embed"]

    def close(self) -> None:
        self.release.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, path: str, body: dict) -> tuple[int, object]:
        if path == "/api/tags":
            return 200, {"models": [{"name": "nomic-embed-text:latest", "digest": "abc"}]}
        if path == "/api/show":
            info = {
                "general.architecture": "bert",
                "bert.context_length": self.context_length,
                "bert.embedding_length": DIM,
            }
            return 200, {"capabilities": self.capabilities, "model_info": info}
        return self.embed(body)

    def _handler(fake):  # noqa: N805  the handler's own self is another
        class Handler(BaseHTTPRequestHandler):
            def reply(self) -> None:
                size = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(size) or b"{}")
                fake.requests.append((self.path, body))
                status, content = fake.answer(self.path, body)
                if content is None:  # hang up without a word
                    self.close_connection = True
                    return
                data = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = reply  # noqa: N815

            def log_message(self, *args) -> None:
                """Say nothing."""

        return Handler
