"""A person's own embedding function, made an encoder: guarded, fingerprinted by its source, checked."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np

from memeval.embedding.base import PrefixMode, Purpose, Vectors
from memeval.embedding.embedder import problem
from memeval.embedding.prefixes import Prefixes
from memeval.errors import HarnessError, MemevalError

EncodeFunction = Callable[[list[str]], Any]
"""Texts as they are to be embedded, to an array of one row a text."""

EmbedFunction = Callable[[list[str], Purpose], Any]
"""Bare texts and what they are for; the engine writes its own prefixes."""

# An engine that writes its own prefixes is told the purpose by these marks, which are taken off before it
# sees a text: so swapping, caching and fingerprints work for it as they do for written prefixes.
_MARKS: dict[str, Purpose] = {"\0document\0": "document", "\0query\0": "query"}
OWN_MODES: tuple[PrefixMode, ...] = ("card", "swapped")


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """What `register` was given under a name."""

    name: str
    function: Callable[..., Any]
    digest: str
    by_purpose: bool
    prefixes: Prefixes = field(repr=False)

    @classmethod
    def of(
        cls,
        name: str,
        function: Callable[..., Any],
        digest: str | None,
        by_purpose: bool,
        document_prefix: str,
        query_prefix: str,
    ) -> Registration:
        """Fill in what follows from the function."""
        document, query = _MARKS if by_purpose else (document_prefix, query_prefix)
        place = _place(function)
        prefixes = Prefixes(family=name, document=document, query=query, source=place, checked_on="")
        # With the name: two functions over the same weights, given one digest, are still two embedders.
        written = f"{name}:{digest if digest is not None else _source_digest(function)}"
        return cls(name=name, function=function, digest=written, by_purpose=by_purpose, prefixes=prefixes)


class FunctionEncoder:
    """The encoder over a registered function. What the function raises or returns amiss is a HarnessError."""

    def __init__(self, registration: Registration) -> None:
        self.name = registration.name
        self.digest = registration.digest
        self._registration = registration

    @cached_property
    def dim(self) -> int:
        """Length of a vector, learnt by embedding one word."""
        mark = self._registration.prefixes.document if self._registration.by_purpose else ""
        rows = self._call([f"{mark}dimension"])
        if rows.ndim != 2 or rows.shape[0] != 1 or rows.shape[1] == 0:
            raise self._error(f"returned an array of shape {rows.shape} for one text, not (1, dimensions)")
        return int(rows.shape[1])

    def encode(self, texts: Sequence[str]) -> Vectors:
        """float32[n, dim] from the person's function; raises HarnessError naming it, its file and line."""
        rows = self._call(list(texts))
        trouble = problem(rows, [_unmarked(text)[0] for text in texts], self.dim)
        if trouble:
            raise self._error(trouble)
        return rows

    def _call(self, texts: list[str]) -> Vectors:
        function = self._registration.function
        try:
            if self._registration.by_purpose:
                bare = [_unmarked(text) for text in texts]
                returned = function([text for text, _ in bare], bare[0][1])
            else:
                returned = function(texts)
        except MemevalError:
            raise  # a function that reaches a server may say itself that it is down
        except Exception as error:
            raise self._error(f"raised {type(error).__name__}: {error}", _line(error, function)) from error
        try:
            with np.errstate(over="ignore"):  # what does not fit becomes infinite, and is refused as such
                return np.asarray(returned, dtype=np.float32)
        except (TypeError, ValueError) as error:
            found = type(returned).__name__
            raise self._error(f"returned {found}, not one vector of one length a text") from error

    def _error(self, trouble: str, place: str | None = None) -> HarnessError:
        function = self._registration.function
        called = getattr(function, "__qualname__", type(function).__name__)
        return HarnessError(f"your embedder {self.name!r} ({called}, {place or _place(function)}) {trouble}")


def _unmarked(text: str) -> tuple[str, Purpose]:
    for mark, purpose in _MARKS.items():
        if text.startswith(mark):
            return text[len(mark) :], purpose
    return text, "document"


def _code(function: Callable[..., Any]) -> Any:
    target = inspect.unwrap(function)
    if not inspect.isroutine(target):
        target = type(target).__call__  # an object that can be called
    return getattr(target, "__code__", None)


def _place(function: Callable[..., Any]) -> str:
    code = _code(function)
    return f"{code.co_filename}, line {code.co_firstlineno}" if code else repr(function)


def _line(error: BaseException, function: Callable[..., Any]) -> str | None:
    """The deepest line of the function's own file in the traceback: theirs, not a library's they called."""
    code = _code(function)
    own = code.co_filename if code else None
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == own]
    return f"{own}, line {lines[-1]}" if lines else None


def _source_digest(function: Callable[..., Any]) -> str:
    """A hash of the function's source, so that an edited embedder is a new one; else of its name."""
    target = inspect.unwrap(function)
    if not inspect.isroutine(target):
        target = type(target)
    try:
        source = inspect.getsource(target)
    except (OSError, TypeError):
        source = f"{getattr(target, '__module__', '')}.{getattr(target, '__qualname__', repr(target))}"
    return sha256(source.encode()).hexdigest()
