"""One chat model open for all its cells, and stories run on it one at a time, as `memeval run` runs them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from memeval.errors import InfrastructureError, MemevalError
from memeval.evaluation.memories import Memories
from memeval.evaluation.plan import Cell, opened
from memeval.evaluation.recorder import TrialResult
from memeval.evaluation.rows import CellRow
from memeval.evaluation.runner import GIVE_UP_AFTER
from memeval.evaluation.sweep import read_sweep
from memeval.evaluation.trial import Trial, run_trial
from memeval.pytest_plugin.wanted import Place, Wanted


class NoVerdictError(MemevalError):
    """A story that cannot be run here, by no fault of the design or the model: it is skipped."""


class Ran(NamedTuple):
    """The trials of one story in one cell, in the order of their repeats. `lost` says how the server went."""

    cell: CellRow
    trials: list[TrialResult]
    lost: str


class Benches:
    """The bench of the model at hand. Another model's is put away first, so that one is loaded at a time."""

    def __init__(self, wanted: Wanted, files: Sequence[Path]) -> None:
        self._wanted, self._files = wanted, files
        self._open: tuple[str, Bench] | None = None
        self._failed: dict[str, MemevalError] = {}

    def of(self, model: str) -> Bench:
        """The bench of a model. What kept it from opening, or ended it, is raised again each time."""
        if self._open is None or self._open[0] != model:
            self.close()
            if model not in self._failed:
                try:
                    self._open = model, Bench(self._wanted, model, self._files)
                except MemevalError as error:
                    self._failed[model] = error
        if self._open is None:
            raise self._failed[model]
        return self._open[1]

    def close(self) -> None:
        """Let go of model and stores."""
        if self._open is not None:
            model, bench = self._open
            self._open = None
            bench.close()
            if bench.lost:
                self._failed[model] = NoVerdictError(bench.lost)


class Bench:
    """A model with the designs, calling modes and the embedder asked for, opened once for all stories."""

    def __init__(self, wanted: Wanted, model: str, files: Sequence[Path]) -> None:
        """Raises InfrastructureError where the server does not answer, InputError, HarnessError."""
        self.lost = ""
        self._name = model
        self._invalid_in_a_row = 0
        self._checked: set[str] = set()
        described, base = read_sweep(wanted.sweep(model, files))
        with ExitStack() as stack:
            self._plan = stack.enter_context(opened(described, base, wanted.host))
            self._model = self._plan.models[model]
            self._memories = stack.enter_context(Memories(self._plan))
            self._stack = stack.pop_all()

    def close(self) -> None:
        """Let go of model and stores."""
        self._stack.close()

    def run(self, story: str, place: Place) -> Ran:
        """All repeats of a story in a cell; fewer where the server is lost on the way.

        Raises NoVerdictError where the cell or the server cannot run it, HarnessError for a bug in a
        person's own design.
        """
        if self.lost:
            raise NoVerdictError(self.lost)
        cell = self._cell(place)
        trials = [trial for trial in cell.trials if trial.scenario.scenario == story]
        if not trials:  # the plan leaves out stories that name a tool the design does not have
            raise NoVerdictError(f"the user names the saving tool, and {place.design} has none")
        self._check_fidelity(cell)
        results: list[TrialResult] = []
        for trial in trials:
            results.append(self._trial(cell, trial))
            if self._ends_here(trial, results[-1]):
                break
        return Ran(cell.row, results, self.lost)

    def _cell(self, place: Place) -> Cell:
        for cell in self._plan.cells:
            if (cell.row.variant, cell.row.calling) == (place.design, place.calling):
                return cell
        able = ", ".join(self._model.modes)
        raise NoVerdictError(f"{place.model} cannot do {place.calling} calling; it can do {able}")

    def _check_fidelity(self, cell: Cell) -> None:
        """Once per cell, before its first story."""
        row = cell.row
        if row.cell not in self._checked:
            try:
                self._plan.check_fidelity(cell)
            except InfrastructureError as error:
                self.lost = f"{self._name} was lost at the check of fidelity: {error}"
                raise NoVerdictError(self.lost) from error
            self._checked.add(row.cell)
        if row.fidelity == "unreadable":
            notes = "; ".join(row.fidelity_notes)
            raise NoVerdictError(f"{row.model} cannot read the tools of {row.variant}: {notes}")

    def _trial(self, cell: Cell, trial: Trial) -> TrialResult:
        """One trial on fresh stores."""
        with self._memories.fresh(cell, trial.key) as open_store:
            return run_trial(trial, self._model, open_store)

    def _ends_here(self, trial: Trial, result: TrialResult) -> bool:
        """Whether the server is gone, or as good as gone: by the same signs that stop `memeval run`."""
        if result.trial.outcome != "invalid":
            self._invalid_in_a_row = 0
            return False
        self._invalid_in_a_row += 1
        reason = result.trial.invalid_reason
        down = reason.startswith("server_down") or not self._model.healthy()
        if down or self._invalid_in_a_row >= GIVE_UP_AFTER:
            self.lost = f"{self._name} was lost at {trial.scenario.scenario}: {reason.partition(': ')[2]}"
        return bool(self.lost)
