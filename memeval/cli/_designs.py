"""A run's designs side by side, as tables of a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from memeval.cli._common import emit, records, table

if TYPE_CHECKING:
    from memeval.evaluation.results import Run

Row = dict[str, Any]


def show(run: Run, *, designs: bool, exercised: bool, as_json: bool) -> None:
    """Print what is asked for; as JSON one object with `designs`, `exercised` or both."""
    from memeval.analysis import designs as analysis

    data: dict[str, list[Row]] = {}
    if designs:
        data["designs"] = records(analysis.side_by_side(run))
    if exercised:
        data["exercised"] = records(analysis.exercised(run))
    if as_json:
        emit(data)
        return
    if designs:
        from memeval.reporting.notes import stories_note

        _rates(data["designs"])
        click.echo(f"{note}\n" if (note := stories_note(run.trials)) else "", nl=False)
        _costs(data["designs"])
    if exercised:
        _exercised(data["exercised"])


def _rates(rows: list[Row]) -> None:
    from memeval.analysis.designs import STEPS

    counts = ("trials", "stories", "families")
    trouble = ("model failures", "invalid")
    columns = ["design", "model", "calling", "tools", *(f">{n}" for n in (*counts, *STEPS, *trouble))]
    table(
        columns,
        [
            [r["variant"], r["model"], r["calling"], r["orders"], *(r[n] for n in counts),
             *(_rate(r, step) for step in STEPS), *(r[n] for n in trouble)]
            for r in rows
        ],
        title="Designs",
    )  # fmt: skip
    click.echo(
        "passed: of valid trials, with its 95% interval; called, saved: of turns that ask to remember;\n"
        "recalled: of turns that ask for it in a later session, reached or not;\n"
        "unwanted: of decoys, something was saved.\n"
        "Rates are means over families; below five families only counts are given.\n"
    )


def _rate(row: Row, step: str) -> str:
    if not row[f"{step} of"]:
        return "–"
    counts = f"{row[f'{step} yes']}/{row[f'{step} of']}"
    if row[step] is None:
        return counts
    ends = f", {100 * row['passed lo']:.0f} to {100 * row['passed hi']:.0f}" if step == "passed" else ""
    return f"{100 * row[step]:.0f}% ({counts}{ends})"


def _costs(rows: list[Row]) -> None:
    means = ("prompt tokens", "output tokens", "hook tokens", "model seconds", "hook seconds")
    whole = ("hook requests", "tool tax", "peak prompt")
    table(
        ["design", "model", "calling", *(f">{name}" for name in (*means, *whole))],
        [
            [r["variant"], r["model"], r["calling"], *(_mean(r[f"{n} a turn"]) for n in means),
             *(r[n] for n in whole)]
            for r in rows
        ],
        title="What they cost: tokens and seconds a turn",
    )  # fmt: skip


def _mean(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}" if 0 < value < 100 else f"{value:.0f}"


def _exercised(rows: list[Row]) -> None:
    numbers = ("calls", "ok", "errors", "leaked", "fired")
    names = ("variant", "part", "name", *numbers, "live")
    table(
        ["design", "part", "name", *(f">{name}" for name in numbers), "live"],
        [[row[name] for name in names] for row in rows],
        title="Tools and hooks, over all models and modes",
    )
