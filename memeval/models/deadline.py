"""One deadline over a whole HTTP request."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any

import httpx

CONNECT_SECONDS = 5.0


class Deadline:
    """Covers connecting, waiting for the first byte, and every byte after it; shuts the connection when due.

    httpx's own time-outs start anew with each read, so a server that trickles a byte a minute, or repeats
    a token for ever, never trips them. The socket is learned from httpx's `trace` extension and shut from a
    timer: that wakes a blocked read, and the server sees that nobody listens any more.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.passed = False
        self._end = time.monotonic() + seconds
        self._timer = threading.Timer(seconds, self._cut)
        self._timer.daemon = True
        self._socket: socket.socket | None = None

    @property
    def left(self) -> float:
        """Seconds that remain; never below a millisecond, because 0 would mean "do not block" to a socket."""
        return max(0.001, self._end - time.monotonic())

    def timeout(self) -> httpx.Timeout:
        """The same deadline as httpx can hold it: a read alone may take all that is left."""
        return httpx.Timeout(self.left, connect=min(CONNECT_SECONDS, self.left))

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Told by httpx of each stage of a request: learns the socket that may have to be shut."""
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            self._socket = info["return_value"].get_extra_info("socket")
            if self.passed:
                self._cut()

    def _cut(self) -> None:
        self.passed = True
        if self._socket is not None:
            with contextlib.suppress(OSError):  # it may be closed already
                self._socket.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Deadline:
        self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
