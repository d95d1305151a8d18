"""YAML files that people write, read strictly: what stands there is what is meant, or the line says why not.

Scalars follow YAML 1.2's core schema, and nothing more: `no`, `12:30:45` and `2026-05-30` stay the text they
are. Anchors, tags, duplicate keys and deep nesting are refused: a 430-byte alias bomb loads in 9 ms and is
10^9 leaves to walk, 3000 nested lists end in a RecursionError, and of two equal keys the last would win
silently.
"""

from __future__ import annotations

import math
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from memeval.errors import InputError, nearest

MAX_BYTES = 1_000_000
MAX_DEPTH = 40

Loc = tuple[str | int, ...]
Lines = Mapping[Loc, int]
"""The line (from 1) on which each value's key or list item stands; `()` is the document's first line."""

_NULL = re.compile(r"|~|null|Null|NULL")
_BOOL = re.compile(r"(true|True|TRUE)|false|False|FALSE")
_INT = re.compile(r"[-+]?[0-9]{1,300}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML document as plain data, and where each part of it stands."""

    data: Any
    lines: Lines


def read_yaml(path: Path) -> tuple[Any, Lines]:
    """The one document of a file and its lines. Raises InputError naming file and line."""
    documents = read_documents(path)
    if len(documents) != 1:
        where = documents[1].lines[()] if documents else 1
        raise InputError(f"{path}:{where}: {len(documents)} documents where one is wanted")
    return documents[0].data, documents[0].lines


def read_documents(path: Path) -> list[Document]:
    """All documents of a file, those between `---` lines that hold nothing left out."""
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise InputError(f"{path}: {size:,} bytes; a file may hold {MAX_BYTES:,}")
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise InputError(f"{path}:{line}: not UTF-8 text; save the file as UTF-8") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        return [d for d in _Builder(path, text).documents() if d.data is not None]
    except YAMLError as error:
        mark = error.problem_mark if isinstance(error, MarkedYAMLError) else None
        said = (error.problem if isinstance(error, MarkedYAMLError) else None) or str(error).splitlines()[0]
        raise InputError(f"{path}:{mark.line + 1 if mark else 1}: not valid YAML: {said}") from None


def locate(lines: Lines, loc: Sequence[str | int]) -> int:
    """The line of a place in a document, or of the nearest part around it that has one."""
    path = tuple(loc)
    while path not in lines:
        path = path[:-1]
    return lines[path]


def checked(model: type[M], data: Any, path: Path, lines: Lines) -> M:
    """The data as `model`. Raises InputError with file, line and key of the first thing that is wrong.

    An unknown key comes before a missing one, because a misspelt key is both.
    """
    try:
        return model.model_validate(data)
    except ValidationError as caught:
        errors = sorted(
            caught.errors(include_url=False),
            key=lambda e: (e["type"] != "extra_forbidden", locate(lines, e["loc"])),
        )
        first, more = errors[0], len(errors) - 1
        tail = f" (and {more} more)" if more else ""
        where = f"{path}:{locate(lines, first['loc'])}"
        raise InputError(f"{where}: {_sentence(model, first)}{tail}") from None


def _sentence(model: type[BaseModel], error: Mapping[str, Any]) -> str:
    loc, kind = error["loc"], error["type"]
    place = ".".join(str(part + 1 if isinstance(part, int) else part) for part in loc)
    if kind == "extra_forbidden":
        return f"unknown key {place!r}{nearest(str(loc[-1]), _keys(model, loc[:-1]))}"
    if kind == "missing":
        return f"key {place!r} is missing"
    said = str(error["msg"]).replace("Input should", "should")
    hint = ""
    if kind == "string_type" and isinstance(error["input"], bool | int | float):
        hint = f", not {error['input']!r}; put it in quotes"
    return f"{place or 'the document'}: {said}{hint}"


def _keys(model: Any, loc: Sequence[str | int]) -> list[str]:
    """The keys a model knows at a place inside it."""
    found: list[Any] = [model]
    for part in loc:
        inner: list[Any] = []
        for kind in found:
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                field = next((f for n, f in kind.model_fields.items() if part in (n, f.alias)), None)
                inner += _parts(field.annotation) if field else []
            elif get_args(kind):
                inner += _parts(get_args(kind)[-1])
        found = inner
    models = [kind for kind in found if isinstance(kind, type) and issubclass(kind, BaseModel)]
    return [field.alias or name for kind in models for name, field in kind.model_fields.items()]


def _parts(annotation: Any) -> list[Any]:
    """An annotation without Annotated, a union as its members."""
    if get_origin(annotation) is Annotated:
        return _parts(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return [part for member in get_args(annotation) for part in _parts(member)]
    return [annotation]


class _Builder:
    """Builds plain data out of parser events, so that every rule is held before anything grows."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._events: Iterator[Any] = YAML(typ="safe", pure=True).parse(text)
        self._lines: dict[Loc, int] = {}

    def documents(self) -> Iterator[Document]:
        for event in self._events:
            if isinstance(event, DocumentStartEvent):
                self._lines = {}
                first = next(self._events)
                self._lines[()] = first.start_mark.line + 1
                yield Document(self._value(first, ()), self._lines)

    def _value(self, event: Any, loc: Loc) -> Any:
        if isinstance(event, AliasEvent) or event.anchor is not None:
            raise self._refused(event, "anchors and aliases (& and *) are not allowed; write the value out")
        if event.tag is not None:
            raise self._refused(event, "tags (!) are not allowed; write plain values")
        if len(loc) > MAX_DEPTH:
            raise self._refused(event, f"nested more than {MAX_DEPTH} deep")
        if isinstance(event, MappingStartEvent):
            return self._mapping(loc)
        if isinstance(event, SequenceStartEvent):
            return self._sequence(loc)
        return self._scalar(event)

    def _mapping(self, loc: Loc) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not isinstance(event := next(self._events), MappingEndEvent):
            if not isinstance(event, ScalarEvent):
                raise self._refused(event, "a key must be plain text")
            key, inner = str(event.value), (*loc, str(event.value))
            self._value(event, loc)
            line = event.start_mark.line + 1
            if key in found:
                raise self._refused(event, f"key {key!r} stands twice, first on line {self._lines[inner]}")
            self._lines[inner] = line
            found[key] = self._value(next(self._events), inner)
        return found

    def _sequence(self, loc: Loc) -> list[Any]:
        found: list[Any] = []
        while not isinstance(event := next(self._events), SequenceEndEvent):
            inner = (*loc, len(found))
            self._lines[inner] = event.start_mark.line + 1
            found.append(self._value(event, inner))
        return found

    def _scalar(self, event: ScalarEvent) -> Any:
        text = str(event.value)
        if any("\ud800" <= sign <= "\udfff" for sign in text):
            raise self._refused(event, "half of a surrogate pair is not text")
        if event.style is not None:
            return text
        if _NULL.fullmatch(text):
            return None
        if match := _BOOL.fullmatch(text):
            return match[1] is not None
        if _INT.fullmatch(text):
            return int(text)
        if _FLOAT.fullmatch(text) and math.isfinite(number := float(text)):
            return number
        return text

    def _refused(self, event: Any, why: str) -> InputError:
        return InputError(f"{self._path}:{event.start_mark.line + 1}: {why}")
