"""The figures of the tool report. Each takes the tidy numbers of `analysis.tables` and returns a Figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from memeval.analysis.intervals import FEW
from memeval.analysis.tables import LEAKED, intent_order
from memeval.evaluation.rows import STAGES
from memeval.reporting.dots import caption, drawable, key, labelled, nothing, panels
from memeval.reporting.style import (
    MARKERS,
    ORDERS,
    PALETTE,
    VERMILLION,
    heading,
    ink,
    new_figure,
    percent,
    row_labels,
    short_variants,
    styled,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D


def headline(numbers: pd.DataFrame) -> Figure:
    """How often "please remember" was obeyed, by design; a panel for each tool order.

    Of `tables.obeying`: calling a tool that saves above, storing the right thing below. Of `tables.saving`:
    the latter alone.
    """
    if "step" in numbers:
        steps = {"called": "called a tool that saves", "saved": "stored the right thing"}
        facets = {f"{s} {o}": f"{steps[s]}\n{ORDERS[o]}" for s in steps for o in ORDERS}
        return panels(
            numbers.assign(panel=numbers["step"] + " " + numbers["order"]),
            title="Asked to remember, did the model do it?",
            what="“please remember” turns; above: a tool that saves was called, below: the fact was stored",
            facet="panel",
            facets=facets,
        )
    return panels(
        numbers,
        title="Asked to remember, did the model save it?",
        what="“please remember” turns in which the model stored the fact itself",
        facet="order",
        facets=ORDERS,
    )


def phantom_saves(numbers: pd.DataFrame) -> Figure:
    """How often the reply claims a save that did not happen."""
    return panels(
        numbers,
        title="Claimed to have saved, but had not",
        what="“please remember” turns whose reply claims a save and the model wrote nothing",
    )


def decoys(numbers: pd.DataFrame) -> Figure:
    """How often something was saved that must not be."""
    return panels(
        numbers,
        title="Saved what nobody asked to keep",
        what="decoy turns (“remember when we …?”, quoted, negated) in which the model saved something",
    )


def stages(numbers: pd.DataFrame) -> Figure:
    """Where turns break: a row for each stage, a panel for each model and calling mode."""
    frame = numbers.assign(cell=row_labels(numbers))
    return panels(
        frame,
        title="Where it breaks",
        what="turns that came as far as this stage and passed it",
        facet="cell",
        rows="stage",
        row_order=list(STAGES),
    )


@styled
def order_effect(
    numbers: pd.DataFrame, ax: Axes | None = None, *, what: str = "in which the fact was stored"
) -> Figure:
    """How much a rate of `tables.saving` moves when only the order of the tools changes; `what` says which.

    Open markers: tools that read listed first; filled: tools that write first. The line between them is the
    effect of order alone.
    """
    title = "The same tools in another order"
    shown, left_out = drawable(numbers[numbers["order"].isin(["read_first", "write_first"])])
    if not len(shown):
        return nothing(title)
    shown = labelled(shown)
    rows, hues = list(dict.fromkeys(shown["row"])), sorted(shown["variant"].unique())
    names, shared = short_variants(hues)
    figure = new_figure(7.6, 1.7 + len(rows) * max(0.3 * len(hues) + 0.15, 0.6)) if ax is None else None
    ax = ax or figure.subplots()  # type: ignore[union-attr]  # figure is made when ax is not given
    gap = min(0.26, 0.8 / len(hues))
    for (row, variant), pair in shown.groupby(["row", "variant"], sort=False):
        index = hues.index(variant)
        y = rows.index(row) + (index - (len(hues) - 1) / 2) * gap
        colour, marker = PALETTE[index % 7], MARKERS[index % 7]
        if pair["few"].any():
            text = f"{pair['successes'].sum()} of {pair['trials'].sum()}: too few to say"
            ax.text(0.0, y, text, color=colour, fontsize=8, va="center")
            continue
        rate = pair.set_index("order")["rate"]
        ax.hlines(y, rate.min(), rate.max(), color=colour, lw=2, alpha=0.5)
        for order, fill in (("write_first", colour), ("read_first", "white")):
            if order in rate:
                ax.plot(
                    rate[order], y, marker, color=colour, mfc=fill, mew=1.5, ms=7, clip_on=False, zorder=3
                )
        if len(rate) == 2:
            move = 100 * (rate["write_first"] - rate["read_first"])
            ax.text(1.03, y, f"{move:+.0f} points", transform=ax.get_yaxis_transform(), color=colour,
                    fontsize=8, va="center")  # fmt: skip
    ax.set_yticks(range(len(rows)), rows)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    percent(ax)
    owner = ax.figure
    if figure is not None:
        signs = [*key(names[hue] for hue in hues), *_order_key()]
        heading(figure, title, smoke="smoke" in shown and bool(shown["smoke"].any()), key=signs)
        turns = f"“please remember” turns {what}; intervals as in the first figure"
        figure.supxlabel(caption(shown, turns, left_out, shared, bars=False), fontsize=9, color="0.3")
    return owner  # type: ignore[return-value]  # a SubFigure draws the same


def _order_key() -> list[Line2D]:
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], color="0.4", lw=0, marker="o", ms=7, mew=1.5, mfc=fill, label=ORDERS[order])
        for order, fill in (("read_first", "white"), ("write_first", "0.4"))
    ]


@styled
def intent_matrix(counts: pd.DataFrame) -> Figure:
    """What was asked for against what was called: a panel for each design, rows of panels for each model.

    Colour is the share of the row. Leaked calls are a column of their own, since nothing was run.
    """
    title = "What was asked for, and what was called"
    if not len(counts):
        return nothing(title)
    enough = counts["families"] >= FEW
    frame = counts[enough] if enough.any() else counts
    frame = frame.assign(row=row_labels(frame))
    variants, rows = sorted(frame["variant"].unique()), list(dict.fromkeys(frame["row"]))
    asked = intent_order(frame["asked"])
    called = [name for name in intent_order(frame["called"]) if name not in ("none", LEAKED)] + [
        "none",
        LEAKED,
    ]
    names, shared = short_variants(variants)
    width = 1.9 + len(variants) * (0.58 * len(called) + 0.8)
    figure = new_figure(max(width, 6.7), 1.5 + len(rows) * (0.46 * len(asked) + 0.8))
    axes = figure.subplots(len(rows), len(variants), squeeze=False)
    for i, row in enumerate(rows):
        for j, variant in enumerate(variants):
            part = frame[(frame["row"] == row) & (frame["variant"] == variant)]
            table = part.pivot_table(
                index="asked", columns="called", values="turns", aggfunc="sum", fill_value=0
            )
            table = table.reindex(index=asked, columns=called, fill_value=0)
            _matrix(axes[i][j], table)
            if i == 0:
                axes[i][j].set_title(names[variant], fontweight="bold", pad=8)
            if j == 0:
                axes[i][j].set_ylabel(row, rotation=0, ha="right", va="center", labelpad=10)
    heading(figure, title, smoke="smoke" in frame and bool(frame["smoke"].any()))
    note = "rows: asked for (turns); columns: intent of the first call that ran; colour: share of the row"
    if len(left := counts[~enough]) and enough.any():
        note += f"\nfewer than {FEW} families, not drawn: {', '.join(sorted(left['variant'].unique()))}"
    figure.supxlabel(f"{note}\nall with {shared}" if shared else note, fontsize=9, color="0.3")
    return figure


def _matrix(ax: Axes, table: pd.DataFrame) -> None:
    from matplotlib.patches import Rectangle

    counts = table.to_numpy(dtype=float)
    totals = counts.sum(axis=1, keepdims=True)
    share = np.divide(counts, totals, out=np.zeros_like(counts), where=totals > 0)
    image = ax.imshow(share, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for (i, j), count in np.ndenumerate(counts):
        text = f"{count:.0f}\n{share[i, j]:.0%}" if count else "0"
        colour = ink(image.cmap(image.norm(share[i, j]))) if count else "0.7"
        ax.text(j, i, text, ha="center", va="center", fontsize=7.5, color=colour)
    right = {name: "none" if name == "decoy" else name for name in table.index}
    for i, name in enumerate(table.index):
        if right[name] in table.columns:
            j = list(table.columns).index(right[name])
            box = Rectangle((j - 0.47, i - 0.45), 0.94, 0.9, fill=False, ec=VERMILLION, lw=1.4)
            ax.add_patch(box)
    ax.set_xticks(range(table.shape[1]), list(table.columns), fontsize=8)
    asked = [f"{name} ({total:.0f})" for name, total in zip(table.index, totals[:, 0], strict=True)]
    ax.set_yticks(range(table.shape[0]), asked, fontsize=8)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


@styled
def passed(counts: pd.DataFrame, ax: Axes | None = None) -> Figure:
    """Passes of each family in each cell, as tiles: easiest family on top, best cell at the left."""
    title = "Which stories pass"
    if not len(counts):
        return nothing(title)
    names, shared = short_variants(sorted(counts["variant"].unique()))
    columns = [
        f"{names[v]}\n{row}".replace(" ", "\n")
        for v, row in zip(counts["variant"], row_labels(counts), strict=True)
    ]
    frame = counts.assign(column=columns, share=counts.successes / counts.trials)
    table = frame.pivot_table(index="family", columns="column", values="share")
    table = table.loc[table.mean(axis=1).sort_values(ascending=False, kind="stable").index]
    table = table[table.mean().sort_values(ascending=False, kind="stable").index]
    text = frame.assign(text=frame.successes.astype(str) + "/" + frame.trials.astype(str))
    written = text.pivot_table(index="family", columns="column", values="text", aggfunc="first")
    written = written.reindex(index=table.index, columns=table.columns)
    figure = None
    if ax is None:
        figure = new_figure(max(6.7, 2.4 + 1.2 * table.shape[1]), 1.9 + 0.27 * table.shape[0])
        ax = figure.subplots()
    image = ax.imshow(table.to_numpy(dtype=float), cmap="cividis", vmin=0, vmax=1, aspect="auto")
    for (i, j), share in np.ndenumerate(table.to_numpy(dtype=float)):
        if not np.isnan(share):
            colour = ink(image.cmap(image.norm(share)))
            ax.text(j, i, str(written.iat[i, j]), ha="center", va="center",
                    fontsize=8, color=colour)  # fmt: skip
    ax.set_xticks(range(table.shape[1]), list(table.columns), fontsize=7.5)
    ax.xaxis.tick_top()
    ax.set_yticks(range(table.shape[0]), list(table.index), fontsize=8.5)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    if figure is not None:
        heading(figure, title, smoke="smoke" in frame and bool(frame["smoke"].any()))
        note = "passed / valid trials of each family; blank: not run"
        figure.supxlabel(f"{note}; all with {shared}" if shared else note, fontsize=9, color="0.3")
    return ax.figure  # type: ignore[return-value]  # a SubFigure draws the same
