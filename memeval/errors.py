"""What can go wrong, by whose doing. A message is one sentence: what is wrong, where, what would be right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Literal

FailureKind = Literal[
    "malformed_call", "unreadable_reply", "empty_reply", "loop", "runaway_length", "context_overflow"
]
InvalidKind = Literal[
    "server_down", "timeout", "bad_response", "server_error", "truncated", "embedding", "slow_store"
]


class MemevalError(Exception):
    """The base of everything memeval raises on purpose; `exit_code` is what the command line ends with."""

    exit_code = 2


class InputError(MemevalError):
    """A file, a name or a setting that a person wrote is wrong."""


class ReadOnlyError(InputError):
    """A write to a memory that may not be written; a tool answers with it, a hook goes on without."""


class HarnessError(MemevalError):
    """A bug in a person's own design or embedder, or in memeval: the run stops, naming cell and line."""


class InfrastructureError(MemevalError):
    """The server, the disk or the network failed. Never a score: the trial is `invalid` and runs again."""

    exit_code = 4

    def __init__(self, message: str, *, kind: InvalidKind = "server_error") -> None:
        super().__init__(message)
        self.kind: InvalidKind = kind


class ModelFailureError(MemevalError):
    """The model gave no usable reply. A score (failed), never retried away."""

    def __init__(self, message: str, *, kind: FailureKind) -> None:
        super().__init__(message)
        self.kind: FailureKind = kind


class TextTooLongError(MemevalError):
    """A text is longer than the embedder can read; nothing was embedded, nothing was cut off silently."""


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint for a name that is not known: `; did you mean X?`, else the list of names there are."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else f"; there are: {', '.join(names) or 'none'}"
