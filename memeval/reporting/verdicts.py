"""What many designs, or the factors of one, come to: in sentences, and as texts of their figures."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memeval.analysis.designs import judged, standing
from memeval.analysis.factors import FACTORS
from memeval.analysis.tables import as_written
from memeval.reporting.figures_factors import factor_label
from memeval.reporting.style import SMOKE, short_variants
from memeval.reporting.words import SAID, signed, standing_lines

if TYPE_CHECKING:
    import pandas as pd

    from memeval.evaluation.results import Run

Row = Mapping[Hashable, Any]

TINY = 1e9
"""Parameters below which a model is called tiny."""
DID = {
    "passed": "passed",
    "called": "called a saving tool",
    "saved": "stored the right thing",
    "unwanted": "saved what nobody asked to keep",
}
SHORT = {"called": "called", "saved": "stored", "unwanted": "unwanted saves"}
_SIZES = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}


def designs_sentence(run: Run, *, level: float = 0.95) -> str:
    """Which design came out best, in passing and in storing, and which ones cannot be told from it.

    First of all, what must be known of the models (`models_note`).
    """
    names, shared = short_variants(sorted(as_written(run.cells)["variant"].unique()))
    lines: dict[tuple[str, ...], str] = {}
    for step in ("passed", "saved"):
        told = standing_lines(standing(judged(run, step), step, level=level), names, DID[step])
        lines |= {(*key, step): said for key, said in told.items()}
    said = [*filter(None, [models_note(run)]), *(lines[key] for key in sorted(lines))]
    if not lines:
        return "\n".join([*said, "Too few families to say whether the designs differ: see the counts below."])
    said.append(
        "Each design is compared with the best one on the stories that both were run on, paired by family "
        "and adjusted for the number of designs; what is not told apart may differ all the same."
    )
    if shared:
        said.append(f"All with {shared}.")
    return "\n".join(said)


def models_note(run: Run) -> str:
    """What must be known of the models before the numbers are read; empty where nothing must."""
    lines = []
    smoke = sorted(set(run.cells.loc[run.cells["smoke"].astype(bool), "model"]))
    if smoke:
        lines.append(f"{', '.join(smoke)}: {SMOKE}.")
    tiny = [
        f"{name} has {about['parameter_size']}"
        for name, about in sorted(run.manifest.get("models", {}).items())
        if name not in smoke and 0 < _parameters(about.get("parameter_size", "")) < TINY
    ]
    if tiny:
        lines.append(
            f"Tiny models: {', '.join(tiny)} parameters. Which design wins on so small a model says little "
            "about a larger one; repeat the sweep on yours."
        )
    return "\n".join(lines)


def _parameters(size: str) -> float:
    """`630.17M` as a number; 0 where it says none."""
    found = re.fullmatch(r"([\d.]+)\s*([KMBT])", str(size).strip())
    return float(found[1]) * _SIZES[found[2]] if found else 0.0


def surfaces_note(cells: pd.DataFrame) -> str:
    """Which designs were run behind other surfaces, and where that is told; empty where none was."""
    other = cells[~cells["variant"].isin(as_written(cells)["variant"])]
    if not len(other):
        return ""
    many = other["variant"].nunique()
    return (
        f"The figures show designs as their authors wrote them. {many} other surface{'s' * (many > 1)} of "
        f"{', '.join(sorted(set(other['design'])))}: see the section on the split, the order, the names, "
        "the words."
    )


def factors_sentence(numbers: pd.DataFrame) -> str:
    """For each model and calling mode one line on which factors moved a design's rates.

    `numbers` are of `factors.decomposition`, of one step or several below each other.
    """
    if not len(numbers):
        return "This run has no surfaces: every design was run as its author wrote it."
    names, shared = short_variants([*numbers["design"], *numbers.loc[numbers["factor"] == "design", "to"]])
    lines = []
    for (model, calling, design), group in numbers.groupby(["model", "calling", "design"], sort=True):
        rows = group.to_dict("records")
        found = _moved([row for row in rows if row["factor"] in FACTORS], names)
        lines.append(f"{model}, {calling}, {names[str(design)]}: {found}.{_whole(rows, names)}")
    if shared:
        lines.append(f"All with {shared}.")
    lines.append(
        "An effect is, within each family, the rate with the change minus the rate without it, over cells in "
        "which every other factor has both levels equally often; p is adjusted for the number of factors."
    )
    return "\n".join(lines)


def _moved(rows: Sequence[Row], names: Mapping[str, str]) -> str:
    """Which factors are shown to move a rate, by how many points, and which are not."""
    known = [row for row in rows if not row["few"]]
    if not known:
        return "too few families, or levels always changed together: see the counts"
    moved: dict[str, list[str]] = {}
    for row in known:
        if row["p"] < 1 - row["level"]:
            moved.setdefault(_name(row, names), []).append(
                f"{SHORT[row['step']]} {_points(row)} ({_ends(row)})"
            )
    still = [row for row in known if _name(row, names) not in moved]
    parts = []
    if moved:
        each = [f"{name} ({', '.join(said)})" for name, said in moved.items()]
        parts.append(f"moved, in points, by {' and by '.join(each)}")
    if still:
        which = ", ".join(dict.fromkeys(_name(row, names) for row in still))
        ends = [row[end] for row in still for end in ("lo", "hi") if row[end] == row[end]]
        wide = f" (intervals from {signed(min(ends))} to {signed(max(ends))} points)" if ends else ""
        parts.append(f"no effect is shown of {which}{wide}")
    return "; ".join(parts)


def _name(row: Row, names: Mapping[str, str]) -> str:
    """`the split`, without what it means."""
    return factor_label(row, names).partition(":")[0]


def _whole(rows: Sequence[Row], names: Mapping[str, str]) -> str:
    """What of the difference between designs as written the split could explain."""
    said: dict[str, list[str]] = {}
    known = [row for row in rows if not row["few"]]
    for row in known:
        if row["factor"] != "design":
            continue
        same = {(r["factor"], r["to"]): r for r in known if r["step"] == row["step"]}
        part = _said(row)
        split, rest = same.get(("shape", "split")), same.get(("rest", row["to"]))
        if split is not None and rest is not None:
            part += f", of it {_points(split)} by the split and {_points(rest)} ({_ends(rest)}) not explained"
        said.setdefault(str(row["to"]), []).append(part)
    how = "beside it, as written and over both orders"
    return "".join(f" {names[to]} {how}: {'; '.join(parts)}." for to, parts in said.items())


def _said(row: Row) -> str:
    """`called +24 (+6 to +43)`."""
    return f"{SHORT[row['step']]} {_points(row)} ({_ends(row)})"


def _points(row: Row) -> str:
    return signed(row["effect"])


def _ends(row: Row) -> str:
    return f"{signed(row['lo'])} to {signed(row['hi'])}" if row["lo"] == row["lo"] else "every family alike"


def describe_factors(numbers: pd.DataFrame) -> str:
    """The figure of factors as text."""
    names, _ = short_variants([*numbers["design"], *numbers.loc[numbers["factor"] == "design", "to"]])
    parts = [
        f"{row['model']}, {row['calling']}, {factor_label(row, names)}, {DID[row['step']]}: "
        + (f"{row['families']} families, too few to say" if row["few"] else f"{_points(row)} ({_ends(row)})")
        for row in numbers.to_dict("records")
    ]
    return f"Effects in percentage points. {'; '.join(parts)}."


def describe_costs(costs: pd.DataFrame) -> str:
    """The figure of costs as text."""
    kinds = [f"{kind} tokens a turn" for kind in ("prompt", "output", "hook")]
    rows = costs.assign(tokens=costs[kinds].sum(axis=1)).sort_values("tokens", kind="stable")
    parts = [
        f"{row['model']}, {row['calling']}, {row['variant']}: {row['tokens']:.0f}"
        for row in rows.to_dict("records")
    ]
    if len(parts) > SAID:
        parts = [f"fewest: {parts[0]}", f"most: {parts[-1]}"]
    return f"Tokens a turn against the share of trials passed. {'; '.join(parts)}."
