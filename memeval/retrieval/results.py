"""What a retrieval run leaves: `retrieval.jsonl`, a row a question, and `retrieval.json`, its manifest."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memeval.errors import InfrastructureError, InputError
from memeval.evaluation.results import write_atomically

if TYPE_CHECKING:
    import pandas as pd

ROWS, MANIFEST = "retrieval.jsonl", "retrieval.json"


@dataclass(frozen=True, slots=True)
class RetrievalFrames:
    """A run as frames.

    `queries`: a row for each measured embedder x prefix x question, metrics NaN where nothing is relevant.
    `cells`: a row for each embedder x prefix asked for; `identical_to` and `unsupported` say why one has no
    numbers ("" otherwise).
    """

    queries: pd.DataFrame
    cells: pd.DataFrame
    manifest: Mapping[str, Any]


def load_retrieval(path: Path | str) -> RetrievalFrames:
    """Read a run from its folder or its `retrieval.jsonl`. Raises InputError where it is not one, whole."""
    import pandas as pd

    given = Path(path)
    folder = given if given.is_dir() else given.parent
    manifest = _manifest(folder)
    rows_file = folder / ROWS
    try:
        content = rows_file.read_bytes()
    except OSError as error:
        raise InputError(f"{rows_file}: cannot be read: {error.strerror}; run the sweep again") from None
    if hashlib.sha256(content).hexdigest() != manifest["rows_sha256"]:
        raise InputError(f"{rows_file}: not the rows that {MANIFEST} speaks of; run the sweep again")
    rows = [json.loads(line) for line in content.decode().splitlines()]
    cells = pd.DataFrame(manifest["cells"])
    texts = ["document_prefix", "query_prefix"]  # null for a cell that could not be had
    cells[texts] = cells[texts].fillna("")
    queries = pd.DataFrame(rows)
    queries = queries.astype({name: float for name in queries.columns if "@" in name})
    return RetrievalFrames(queries, cells, manifest)


def refuse_foreign(folder: Path, name: str) -> None:
    """Raise InputError if a folder holds the results of a sweep with another name, or is no folder."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; results need a folder")
    if (folder / MANIFEST).exists():
        other = _manifest(folder)["retrieval"]
        if other != name:
            raise InputError(f"{folder} holds the sweep {other!r}, not {name!r}; choose another --out")


Row = Mapping[str, Any]


def write(folder: Path, about: Row, cells: Sequence[Row], rows: Sequence[Row]) -> dict[str, Any]:
    """Write both files, each whole under its name or not at all, and return the manifest.

    The manifest comes last and carries the rows' hash: killed in between, the pair is refused when read.
    """
    content = "".join(_line(row) + "\n" for row in rows).encode()
    manifest = {
        **about,
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"python": platform.python_version(), **{n: version(n) for n in ("memeval", "numpy")}},
        "encoded": sum(cell.get("encoded", 0) for cell in cells),
        "cells": list(cells),
        "rows": len(rows),
        "rows_sha256": hashlib.sha256(content).hexdigest(),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / ROWS, content)
        write_atomically(folder / MANIFEST, (_line(manifest, indent=2) + "\n").encode())
    except OSError as error:
        raise InfrastructureError(f"{folder}: results cannot be written: {error.strerror}") from error
    return manifest


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{folder} holds no retrieval run: there is no {MANIFEST} in it") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: not a manifest: {error}; run the sweep again") from None
    if not isinstance(found, dict) or not {"retrieval", "cells", "rows_sha256"} <= found.keys():
        raise InputError(f"{path}: not the manifest of a retrieval run; run the sweep again")
    return found


def _line(data: Mapping[str, Any], indent: int | None = None) -> str:
    return json.dumps(data, ensure_ascii=False, allow_nan=False, indent=indent)
