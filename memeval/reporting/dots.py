"""The dot-and-interval plot: a row for each model and calling mode, designs beside each other within it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from memeval.reporting.style import (
    MARKERS,
    PALETTE,
    heading,
    new_figure,
    percent,
    row_labels,
    short_variants,
    span,
    styled,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D


def drawable(numbers: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The numbers to draw, and a note on the variants left out because they are too few to say everywhere.

    Where nothing else is there, they stay, and their counts are written where the dots would be.
    """
    judged = numbers[numbers["units"] > 0]
    enough = judged.groupby("variant", observed=True)["few"].transform(lambda few: not few.all())
    if not len(judged) or not enough.any():
        return judged, ""
    left = judged[~enough.astype(bool)].groupby("variant", sort=False)[["successes", "trials"]].sum()
    notes = [f"{name}: {row.successes} of {row.trials}" for name, row in left.iterrows()]
    return judged[enough.astype(bool)], "; ".join(notes)


def caption(
    numbers: pd.DataFrame, what: str, left_out: str = "", shared: str = "", *, bars: bool = True
) -> str:
    """What the axis shows, over how much, how sure, and what was left out."""
    families, turns = span(numbers["units"]), span(numbers["trials"])
    size = f"{families} {'family' if families == '1' else 'families'}, {turns} turns a point"
    if bars and not numbers["few"].all():
        size += f"; bar: {numbers['level'].iloc[0]:.0%} interval (beta-binomial over families)"
    lines = [f"share of {what}", size]
    if shared:
        lines.append(f"all with {shared}")
    if invalid := int(numbers["invalid"].sum()):
        lines.append(f"{invalid} turns of invalid trials left out")
    if left_out:
        lines.append(f"too few families to say, not drawn: {left_out}")
    return "\n".join(lines)


def labelled(numbers: pd.DataFrame) -> pd.DataFrame:
    """The numbers with the label of their row, best row first."""
    frame = numbers.assign(row=row_labels(numbers))
    mean = frame.groupby("row")["rate"].transform("mean")
    return (
        frame.assign(_mean=mean).sort_values(["_mean", "row"], ascending=[False, True]).drop(columns="_mean")
    )


def dots(ax: Axes, numbers: pd.DataFrame, *, rows: list[str], hues: list[str], hue: str = "variant") -> None:
    """Draw rates with intervals into `ax`: `rows` from the top, each with its `hues` in order.

    Counts stand at the right. A group of fewer than five units is written as counts, not drawn as a rate.
    """
    gap = min(0.26, 0.8 / max(len(hues), 1))
    across = ax.get_yaxis_transform()
    for group in numbers.to_dict("records"):
        index = hues.index(group[hue])
        y = rows.index(group["row"]) + (index - (len(hues) - 1) / 2) * gap
        colour = PALETTE[index % len(PALETTE)]
        if group["few"]:
            text = f"{group['successes']} of {group['trials']}: too few to say"
            ax.text(0.0, y, text, color=colour, fontsize=8, va="center")
            continue
        ax.hlines(y, group["lo"], group["hi"], color=colour, lw=2)
        marker = MARKERS[index % len(MARKERS)]
        ax.plot(group["rate"], y, marker, color=colour, ms=7, mec="white", zorder=3, clip_on=False)
        counts = f"{group['successes']}/{group['trials']}"
        ax.text(1.02, y, counts, transform=across, color=colour, fontsize=8, va="center")
    smoky = set(numbers.loc[numbers["smoke"].astype(bool), "row"]) if "smoke" in numbers else set()
    for index, row in enumerate(rows):
        if row in smoky:
            ax.axhspan(
                index - 0.5, index + 0.5, facecolor="none", edgecolor="0.85", hatch="///", lw=0, zorder=0
            )
        if index:
            ax.axhline(index - 0.5, color="0.9", lw=0.8)
    ax.set_yticks(range(len(rows)), rows)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    percent(ax)


def key(names: Iterable[str]) -> list[Line2D]:
    """One sign for each design, in the order of `names`."""
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], color=PALETTE[i % 7], marker=MARKERS[i % 7], mec="white", ms=8, lw=2, label=name)
        for i, name in enumerate(names)
    ]


@styled
def panels(
    numbers: pd.DataFrame,
    *,
    title: str,
    what: str,
    facet: str | None = None,
    facets: dict[str, str] | None = None,
    rows: str = "row",
    row_order: list[str] | None = None,
) -> Figure:
    """A dot-and-interval figure, with a panel for each value of `facet` in the order of `facets`."""
    shown, left_out = drawable(numbers)
    if not len(shown):
        return nothing(title)
    shown = labelled(shown)
    shown = shown.assign(row=shown[rows])
    order = [r for r in row_order or list(dict.fromkeys(shown["row"])) if r in set(shown["row"])]
    hues = sorted(shown["variant"].unique())
    names, shared = short_variants(hues)
    kinds = [kind for kind in facets or {} if kind in set(shown[facet])] if facet else [""]
    if facet and not facets:
        kinds = list(dict.fromkeys(shown[facet]))
    lines = max(label.count("\n") + 1 for label in order)
    across = min(2, len(kinds))
    down = -(-len(kinds) // across)
    height = 1.3 + down * (0.45 + len(order) * max(0.3 * len(hues) + 0.12, 0.19 * lines + 0.1))
    figure = new_figure(3.6 + 3.1 * across, height)
    axes = figure.subplots(down, across, sharey=True, squeeze=False).ravel()
    for ax in axes[len(kinds) :]:
        ax.set_axis_off()
    for ax, kind in zip(axes, kinds, strict=False):
        part = shown[shown[facet] == kind] if facet else shown
        dots(ax, part, rows=order, hues=hues)
        if facet:
            ax.set_title((facets or {}).get(kind, kind))
    smoke = "smoke" in shown and bool(shown["smoke"].any())
    heading(figure, title, smoke=smoke, key=key(names[hue] for hue in hues))
    figure.supxlabel(caption(shown, what, left_out, shared), fontsize=9, color="0.3")
    return figure


@styled
def nothing(title: str) -> Figure:
    """A figure that says there is nothing to draw, rather than an empty pair of axes."""
    figure = new_figure(6.7, 1.2)
    heading(figure, title)
    figure.text(0.01, 0.2, "No turn of this run could be judged here.", color="0.3")
    return figure
