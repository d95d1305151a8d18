"""The dot-and-interval plot: a row for each model and calling mode, designs beside each other within it.

With many designs it is turned round: a row for each design, a panel for each model and calling mode.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from memeval.reporting.style import (
    MANY,
    MARKERS,
    PAGE,
    PALETTE,
    folded,
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


def crowded(numbers: pd.DataFrame) -> bool:
    """Whether there are more designs than colours: then designs are rows."""
    return bool(numbers.loc[numbers["units"] > 0, "variant"].nunique() > MANY)


def caption(
    numbers: pd.DataFrame,
    what: str,
    left_out: str = "",
    shared: str = "",
    *,
    bars: bool = True,
    counted: str = "turns",
) -> str:
    """What the axis shows, over how much, how sure, and what was left out."""
    families, each = span(numbers["units"]), span(numbers["trials"])
    size = f"{families} {'family' if families == '1' else 'families'}, {each} {counted} a point"
    if bars and not numbers["few"].all():
        size += f"; bar: {numbers['level'].iloc[0]:.0%} interval (beta-binomial over families)"
    lines = [f"share of {what}", size]
    if shared:
        lines.append(f"all with {shared}")
    if invalid := int(numbers["invalid"].sum()):
        lines.append(
            f"{invalid} {'invalid trials' if counted == 'trials' else 'turns of invalid trials'} left out"
        )
    if left_out:
        lines.append(f"too few families to say, not drawn: {left_out}")
    return "\n".join(folded(line, 100) for line in lines)


def labelled(numbers: pd.DataFrame) -> pd.DataFrame:
    """The numbers with the label of their row, best row first."""
    frame = numbers.assign(row=row_labels(numbers))
    mean = frame.groupby("row")["rate"].transform("mean")
    return (
        frame.assign(_mean=mean).sort_values(["_mean", "row"], ascending=[False, True]).drop(columns="_mean")
    )


def dots(
    ax: Axes,
    numbers: pd.DataFrame,
    *,
    rows: list[str],
    hues: list[str],
    hue: str = "variant",
    counts: bool = True,
) -> None:
    """Draw rates with intervals into `ax`: `rows` from the top, each with its `hues` in order.

    `counts` stand at the right. A group of fewer than five units is written as counts, not drawn as a rate.
    """
    gap = min(0.26, 0.8 / max(len(hues), 1))
    across = ax.get_yaxis_transform()
    for group in numbers.to_dict("records"):
        index = hues.index(group[hue])
        y = rows.index(group["row"]) + (index - (len(hues) - 1) / 2) * gap
        colour = PALETTE[index % len(PALETTE)]
        if group["few"]:
            text = f"{group['successes']} of {group['trials']}{': too few to say' if counts else ''}"
            ax.text(0.0, y, text, color=colour, fontsize=8, va="center")
            continue
        ax.hlines(y, group["lo"], group["hi"], color=colour, lw=2)
        marker = MARKERS[index % len(MARKERS)]
        ax.plot(group["rate"], y, marker, color=colour, ms=7, mec="white", zorder=3, clip_on=False)
        if counts:
            text = f"{group['successes']}/{group['trials']}"
            ax.text(1.02, y, text, transform=across, color=colour, fontsize=8, va="center")
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
    if crowded(numbers) and not facet:
        return ladder(numbers, title=title, what=what)
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
def ladder(
    numbers: pd.DataFrame,
    *,
    title: str,
    what: str,
    hue: str = "",
    hues: Mapping[str, str] | None = None,
    column: str = "",
    columns: Mapping[str, str] | None = None,
    by: str = "",
    counted: str = "turns",
) -> Figure:
    """A dot-and-interval figure with a row for each design, best first over all panels.

    A panel for each model and calling mode; with `column` a line of panels for each, one for each of
    `columns`. `hue` names what stands beside each other within a row, in the order of `hues`; `by` is the
    one that rows are sorted by, if not by all.
    """
    shown, left_out = drawable(numbers)
    if not len(shown):
        return nothing(title)
    names, shared = short_variants(sorted(shown["variant"].unique()))
    shown = shown.assign(
        row=[folded(names[name], 30) for name in shown["variant"]],
        panel=[label.replace("\n", " · ") for label in row_labels(shown)],
        hue=shown[hue] if hue else "",
    )
    rate = shown["rate"].where(shown["hue"] == by) if by else shown["rate"]
    order = list(rate.groupby(shown["row"]).mean().sort_values(ascending=False, kind="stable").index)
    panels = list(dict.fromkeys(shown["panel"]))
    signs = {name: label for name, label in (hues or {"": ""}).items() if name in set(shown["hue"])}
    sides = {name: label for name, label in (columns or {}).items() if name in set(shown[column])}
    margin = 0.3 + 0.085 * max(len(line) for row in order for line in row.split("\n"))
    across = len(sides) or min(len(panels), 3 if PAGE - margin > 7.2 else 2)
    down = len(panels) if sides else -(-len(panels) // across)
    wide = min((PAGE - margin) / across, 3.6)
    pitch = max(0.145 * max(row.count("\n") + 1 for row in order) + 0.1, 0.17 * len(signs) + 0.12)
    figure = new_figure(margin + across * wide, 1.4 + down * (0.6 + pitch * len(order)))
    axes = figure.subplots(down, across, sharey=True, squeeze=False).ravel()
    places = [(panel, side) for panel in panels for side in sides or [""]]
    for ax in axes[len(places) :]:
        ax.set_axis_off()
    for at, (ax, (panel, side)) in enumerate(zip(axes, places, strict=False)):
        part = shown[shown["panel"] == panel]
        heads = [folded(panel, round(wide * 13))]
        if side:
            part = part[part[column] == side]
            heads = [panel if at % across == 0 else " ", folded(sides[side], round(wide * 13))]
        dots(ax, part, rows=order, hues=list(signs), hue="hue", counts=wide >= 2.2)
        if wide < 2.2:
            ax.set_xticks([0, 0.5, 1])
        ax.set_title("\n".join(heads), fontsize=9.5)
        ax.tick_params(axis="y", labelsize=8.5)
    smoke = "smoke" in shown and bool(shown["smoke"].any())
    heading(figure, title, smoke=smoke, key=key(signs.values()) if hue else ())
    figure.supxlabel(caption(shown, what, left_out, shared, counted=counted), fontsize=9, color="0.3")
    return figure


@styled
def nothing(title: str, why: str = "No turn of this run could be judged here.") -> Figure:
    """A figure that says why there is nothing to draw, rather than an empty pair of axes."""
    figure = new_figure(6.7, 1.2)
    heading(figure, title)
    figure.text(0.01, 0.2, why, color="0.3")
    return figure
