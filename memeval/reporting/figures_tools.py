"""The tool report's figures of rates. Each takes tidy numbers of `analysis.tables` and returns a Figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memeval.evaluation.rows import STAGES
from memeval.reporting.dots import caption, crowded, drawable, key, labelled, ladder, nothing, panels
from memeval.reporting.style import (
    MARKERS,
    ORDERS,
    PAGE,
    PALETTE,
    folded,
    heading,
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


STEPS = {"called": "called a tool that saves", "saved": "stored the right thing"}
ONE_ORDER = (
    "No story of this run that asks to remember was run in both orders of a design's tools,\n"
    "so that a difference could be the stories' as well: an even number of repeats runs each in both."
)


def headline(numbers: pd.DataFrame) -> Figure:
    """How often "please remember" was obeyed, by design; a panel for each tool order.

    Of `tables.obeying`: calling a tool that saves above, storing the right thing below. Of `tables.saving`:
    the latter alone. Many designs are rows, with the orders beside each other within them.
    """
    title = "Asked to remember, did the model do it?"
    if crowded(numbers):
        step = numbers.get("step", "saved")
        return ladder(
            numbers.assign(step=step), title=title, what="“please remember” turns", hue="order", hues=ORDERS,
            column="step", columns=STEPS,
        )  # fmt: skip
    if "step" in numbers:
        facets = {f"{s} {o}": f"{STEPS[s]}\n{ORDERS[o]}" for s in STEPS for o in ORDERS}
        return panels(
            numbers.assign(panel=numbers["step"] + " " + numbers["order"]),
            title=title,
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
    """Where turns break: a row for each stage, a panel for each model and calling mode.

    Many designs are rows, with a column for each stage.
    """
    title, what = "Where it breaks", "turns that came as far as this stage and passed it"
    if crowded(numbers):
        columns = {name: name for name in STAGES}
        return ladder(numbers, title=title, what=what, column="stage", columns=columns)
    frame = numbers.assign(cell=row_labels(numbers))
    return panels(
        frame,
        title=title,
        what=what,
        facet="cell",
        rows="stage",
        row_order=list(STAGES),
    )


@styled
def order_effect(numbers: pd.DataFrame, *, what: str = "in which the fact was stored") -> Figure:
    """How much a rate moves when only the order of the tools changes; `what` says which rate.

    `numbers` are of `tables.moved`: of stories that were run in both orders. Open markers: tools that read
    listed first; filled: tools that write first. The line between them is the effect of order alone. Many
    designs are rows, with a panel for each model and calling mode.
    """
    title = "The same tools in another order"
    shown, left_out = drawable(numbers)
    if not len(shown):
        return nothing(title) if len(numbers) else nothing(title, ONE_ORDER)
    many, shown = crowded(shown), labelled(shown)
    hues = sorted(shown["variant"].unique())
    names, shared = short_variants(hues)
    if many:
        shown = shown.assign(panel=shown["row"], row=[folded(names[name]) for name in shown["variant"]])
        mean = shown.groupby("row")["rate"].mean().sort_values(ascending=False, kind="stable")
        rows, panels, colours = list(mean.index), list(dict.fromkeys(shown["panel"])), [""]
        shown = shown.assign(hue="")
    else:
        shown = shown.assign(panel="", hue=shown["variant"])
        rows, panels, colours = list(dict.fromkeys(shown["row"])), [""], hues
    figure = new_figure(
        PAGE if len(panels) > 1 else 7.6,
        1.7 + len(rows) * max(0.3 * len(colours) + 0.15, 0.34 if many else 0.6),
    )
    for ax, panel in zip(figure.subplots(1, len(panels), sharey=True, squeeze=False)[0], panels, strict=True):
        ax.set_title(panel)
        _moves(ax, shown[shown["panel"] == panel], rows, colours)
    signs = [*(() if many else key(names[hue] for hue in hues)), *_order_key()]
    heading(figure, title, smoke="smoke" in shown and bool(shown["smoke"].any()), key=signs)
    turns = f"“please remember” turns {what}, of stories run in both orders; intervals stand in its table"
    figure.supxlabel(caption(shown, turns, left_out, shared, bars=False), fontsize=9, color="0.3")
    return figure


def _moves(ax: Axes, shown: pd.DataFrame, rows: list[str], colours: list[str]) -> None:
    """Both orders of every row and colour, and how many points lie between them."""
    gap = min(0.26, 0.8 / len(colours))
    for (row, hue), pair in shown.groupby(["row", "hue"], sort=False):
        index = colours.index(str(hue))
        y = rows.index(str(row)) + (index - (len(colours) - 1) / 2) * gap
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


def _order_key() -> list[Line2D]:
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], color="0.4", lw=0, marker="o", ms=7, mew=1.5, mfc=fill, label=ORDERS[order])
        for order, fill in (("read_first", "white"), ("write_first", "0.4"))
    ]
