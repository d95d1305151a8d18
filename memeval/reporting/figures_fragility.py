"""The figure of design fragility: each rate, and beside it what its variance is made of."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

from memeval.analysis.fragility import PARTS
from memeval.analysis.tables import MARKS, cell_keys
from memeval.reporting.dots import caption, dots, drawable, nothing
from memeval.reporting.style import (
    BLUE,
    GREEN,
    PAGE,
    PURPLE,
    VERMILLION,
    folded,
    heading,
    ink,
    new_figure,
    row_labels,
    short_variants,
    styled,
)
from memeval.reporting.words import rate_words, share, signed

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

Row = Mapping[Hashable, Any]

LABELS = {
    "order": "order of the tools",
    "names": "names of the tools",
    "request": "words of the request",
    "distractors": "other tools beside them",
    "together": "accidents that always changed together",
    "by family": "accidents, in single families only",
    "stories": "which story it is",
    "rest": "chance and all else",
}
COLOURS = {
    "order": BLUE, "names": VERMILLION, "request": GREEN, "distractors": PURPLE, "together": "#E69F00",
    "by family": "#56B4E9", "stories": "#BDBDBD", "rest": "#E8E8E8",
}  # fmt: skip
MOVED = {
    "order": "write first", "names": "neutral names", "request": "other words", "distractors": "other tools",
}  # fmt: skip
"""What the changed level of an accident is called."""
WHAT = {
    "passed": "trials that passed",
    "called": "“please remember” turns in which a tool that saves was called",
    "saved": "“please remember” turns in which the right thing was stored",
    "recalled": "recall turns that were answered",
    "unwanted": "decoy turns in which something was saved",
}
TITLE = "How much of each rate hangs on accidents?"
_WRITTEN = 0.07
"""A share from here on has its number written into the bar."""


@styled
def fragility(rates: pd.DataFrame, shares: pd.DataFrame, effects: pd.DataFrame) -> Figure:
    """Rates with intervals, the shares of their variance as stacked bars, and the effects told apart.

    Numbers of `analysis.fragility`: `overall`, `shares` and `effects` of one value. A row for each design,
    the highest rate first, and panels for each model and calling mode. The line below a bar is the interval
    of all accidents together.
    """
    shown, left_out = drawable(rates)
    if not len(shown):
        return nothing(TITLE)
    names, shared = short_variants(sorted(shown["variant"].unique()))
    shown, parts, moved = (_placed(frame, names) for frame in (shown, shares, effects))
    rows = list(shown.groupby("row")["rate"].mean().sort_values(ascending=False, kind="stable").index)
    panels = list(dict.fromkeys(shown["panel"]))
    step, counted = str(shown["step"].iloc[0]), "trials" if shown["step"].iloc[0] == "passed" else "turns"
    used = [part for part in PARTS if (parts.loc[parts["part"] == part, "share"] > 0.005).any()]
    lines = max(row.count("\n") + 1 for row in rows)
    pitch = max(0.145 * lines + 0.1, 0.4)
    figure = new_figure(PAGE, 2.3 + 0.2 * -(-len(used) // 4) + len(panels) * (0.5 + pitch * len(rows)))
    axes = figure.subplots(len(panels), 3, sharey=True, squeeze=False, width_ratios=[1, 1.7, 0.75])
    for (left, middle, right), panel in zip(axes, panels, strict=True):
        here = [frame[frame["panel"] == panel] for frame in (shown, parts, moved)]
        dots(left, here[0].assign(hue=""), rows=rows, hues=[""], hue="hue")
        left.set_xticks([0, 0.5, 1])
        left.tick_params(axis="y", labelsize=8.5)
        left.set_title(panel, fontsize=9.5)
        _stacks(middle, here[1], here[0], rows)
        middle.set_title("what its variance is made of", fontsize=9.5)
        _moves(right, here[2], here[0], rows)
        right.set_title("effects, in points", fontsize=9.5)
    heading(figure, TITLE, smoke="smoke" in shown and bool(shown["smoke"].any()), key=_key(used))
    note = caption(shown, WHAT.get(step, step), left_out, shared, counted=counted)
    figure.supxlabel(f"left: {note}\n{_note(shown)}", fontsize=9, color="0.3")
    return figure


def _placed(frame: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
    """The rows of designs that are drawn, with the row and the panel each belongs to."""
    frame = frame[frame["variant"].isin(list(names))]
    return frame.assign(
        row=[folded(names[name], 26) for name in frame["variant"]],
        panel=[label.replace("\n", " · ") for label in row_labels(frame)],
    )


def _stacks(ax: Axes, shares: pd.DataFrame, rates: pd.DataFrame, rows: list[str]) -> None:
    """The shares of each design, accidents first, and over them the interval of all accidents together."""
    from matplotlib.colors import to_rgb
    from matplotlib.ticker import PercentFormatter

    for rate in rates.to_dict("records"):
        y, start = rows.index(rate["row"]), 0.0
        own = shares[shares["row"] == rate["row"]].set_index("part")["share"].fillna(0.0)
        if not own.sum():
            said = "too few families to say" if rate["few"] else "always the same: no variance"
            ax.text(0.0, y, f" {said}", color="0.4", fontsize=8, va="center")
            continue
        for part in PARTS:
            wide = float(own.get(part, 0.0))
            colour = COLOURS[part]
            ax.barh(y, wide, 0.62, left=start, color=colour, edgecolor="white", lw=0.8)
            if wide >= _WRITTEN:
                ax.text(start + wide / 2, y, share(wide), ha="center", va="center", fontsize=8,
                        color=ink(to_rgb(colour)))  # fmt: skip
            start += wide
        ax.hlines(y + 0.4, rate["accidents_lo"], rate["accidents_hi"], color="0.2", lw=1.4)
        ax.plot(rate["accidents"], y + 0.4, "|", color="0.2", ms=6, mew=1.6)
    ax.set_xlim(0, 1)
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1])
    ax.xaxis.set_major_formatter(PercentFormatter(1))
    ax.tick_params(axis="y", length=0, labelleft=False)
    ax.spines["left"].set_visible(False)


def _moves(ax: Axes, effects: pd.DataFrame, rates: pd.DataFrame, rows: list[str]) -> None:
    """The effects of each design that are told apart from none, the largest first."""
    for rate in rates.to_dict("records"):
        told = _told(effects[effects["row"] == rate["row"]])
        lines = [f"{MOVED[row['factor']]} {signed(row['effect'])}" for row in told[:3]]
        if not rate["few"]:
            said = "\n".join(lines) or "none told apart"
            ax.text(0, rows.index(rate["row"]), said, fontsize=8, va="center",
                    color="0.1" if lines else "0.5", linespacing=1.05)  # fmt: skip
    ax.set_xlim(0, 1)
    ax.tick_params(length=0, labelleft=False, labelbottom=False)
    ax.spines[:].set_visible(False)


def _told(effects: pd.DataFrame) -> list[Row]:
    told = effects[effects["told"].astype(bool)].to_dict("records")
    return sorted(told, key=lambda row: -abs(row["effect"]))


def _key(parts: list[str]) -> list[Line2D]:
    from matplotlib.lines import Line2D

    return [Line2D([], [], color=COLOURS[part], marker="s", ms=9, lw=0, label=LABELS[part]) for part in parts]


def _note(rates: pd.DataFrame) -> str:
    level = f"{rates['level'].iloc[0]:.0%}"
    return (
        f"middle: line below a bar: {level} interval of all accidents together (bootstrap over families)\n"
        f"right: effects told apart from none (t over families, {level}, adjusted for all accidents)"
    )


def describe_fragility(rates: pd.DataFrame, effects: pd.DataFrame) -> str:
    """The figure as text: each design's rate, what accidents make of its variance, and which ones move it."""
    lines = []
    keys = [name for name in cell_keys(rates) if name not in MARKS] if len(rates) else []
    for row in rates[rates["units"] > 0].to_dict("records"):
        mine = effects[(effects[keys] == [row[key] for key in keys]).all(axis=1)]
        lines.append(
            f"{', '.join(str(row[k]) for k in keys)}: {rate_words(row)}{_fragile(row, _told(mine))}."
        )
    return f"{TITLE} {' '.join(lines)}" if lines else f"{TITLE} Nothing of this run was perturbed."


def _fragile(row: Row, told: list[Row]) -> str:
    if row["few"]:
        return ""
    if row["accidents"] != row["accidents"]:
        return "; it never varied"
    made = f"; accidents make {share(row['accidents'])} of its variance"
    if row["accidents_lo"] == row["accidents_lo"]:
        made += f" ({100 * row['accidents_lo']:.0f} to {share(row['accidents_hi'])})"
    moves = ", ".join(f"{MOVED[effect['factor']]} {signed(effect['effect'])} points" for effect in told)
    return f"{made}; {moves or 'no accident is told apart'}"
