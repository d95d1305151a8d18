"""Asked to remember, does it? The figures of `analysis.ladder` and `analysis.remembered`."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from memeval.analysis.ladder import (
    ALL,
    DROP,
    ELSEWHERE,
    EXPLICIT,
    GAP,
    RUNGS,
    UNASKED,
    WROTE,
)
from memeval.analysis.ladder import STEPS as ASKED
from memeval.reporting.dots import caption, key, ladder, nothing, panels
from memeval.reporting.style import (
    MANY,
    MARKERS,
    PAGE,
    PALETTE,
    VERMILLION,
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
    from matplotlib.lines import Line2D

Row = Mapping[Hashable, Any]

NAMES = {
    "named": "the tool is named",
    "please": "please remember",
    "dont_forget": "don't forget",
    "save_it": "save it (said before)",
    "preference": "a preference stated",
    "mention": "only mentioned",
    ELSEWHERE: "asked, on no ladder",
    ALL: "all that ask",
    UNASKED: "nobody asks",
}
_TICKS = {
    "named": "tool\nnamed",
    "please": "please",
    "dont_forget": "don't\nforget",
    "save_it": "save\nit",
    "preference": "stated",
    "mention": "men-\ntioned",
    UNASKED: "nobody\nasks",
    ELSEWHERE: "no\nladder",
    ALL: "all\nasks",
}
STEPS = {"called": "saving tool called", "saved": "fact stored", "recalled": "answered later"}
STEPS |= {WROTE: "anything saved"}
MEASURES = {DROP: "asked most plainly, minus mentioned", GAP: "asked, minus nobody asks"}
KEPT = {"passed": "answered right", "remembered": "remembered"}


class _Line(NamedTuple):
    """How a step is drawn; `side` is where it stands beside the others, -1 to 1."""

    step: str
    label: str
    colour: str
    marker: str
    side: int


_ASKED = (
    *(_Line(step, STEPS[step], PALETTE[at], MARKERS[at], at - 1) for at, step in enumerate(ASKED)),
    _Line(WROTE, "anything saved unasked", "0.35", "X", 0),
)
_CLAIMED = (_Line("phantom", "claimed, and not saved", VERMILLION, "s", 0),)


def ask_strength(numbers: pd.DataFrame) -> Figure:
    """Dose and response: a panel for each design on each model, the rungs from left to right.

    `numbers` are of `ladder.dose`. At the right, where nobody asks, how often a tool that saves is called and
    how often anything is saved, the latter as a broken line too, with the band of its interval.
    """
    what = "turns on each rung, of questions in a later session, and of turns in which nobody asks"
    drawn = numbers[(numbers["step"] != WROTE) | (numbers["strength"] == UNASKED)]
    return _curves(drawn, _ASKED, "How plainly must it be asked?", what)


def phantoms_by_rung(numbers: pd.DataFrame) -> Figure:
    """How often the reply claims a save that no call made, rung by rung; of `ladder.phantoms`."""
    title, what = "Claimed to have saved, but had not", "turns whose reply claims a save and no call wrote"
    if not set(RUNGS) & set(numbers["strength"]):
        return panels(numbers[numbers["strength"] == ALL], title=title, what=what)
    return _curves(numbers.assign(step="phantom"), _CLAIMED, title, what)


@styled
def _curves(numbers: pd.DataFrame, steps: Sequence[_Line], title: str, what: str) -> Figure:
    """Rates over the rungs, as small multiples."""
    shown = numbers[numbers["units"] > 0]
    if not set(RUNGS) & set(shown["strength"]):
        return nothing(title)
    names, shared = short_variants(sorted(shown["variant"].unique()))
    shown = shown.assign(panel=[label.replace("\n", " · ") for label in row_labels(shown)])
    lines = _lines(shown)
    across = max(len(line) for line in lines)
    small, wide = across > 3, PAGE / across if across > 1 else 6.7
    figure = new_figure(across * wide, 2.1 + len(lines) * (1.75 if small else 2.1))
    axes = figure.subplots(len(lines), across, sharex=True, sharey=True, squeeze=False)
    places = _places(shown)
    before = ""
    for number, (row, line) in enumerate(zip(axes, lines, strict=True)):
        for ax in row[len(line) :]:
            ax.set_axis_off()
        for at, (ax, (panel, variant)) in enumerate(zip(row, line, strict=False)):
            part = shown[(shown["panel"] == panel) & (shown["variant"] == variant)]
            for step in steps:
                _curve(ax, part[part["step"] == step.step], places, step, small)
            if part.loc[part["strength"] != UNASKED, "few"].all():
                ax.text(
                    0, 0.97, "too few families for a rate; counted:", fontsize=7.5, color="0.35", va="top"
                )
            _axis(ax, places, small)
            ax.tick_params(axis="x", labelbottom=all(len(below) <= at for below in lines[number + 1 :]))
            room = wide * (2 if len(line) > 1 and line[1][0] == panel else 1)  # nothing stands beside it
            head = folded(panel, round(room * 12)) if panel != before else " "
            ax.set_title(f"{head}\n{folded(names[variant], round(wide * 12))}", fontsize=9)
            before = panel
    smoke = "smoke" in shown and bool(shown["smoke"].any())
    heading(
        figure, title, smoke=smoke, key=[_sign(step) for step in steps if step.step in set(shown["step"])]
    )
    counted = shown[shown["step"] != "saved"]  # of the same turns as `called`
    figure.supxlabel(caption(counted, what, "", shared), fontsize=9, color="0.3")
    return figure


def _lines(shown: pd.DataFrame) -> list[list[tuple[str, str]]]:
    """Which panel stands where: each model and calling mode from a line of its own, best design first.

    Best is where asking makes the greatest difference; of phantom saves, where there are the most.
    """
    first = shown[shown["step"].isin(["called", "phantom"])]
    asks, idle = (
        first[first["strength"].isin(kinds)].groupby("variant")["rate"].mean()
        for kinds in (EXPLICIT, [UNASKED])
    )
    best = asks.sub(idle, fill_value=0)
    order = sorted(shown["variant"].unique(), key=lambda name: (-best.get(name, -2.0), name))
    groups: list[list[tuple[str, str]]] = []
    for panel, group in shown.groupby("panel", sort=False):
        groups.append([(str(panel), name) for name in order if name in set(group["variant"])])
    most = max(len(group) for group in groups)
    if most == 1:
        groups, most = [[place for group in groups for place in group]], len(groups)
    across = most if most <= 3 else 2 if most == 4 else 3 if most <= MANY else 4
    return [group[at : at + across] for group in groups for at in range(0, len(group), across)]


def _places(shown: pd.DataFrame) -> dict[str, float]:
    """Where each rung stands, and apart from them what is on no rung."""
    rungs, others = (
        [name for name in kinds if name in set(shown["strength"])]
        for kinds in (RUNGS, (UNASKED, ELSEWHERE, ALL))
    )
    return {name: float(at) for at, name in enumerate(rungs)} | {
        name: len(rungs) + at + 0.3 for at, name in enumerate(others)
    }


def _curve(ax: Axes, part: pd.DataFrame, places: Mapping[str, float], line: _Line, small: bool) -> None:
    """One step of one design, its rungs joined. Few families are written as counts."""
    joined = []
    for point in part.sort_values("strength", key=lambda names: names.map(places)).to_dict("records"):
        x = places[point["strength"]] + (0.2 if small else 0.17) * line.side
        if point["few"]:
            text = f"{point['successes']}/{point['trials']}"
            ax.text(places[point["strength"]], 0.52 - 0.2 * line.side, text, color=line.colour, fontsize=7.5,
                    ha="center", va="center")  # fmt: skip
            continue
        ax.vlines(x, point["lo"], point["hi"], color=line.colour, lw=1.2 if small else 1.6)
        size = (4.5 if small else 6) + 2 * (line.marker == "X")
        ax.plot(x, point["rate"], line.marker, color=line.colour, ms=size, mec="white", mew=0.6, zorder=3,
                clip_on=False)  # fmt: skip
        if point["strength"] in RUNGS:
            joined.append((x, point["rate"]))
        elif line.step == WROTE:
            ax.axhspan(point["lo"], point["hi"], color="0.93", lw=0, zorder=0)
            ax.axhline(point["rate"], color=line.colour, lw=0.9, ls=(0, (4, 3)), zorder=1)
    if joined:
        xs, ys = zip(*joined, strict=True)
        ax.plot(xs, ys, color=line.colour, lw=1, alpha=0.5, zorder=2)


def _axis(ax: Axes, places: Mapping[str, float], small: bool) -> None:
    from matplotlib.ticker import PercentFormatter

    ax.axvline(sum(name in RUNGS for name in places) - 0.35, color="0.85", lw=0.8)
    ticks = [_TICKS[name] for name in places]
    ax.set_xticks(list(places.values()), ticks, fontsize=8, rotation=90 if small else 0)
    ax.set_xlim(-0.5, max(places.values()) + 0.5)
    ax.set_ylim(-0.03, 1.03)
    ax.set_yticks([0, 0.5, 1] if small else [0, 0.25, 0.5, 0.75, 1])
    ax.yaxis.set_major_formatter(PercentFormatter(1))
    ax.grid(True, axis="y")
    ax.tick_params(length=0)


def _sign(line: _Line) -> Line2D:
    from matplotlib.lines import Line2D

    dashed = "--" if line.step == WROTE else "-"
    return Line2D(
        [], [], color=line.colour, marker=line.marker, mec="white", ms=8, lw=2, ls=dashed, label=line.label
    )


@styled
def ask_gaps(numbers: pd.DataFrame) -> Figure:
    """What the strength of asking is worth, and whether asking matters: differences in percentage points.

    A row for each design, a line of panels for each model and calling mode; numbers of `ladder.gaps`.
    """
    title = "Does asking make the difference?"
    known = numbers[~numbers["few"].astype(bool)]
    if not len(known):
        return nothing(title)
    names, shared = short_variants(sorted(numbers["variant"].unique()))
    shown = known.assign(
        panel=[label.replace("\n", " · ") for label in row_labels(known)],
        row=[folded(names[name], 30) for name in known["variant"]],
    )
    best = shown["diff"].where(shown["measure"] == GAP).groupby(shown["row"]).mean()
    rows = sorted(best.index, key=lambda name: (-best.fillna(-2)[name], name))
    lines = list(dict.fromkeys(shown["panel"]))
    measures = [measure for measure in MEASURES if measure in set(shown["measure"])]
    pitch = max(0.145 * max(row.count("\n") + 1 for row in rows) + 0.1, 0.62 if len(rows) <= MANY else 0.5)
    figure = new_figure(PAGE if len(measures) > 1 else 6.7, 1.9 + len(lines) * (0.6 + pitch * len(rows)))
    axes = figure.subplots(len(lines), len(measures), sharex=True, sharey=True, squeeze=False)
    for line, panel in zip(axes, lines, strict=True):
        for ax, measure in zip(line, measures, strict=True):
            part = shown[(shown["panel"] == panel) & (shown["measure"] == measure)]
            _around_zero(ax, part, rows)
            ax.set_title(f"{panel if ax is line[0] else ' '}\n{MEASURES[measure]}", fontsize=9.5)
    steps = [step for step in STEPS if step in set(shown["step"])]
    signs = [sign for step, sign in zip(STEPS, key(STEPS.values()), strict=True) if step in steps]
    smoke = "smoke" in shown and bool(shown["smoke"].any())
    heading(figure, title, smoke=smoke, key=signs)
    drop, gap = (shown[shown["measure"] == measure] for measure in (DROP, GAP))
    note = [
        f"percentage points; bar: {shown['level'].iloc[0]:.0%} interval (none where every family is alike)"
    ]
    if len(drop):
        ends = f"“{NAMES[drop['from'].iloc[0]]}” minus “{NAMES[drop['to'].iloc[0]]}”"
        note.append(f"left: {ends}, paired over {span(drop['families'])} families (t)")
    if len(gap):
        sizes = f"{span(gap['families'])} and {span(gap['base_families'])} families"
        note.append(f"right: asked minus the same unasked, {sizes} (square-and-add): Youden's J")
    left = [names[name] for name in names if name not in set(known["variant"])]
    note += [f"no tool that saves, or too few families: {', '.join(left)}"] if left else []
    note += [f"all with {shared}"] if shared else []
    figure.supxlabel("\n".join(folded(line, 100) for line in note), fontsize=9, color="0.3")
    return figure


def _around_zero(ax: Axes, part: pd.DataFrame, rows: Sequence[str]) -> None:
    for row in part.to_dict("records"):
        index = list(STEPS).index(row["step"])
        y = rows.index(row["row"]) + 0.2 * (index - 1 if row["step"] in ASKED else 0)
        colour = PALETTE[index]
        if row["lo"] == row["lo"]:
            ax.hlines(y, 100 * row["lo"], 100 * row["hi"], color=colour, lw=2)
        ax.plot(100 * row["diff"], y, MARKERS[index], color=colour, ms=6.5, mec="white", zorder=3)
        ax.text(1.02, y, signed(row["diff"]), transform=ax.get_yaxis_transform(), color=colour, fontsize=8,
                va="center")  # fmt: skip
    for at in range(1, len(rows)):
        ax.axhline(at - 0.5, color="0.9", lw=0.8)
    ax.axvline(0, color="0.4", lw=0.9, zorder=1)
    ax.set_xlim(-105, 105)
    ax.set_xticks([-100, -50, 0, 50, 100])
    ax.set_yticks(range(len(rows)), rows, fontsize=8.5)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.tick_params(axis="x", labelbottom=True)
    ax.grid(True, axis="x")


def remembered(numbers: pd.DataFrame) -> Figure:
    """The share answered right, and of it what memory is shown to have done; of `remembered.kept`."""
    figure = ladder(
        numbers, title="Answered right, and remembered", what="questions about what an earlier session told",
        hue="step", hues=KEPT, by="remembered", counted="questions",
    )  # fmt: skip
    figure.set_figwidth(max(figure.get_figwidth(), 6.7))  # so that what is written below it has room
    return figure
