"""Reading other people's data files: one item at a time, so that a file may be larger than the memory.

A file is a JSON list or JSON lines, which of the two is seen from its first sign. What is wrong is told with
the line it stands on.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from memeval.errors import InputError
from memeval.scenarios.importers.base import Tally
from memeval.scenarios.importers.benchmarks import BENCHMARKS

MOST = 32 * 1024 * 1024
"""Characters of one item: a conversation of LoCoMo has 280,000, a question of LongMemEval M 6,000,000."""
_CHUNK = 1 << 20
_MARGIN = 64
"""An item that ends too early is seen by a mistake this close to the end of what was read."""

_HALVES = re.compile("[\ud800-\udfff]")

R = TypeVar("R", bound="Raw")


class Raw(BaseModel):
    """A part of a data file as its authors wrote it. Fields nobody knows are kept apart, and counted."""

    model_config = ConfigDict(extra="allow", strict=True)

    unused: ClassVar[frozenset[str]] = frozenset()
    """Fields that are known, and of no use here."""

    def unknown(self) -> list[str]:
        """Names of the fields that the format is not known to have."""
        return [name for name in self.model_extra or () if name not in self.unused]


def parsed(model: type[R], data: Any, place: str, tally: Tally) -> R:
    """An item as `model`. Raises InputError that names the place and the first field that is wrong."""
    if not isinstance(data, dict):
        raise InputError(f"{place}: {json.dumps(data)[:60]} stands where an object such as {{...}} is wanted")
    try:
        found = model.model_validate(data)
    except ValidationError as caught:
        first = caught.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        what = f"the field {where!r} is missing" if first["type"] == "missing" else f"{where}: {first['msg']}"
        raise InputError(f"{place}: {what}{_other_shape(data, tally)}") from None
    _count_unknown(found, tally)
    return found


def read_items(path: Path, tally: Tally) -> Iterator[tuple[str, Any]]:
    """The items of a file, each with its place: `<file>:<line>`.

    Holds some megabytes at a time, whatever the size of the file. Raises InputError: no file, not UTF-8, not
    JSON, cut off, no item in it, an item beyond `MOST`.
    """
    if path.is_dir():
        raise InputError(f"{path} is a folder; give {tally.benchmark.wants}{_inside(path, tally)}")
    try:
        with path.open("rb") as file:
            source = _Source(path, file)
            yield from source.items()
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; give {tally.benchmark.wants}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    if not source.count:
        raise InputError(f"{path}: nothing in it; give {tally.benchmark.wants}")


class _Source:
    """A file under way: what was read of it and not yet used."""

    def __init__(self, path: Path, file: Any) -> None:
        self.path, self.file = path, file
        self.count = 0
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._text, self._at, self._before, self._ended = "", 0, 0, False

    def items(self) -> Iterator[tuple[str, Any]]:
        """The items of a list, or of lines."""
        first = self._next_sign()
        if not first:
            return
        if first not in "[{":
            raise self._wrong(f"not JSON: it begins with {self._text[self._at : self._at + 20]!r}")
        listed = first == "["
        if listed:
            self._at += 1
        while sign := self._next_sign():
            if listed and sign == "]":
                self._at += 1
                if self._next_sign():
                    raise self._wrong("text after the end of the list; one list is wanted")
                return
            if listed and self.count:
                if sign != ",":
                    raise self._wrong(f"not JSON: {sign!r} where a comma or the end of the list is wanted")
                self._at += 1
                self._next_sign()
            place = f"{self.path}:{self._line()}"
            item = self._item()
            self.count += 1
            yield place, item
        if listed:
            raise self._wrong("the list has no end: the file is cut off; get it anew")

    def _item(self) -> Any:
        """The item that starts here; reads on for as long as it is not whole."""
        decoder = json.JSONDecoder()
        while True:
            try:
                item, self._at = decoder.raw_decode(self._text, self._at)
                return item
            except json.JSONDecodeError as error:
                unfinished = error.pos > len(self._text) - _MARGIN or error.msg.startswith("Unterminated")
                if not unfinished or self._ended:
                    cut = "the file is cut off; get it anew" if unfinished else error.msg
                    raise self._wrong(f"not JSON: {cut}", error.pos) from None
            except RecursionError:
                raise self._wrong("nested too deep to be one of these files") from None
            except ValueError:
                raise self._wrong("a number of more digits than can be read") from None
            if len(self._text) - self._at > MOST:
                raise self._wrong(f"an item of more than {MOST:,} characters, or a quote that is not closed")
            self._read(max(_CHUNK, len(self._text) - self._at))

    def _next_sign(self) -> str:
        """The next sign that is no white space, nothing at the end of the file."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in " \t\r\n":
                self._at += 1
            if self._at < len(self._text):
                return self._text[self._at]
            if self._ended:
                return ""
            self._read(_CHUNK)

    def _read(self, size: int) -> None:
        """Let go of what was used and read on."""
        self._before += self._text.count("\n", 0, self._at)
        kept, self._at = self._text[self._at :], 0
        chunk = self.file.read(size)
        self._ended = not chunk
        try:
            self._text = kept + self._decoder.decode(chunk, final=self._ended)
        except UnicodeDecodeError as error:
            line = self._before + kept.count("\n") + error.object[: error.start].count(b"\n") + 1
            raise InputError(f"{self.path}:{line}: not UTF-8 text; save the file as UTF-8") from None

    def _line(self, at: int | None = None) -> int:
        return self._before + self._text.count("\n", 0, self._at if at is None else at) + 1

    def _wrong(self, what: str, at: int | None = None) -> InputError:
        return InputError(f"{self.path}:{self._line(at)}: {what}")


def clean(text: str) -> str:
    """Text as it can be kept: half a surrogate pair, which no file can hold, becomes `\ufffd`."""
    return _HALVES.sub("\ufffd", text).strip()


def _count_unknown(found: Raw, tally: Tally) -> None:
    for name in found.unknown():
        tally.note(f"unknown field {name[:40]!r} of {type(found).__name__.lower()}, ignored")
    for name in type(found).model_fields:
        value = getattr(found, name)
        stack = [value]
        while stack:
            part = stack.pop()
            if isinstance(part, Raw):
                _count_unknown(part, tally)
            elif isinstance(part, list):
                stack.extend(part)


def _other_shape(data: dict[str, Any], tally: Tally) -> str:
    """A hint: the benchmark whose shape the item has, or the fields it has."""
    for name, other in BENCHMARKS.items():
        if name != tally.benchmark.name and other.marks <= data.keys():
            return f"; this looks like {name}: memeval scenarios import {name} PATH"
    wanted = ", ".join(sorted(tally.benchmark.marks))
    has = ", ".join(str(key)[:40] for key in list(data)[:6]) or "none"
    return f"; an item of {tally.benchmark.name} has {wanted}, this one has {has}"


def _inside(folder: Path, tally: Tally) -> str:
    """A hint: the file of a folder that is wanted, if it lies there."""
    found = sorted(
        path for path in folder.iterdir() if path.is_file() and path.name in tally.benchmark.wants.split()
    )
    return f", such as {found[0]}" if found else ""
