"""The runner: a sweep's trials, one durable commit each, stopped and resumed at any point.

Order: model, then repeat, then blocks of scenarios, then the cells in random order, then the scenarios, so
that a model stays loaded and the prompt prefix of a design stays cached while time of day cannot favour one
design, and a run that is stopped has nearly the same scenarios in all cells. Fidelity is checked once per
cell, before its first trial.
"""

from __future__ import annotations

import json
import platform
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from memeval.errors import InfrastructureError, InputError
from memeval.evaluation.checks import SCORER
from memeval.evaluation.memories import Memories
from memeval.evaluation.plan import BLOCK, Cell, Plan, opened
from memeval.evaluation.recorder import TrialResult
from memeval.evaluation.results import (
    MANIFEST,
    Run,
    RunWriter,
    counted,
    load,
    only_writer,
    read_manifest,
    read_rows,
    read_run,
    write_atomically,
)
from memeval.evaluation.sweep import Sweep, digest, read_sweep
from memeval.evaluation.trial import LOOP_VERSION, Trial, run_trial

GIVE_UP_AFTER = 3
"""Invalid trials in a row after which a server counts as broken, though it still answers."""

Progress = Callable[[int, int, TrialResult | None], None]
"""Called with trials done, trials in all, and the trial just committed (None at the start)."""


def run(
    sweep: str | Path | Mapping[str, Any], out: str | Path | None = None, *,
    host: str | None = None, progress: Progress | None = None,
) -> Run:  # fmt: skip
    """Run a sweep, or go on with it where it was stopped, and give its results.

    `sweep` is a file, the name of a shipped sweep, or a mapping with the same keys. `out` is the run's
    folder, by default `results/<sweep>`. Trials that are done are not run again; invalid ones are, as a new
    attempt.

    Raises InputError for a sweep, a name or a folder that is wrong, HarnessError for a bug in a person's own
    design, InfrastructureError when the server is gone: what was done is kept, and the same call goes on.
    """
    described, base = read_sweep(sweep)
    folder = Path(out) if out is not None else Path("results") / described.sweep
    _refuse_foreign(folder, described)
    with ExitStack() as stack:
        planned = stack.enter_context(opened(described, base, host))
        folder.mkdir(parents=True, exist_ok=True)
        stack.enter_context(only_writer(folder, "wait for it, or give --out"))
        _Runner(planned, folder, progress).run()
    return load(folder)


