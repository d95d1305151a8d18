"""The figure of what part is the split, the order, the names, the words; numbers of `analysis.factors`."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

from memeval.reporting.dots import key, nothing
from memeval.reporting.style import (
    MARKERS,
    PAGE,
    PALETTE,
    folded,
    heading,
    new_figure,
    row_labels,
    short_variants,
    span,
    styled,
)
from memeval.reporting.words import signed

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STEPS = {
    "called": "called a tool that saves",
    "saved": "stored the right thing",
    "unwanted": "saved what nobody asked to keep",
}
LEVELS = {
    ("shape", "split"): "the split: one tool for each mode",
    ("shape", "merged"): "the merger: one tool for everything",
    ("order", "write_first"): "the order: tools that write first",
    ("order", "as_written"): "the order: as written",
    ("order", "shuffled"): "the order: shuffled",
    ("names", "neutral"): "the names: saying nothing",
    ("words", "terse"): "the words: first sentence only",
    ("words", "when_to_use"): "the words: when to use",
    ("words", "length_matched"): "the words: all of one length",
}


def factor_label(row: Mapping[Hashable, Any], names: Mapping[str, str]) -> str:
    """What a row of `factors.decomposition` is the effect of."""
    to, start = names.get(row["to"], row["to"]), names.get(row["from"], row["from"])
    if row["factor"] == "design":
        return f"{to} instead of {start}, as written"
    if row["factor"] == "rest":
        return f"of {to}, not the split: other tools, other texts"
    return LEVELS.get((row["factor"], row["to"]), f"the {row['factor']}: {row['to']}")


@styled
def factors(numbers: pd.DataFrame) -> Figure:
    """Effects with intervals in percentage points: a row for each factor, a panel for each model and mode.

    Each `step` of the numbers is a marker. Above the line, where there are any: whole differences between
    designs, and what is left of them without the split.
    """
    title = "What moves it: the split, the order, the names or the words?"
    if not len(numbers):
        return nothing(title)
    names, shared = short_variants([*numbers["design"], *numbers.loc[numbers["factor"] == "design", "to"]])
    found = numbers.assign(
        panel=[label.replace("\n", " · ") for label in row_labels(numbers)],
        row=[folded(factor_label(row, names), 34) for row in numbers.to_dict("records")],
        place=numbers["factor"].map({"design": 0, "rest": 1, "shape": 2, "order": 3, "names": 4, "words": 5}),
    )
    rows = list(dict.fromkeys(found.sort_values(["place", "to"], kind="stable")["row"]))
    whole = len(set(found.loc[found["place"] < 2, "row"]))
    steps = [step for step in STEPS if step in set(found["step"])]
    panels = list(dict.fromkeys(found["panel"]))
    across = min(len(panels), 2)
    down = -(-len(panels) // across)
    figure = new_figure(PAGE if across > 1 else 7.6, 1.5 + down * (0.5 + 0.42 * len(rows)))
    axes = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).ravel()
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    for ax, panel in zip(axes, panels, strict=False):
        _effects(ax, found[found["panel"] == panel], rows, steps)
        ax.set_title(panel)
        if 0 < whole < len(rows):
            ax.axhline(whole - 0.5, color="0.6", lw=0.8)
    heading(figure, title, smoke="smoke" in found and bool(found["smoke"].any()),
            key=key(STEPS[step] for step in steps))  # fmt: skip
    figure.supxlabel(_caption(found, shared), fontsize=9, color="0.3")
    return figure


def _effects(ax: Axes, numbers: pd.DataFrame, rows: list[str], steps: list[str]) -> None:
    """The effects of one model and mode around zero; counts where there are too few families."""
    for effect in numbers.to_dict("records"):
        index = steps.index(effect["step"])
        y = rows.index(effect["row"]) + (index - (len(steps) - 1) / 2) * 0.26
        colour = PALETTE[index]
        if effect["few"]:
            said = "counts only" if effect["families"] else "cannot be told apart"
            ax.text(0, y, f" {said}", color=colour, fontsize=8, va="center")
            continue
        ax.hlines(y, 100 * effect["lo"], 100 * effect["hi"], color=colour, lw=2)
        ax.plot(100 * effect["effect"], y, MARKERS[index], color=colour, ms=7, mec="white", zorder=3)
        ax.text(1.02, y, signed(effect["effect"]), transform=ax.get_yaxis_transform(), color=colour,
                fontsize=8, va="center")  # fmt: skip
    ax.axvline(0, color="0.4", lw=0.9, zorder=1)
    ax.set_yticks(range(len(rows)), rows, fontsize=8.5)
    ax.tick_params(axis="y", length=0)
    ax.tick_params(axis="x", labelbottom=True)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.grid(True, axis="x")


def _caption(numbers: pd.DataFrame, shared: str) -> str:
    known = numbers[~numbers["few"].astype(bool)]
    lines = ["percentage points more (right) or less (left) often"]
    if len(known):
        lines.append(
            f"{span(known['families'])} families an effect; "
            f"bar: {known['level'].iloc[0]:.0%} interval (t over families)"
        )
    if shared:
        lines.append(f"all with {shared}")
    return "\n".join(lines)
