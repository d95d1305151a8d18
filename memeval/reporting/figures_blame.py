"""Where failed stories broke: the figure of `analysis.ladder.breaks`, and its numbers as sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from memeval.analysis.blame import NAMES, SEVERAL, STAGES, UNSTABLE
from memeval.analysis.ladder import KNOWN
from memeval.analysis.tables import MARKS, cell_keys
from memeval.reporting.dots import nothing
from memeval.reporting.style import (
    BLUE,
    GREEN,
    MANY,
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
from memeval.reporting.words import PAIRS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

SIDES = {
    "saving": (NAMES["gold write"], NAMES["gold text"]),
    "finding": (NAMES["forced recall"], NAMES["gold query"], NAMES["oracle hit"]),
    "using": (NAMES["in context"],),
    "no one stage": (SEVERAL, UNSTABLE),
    "seen without replay": KNOWN,
}
"""Which part of the way to a remembered fact each stage belongs to."""
COLOURS = dict(zip(SIDES, (BLUE, VERMILLION, GREEN, PURPLE, "0.6"), strict=True))
ORDER = (*STAGES, *KNOWN)
_SIDE = {stage: side for side, stages in SIDES.items() for stage in stages}


@styled
def blamed(numbers: pd.DataFrame) -> Figure:
    """From all failures down to none, stage by stage in the order of the chain: a panel for each design.

    `numbers` are of `ladder.breaks`. Many designs are the rows of a table of counts.
    """
    title = "Where it breaks"
    shown = numbers[numbers["explained"] > 0]
    if not len(shown):
        return nothing(title)
    stages = [stage for stage in ORDER if shown.loc[shown["stage"] == stage, "failures"].any()]
    shown = shown[shown["stage"].isin(stages)]
    names, shared = short_variants(sorted(shown["variant"].unique()))
    shown = shown.assign(
        panel=[label.replace("\n", " · ") for label in row_labels(shown)], name=shown["variant"].map(names)
    )
    many = len(names) > MANY
    figure = _table(shown, stages) if many else _falls(shown, stages)
    smoke = "smoke" in shown and bool(shown["smoke"].any())
    heading(figure, title, smoke=smoke, key=[] if many else _signs(stages))
    note = [_sizes(numbers)]
    note += ["colour: share of the row"] if many else []
    note += [f"all with {shared}"] if shared else []
    figure.supxlabel("\n".join(folded(line, 100) for line in note), fontsize=9, color="0.3")
    return figure


def _sizes(numbers: pd.DataFrame) -> str:
    cells = numbers.drop_duplicates([name for name in cell_keys(numbers) if name not in MARKS])
    failed, known, sampled = (int(cells[name].sum()) for name in ("failed", "explained", "sampled"))
    said = f"{failed} trials failed: {sampled} replayed, {known - sampled} explained without"
    return said + (f"; {failed - known} not in the sample and not drawn" if failed > known else "")


def _falls(shown: pd.DataFrame, stages: Sequence[str]) -> Figure:
    """A waterfall for each design, a line of them for each model and calling mode."""
    groups = [
        [(str(panel), str(name)) for name in group["name"].drop_duplicates()]
        for panel, group in shown.groupby("panel", sort=False)
    ]
    most = max(len(group) for group in groups)
    across = most if most <= 3 else 2 if most == 4 else 3
    lines = [group[at : at + across] for group in groups for at in range(0, len(group), across)]
    rows = ["all explained", *(folded(stage, 24) for stage in stages)]
    high = sum(0.15 * (row.count("\n") + 1) + 0.1 for row in rows)
    figure = new_figure(PAGE if across > 1 else 6.7, 1.3 + len(lines) * (0.8 + high))
    axes = figure.subplots(len(lines), across, sharey=True, squeeze=False)
    before = ""
    for row, line in zip(axes, lines, strict=True):
        for ax in row[len(line) :]:
            ax.set_axis_off()
        for ax, (panel, name) in zip(row, line, strict=False):
            part = shown[(shown["panel"] == panel) & (shown["name"] == name)]
            size = f"{part['explained'].iloc[0]} of {part['failed'].iloc[0]} failures"
            _fall(ax, part.set_index("stage")["failures"].reindex(list(stages)).astype(int).to_list(), stages)
            head = panel if panel != before else " "
            ax.set_title(f"{head}\n{folded(name, 34)}\n{size}", fontsize=9.5)
            ax.set_yticks(range(len(rows)), rows, fontsize=8.5)
            ax.set_ylim(len(rows) - 0.5, -0.5)
            before = panel
    return figure


def _fall(ax: Axes, failures: Sequence[int], stages: Sequence[str]) -> None:
    """Each stage takes its failures away from what is left; the count stands beside its bar."""
    total = left = sum(failures)
    ax.barh(0, total, color="0.3", height=0.66)
    ax.text(total, 0, f" {total}", va="center", fontsize=8.5)
    for y, (stage, count) in enumerate(zip(stages, failures, strict=True), 1):
        colour = COLOURS[_SIDE[stage]]
        ax.plot([left, left], [y - 0.67, y + 0.33], color="0.7", lw=0.8, zorder=1)
        ax.barh(y, count, left=left - count, color=colour, height=0.66)
        ax.text(left, y, f" {count}", va="center", fontsize=8.5, color="0.15" if count else "0.6")
        left -= count
    ax.set_xlim(0, 1.12 * total)
    ax.set_xticks([])
    ax.spines["bottom"].set_visible(False)
    ax.tick_params(length=0)


def _table(shown: pd.DataFrame, stages: Sequence[str]) -> Figure:
    """Counts as tiles: a row for each design, a panel for each model and calling mode."""
    panels, names = list(dict.fromkeys(shown["panel"])), sorted(shown["name"].unique())
    rows = [folded(name, 30) for name in names]
    high = sum(0.145 * (row.count("\n") + 1) + 0.14 for row in rows)
    across = min(len(panels), 2)
    down = -(-len(panels) // across)
    figure = new_figure(PAGE, 1.1 + down * (1.9 + high))
    axes = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).ravel()
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    for ax, panel in zip(axes, panels, strict=False):
        part = shown[shown["panel"] == panel]
        table = part.pivot_table(index="name", columns="stage", values="failures", aggfunc="sum")
        counts = table.reindex(index=names, columns=list(stages)).to_numpy(dtype=float)
        totals = np.nansum(counts, axis=1, keepdims=True)
        share = np.divide(counts, totals, out=np.zeros_like(counts), where=totals > 0)
        image = ax.imshow(np.nan_to_num(share), cmap="Blues", vmin=0, vmax=1, aspect="auto")
        for (i, j), count in np.ndenumerate(counts):
            colour = ink(image.cmap(image.norm(share[i, j]))) if count > 0 else "0.7"
            text = f"{count:.0f}" if count == count else ""
            ax.text(j, i, text, ha="center", va="center", fontsize=8, color=colour)
        ax.set_xticks(range(len(stages)), [folded(stage, 22) for stage in stages], fontsize=8, rotation=90)
        ax.tick_params(length=0, labelbottom=True)
        ax.set_yticks(range(len(rows)), rows, fontsize=8.5)
        ax.spines[:].set_visible(False)
        ax.set_title(panel)
    return figure


def _signs(stages: Sequence[str]) -> list[Line2D]:
    from matplotlib.lines import Line2D

    present = {_SIDE[stage] for stage in stages}
    return [
        Line2D([], [], color=COLOURS[side], marker="s", lw=0, ms=8, label=side)
        for side in SIDES
        if side in present
    ]


def blamed_sentence(numbers: pd.DataFrame) -> str:
    """For each model and calling mode where failures broke most often, or the command that finds it out."""
    cells = numbers.drop_duplicates([name for name in cell_keys(numbers) if name not in MARKS])
    if not len(cells):
        return "No trial of this run failed."
    if not cells["explained"].any():
        return (
            f"{cells['failed'].sum()} trials failed, and none of them was blamed on a stage. `memeval blame "
            "RUN` tells a sample of them again with one step put right at a time, and finds the stage that "
            "broke; it needs the run's transcripts and its model. Then make this report again."
        )
    names, _ = short_variants(sorted(numbers["variant"].unique()))
    keys = [name for name in cell_keys(numbers) if name not in (*MARKS, "variant")]
    lines = []
    for key_, group in numbers[numbers["explained"] > 0].groupby(
        keys, sort=True, dropna=False, observed=True
    ):
        label = ", ".join(str(part) for part in key_ if part)
        parts = [(names[str(variant)], part) for variant, part in group.groupby("variant", sort=True)]
        if len(parts) > PAIRS:
            parts = [(f"{len(parts)} designs", group)]
        lines.append(f"{label}: {' '.join(_told(name, part) for name, part in parts)}")
    return "\n".join(lines)


def _told(name: str, part: pd.DataFrame) -> str:
    """Of one design, or several: how many failed and were replayed, and what broke them most often."""
    cells = part.drop_duplicates("variant")
    counts: Counter[str] = Counter()
    for row in part.to_dict("records"):
        counts[row["stage"]] += row["failures"]
    said = ", ".join(f"{stage} {count}" for stage, count in counts.most_common() if count)
    return (
        f"{name} failed in {cells['failed'].sum()} trials, {cells['sampled'].sum()} replayed "
        f"and {(cells['explained'] - cells['sampled']).sum()} explained without: {said}."
    )


def describe_blamed(numbers: pd.DataFrame) -> str:
    """The figure of stages as text."""
    return f"What broke the trials that failed, stage by stage. {blamed_sentence(numbers)}".replace("\n", " ")
