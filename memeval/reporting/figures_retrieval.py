"""The figures of the retrieval report. Each takes numbers of `analysis.retrieval_tables`."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from memeval.analysis.retrieval_tables import PREFIXES
from memeval.reporting.dots import nothing
from memeval.reporting.style import BLUE, MARKERS, PALETTE, heading, ink, new_figure, styled

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NAMES = {"ndcg": "nDCG", "mrr": "MRR", "hit": "Hit", "recall": "Recall"}


def metric_name(value: str) -> str:
    """`ndcg@10` as it is usually written: `nDCG@10`."""
    name, _, cut = value.partition("@")
    return f"{_NAMES.get(name, name)}@{cut}"


def embedder_label(row: Mapping[Hashable, Any]) -> str:
    """An embedder, and whether its prefixes are unknown to the registry."""
    unknown = "registered" in row and not bool(row["registered"])
    return f"{row['embedder']}\n(prefixes unregistered)" if unknown else str(row["embedder"])


def _why_empty(row: Mapping[Hashable, Any]) -> str:
    if row.get("identical_to"):
        return f"n/a: same as\n{row['identical_to']}\nby construction"
    return "unsupported" if row.get("unsupported") else "not run"


@styled
def retrieval_grid(table: pd.DataFrame, ax: Axes | None = None) -> Figure:
    """Quality by embedder and prefix mode; the best of a row is outlined, missing cells say why."""
    if not len(table) or table["mean"].isna().all():
        return nothing("Which embedder, with which prefix")
    frame = table.assign(label=[embedder_label(row) for row in table.to_dict("records")])
    rows = list(dict.fromkeys(frame["label"]))
    present = list(dict.fromkeys(frame["prefix"]))
    columns = sorted(present, key=lambda name: PREFIXES.index(name) if name in PREFIXES else len(PREFIXES))
    grid = frame.pivot_table(index="label", columns="prefix", values="mean", dropna=False)
    grid = grid.reindex(index=rows, columns=columns)
    figure = None
    if ax is None:
        figure = new_figure(max(6.7, 2.4 + 1.15 * len(columns)), 1.5 + 0.62 * len(rows))
        ax = figure.subplots()
    values = grid.to_numpy(dtype=float)
    low = max(0.0, np.floor(10 * np.nanmin(values) - 0.5) / 10)
    image = ax.imshow(np.ma.masked_invalid(values), cmap="viridis", aspect="auto", vmin=low, vmax=1)
    _annotate(ax, frame, grid, image)
    ax.set_xticks(range(len(columns)), [name.replace("-only", "\nonly") for name in columns])
    ax.set_yticks(range(len(rows)), rows)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    if figure is not None:
        half = float(((frame["hi"] - frame["lo"]) / 2).max())
        n = int(frame["n"].max())
        level = float(frame["level"].dropna().iloc[0])
        heading(figure, f"Which embedder, with which prefix: {metric_name(frame['metric'].iloc[0])}")
        figure.supxlabel(
            f"mean of {n} answerable queries; {level:.0%} bootstrap intervals, at widest ± {half:.2f}:\n"
            "differences within that are not settled here; outlined: best prefix mode of the row",
            fontsize=9, color="0.3",
        )  # fmt: skip
        figure.colorbar(image, ax=ax, shrink=0.85, pad=0.02)
    return ax.figure  # type: ignore[return-value]  # a SubFigure draws the same


def _annotate(ax: Axes, frame: pd.DataFrame, grid: pd.DataFrame, image: Any) -> None:
    from matplotlib.patches import Rectangle

    cells = {(row["label"], row["prefix"]): row for row in frame.to_dict("records")}
    values = grid.to_numpy(dtype=float)
    for (i, j), value in np.ndenumerate(values):
        cell = cells.get((grid.index[i], grid.columns[j]))
        if np.isnan(value):
            text = _why_empty(cell) if cell is not None else "not run"
            ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, fc="0.96", ec="white", zorder=2))
            ax.text(j, i, text, ha="center", va="center", fontsize=7, color="0.35", zorder=3)
            continue
        best = np.isfinite(values[i]).sum() > 1 and value == np.nanmax(values[i])
        colour = ink(image.cmap(image.norm(value)))
        ax.text(
            j, i, f"{value:.2f}", ha="center", va="center", color=colour, weight="bold" if best else "normal"
        )
        if best:
            ax.add_patch(Rectangle((j - 0.46, i - 0.44), 0.92, 0.88, fill=False, ec=colour, lw=1.4, zorder=4))


@styled
def retrieval_intervals(table: pd.DataFrame, ax: Axes | None = None) -> Figure:
    """The same numbers as dots with bootstrap intervals, a row for each embedder and prefix mode."""
    shown = table[table["mean"].notna()].sort_values(
        "mean", ascending=False, kind="stable", ignore_index=True
    )
    if not len(shown):
        return nothing("How sure the numbers are")
    embedders = list(dict.fromkeys(table["embedder"]))
    figure = None
    if ax is None:
        figure = new_figure(7.6, 1.4 + 0.3 * len(shown))
        ax = figure.subplots()
    for y, row in enumerate(shown.to_dict("records")):
        index = embedders.index(row["embedder"])
        colour, marker = PALETTE[index % 7], MARKERS[index % 7]
        ax.hlines(y, row["lo"], row["hi"], color=colour, lw=2)
        ax.plot(row["mean"], y, marker, color=colour, ms=7, mec="white", zorder=3, clip_on=False)
        ax.text(1.02, y, f"{row['mean']:.2f}", transform=ax.get_yaxis_transform(), color=colour, fontsize=8.5,
                va="center")  # fmt: skip
    ax.set_yticks(
        range(len(shown)), [f"{e} · {p}" for e, p in zip(shown["embedder"], shown["prefix"], strict=True)]
    )
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(shown) - 0.5, -0.5)
    ax.set_xlim(-0.01, 1.01)
    ax.grid(True, axis="x")
    if figure is not None:
        metric, level = metric_name(shown["metric"].iloc[0]), float(shown["level"].iloc[0])
        heading(figure, f"How sure the numbers are: {metric}")
        figure.supxlabel(
            f"{metric}, mean of {int(shown['n'].max())} answerable queries; "
            f"bar: {level:.0%} interval (bootstrap over queries)",
            fontsize=9, color="0.3",
        )  # fmt: skip
    return ax.figure  # type: ignore[return-value]  # a SubFigure draws the same


@styled
def score_histogram(scores: pd.DataFrame) -> Figure:
    """The best hit's score for queries with and without an answer in the store, a panel for each embedder.

    Where the two overlap, no threshold on the score can tell "nothing was remembered" from a hit.
    """
    from matplotlib.lines import Line2D

    embedders = list(dict.fromkeys(scores["embedder"])) if len(scores) else []
    if not embedders:
        return nothing("Can the score tell that nothing was remembered?")
    figure = new_figure(7.6, 1.3 + 1.15 * len(embedders))
    axes = np.atleast_1d(figure.subplots(len(embedders), 1, sharex=True))
    bins = np.linspace(
        min(0.0, float(scores["top_score"].min())), max(1.0, float(scores["top_score"].max())), 41
    )
    for ax, embedder in zip(axes, embedders, strict=True):
        part = scores[scores["embedder"] == embedder]
        has = part["answerable"].astype(bool)
        ax.hist(part.loc[~has, "top_score"], bins, color="0.7")
        ax.hist(part.loc[has, "top_score"], bins, histtype="step", color=BLUE, lw=1.8)
        ax.set_title(f"{embedder} ({has.sum()} with an answer, {(~has).sum()} without)", fontsize=9.5)
        ax.set_ylabel("queries", fontsize=8.5)
    signs = [
        Line2D([], [], color=BLUE, lw=1.8, label="answer in the store"),
        Line2D([], [], color="0.7", lw=7, label="no answer in the store"),
    ]
    heading(figure, "Can the score tell that nothing was remembered?", key=signs)
    figure.supxlabel("cosine of the best hit", fontsize=9, color="0.3")
    return figure