class _Runner:
    """One run under way."""

    def __init__(self, planned: Plan, folder: Path, progress: Progress | None) -> None:
        self.plan, self.folder = planned, folder
        self.progress = progress or (lambda done, total, result: None)
        self.invalid_in_a_row = 0
        before = read_manifest(folder) if (folder / MANIFEST).is_file() else {}
        self.starts = [*before.get("starts", []), _now()]
        self.stories = {s.scenario: s for cell in planned.cells for s in cell.planned.scenarios}
        self.expected = {name: digest(story.expected()) for name, story in self.stories.items()}
        self.scorers, self.judged_by = self._standing(before)

    def run(self) -> None:
        self._manifest()  # first: a folder with rows but no manifest would be taken for somebody else's
        writer = RunWriter(self.folder)
        scratch = Path(tempfile.mkdtemp(prefix="memeval-"))
        try:
            done, attempts = self._done()
            todo = [(cell, trial) for cell, trial in self.plan.trials() if trial.key not in done]
            total = sum(len(cell.trials) for cell in self.plan.cells)
            self.progress(total - len(todo), total, None)
            checked: set[str] = set()
            with Memories(self.plan, scratch) as memories:
                for number, (cell, trial) in enumerate(todo, total - len(todo) + 1):
                    if cell.row.cell not in checked:
                        checked.add(cell.row.cell)
                        self._check_fidelity(cell)
                    if cell.row.fidelity == "unreadable":
                        continue
                    attempt = attempts.get(trial.key, 0) + 1
                    result = self._trial(cell, trial, memories, attempt)
                    writer.commit(result)
                    if result.trial.outcome != "invalid" and SCORER not in self.scorers:
                        self.scorers.add(SCORER)
                        self._manifest()
                    self.progress(number, total, result)
            self._manifest(finished=True)
        finally:
            writer.close()
            shutil.rmtree(scratch, ignore_errors=True)

    def _trial(self, cell: Cell, trial: Trial, memories: Memories, attempt: int) -> TrialResult:
        """Run a trial; a server that is gone stops the run instead of filling it with invalid rows."""
        model = self.plan.models[cell.row.model]
        with memories.fresh(cell, f"{trial.key}-{attempt}") as open_store:
            result = run_trial(trial, model, open_store, attempt)
        if result.trial.outcome != "invalid":
            self.invalid_in_a_row = 0
            name = trial.scenario.scenario
            if self.expected[name] != self.judged_by[name]:
                result.trial.expected = self.expected[name]
            return result
        self.invalid_in_a_row += 1
        reason = result.trial.invalid_reason
        if reason.startswith("server_down") or not model.healthy() or self.invalid_in_a_row >= GIVE_UP_AFTER:
            raise self._stopped(trial.scenario.scenario, cell, reason.partition(": ")[2])
        return result

    def _stopped(self, at: str, cell: Cell, reason: str) -> InfrastructureError:
        return InfrastructureError(
            f"stopped at {at} with {cell.row.model}: {reason}; what was done is kept in {self.folder}, "
            "and the same command goes on from there",
            kind="server_down",
        )

    def _done(self) -> tuple[set[str], dict[str, int]]:
        """Keys of trials that count, and how many attempts each key has had."""
        trials: list[dict[str, Any]] = []
        attempts: dict[str, int] = {}
        for row in read_rows(self.folder):  # of all tables: a trial row may be damaged, its turns whole
            attempts[row["trial_key"]] = max(attempts.get(row["trial_key"], 0), row.get("attempt", 1))
            trials += [row] if row["table"] == "trial" else []
        done = {key for key, row in counted(trials).items() if row.get("outcome") != "invalid"}
        return done, attempts

    def _standing(self, before: Mapping[str, Any]) -> tuple[set[str], dict[str, str]]:
        """What verdicts stand on when a run goes on: scorers, and the digest of expectations by scenario.

        Trial rows name their expectations only where they are not those of the manifest, so that it keeps
        the ones that older rows stand on.
        """
        found = read_run(self.folder, {"cells": self._cells()}).rows("trial")
        judged = [row for row in found if row.get("outcome") != "invalid"]
        unnamed = {row["scenario"] for row in judged if not row.get("expected")}
        expected = dict(self.expected)
        for name, known in before.get("scenarios", {}).items():
            if name in unnamed and known.get("shown") == digest(self.stories[name].shown()):
                expected[name] = known["expected"]
        return {row.get("scorer", "") for row in judged}, expected

    def _check_fidelity(self, cell: Cell) -> None:
        try:
            self.plan.check_fidelity(cell)
        except InfrastructureError as error:
            raise self._stopped("the check of fidelity", cell, str(error)) from error
        self._manifest()

    def _manifest(self, finished: bool = False) -> None:
        """Everything needed to judge the run. Written anew when something is learnt, always whole."""
        plan = self.plan
        before = read_manifest(self.folder) if (self.folder / MANIFEST).is_file() else {}
        known = {cell["cell"]: cell for cell in before.get("cells", [])}
        for cell in plan.cells:
            if cell.row.fidelity == "unverified" and (earlier := known.get(cell.row.cell)):
                cell.row.fidelity = earlier.get("fidelity", "unverified")
                cell.row.fidelity_notes = tuple(earlier.get("fidelity_notes", ()))
                cell.row.tool_tax = earlier.get("tool_tax")
        manifest = {
            "kind": "trials",
            "sweep": plan.sweep.sweep,
            "title": plan.sweep.title,
            "starts": self.starts,
            "finished": _now() if finished else "",
            "memeval": version("memeval"),
            "loop_version": LOOP_VERSION,
            "scorer": ", ".join(sorted(self.scorers)) or SCORER,
            "python": platform.python_version(),
            "machine": f"{platform.system()} {platform.machine()}",
            "definition": plan.sweep.model_dump(mode="json", exclude_defaults=True),
            "trials": sum(len(cell.trials) for cell in plan.cells),
            "order": f"model, repeat, blocks of {BLOCK} scenarios, cells in random order, scenario",
            "tool_order": sorted({cell.row.tool_order for cell in plan.cells}),
            "read_only": plan.sweep.read_only,
            "cells": self._cells(),
            "rescored": before.get("rescored", []),
            "unsupported": plan.unsupported,
            "models": {name: dict(model.describe()) for name, model in plan.models.items()},
            "embedders": {
                name: {"fingerprint": e.fingerprint, "dim": e.dim} for name, e in plan.embedders.items()
            },
            "scenarios": {
                name: {
                    "family": s.family, "title": s.title, "tags": s.tags,
                    "shown": digest(s.shown()), "expected": self.judged_by[name],
                }
                for name, s in sorted(self.stories.items())
            },
        }  # fmt: skip
        text = json.dumps(manifest, indent=1, ensure_ascii=False, allow_nan=False, default=str)
        write_atomically(self.folder / MANIFEST, text + "\n")

    def _cells(self) -> list[dict[str, Any]]:
        """The cells with the keys of their trials, by which rows of other definitions are told apart."""
        return [
            asdict(cell.row) | {"trial_keys": " ".join(trial.key for trial in cell.trials)}
            for cell in self.plan.cells
        ]


def _refuse_foreign(folder: Path, sweep: Sweep) -> None:
    """A folder that holds another run, or something else, is left as it is."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError(f"{folder} is a file; give --out the name of a folder")
    if (folder / MANIFEST).is_file():
        other = read_manifest(folder).get("sweep")
        if other != sweep.sweep:
            raise InputError(
                f"{folder} holds the run of sweep {other!r}, not of {sweep.sweep!r}; "
                "give --out another folder"
            )
    elif any(item for item in folder.iterdir() if not item.name.startswith(".")):
        raise InputError(f"{folder} is not empty and holds no run; give --out a new folder")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
