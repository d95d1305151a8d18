"""Rows as lines of a file that survives a kill at any byte: each with a checksum, appended, made durable."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from memeval.errors import InfrastructureError

_CHECKSUM = ', "crc": "'


def to_line(table: str, row: Any) -> bytes:
    """One row as a line: JSON without NaN, its defaults left out, a CRC-32 of the rest at its end."""
    data: dict[str, Any] = {"table": table}
    for spec in _fields(type(row)):
        value = getattr(row, spec.name)
        if value != spec.default:
            data[spec.name] = value
    body = json.dumps(data, ensure_ascii=False, allow_nan=False, default=str)[:-1]
    text = body.encode("utf-8", "backslashreplace")
    return text + f'{_CHECKSUM}{zlib.crc32(text):08x}"}}\n'.encode()


def from_line(line: bytes) -> dict[str, Any] | None:
    """The row of a line, or None where the line is damaged."""
    body, mark, check = line.rstrip(b"\n").rpartition(_CHECKSUM.encode())
    if not mark or check != f'{zlib.crc32(body):08x}"}}'.encode():
        return None
    data: dict[str, Any] = json.loads(body + b"}")
    return data


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a file of lines, none where it is not there; what was torn or damaged is left out."""
    if path.is_file():
        with path.open("rb") as lines:
            yield from (row for line in lines if (row := from_line(line)) is not None)


def _fields(row: type) -> tuple[Any, ...]:
    # dataclasses.fields() walks a dict on each call; a trial writes a dozen rows
    known = _FIELDS.get(row)
    if known is None:
        known = _FIELDS[row] = fields(row)
    return known


_FIELDS: dict[type, tuple[Any, ...]] = {}


class Journal:
    """An append-only file of lines that survives a kill at any byte.

    Opening it cuts off what a crash left behind: all bytes after the last whole line that starts with one of
    `commits`. Rows of a trial that was never committed must go, since the trial is run again under its key.
    """

    def __init__(self, path: Path, commits: tuple[bytes, ...] = (b"",)) -> None:
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        with path.open("rb") as lines:
            at = kept = 0
            for line in lines:
                at += len(line)
                if line.endswith(b"\n") and line.startswith(commits):
                    kept = at
        os.ftruncate(self._file, kept)

    def append(self, data: bytes) -> None:
        """Write all of it and make it durable, or leave the file as it was."""
        before = os.fstat(self._file).st_size
        try:
            # a full disk writes a part first and raises only on the next call (measured: 746 of 3020 bytes)
            written = os.write(self._file, data)
            while written < len(data):
                written += os.write(self._file, data[written:])
            os.fdatasync(self._file) if hasattr(os, "fdatasync") else os.fsync(self._file)
        except OSError as error:
            os.ftruncate(self._file, before)
            raise InfrastructureError(
                f"{self.path} could not be written ({error.strerror}); {len(data)} bytes are needed, none "
                "were kept; free some room and give the same command again"
            ) from error

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)
