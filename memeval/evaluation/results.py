"""What a run leaves on disk, and how it is read again.

    results/<run>/
      manifest.json       everything needed to judge the run: sweep, cells, digests, versions, story hashes
      rows.jsonl          turn, call and hit rows, then the trial row that commits them; verdict rows, when
                          trials were judged again; append only
      transcripts.jsonl   everything said, a line a trial; large, not committed to git

A trial is appended with one write and made durable before it counts. Every line ends with a checksum. A tail
torn by a crash is cut off when the run is opened again; a line that was damaged since is skipped and
counted. Rows without their trial row are orphans, and no reader sees them. Of the verdict rows of a trial's
counted attempt the last one stands in place of what its trial and turn rows say. Trials that the manifest
does not plan stay in the file, and count again when the sweep is what it was.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from memeval.errors import InputError
from memeval.evaluation.journal import Journal, from_line, to_line
from memeval.evaluation.recorder import TrialResult
from memeval.evaluation.rows import REJUDGED, CallRow, CellRow, HitRow, TrialRow, TurnRow, VerdictRow

if TYPE_CHECKING:
    import pandas as pd

ROWS, TRANSCRIPTS, MANIFEST = "rows.jsonl", "transcripts.jsonl", "manifest.json"
_UNDER = ("turn", "call", "hit")
_Row = dict[str, Any]
_Under = dict[tuple[str, int], list[tuple[str, _Row]]]  # by key and attempt: the table and the row
_COMMITS = (b'{"table": "trial"', b'{"table": "verdict"')

__all__ = [
    "MANIFEST", "ROWS", "TRANSCRIPTS", "Journal", "Run", "RunWriter", "counted", "from_line", "load",
    "only_writer", "read_manifest", "read_rows", "read_run", "read_transcripts", "to_line",
    "write_atomically", "write_verdicts",
]  # fmt: skip


class RunWriter:
    """Appends trials to a run's folder, one durable commit each."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._rows = Journal(folder / ROWS, _COMMITS)
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


def write_verdicts(folder: Path, verdicts: Sequence[VerdictRow]) -> None:
    """Append verdict rows, all in one durable write. The caller is the run's `only_writer`."""
    journal = Journal(folder / ROWS, _COMMITS)
    try:
        journal.append(b"".join(to_line("verdict", row) for row in verdicts))
    finally:
        journal.close()


@contextmanager
def only_writer(folder: Path, otherwise: str = "wait for it") -> Iterator[None]:
    """Hold a run's folder against other writers; InputError, saying what to do `otherwise`, if it is held."""
    try:
        with FileLock(folder / ".lock", timeout=0):
            yield
    except Timeout:
        raise InputError(f"{folder} is being written by another memeval; {otherwise}") from None


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
    """The attempt that counts for each trial key: the first not invalid, else the last invalid one.

    Of an attempt that was written twice the last row counts, as the last of its transcripts does.
    """
    kept: dict[str, dict[str, Any]] = {}
    for trial in trials:
        known = kept.get(trial["trial_key"])
        again = known is not None and known.get("attempt", 1) == trial.get("attempt", 1)
        if known is None or again or known.get("outcome") == "invalid":
            kept[trial["trial_key"]] = dict(trial)
    return kept


def read_transcripts(folder: Path, trial_key: str = "") -> Iterator[dict[str, Any]]:
    """The transcripts of a run, or those of one trial, in the order they were written; one an attempt.

    Empty where they were not kept. `evidence` is missing in those of an older memeval.
    """
    path, wanted = folder / TRANSCRIPTS, trial_key.encode()
    if not path.is_file():
        return
    with path.open("rb") as file:
        for line in file:
            row = from_line(line) if wanted in line else None
            if row and (not trial_key or row["trial_key"] == trial_key):
                yield row


