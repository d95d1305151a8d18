"""A run that never happened: deterministic frames with the columns of a real one."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from memeval.designs.surface import Surface
from memeval.evaluation.results import RunWriter
from memeval.evaluation.rows import CallRow, CellRow, HitRow, Transcript, TrialRow, TurnRow
from memeval.evaluation.trial import TrialResult
from memeval.retrieval.results import write

BOOLEANS = ("passed", "called", "arguments", "stored", "retrieved", "answered", "phantom_save", "leaked_call")
# Chance that the model saves when asked, by design and by what is listed first.
CHANCES = {
    ("local2_dual", "read_first"): 0.15,
    ("local2_dual", "write_first"): 0.8,
    ("local2_single", "read_first"): 0.6,
    ("local2_single", "write_first"): 0.9,
}
MODELS = (
    ("ollama:qwen05-json", "native"),
    ("ollama:qwen05-json", "constrained"),
    ("ollama:smollm2", "constrained"),
)


# What is planted in a run of surfaces: a split is worth 30 points, the order -20, names and words nothing.
PLANTED = {"split": 0.3, "write_first": -0.2}
# The half fraction of `scenarios/sweeps/dual_vs_single.yaml` and its anchor: shape, names, words, order.
FRACTION = (
    ("as_written", "as_written", "as_written", "read_first"),
    ("split", "neutral", "as_written", "read_first"),
    ("split", "as_written", "when_to_use", "read_first"),
    ("as_written", "neutral", "when_to_use", "read_first"),
    ("split", "as_written", "as_written", "write_first"),
    ("as_written", "neutral", "as_written", "write_first"),
    ("as_written", "as_written", "when_to_use", "write_first"),
    ("split", "neutral", "when_to_use", "write_first"),
    ("as_written", "as_written", "as_written", "write_first"),
)


def cell_rows(*, smoke: bool = False) -> list[CellRow]:
    """Two designs on three rows of models, every tool readable but the last model's, which nobody checked."""
    rows = []
    for number, (model, calling) in enumerate(MODELS):
        for design in ("local2_dual", "local2_single"):
            rows.append(
                CellRow(
                    cell=f"{design}-{number}", design=design, variant=f"{design} write_path=tool",
                    serves=("recall", "remember", "search"), model=model, calling=calling, smoke=smoke,
                    embedder="hash", store="memory", fidelity="unverified" if number == 2 else "readable",
                    tools=("save_memory", "look"), tool_tax=200 + number,
                )
            )  # fmt: skip
    return rows


def surface_rows() -> list[CellRow]:
    """One design behind the surfaces of the half fraction, and both designs as written, on two models."""
    rows = []
    for number, (model, calling) in enumerate(MODELS[:2]):
        both = [("local2_dual", cell) for cell in FRACTION]
        both += [("local2_single", (*FRACTION[0][:3], order)) for order in ("read_first", "write_first")]
        for design, (shape, names, words, order) in both:
            said = Surface(shape, names, words).label
            rows.append(
                CellRow(
                    cell=f"{design}-{shape}-{names}-{words}-{order}-{number}", design=design,
                    variant=f"{design} write_path=tool{f' [{said}]' if said else ''}",
                    serves=("recall", "remember", "search"), model=model, calling=calling, embedder="hash",
                    store="memory", fidelity="readable", shape=shape, names=names, words=words,
                    tool_order=order, tools=("save_memory",),
                )
            )  # fmt: skip
    return rows


def design_rows(designs: int = 16, *, smoke: bool = False) -> list[CellRow]:
    """Many designs, from one that hardly saves to one that nearly always does, some with long labels."""
    rows = []
    for number, (model, calling) in enumerate(MODELS):
        for at in range(designs):
            name = f"{'a_rather_long_design_' if at % 5 == 0 else 'design_'}{at:02d}"
            setting = " top_k=12 write_path=auto_turn" if at % 4 == 1 else ""
            rows.append(
                CellRow(
                    cell=f"{name}-{number}", design=name, variant=name + setting, model=model,
                    serves=("recall", "remember", "search"), calling=calling, smoke=smoke, embedder="hash",
                    store="memory", fidelity="readable", tools=("save_memory", "forget_everything"),
                    hooks=("after_turn", "compact"), tool_tax=100 + 40 * at,
                )
            )  # fmt: skip
    return rows


