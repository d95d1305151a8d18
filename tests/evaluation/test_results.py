"""What is on disk after a crash, and how it is read."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from memeval.errors import InfrastructureError, InputError
from memeval.evaluation.recorder import TrialResult
from memeval.evaluation.results import (
    ROWS,
    Journal,
    RunWriter,
    counted,
    from_line,
    load,
    read_rows,
    to_line,
    write_atomically,
)  # fmt: skip
from memeval.evaluation.rows import CallRow, Transcript, TrialRow, TurnRow


def result(key: str, **trial: Any) -> TrialResult:
    row = TrialRow(trial_key=key, cell="c", **trial)
    turns = [TurnRow(trial_key=key, attempt=row.attempt, session=1, turn=1, called=True)]
    return TrialResult(row, turns, transcript=Transcript(trial_key=key, attempt=row.attempt))


def write_run(folder: Path, *results: TrialResult) -> None:
    writer = RunWriter(folder)
    for item in results:
        writer.commit(item)
    writer.close()
    write_atomically(folder / "manifest.json", '{"cells": [{"cell": "c", "design": "d"}]}')


def keys(folder: Path) -> list[str]:
    return [row["trial_key"] for row in read_rows(folder) if row["table"] == "trial"]


def test_a_row_comes_back_as_it_was_written() -> None:
    row = CallRow(trial_key="k", arguments={"ä": ["\ud800", "\n", 1.5, None]}, text='quote " and \\')
    back = from_line(to_line("call", row))
    assert back is not None
    assert back["text"] == row.text
    assert back["table"] == "call"


def test_a_changed_byte_is_noticed_anywhere_in_a_line() -> None:
    line = to_line("trial", TrialRow(trial_key="k", passed=True))
    for at in range(len(line) - 1):
        broken = bytes([*line[:at], line[at] ^ 1, *line[at + 1 :]])
        assert from_line(broken) is None or from_line(broken) == from_line(line)


def test_a_file_cut_at_any_byte_opens_again_and_holds_whole_trials(tmp_path: Path) -> None:
    write_run(tmp_path, result("one"), result("two"))
    whole = (tmp_path / ROWS).read_bytes()
    for size in range(len(whole) + 1):
        (tmp_path / ROWS).write_bytes(whole[:size])
        kept = keys(tmp_path)
        assert kept == ["one", "two"][: len(kept)]
        RunWriter(tmp_path).close()
        assert keys(tmp_path) == kept
        left = [row["trial_key"] for row in read_rows(tmp_path)]
        assert sorted(set(left)) == sorted(kept)


def test_rows_without_their_trial_are_not_seen(tmp_path: Path) -> None:
    write_run(tmp_path, result("one"))
    with (tmp_path / ROWS).open("ab") as file:
        file.write(to_line("turn", TurnRow(trial_key="orphan")))
    run = load(tmp_path)
    assert list(run.turns["trial_key"]) == ["one"]


def test_a_damaged_line_is_left_out_and_counted(tmp_path: Path) -> None:
    write_run(tmp_path, result("one"), result("two"))
    lines = (tmp_path / ROWS).read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b"one", b"owe")
    (tmp_path / ROWS).write_bytes(b"".join(lines))
    run = load(tmp_path)
    assert run.damaged == [2]
    assert list(run.trials["trial_key"]) == ["two"]


def test_the_first_valid_attempt_counts_and_only_its_rows(tmp_path: Path) -> None:
    again = result("one", attempt=2, passed=True)
    write_run(tmp_path, result("one", outcome="invalid"), again, result("one", attempt=3))
    run = load(tmp_path)
    assert list(run.trials["attempt"]) == [2]
    assert list(run.turns["attempt"]) == [2]
    assert counted([{"trial_key": "a", "outcome": "invalid"}])["a"]["outcome"] == "invalid"


def test_frames_keep_null_apart_from_false(tmp_path: Path) -> None:
    write_run(tmp_path, result("one", passed=False), result("two", outcome="invalid"))
    trials = load(tmp_path).trials
    assert str(trials["passed"].dtype) == "boolean"
    assert trials["passed"].isna().tolist() == [False, True]
    assert trials["design"].tolist() == ["d", "d"]


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path / ROWS)
    journal.append(b"first\n")
    real, calls = os.write, iter([True, False])

    def short_then_full(file: int, data: bytes) -> int:
        if next(calls):
            return real(file, data[:3])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", short_then_full)
    with pytest.raises(InfrastructureError, match="No space left on device"):
        journal.append(b"second\n")
    journal.close()
    assert (tmp_path / ROWS).read_bytes() == b"first\n"


def test_a_folder_without_a_run_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no run"):
        load(tmp_path)