@dataclass(slots=False)
class Run:
    """A run as frames, one a level. Only the counted attempt of each trial is in them.

    `trials` and `turns` carry their cell's columns (design, model, calling, ...), `turns`, `calls` and `hits`
    their trial's scenario, family, repeat, order and outcome. Stages have the dtype `boolean`, because null
    is an answer. `damaged` are line numbers that could not be read, `left_out` is the number of trials in the
    folder that the sweep, as it was last run, does not plan.
    """

    folder: Path
    manifest: dict[str, Any]
    damaged: list[int]
    _rows: dict[str, list[dict[str, Any]]]
    left_out: int = 0

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

    def rows(self, table: str) -> list[dict[str, Any]]:
        """The rows of a table (`trial`, `turn`, `call`, `hit`), verdicts applied, defaults left out."""
        return self._rows[table]

    def __repr__(self) -> str:
        invalid = sum(trial.get("outcome") == "invalid" for trial in self._rows["trial"])
        return f"Run({str(self.folder)!r}: {len(self._rows['trial'])} trials, {invalid} invalid)"


def load(run: str | Path) -> Run:
    """A run's results. `run` is its folder; InputError where there is none.

    Trials that are no longer in the sweep are left out (`left_out`): what changed (a design, a story, the
    seed) is another trial, never mixed, and of fewer repeats fewer count. Their rows stay in the folder.
    """
    folder = Path(run)
    return read_run(folder, read_manifest(folder))


def read_run(folder: Path, manifest: Mapping[str, Any]) -> Run:
    """The results in a folder of the cells and trials that a manifest plans."""
    cells: dict[str, dict[str, Any]] = {}
    for cell in manifest.get("cells", []):
        cells.setdefault(cell["cell"], cell)
    damaged: list[int] = []
    trials, under, verdicts = _committed(read_rows(folder, damaged))
    found = counted(trials)
    # the manifest of an older memeval names no keys: there all trials of its cells count
    planned: dict[str, Collection[str]] = {
        name: frozenset(cell["trial_keys"].split()) if "trial_keys" in cell else found.keys()
        for name, cell in cells.items()
    }
    kept = {key: row for key, row in found.items() if key in planned.get(row.get("cell", ""), ())}
    attempt = {key: row.get("attempt", 1) for key, row in kept.items()}
    tables: dict[str, list[dict[str, Any]]] = {table: [] for table in _UNDER}
    for (key, number), rows in under.items():
        for table, row in rows if attempt.get(key) == number else ():
            tables[table].append(row)
    judged = [row for row in verdicts if attempt.get(row["trial_key"]) == row.get("attempt", 1)]
    _judge_again(kept, tables["turn"], judged)
    whole = {**manifest, "cells": list(cells.values())}
    return Run(folder, whole, damaged, {"trial": list(kept.values()), **tables}, len(found) - len(kept))


def _committed(rows: Iterable[_Row]) -> tuple[list[_Row], _Under, list[_Row]]:
    """Trial rows, the rows that each attempt at one committed, and verdict rows; orphans are left out.

    Of an attempt that was written twice only the rows of the last time are given.
    """
    trials: list[_Row] = []
    verdicts: list[_Row] = []
    under: _Under = {}
    waiting: list[tuple[tuple[str, int], str, _Row]] = []
    for row in rows:
        table, attempt = row.pop("table"), (row["trial_key"], row.get("attempt", 1))
        if table == "trial":
            trials.append(row)
            under[attempt] = [(name, other) for whose, name, other in waiting if whose == attempt]
            waiting = []
        elif table == "verdict":
            verdicts.append(row)
        else:
            waiting.append((attempt, table, row))
    return trials, under, verdicts


def _judge_again(
    trials: Mapping[str, dict[str, Any]], turns: Iterable[dict[str, Any]], verdicts: Iterable[dict[str, Any]]
) -> None:
    """Put the last verdict of each trial in place of what its rows said; a null it gives is an answer."""
    newest = {row["trial_key"]: row for row in verdicts}
    given: dict[tuple[str, int, int], Mapping[str, Any]] = {}
    for key, verdict in newest.items():
        trials[key].update({name: verdict.get(name, default) for name, default in REJUDGED.items()})
        given |= {(key, turn["session"], turn["turn"]): turn for turn in verdict["turns"]}
    for row in turns if given else ():
        row.update(given.get((row["trial_key"], row.get("session", 0), row.get("turn", 0)), {}))


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
