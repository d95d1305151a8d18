"""The tool report's figures of tiles: what was called for what was asked for, and which stories pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from memeval.analysis.intervals import FEW
from memeval.analysis.tables import LEAKED, intent_order
from memeval.reporting.dots import nothing
from memeval.reporting.style import (
    MANY,
    PAGE,
    VERMILLION,
    folded,
    heading,
    ink,
    new_figure,
    row_labels,
    short_variants,
    styled,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TALL = 40
"""With many designs, so many families are drawn at most: those on which the designs differ most."""


@styled
def intent_matrix(counts: pd.DataFrame) -> Figure:
    """What was asked for against what was called: a panel for each design, rows of panels for each model.

    Colour is the share of the row. Leaked calls are a column of their own, since nothing was run. Many
    designs are rows, and only what was called in turns that ask to remember is drawn.
    """
    title = "What was asked for, and what was called"
    if not len(counts):
        return nothing(title)
    enough = counts["families"] >= FEW
    frame = counts[enough] if enough.any() else counts
    frame = frame.assign(row=row_labels(frame))
    variants = sorted(frame["variant"].unique())
    names, shared = short_variants(variants)
    called = [name for name in intent_order(frame["called"]) if name not in ("none", LEAKED)]
    called += ["none", LEAKED]
    note = ["columns: intent of the first call that ran; colour: share of the row"]
    if len(variants) > MANY:
        frame = frame[frame["asked"] == "remember"]
        if not len(frame):
            return nothing(title)
        figure = _by_design(frame.assign(name=[folded(names[v], 30) for v in frame["variant"]]), called)
        note.insert(0, "rows: designs, in turns that ask to remember; all other turns are in the table only")
    else:
        figure = _by_intent(frame, names, called)
        note.insert(0, "rows: asked for (turns)")
    heading(figure, title, smoke="smoke" in frame and bool(frame["smoke"].any()))
    if len(left := counts[~enough]) and enough.any():
        note.append(f"fewer than {FEW} families, not drawn: {', '.join(sorted(left['variant'].unique()))}")
    if shared:
        note.append(f"all with {shared}")
    figure.supxlabel("\n".join(folded(line, 100) for line in note), fontsize=9, color="0.3")
    return figure


def _by_intent(frame: pd.DataFrame, names: dict[str, str], called: list[str]) -> Figure:
    """A matrix of intents for each design and model."""
    rows, asked = list(dict.fromkeys(frame["row"])), intent_order(frame["asked"])
    width = 1.9 + len(names) * (0.58 * len(called) + 0.8)
    figure = new_figure(max(width, 6.7), 1.5 + len(rows) * (0.46 * len(asked) + 0.8))
    axes = figure.subplots(len(rows), len(names), squeeze=False)
    for i, row in enumerate(rows):
        for j, variant in enumerate(names):
            part = frame[(frame["row"] == row) & (frame["variant"] == variant)]
            table = part.pivot_table(
                index="asked", columns="called", values="turns", aggfunc="sum", fill_value=0
            )
            table = table.reindex(index=asked, columns=called, fill_value=0)
            right = {name: "none" if name == "decoy" else name for name in asked}
            _matrix(axes[i][j], table, [right[name] for name in asked])
            totals = zip(table.index, table.sum(axis=1), strict=True)
            axes[i][j].set_yticks(range(len(asked)), [f"{name} ({n:.0f})" for name, n in totals], fontsize=8)
            if i == 0:
                axes[i][j].set_title(names[variant], fontweight="bold", pad=8)
            if j == 0:
                axes[i][j].set_ylabel(row, rotation=0, ha="right", va="center", labelpad=10)
    return figure


def _by_design(frame: pd.DataFrame, called: list[str]) -> Figure:
    """What was called in turns of one intent: a row for each design, a panel for each model."""
    panels = list(dict.fromkeys(frame["row"]))
    right = frame["turns"].where(frame["called"] == frame["asked"], 0).groupby(frame["name"]).sum()
    share = right / frame.groupby("name")["turns"].sum()
    designs = list(share.sort_values(ascending=False, kind="stable").index)
    lines = max(name.count("\n") + 1 for name in designs)
    figure = new_figure(PAGE, 2.2 + (0.145 * lines + 0.14) * len(designs))
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for ax, panel in zip(axes, panels, strict=True):
        part = frame[frame["row"] == panel]
        table = part.pivot_table(index="name", columns="called", values="turns", aggfunc="sum", fill_value=0)
        table = table.reindex(index=designs, columns=called, fill_value=0)
        _matrix(ax, table, ["remember"] * len(designs), shares=False)
        ax.set_xticks(range(len(called)), called, fontsize=8, rotation=90)
        ax.set_yticks(range(len(designs)), designs, fontsize=8.5)
        ax.set_title(panel)
    return figure


def _matrix(ax: Axes, table: pd.DataFrame, right: list[str], *, shares: bool = True) -> None:
    """Counts coloured by their share of the row; the column that is `right` for each row is outlined."""
    from matplotlib.patches import Rectangle

    counts = table.to_numpy(dtype=float)
    totals = counts.sum(axis=1, keepdims=True)
    share = np.divide(counts, totals, out=np.zeros_like(counts), where=totals > 0)
    image = ax.imshow(share, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for (i, j), count in np.ndenumerate(counts):
        text = f"{count:.0f}\n{share[i, j]:.0%}" if count and shares else f"{count:.0f}"
        colour = ink(image.cmap(image.norm(share[i, j]))) if count else "0.7"
        ax.text(j, i, text, ha="center", va="center", fontsize=7.5, color=colour)
    for i, name in enumerate(right):
        if name in table.columns:
            j = list(table.columns).index(name)
            box = Rectangle((j - 0.47, i - 0.45), 0.94, 0.9, fill=False, ec=VERMILLION, lw=1.4)
            ax.add_patch(box)
    ax.set_xticks(range(table.shape[1]), list(table.columns), fontsize=8)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


@styled
def passed(counts: pd.DataFrame) -> Figure:
    """Passes of each family in each cell, as tiles: easiest family on top, best cell at the left.

    Many designs get a panel for each model and calling mode, and only families on which they differ.
    """
    title = "Which stories pass"
    if not len(counts):
        return nothing(title)
    names, shared = short_variants(sorted(counts["variant"].unique()))
    rows, many = row_labels(counts), len(names) > MANY
    named = [folded(names[v], 24) for v in counts["variant"]]
    stacked = [
        f"{names[v]}\n{row}".replace(" ", "\n") for v, row in zip(counts["variant"], rows, strict=True)
    ]
    frame = counts.assign(
        column=named if many else stacked, panel=rows if many else "", share=counts.successes / counts.trials
    )
    families, left = _families(frame, TALL if many else len(frame))
    columns = list(frame.groupby("column")["share"].mean().sort_values(ascending=False, kind="stable").index)
    panels = list(dict.fromkeys(frame["panel"]))
    width = 2.4 + (0.5 if many else 1.2) * len(columns)
    each = 0.27 * len(families) + (1.9 if many else 0.9)
    figure = new_figure(max(6.7, min(width, PAGE) if many else width), 1.0 + each * len(panels))
    for ax, panel in zip(figure.subplots(len(panels), 1, squeeze=False)[:, 0], panels, strict=True):
        _tiles(ax, frame[frame["panel"] == panel], families, columns)
        ax.set_xticks(range(len(columns)), columns, fontsize=7.5, rotation=90 if many else 0)
        ax.set_title(panel.replace("\n", " · "), fontweight="bold", pad=8)
    heading(figure, title, smoke="smoke" in frame and bool(frame["smoke"].any()))
    note = "passed / valid trials of each family; blank: not run"
    if left:
        note += f"\n{left} families on which the designs differ less, or not at all, are in the table only"
    figure.supxlabel(f"{note}; all with {shared}" if shared else note, fontsize=9, color="0.3")
    return figure


def _families(frame: pd.DataFrame, most: int) -> tuple[list[str], int]:
    """The families to draw, easiest first, and how many are left out: those on which designs differ least."""
    spread = frame.groupby(["panel", "family"])["share"].std().fillna(0).groupby("family").max()
    kept = spread.sort_values(ascending=False, kind="stable").index[:most]
    mean = frame[frame["family"].isin(kept)].groupby("family")["share"].mean()
    families = list(mean.sort_values(ascending=False, kind="stable").index)
    return families, len(spread) - len(families)


def _tiles(ax: Axes, frame: pd.DataFrame, families: list[str], columns: list[str]) -> None:
    table = frame.pivot_table(index="family", columns="column", values="share")
    table = table.reindex(index=families, columns=columns)
    text = frame.assign(text=frame.successes.astype(str) + "/" + frame.trials.astype(str))
    written = text.pivot_table(index="family", columns="column", values="text", aggfunc="first")
    written = written.reindex(index=families, columns=columns)
    image = ax.imshow(table.to_numpy(dtype=float), cmap="cividis", vmin=0, vmax=1, aspect="auto")
    for (i, j), share in np.ndenumerate(table.to_numpy(dtype=float)):
        if not np.isnan(share):
            colour = ink(image.cmap(image.norm(share)))
            ax.text(j, i, str(written.iat[i, j]), ha="center", va="center",
                    fontsize=8, color=colour)  # fmt: skip
    ax.xaxis.tick_top()
    ax.set_yticks(range(len(families)), families, fontsize=8.5)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
