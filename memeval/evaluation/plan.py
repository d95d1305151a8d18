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
        """All trials in running order."""
        repeats = max((cell.planned.repeats for cell in self.cells), default=0)
        for _, same_model in groupby(self.cells, key=lambda cell: cell.row.model):
            block = list(same_model)
            for repeat in range(repeats):
                shuffled = random.Random(f"{self.sweep.seed}/{repeat}").sample(block, len(block))
                for cell in shuffled:
                    yield from ((cell, trial) for trial in cell.trials if trial.repeat == repeat)

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
    cells: list[Cell] = []
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
        untold = [] if save_tool(tools) else [s for s in planned.scenarios if s.needs_save_tool]
        if untold:
            reason = f"{spec.model}: {len(untold)} stories name its saving tool, and it has none"
            left_out = {"design": spec.design.variant, "model": spec.model, "reason": reason}
            unsupported += [left_out] if left_out not in unsupported else []
        cell = Cell(row, spec, planned)
        cell.trials = [
            make_trial(sweep, spec, key, scenario, repeat, options)
            for repeat in range(planned.repeats)
            for scenario in planned.scenarios
            if scenario not in untold
        ]
        cells.append(cell)
    if not cells:
        reasons = "; ".join(item["reason"] for item in unsupported)
        raise InputError(f"sweep {sweep.sweep!r}: none of its cells can be run: {reasons}")
    order = list(dict.fromkeys(cell.row.model for cell in cells))
    cells.sort(key=lambda cell: order.index(cell.row.model))
    return Plan(sweep, cells, unsupported, models, embedders)
