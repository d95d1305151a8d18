"""What a run leaves on disk, and how it is read again.

    results/<run>/
      manifest.json       everything needed to judge the run: sweep, cells, digests, versions, story hashes
      rows.jsonl          turn, call and hit rows, then the trial row that commits them; append only
      transcripts.jsonl   everything said, a line a trial; large, not committed to git

A trial is appended with one write and made durable before it counts. Every line ends with a checksum. A tail
torn by a crash is cut off when the run is opened again; a line that was damaged since is skipped and
counted. Rows without their trial row are orphans, and no reader sees them.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memeval.errors import InfrastructureError, InputError
from memeval.evaluation.recorder import TrialResult
from memeval.evaluation.rows import CallRow, CellRow, HitRow, TrialRow, TurnRow

if TYPE_CHECKING:
    import pandas as pd

ROWS, TRANSCRIPTS, MANIFEST = "rows.jsonl", "transcripts.jsonl", "manifest.json"
_TABLES: Mapping[str, type] = {"trial": TrialRow, "turn": TurnRow, "call": CallRow, "hit": HitRow}
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


def _fields(row: type) -> tuple[Any, ...]:
    # dataclasses.fields() walks a dict on each call; a trial writes a dozen rows
    known = _FIELDS.get(row)
    if known is None:
        known = _FIELDS[row] = fields(row)
    return known


_FIELDS: dict[type, tuple[Any, ...]] = {}


class Journal:
    """An append-only file of lines that survives a kill at any byte.

    Opening it cuts off what a crash left behind: all bytes after the last whole line that starts with
    `commit`. Rows of a trial that was never committed must go, since the trial is run again under its key.
    """

    def __init__(self, path: Path, commit: bytes = b"") -> None:
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        with path.open("rb") as lines:
            at = kept = 0
            for line in lines:
                at += len(line)
                if line.endswith(b"\n") and line.startswith(commit):
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


class RunWriter:
    """Appends trials to a run's folder, one durable commit each."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._rows = Journal(folder / ROWS, commit=b'{"table": "trial"')
        self._transcripts = Journal(folder / TRANSCRIPTS)

    def commit(self, result: TrialResult) -> None:
        """Write a trial: the transcript, then all rows with the trial row last."""
        self._transcripts.append(to_line("transcript", result.transcript))
        lines = [to_line("turn", row) for row in result.turns]
        lines += [to_line("call", row) for row in result.calls]
        lines += [to_line("hit", row) for row in result.hits]
        self._rows.append(b"".join([*lines, to_line("trial", result.trial)]))

    def close(self) -> None:
        """Let go of the files."""
        self._rows.close()
        self._transcripts.close()


def write_atomically(path: Path, content: str | bytes) -> None:
    """Replace a file whole: a temporary one beside it, made durable, then renamed."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def read_manifest(folder: Path) -> dict[str, Any]:
    """A run's manifest; InputError where the folder holds no run."""
    path = folder / MANIFEST
    if not path.is_file():
        raise InputError(f"{folder} holds no run: there is no {MANIFEST} in it; give the folder of a run")
    try:
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(
            f"{path} is damaged ({error}); the command that made the run writes it anew"
        ) from error
    return manifest


def read_rows(folder: Path, damaged: list[int] | None = None) -> Iterator[dict[str, Any]]:
    """All rows of a run in the order they were written; numbers of damaged lines go to `damaged`."""
    path = folder / ROWS
    if not path.is_file():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return  # a torn tail: the trial it belongs to was never committed
            row = from_line(line)
            if row is not None:
                yield row
            elif damaged is not None:
                damaged.append(number)


def counted(trials: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The attempt that counts for each trial key: the first not invalid, else the last invalid one."""
    kept: dict[str, dict[str, Any]] = {}
    for trial in trials:
        known = kept.get(trial["trial_key"])
        if known is None or known.get("outcome") == "invalid":
            kept[trial["trial_key"]] = dict(trial)
    return kept


def transcript(folder: Path, trial_key: str) -> list[dict[str, Any]]:
    """Everything said in a trial's last attempt; empty where transcripts were not kept."""
    found: list[dict[str, Any]] = []
    path = folder / TRANSCRIPTS
    if path.is_file():
        with path.open("rb") as file:
            for line in file:
                row = from_line(line) if trial_key.encode() in line else None
                if row and row["trial_key"] == trial_key:
                    found = row.get("messages", [])
    return found


@dataclass(slots=False)
class Run:
    """A run as frames, one a level. Only the counted attempt of each trial is in them.

    `trials` and `turns` carry their cell's columns (design, model, calling, ...), `turns`, `calls` and `hits`
    their trial's scenario, family, repeat, order and outcome. Stages have the dtype `boolean`, because null
    is an answer. `damaged` are line numbers that could not be read.
    """

    folder: Path
    manifest: dict[str, Any]
    damaged: list[int]
    _rows: dict[str, list[dict[str, Any]]]

    @cached_property
    def cells(self) -> pd.DataFrame:
        """One row a cell."""
        return _frame(CellRow, self.manifest.get("cells", []))

    @cached_property
    def trials(self) -> pd.DataFrame:
        """One row a trial, invalid ones included (`outcome`)."""
        own = self.cells.drop(columns="hooks")  # a trial's hooks are those that fired, a cell's those it has
        return _frame(TrialRow, self._rows["trial"]).merge(own, on="cell", how="left")

    @cached_property
    def turns(self) -> pd.DataFrame:
        """One row a user turn."""
        return self._under_trial(TurnRow, "turn")

    @cached_property
    def calls(self) -> pd.DataFrame:
        """One row a call, leaked ones included (`status`)."""
        return self._under_trial(CallRow, "call")

    @cached_property
    def hits(self) -> pd.DataFrame:
        """One row a memory shown to the model."""
        return self._under_trial(HitRow, "hit")

    def _under_trial(self, row: type, table: str) -> pd.DataFrame:
        columns = ["cell", "scenario", "family", "tags", "repeat", "seed", "order", "outcome"]
        trials = self.trials[["trial_key", *columns]]
        frame = _frame(row, self._rows[table]).merge(trials, on="trial_key", how="left")
        own = [c for c in self.cells.columns if c not in frame.columns or c == "cell"]
        return frame.merge(self.cells[own], on="cell", how="left")

    def __repr__(self) -> str:
        invalid = sum(trial.get("outcome") == "invalid" for trial in self._rows["trial"])
        return f"Run({str(self.folder)!r}: {len(self._rows['trial'])} trials, {invalid} invalid)"


def load(run: str | Path) -> Run:
    """A run's results. `run` is its folder; InputError where there is none.

    Trials of cells that are no longer in the sweep are left out: what changed is a new cell, never mixed.
    """
    folder = Path(run)
    manifest = read_manifest(folder)
    damaged: list[int] = []
    rows: dict[str, list[dict[str, Any]]] = {table: [] for table in _TABLES}
    for row in read_rows(folder, damaged):
        rows[row.pop("table")].append(row)
    cells = {cell["cell"] for cell in manifest.get("cells", [])}
    kept = {key: row for key, row in counted(rows["trial"]).items() if row.get("cell") in cells}
    attempt = {key: row.get("attempt", 1) for key, row in kept.items()}
    tables = {
        table: [row for row in rows[table] if attempt.get(row["trial_key"]) == row.get("attempt", 1)]
        for table in ("turn", "call", "hit")
    }
    return Run(folder, manifest, damaged, {"trial": list(kept.values()), **tables})


def _frame(row: type, data: list[dict[str, Any]]) -> pd.DataFrame:
    import pandas as pd

    columns = {}
    for spec in fields(row):
        empty = spec.default if isinstance(spec.default, str | int | float | bool | tuple | None) else None
        values = [item.get(spec.name, empty) for item in data]
        if spec.type in ("bool | None", "bool"):
            columns[spec.name] = pd.Series(values, dtype="boolean")
        elif spec.type == "str":
            columns[spec.name] = pd.Series(values, dtype="object")
        elif spec.type == "int | None":
            columns[spec.name] = pd.Series(values, dtype="Int64")
        elif spec.type in ("float", "float | None"):
            columns[spec.name] = pd.Series(values, dtype="float64")
        elif spec.type == "int":
            columns[spec.name] = pd.Series(values, dtype="int64")
        else:
            columns[spec.name] = pd.Series(values, dtype="object")
    return pd.DataFrame(columns)
