"""A sweep opened: its models and embedders there, its cells known, its trials in running order."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from memeval.designs.base import save_tool
from memeval.embedding import open_embedder
from memeval.embedding.base import Embedder
from memeval.errors import InputError
from memeval.evaluation.fidelity import ledger
from memeval.evaluation.rows import CellRow
from memeval.evaluation.sweep import CellSpec, Planned, Sweep, digest, make_trial, plan
from memeval.evaluation.trial import LOOP_VERSION, Trial, order_tools
from memeval.models.base import ChatModel
from memeval.models.registry import open_model
from memeval.owncode import own_code
from memeval.settings import load_settings

BLOCK = 7
"""Scenarios that all cells are run on before the next ones: a run that is stopped compares cells on nearly
the same scenarios, and a cell's prompt prefix is read anew only once a block."""


@dataclass(slots=True)
class Cell:
    """A cell that is open for running."""

    row: CellRow
    spec: CellSpec
    planned: Planned
    trials: list[Trial] = field(default_factory=list)


@dataclass(slots=True)
class Plan:
    """What a sweep comes to: cells in running order, and what cannot be run, with the reason."""

    sweep: Sweep
    cells: list[Cell]
    unsupported: list[dict[str, str]]
    models: dict[str, ChatModel]
    embedders: dict[str, Embedder]

    def trials(self) -> Iterator[tuple[Cell, Trial]]:
        """All trials in running order: model, repeat, block of scenarios, cells in random order, scenario."""
        for _, same_model in groupby(self.cells, key=lambda cell: cell.row.model):
            cells = list(same_model)
            names = dict.fromkeys(trial.scenario.scenario for cell in cells for trial in cell.trials)
            block = {name: at // BLOCK for at, name in enumerate(names)}
            waiting: dict[tuple[int, int], dict[str, list[tuple[Cell, Trial]]]] = {}
            for cell in cells:
                for trial in cell.trials:
                    turn = waiting.setdefault((trial.repeat, block[trial.scenario.scenario]), {})
                    turn.setdefault(cell.row.cell, []).append((cell, trial))
            for (repeat, number), turn in sorted(waiting.items()):
                draw = random.Random(f"{self.sweep.seed}/{repeat}/{number}")
                for mine in draw.sample(list(turn.values()), len(turn)):
                    yield from mine

    def check_fidelity(self, cell: Cell) -> None:
        """Write into a cell's row what its model sees of the tools. Raises InfrastructureError."""
        design = cell.spec.design()
        tools = order_tools(design.tools(), "as_written", 0)
        options, model = self.sweep.model_options(), self.models[cell.row.model]
        found = ledger(model, cell.spec.calling, design.system_prompt(), tools, options)
        overridden = found.status == "unreadable" and self.sweep.allow_unreadable
        cell.row.fidelity = "overridden" if overridden else found.status
        cell.row.fidelity_notes, cell.row.tool_tax = tuple(found.notes), found.tool_tax


@contextmanager
def opened(sweep: Sweep, base: Path, host: str | None = None) -> Iterator[Plan]:
    """A sweep's cells with their models and embedders opened and named things checked; closed afterwards."""
    settings = load_settings()
    found = plan(sweep, base, settings.embedder)
    models: dict[str, ChatModel] = {}
    embedders: dict[str, Embedder] = {}
    try:
        # every name is looked up before the first trial, so that a typing error costs seconds, not a night
        for planned in found:
            spec = planned.spec
            if spec.model not in models:
                models[spec.model] = open_model(spec.model, host=host)
            if (name := spec.embedder.label) not in embedders:
                embedders[name] = open_embedder(
                    spec.embedder.name, prefix=spec.embedder.prefix, dims=spec.embedder.dims, host=host
                )
        yield _planned(sweep, found, models, embedders)
    finally:
        for model in models.values():
            model.close()


def _planned(
    sweep: Sweep, found: Sequence[Planned], models: dict[str, ChatModel], embedders: dict[str, Embedder]
) -> Plan:
    options = sweep.model_options()
    cells: dict[str, Cell] = {}
    cannot_save: set[str] = set()
    unsupported: list[dict[str, str]] = []
    for planned in found:
        spec, model = planned.spec, models[planned.spec.model]
        if spec.calling not in model.modes:
            reason = f"{spec.model} cannot do {spec.calling} calling; it can do {', '.join(model.modes)}"
            unsupported.append({"design": spec.design.variant, "model": spec.model, "reason": reason})
            continue
        embedder = embedders[spec.embedder.label]
        design = spec.design()
        with own_code(f"design {spec.design.design.name!r}"):
            tools, serves = list(design.tools()), design.serves()
        key = digest(
            spec.design.fingerprint(), spec.model, model.digest, spec.calling, embedder.fingerprint,
            sweep.store, options.as_dict(), LOOP_VERSION, spec.order, sweep.read_only, *spec.marks,
        )  # fmt: skip
        if same := cells.get(key):  # such as two prefix modes of an embedder that has no prefixes
            same.planned = same.planned.joined(planned)
            continue
        row = CellRow(
            cell=key, design=spec.design.design.name, variant=spec.design.variant,
            design_settings=json.dumps(design.settings, sort_keys=True, default=str),
            design_hash=spec.design.fingerprint(),
            description_tokens=sum(len(re.findall(r"\w+|[^\w\s]", tool.description)) for tool in tools),
            write_path=str(design.settings.get("write_path", "")), tools=tuple(tool.name for tool in tools),
            serves=tuple(sorted(serves)), model=spec.model, model_digest=model.digest, calling=spec.calling,
            smoke=model.smoke, embedder=embedder.name, prefix=spec.embedder.prefix,
            embedder_fingerprint=embedder.fingerprint, store=sweep.store,
            options=json.dumps(options.as_dict(), sort_keys=True), tool_order=spec.order,
            hooks=design.hooks(), shape=spec.design.surface.shape, names=spec.design.surface.names,
            words=spec.design.surface.words, perturb=spec.accidents,
        )  # fmt: skip
        cells[key] = Cell(row, spec, planned)
        if not save_tool(tools):
            cannot_save.add(key)
    for key, cell in cells.items():
        told = cell.planned.runs
        if key in cannot_save:
            told = tuple((scenario, repeats) for scenario, repeats in told if not scenario.needs_save_tool)
        if untold := len(cell.planned.runs) - len(told):
            reason = f"{cell.row.model}: {untold} stories name its saving tool, and it has none"
            left_out = {"design": cell.row.variant, "model": cell.row.model, "reason": reason}
            unsupported += [left_out] if left_out not in unsupported else []
        cell.trials = [
            make_trial(sweep, cell.spec, key, scenario, repeat, options)
            for repeat in range(cell.planned.repeats)
            for scenario, repeats in told
            if repeat < repeats
        ]
    if not cells:
        reasons = "; ".join(item["reason"] for item in unsupported)
        raise InputError(f"sweep {sweep.sweep!r}: none of its cells can be run: {reasons}")
    order = list(dict.fromkeys(cell.row.model for cell in cells.values()))
    by_model = sorted(cells.values(), key=lambda cell: order.index(cell.row.model))
    return Plan(sweep, by_model, unsupported, models, embedders)
