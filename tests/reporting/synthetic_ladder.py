"""A run on the ask-strength ladder that never happened, written the way the runner writes one."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np

from memeval.analysis.blame import BLAME, STAGES, BlameRow
from memeval.analysis.failures import RESTRAINT
from memeval.analysis.ladder import RUNGS
from memeval.evaluation.results import RunWriter, to_line
from memeval.evaluation.rows import CallRow, CellRow, Transcript, TrialRow, TurnRow
from memeval.evaluation.trial import TrialResult

SERVES = ("recall", "remember", "search")
# The chance that a tool that saves is called: on each rung, and where nobody asks.
PLANTED = {
    "obeys": ((1.0, 0.9, 0.8, 0.7, 0.3, 0.1), 0.05),
    "hoards": ((0.95, 0.95, 0.95, 0.95, 0.95, 0.95), 0.95),
    "deaf": ((0.6, 0.05, 0.05, 0.05, 0.0, 0.0), 0.0),
}
HAS_MEMORY = 0.9  # chance that what was stored is found and said
MODES = (("ollama:qwen05-json", "native"), ("ollama:qwen05-json", "constrained"))


def cells(designs: int = 3, modes: int = 2, *, smoke: bool = False, control: bool = True) -> list[CellRow]:
    """So many designs on one or two calling modes, and the design `none` beside them."""
    kinds = list(PLANTED)
    names = [
        kind if at < 3 else f"a_longer_name_{at:02d}_{kind}"
        for at in range(designs)
        for kind in [kinds[at % 3]]
    ]
    found = []
    for number, (model, calling) in enumerate(MODES[:modes]):
        for name in [*names, *(["none"] if control else [])]:
            found.append(
                CellRow(
                    cell=f"{name}-{number}", design=name, variant=name, model=model, calling=calling,
                    smoke=smoke, serves=() if name == "none" else SERVES, embedder="hash", store="memory",
                    fidelity="unverified" if number else "readable",
                    tools=() if name == "none" else ("save_memory", "search_memory"),
                )
            )  # fmt: skip
    return found


def trials(cell: CellRow, families: int, repeats: int, seed: int = 5) -> list[tuple[TrialRow, list[TurnRow]]]:
    """Every family on every rung, and as many families in which nobody asks."""
    rng = np.random.default_rng([seed, *cell.cell.encode()])
    able = cell.design != "none"
    chances, idle = PLANTED[next((kind for kind in PLANTED if cell.design.endswith(kind)), "deaf")]
    found = []
    for family in range(families):
        for repeat in range(repeats):
            for rung, chance in zip(RUNGS, chances, strict=True):
                if not able and rung == "named":
                    continue  # a design without a saving tool is not told to use it
                key = f"{cell.cell}/{family}/{rung}/{repeat}"
                saves = able and bool(rng.random() < chance)
                lucky = family == 0  # what the first family asks for can be guessed
                turns = _told(key, rung, able, saves, bool(rng.random() < 0.2))
                turns.append(_asked(key, able, saves and bool(rng.random() < HAS_MEMORY), lucky))
                found.append(
                    (_trial(cell, key, f"ladder-{family}-{rung}", f"ladder-{family}", repeat, turns), turns)
                )
            key = f"{cell.cell}/idle-{family}/{repeat}"
            wrote = able and bool(rng.random() < idle)
            turn = TurnRow(
                trial_key=key, session=1, turn=1, intent="none", decoy=True, wrote=int(wrote),
                called=not wrote if able else None, passed=not wrote,
            )  # fmt: skip
            found.append((_trial(cell, key, f"idle-{family}", f"idle-{family}", repeat, [turn]), [turn]))
    return found


def _trial(
    cell: CellRow, key: str, scenario: str, family: str, repeat: int, turns: list[TurnRow]
) -> TrialRow:
    order = ("read_first", "write_first")[repeat % 2]
    return TrialRow(
        trial_key=key, cell=cell.cell, scenario=scenario, family=family, repeat=repeat, order=order,
        passed=all(turn.passed is not False for turn in turns),
    )  # fmt: skip


def _told(key: str, rung: str, able: bool, saves: bool, claims: bool) -> list[TurnRow]:
    """The first session; on the rung `save_it` the fact is told a turn before."""
    before = [TurnRow(trial_key=key, session=1, turn=1)] if rung == "save_it" else []
    turn = TurnRow(
        trial_key=key, session=1, turn=len(before) + 1, intent="remember", strength=rung,
        called=saves if able else None, arguments=True if saves else None, stored=True if saves else None,
        wrote=int(saves), phantom_save=claims and not saves, passed=saves or not able,
    )  # fmt: skip
    return [*before, turn]


def _asked(key: str, able: bool, found: bool, lucky: bool) -> TurnRow:
    return TurnRow(
        trial_key=key, session=2, turn=1, intent="recall", called=True if able else None,
        arguments=True if able else None, retrieved=found if able else None,
        answered=(True if found else None) if able else lucky, passed=found or (lucky and not able),
    )  # fmt: skip


def write(
    folder: Path, *, families: int = 6, repeats: int = 2, designs: int = 3, modes: int = 2,
    smoke: bool = False, control: bool = True, blamed: bool = True, ladder: bool = True,
) -> Path:  # fmt: skip
    """The run as a folder. `ladder=False` leaves out what is told on a rung; `blamed` writes blame rows."""
    rows = cells(designs, modes, smoke=smoke, control=control)
    found = [pair for cell in rows for pair in trials(cell, families, repeats)]
    writer = RunWriter(folder)
    for trial, turns in found:
        for turn in turns:
            turn.strength = turn.strength if ladder else ""
        calls = [
            CallRow(
                trial_key=t.trial_key, session=t.session, turn=t.turn, name="save_memory", intent="remember"
            )
            for t in turns
            if t.wrote
        ]
        writer.commit(TrialResult(trial, turns, calls, [], Transcript(trial_key=trial.trial_key)))
    writer.close()
    manifest = {"sweep": "synthetic", "definition": {}, "cells": [dataclasses.asdict(cell) for cell in rows]}
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    if blamed:
        (folder / BLAME).write_bytes(b"".join(to_line("blame", row) for row in _blame(found)))
    return folder


def _blame(found: list[tuple[TrialRow, list[TurnRow]]]) -> list[BlameRow]:
    """Two of three failures replayed and blamed in turn on each stage; restraint needs no replay."""
    rows = []
    for number, (trial, turns) in enumerate((t, turns) for t, turns in found if not t.passed):
        row = BlameRow(
            trial_key=trial.trial_key, cell=trial.cell, scenario=trial.scenario, family=trial.family
        )
        if turns[0].decoy:
            row.blamed, row.in_sample = RESTRAINT, False
        elif number % 3:
            row.blamed, row.seeds = STAGES[number * number % 5], 5
        else:
            continue
        rows.append(row)
    return rows
