"""How figures look and how their rows are named. Colours are Okabe and Ito's; a marker doubles each."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

P = ParamSpec("P")
R = TypeVar("R")

BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
PALETTE = (BLUE, VERMILLION, GREEN, PURPLE, "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "D", "^", "v", "P", "X")
SMOKE = "smoke test, not a measurement of your model"
MANY = 6
"""With more designs than this, designs are rows: there are no more colours that can be told apart."""
PAGE = 10.3
"""Inches that a page of a report is wide; a wider figure would be shrunk, its text with it."""
ORDERS = {
    "read_first": "tools that read listed first",
    "write_first": "tools that write listed first",
    "as_written": "tools as written",
    "shuffled": "tools shuffled",
}
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans", "font.size": 9.5, "axes.titlesize": 10, "axes.titlelocation": "left",
    "axes.titleweight": "normal", "axes.spines.top": False, "axes.spines.right": False,
    "axes.axisbelow": True, "axes.edgecolor": "0.5", "xtick.color": "0.25", "ytick.color": "0.1",
    "legend.frameon": False, "grid.color": "0.9", "grid.linewidth": 0.8, "figure.dpi": 100,
    "hatch.color": "0.85", "hatch.linewidth": 0.8, "svg.hashsalt": "memeval",
}  # fmt: skip


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Draw with our style and leave everyone else's settings alone."""

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> R:
        import matplotlib as mpl

        with mpl.rc_context(STYLE):
            return draw(*args, **kwargs)

    return drawn


def new_figure(width: float, height: float) -> Figure:
    """An empty figure in inches; without pyplot, so nothing global remembers it or opens a window."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def heading(figure: Figure, title: str, *, smoke: bool = False, key: Sequence[Line2D] = ()) -> None:
    """The figure's title with its key below it; a smoke test says so in the title.

    The title ends with an empty line for each row of the key: constrained layout keeps room for a title,
    and for a key outside the axes, but puts both into the same place.
    """
    text = f"{title}\n({SMOKE})" if smoke else title
    rows = -(-len(key) // 4)
    above = 0.1 + 0.2 * (text.count("\n") + 1)
    figure.suptitle(text + "\n " * rows, x=0.01, ha="left", fontsize=11.5, fontweight="bold")
    if key:
        place = (0.005, 1 - above / figure.get_figheight())
        figure.legend(handles=list(key), loc="upper left", bbox_to_anchor=place, ncols=4, borderaxespad=0,
                      borderpad=0, fontsize=9.5)  # fmt: skip


def percent(ax: Axes) -> None:
    """A horizontal axis from 0 to 100 %."""
    from matplotlib.ticker import PercentFormatter

    ax.set_xlim(-0.02, 1.02)
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1])
    ax.xaxis.set_major_formatter(PercentFormatter(1))
    ax.grid(True, axis="x")


def short_variants(variants: Iterable[str]) -> tuple[dict[str, str], str]:
    """Variants without the settings that all of them share, and those settings, to be said once."""
    # a surface, "[split, neutral names]", is one part
    parts = {name: re.findall(r"\[[^\[\]]*\]$|\S+", name) for name in dict.fromkeys(variants)}
    first = next(iter(parts.values()), [])
    shared = [word for word in first[1:] if len(parts) > 1 and all(word in other for other in parts.values())]
    names = {name: " ".join(word for word in words if word not in shared) for name, words in parts.items()}
    return names, " ".join(shared)


def folded(label: str, width: int = 26) -> str:
    """A label on as many lines as it needs, each at most so wide where its words allow it."""
    return "\n".join(textwrap.wrap(label, width, break_long_words=False, break_on_hyphens=False))


def row_label(row: Mapping[Hashable, Any]) -> str:
    """A row's name: the model, below it the calling mode, what else differs, and what is wrong with it."""
    more = [str(row[name]) for name in ("embedder", "prefix", "store", "options") if row.get(name)]
    lines = [str(row["model"]), " · ".join([str(row["calling"]), *more])]
    fidelity = row.get("fidelity", "readable")
    if fidelity in ("unreadable", "overridden"):
        lines.append("✗ tools unreadable to the model")
    elif fidelity == "unverified":
        lines.append("? tools not verified")
    if row.get("smoke", False):
        lines.append("smoke test")
    return "\n".join(lines)


def row_labels(frame: pd.DataFrame) -> list[str]:
    """The name of every row of a frame."""
    return [row_label(row) for row in frame.to_dict("records")]


def span(values: Iterable[float]) -> str:
    """`18`, or `12 to 18` where they differ."""
    known = [int(value) for value in values if not math.isnan(value)]
    if not known:
        return "0"
    return str(min(known)) if min(known) == max(known) else f"{min(known)} to {max(known)}"


def ink(colour: Any) -> str:
    """Black or white, whichever can be read on a colour (by its luma)."""
    red, green, blue = colour[:3]
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "white"
