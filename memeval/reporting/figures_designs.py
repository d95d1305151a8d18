"""The figures that set many designs side by side: what each got done, and what it cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memeval.reporting.dots import ladder, nothing
from memeval.reporting.style import (
    BLUE,
    heading,
    new_figure,
    row_labels,
    short_variants,
    span,
    styled,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STEPS = {
    "passed": "trials passed",
    "called": "a tool that saves called",
    "saved": "the right thing stored",
    "recalled": "recall answered",
    "unwanted": "saved what nobody asked to keep",
}


def designs_passed(numbers: pd.DataFrame) -> Figure:
    """The share of trials that passed, a row for each design; of `designs.steps`."""
    return ladder(
        numbers[numbers["step"] == "passed"], title="How many stories pass, design by design",
        what="trials that passed", counted="trials",
    )  # fmt: skip


def designs_obeyed(numbers: pd.DataFrame) -> Figure:
    """What became of "please remember", a row for each design: called, and stored; of `designs.steps`."""
    steps = {step: STEPS[step] for step in ("called", "saved")}
    return ladder(
        numbers[numbers["step"].isin(steps)], title="Asked to remember, did the model do it?",
        what="“please remember” turns", hue="step", hues=steps, by="saved",
    )  # fmt: skip


def designs_beyond(numbers: pd.DataFrame) -> Figure:
    """Recall turns that were answered, and decoys in which something was saved; of `designs.steps`."""
    steps = {step: STEPS[step] for step in ("recalled", "unwanted")}
    return ladder(
        numbers[numbers["step"].isin(steps)], title="Found again, and left alone",
        what="recall turns answered (more is better), and of decoys with a save (less is better)",
        hue="step", hues=steps, by="recalled",
    )  # fmt: skip


@styled
def designs_cost(numbers: pd.DataFrame, costs: pd.DataFrame, *, step: str = "passed") -> Figure:
    """Tokens a turn against a rate, a panel for each model and calling mode; each point with its name.

    `numbers` are of `designs.steps`, `costs` of `designs.costs`. Tokens are prompt and output of the
    conversation and what the design itself asked of the model.
    """
    title = "What it costs"
    shown = numbers[(numbers["step"] == step) & ~numbers["few"].astype(bool)]
    if not len(shown):
        return nothing(title)
    shown = shown.merge(costs, on=[name for name in costs if name in shown], how="left")
    kinds = [f"{kind} tokens a turn" for kind in ("prompt", "output", "hook")]
    shown = shown.assign(panel=row_labels(shown), tokens=shown[kinds].sum(axis=1))
    names, shared = short_variants(sorted(shown["variant"].unique()))
    panels = list(dict.fromkeys(shown["panel"]))
    most = int(shown.groupby("panel")["variant"].nunique().max())
    figure = new_figure(8.6, 1.3 + len(panels) * max(2.2, 0.6 + 0.2 * most))
    for ax, panel in zip(figure.subplots(len(panels), 1, squeeze=False)[:, 0], panels, strict=True):
        part = shown[shown["panel"] == panel]
        ax.set_xlim(0, 1.06 * float(shown["tokens"].max()))
        ax.set_ylim(-0.02, min(1.0, float(shown["rate"].max()) + 0.1) + 0.02)
        points = zip(part["rate"], part["tokens"], part["variant"], strict=True)
        _named_points(ax, [(rate, cost, names[variant]) for rate, cost, variant in points])
        ax.set_title(panel.replace("\n", " · "))
    heading(figure, title, smoke="smoke" in shown and bool(shown["smoke"].any()))
    note = [
        "across: tokens a turn (prompt, output, and what the design itself asked of the model)",
        f"up: share of {STEPS[step]}, {span(shown['units'])} families a point; its intervals: see its figure",
        *([f"all with {shared}"] if shared else []),
    ]
    figure.supxlabel("\n".join(note), fontsize=9, color="0.3")
    return figure


def _named_points(ax: Axes, points: list[tuple[float, float, str]]) -> None:
    """Points (rate, tokens, name) with their names in a column at the right, each tied to its point."""
    from matplotlib.ticker import PercentFormatter

    points = sorted(points, key=lambda point: (-point[0], -point[1]))
    (_, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    heights = _spread([rate for rate, _, _ in points], (high - low) / max(1.3 * len(points), 12), low, high)
    for (rate, cost, name), height in zip(points, heights, strict=True):
        ax.plot([cost, right], [rate, height], color="0.8", lw=0.7, zorder=1, clip_on=False)
        ax.plot(cost, rate, "o", color=BLUE, ms=6, mec="white", zorder=3, clip_on=False)
        ax.text(right, height, f" {name}", fontsize=8, va="center", color="0.15")
    ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    ax.grid(True)


def _spread(heights: list[float], pitch: float, low: float, high: float) -> list[float]:
    """Falling heights moved apart to at least `pitch` within `low` to `high`, each as little as it takes."""
    blocks: list[tuple[float, int]] = []  # neighbours that stand close together, by their mean: isotonic
    for at, height in enumerate(heights):
        mean, size = height + at * pitch, 1
        while blocks and blocks[-1][0] < mean:
            above, number = blocks.pop()
            mean, size = (above * number + mean * size) / (number + size), number + size
        blocks.append((mean, size))
    level = [mean for mean, size in blocks for _ in range(size)]
    least = low + (len(heights) - 1) * pitch
    return [max(min(mean, high), least) - at * pitch for at, mean in enumerate(level)]