def chance_of(cell: CellRow, order: str) -> float:
    """How often a model saves when asked."""
    if cell.design == "local2_dual" and cell.tool_order != "balanced":
        return 0.5 + PLANTED.get(cell.shape, 0) + PLANTED.get(order, 0)
    if (cell.design, order) in CHANCES:
        return CHANCES[cell.design, order] - 0.2 * cell.calling.startswith("n")
    return 0.1 + 0.05 * int(cell.design[-2:])


def rows(
    cell: CellRow, *, families: int = 12, repeats: int = 4, seed: int = 7
) -> list[tuple[TrialRow, list[TurnRow], list[CallRow]]]:
    """The trials of one cell: asked to remember, asked to recall, and a decoy, with every kind of trouble."""
    rng = np.random.default_rng([seed, *cell.cell.encode()])
    ease = rng.normal(0, 0.1, families)
    found = []
    for family in range(families):
        for repeat in range(repeats):
            order = ("read_first", "write_first")[repeat % 2]
            order = order if cell.tool_order == "balanced" else cell.tool_order
            decoy = family % 2 == 1
            key = f"{cell.cell}/{family}/{repeat}"
            if family == 2 and repeat == 3:
                trial = TrialRow(trial_key=key, outcome="invalid", invalid_reason="timeout")
                turns: list[TurnRow] = []
            else:
                chance = np.clip(chance_of(cell, order) + ease[family], 0, 1)
                saves, leaked = bool(rng.random() < chance), bool(rng.random() < 0.3)
                turns = _turns(key, saves=saves, leaked=leaked, decoy=decoy, lucky=bool(rng.random() < 0.7))
                trial = TrialRow(
                    trial_key=key, passed=all(turn.passed for turn in turns), called=turns[0].called,
                    prompt_tokens=len(turns) * (300 + (cell.tool_tax or 0)), output_tokens=40 * len(turns),
                    hook_tokens=90 * len(cell.hooks), hook_requests=len(cell.hooks), peak_prompt=700,
                    hooks={"after_turn": 2} if cell.hooks else {}, seconds_model=2.0 * len(turns),
                )  # fmt: skip
            trial.cell, trial.scenario, trial.family = cell.cell, f"story-{family}", f"family-{family:02d}"
            trial.repeat, trial.order, trial.calls = repeat, order, sum(turn.calls for turn in turns)
            name = "save_memory" if not decoy else "<script>alert(1)</script>"
            calls = [
                CallRow(trial_key=key, turn=t.turn, name=name, intent="remember") for t in turns if t.calls
            ]
            found.append((trial, turns, calls))
    return found


def _turns(key: str, *, saves: bool, leaked: bool, decoy: bool, lucky: bool) -> list[TurnRow]:
    leaked = leaked and not saves
    first = TurnRow(
        trial_key=key, intent="none" if decoy else "remember", decoy=decoy, calls=int(saves),
        wrote=int(saves), called_intent="remember" if saves else "none", leaked_call=leaked,
        leaked_intent="remember" if leaked else "",
    )  # fmt: skip
    if decoy:
        first.passed = not saves
        return [first]
    first.called = first.passed = saves
    first.arguments, first.stored = (True, True) if saves else (None, None)
    first.phantom_save = not saves and lucky
    first.answered = lucky
    second = TurnRow(
        trial_key=key, session=1, intent="recall", called=lucky, arguments=True if lucky else None,
        retrieved=saves if lucky else None, answered=(saves and lucky) if lucky else None,
        called_intent="recall" if lucky else "search", calls=1, passed=saves and lucky,
    )  # fmt: skip
    return [first, second]


@dataclasses.dataclass
class Frames:
    """What `memeval.load` gives, as far as the reports read it."""

    trials: pd.DataFrame
    turns: pd.DataFrame
    calls: pd.DataFrame
    hits: pd.DataFrame
    cells: pd.DataFrame
    manifest: dict[str, Any] = dataclasses.field(default_factory=dict)


def _frame(found: list[Any], kind: type) -> pd.DataFrame:
    names = [field.name for field in dataclasses.fields(kind)]
    frame = pd.DataFrame([dataclasses.asdict(row) for row in found], columns=names)
    return frame.astype({name: "boolean" for name in BOOLEANS if name in frame})


def frames(
    cells: list[CellRow] | None = None, *, smoke: bool = False, families: int = 12, repeats: int = 4
) -> Frames:
    """All frames of the run, joined as the loader joins them."""
    cells = cells if cells is not None else cell_rows(smoke=smoke)
    found = [row for cell in cells for row in rows(cell, families=families, repeats=repeats)]
    table = _frame(cells, CellRow)
    own = table.drop(columns="hooks")  # a trial's are those that fired
    trials = _frame([trial for trial, _, _ in found], TrialRow).merge(own, on="cell")
    turns = _frame([turn for _, turns, _ in found for turn in turns], TurnRow)
    about = ["trial_key", "cell", "scenario", "family", "repeat", "order", "outcome"]
    turns = turns.merge(trials[[*about, *[c for c in own.columns if c != "cell"]]], on="trial_key")
    calls = _frame([call for _, _, calls in found for call in calls], CallRow)
    calls = calls.merge(trials[["trial_key", "cell", "variant", "outcome"]], on="trial_key")
    return Frames(trials, turns, calls, _frame([], HitRow), table)


def write_run(
    folder: Path,
    cells: list[CellRow] | None = None,
    *,
    families: int = 12,
    repeats: int = 4,
    smoke: bool = False,
) -> Path:
    """The same run as a folder, written the way the runner writes one."""
    cells = cells if cells is not None else cell_rows(smoke=smoke)
    writer = RunWriter(folder)
    for cell in cells:
        for trial, turns, calls in rows(cell, families=families, repeats=repeats):
            writer.commit(TrialResult(trial, turns, calls, [], Transcript(trial_key=trial.trial_key)))
    writer.close()
    models = {cell.model: {"parameter_size": "630.17M"} for cell in cells}
    manifest = {
        "sweep": "synthetic",
        "models": models,
        "cells": [dataclasses.asdict(cell) for cell in cells],
    }
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return folder


def retrieval(*, queries: int = 60, seed: int = 3) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Queries and cells of a retrieval sweep: symmetric, asymmetric, and one that knows nothing."""
    rng = np.random.default_rng(seed)
    hardness = rng.random(queries)
    found, cells = [], []
    quality = {"ollama:all-minilm": (0.9, 0.9), "e5": (0.88, 0.8), "hash": (0.55, 0.55)}
    for embedder, (card, swapped) in quality.items():
        for prefix, level in (("card", card), ("none", card), ("swapped", swapped), ("wrong", 0.7)):
            same = embedder != "e5" and prefix != "card"
            unsupported = (
                "its engine writes its own prefixes" if embedder == "e5" and prefix == "none" else ""
            )
            cells.append(
                {"embedder": embedder, "prefix": prefix, "registered": embedder != "hash",
                 "document_prefix": "", "query_prefix": "",
                 "identical_to": "card" if same else "",
                 "unsupported": unsupported, "auroc": None if same or unsupported else 0.8}
            )  # fmt: skip
            for query in range(queries * (not same and not unsupported)):
                hit = hardness[query] < level
                score = float(hit) * (1.0 if hardness[query] < level - 0.2 else 0.63)
                answerable = query % 6 != 5
                values = dict.fromkeys(
                    ("recall@1", "hit@5", "mrr@10", "ndcg@10"), score if answerable else None
                )
                top = 0.35 + 0.2 * (answerable and hit) + 0.1 * rng.standard_normal()
                found.append(
                    {"embedder": embedder, "prefix": prefix, "query": f"q{query}", "top_score": min(top, 1.0),
                     "category": "direct", "answerable": answerable, **values}
                )  # fmt: skip
    return pd.DataFrame(found), pd.DataFrame(cells)


def write_retrieval(folder: Path) -> Path:
    """The retrieval run as a folder, written the way the sweep writes one."""
    queries, cells = retrieval()
    records = [
        frame.astype(object).where(frame.notna(), None).to_dict("records") for frame in (cells, queries)
    ]
    write(folder, {"retrieval": "synthetic"}, *records)
    return folder
