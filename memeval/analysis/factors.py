"""What part of a rate is the cut of the tools, what their order, their names, their words?

For runs in which one design was run behind several surfaces (`memeval.designs.surface`). The main effect of a
factor is, within each family, the mean at its changed level minus the mean at the level as written (of the
order: tools that write first minus tools that read first), over cells in which all other factors have both
levels equally often. Of the sixteen combinations of four factors the half with order = shape x names x words
is such a set: a 2^(4-1) fraction of resolution IV, whose main effects are mixed up with no other main effect
and with no pair of factors (Box, Hunter & Hunter, Statistics for Experimenters, 2nd edition, chapter 6).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from memeval.analysis.compare import holm, over_units, unit_gaps
from memeval.analysis.intervals import FEW
from memeval.analysis.tables import SURFACE, as_written, asked_to_remember, cell_keys, saved, wrote
from memeval.errors import InputError, nearest

if TYPE_CHECKING:
    import pandas as pd

FACTORS = ("shape", "order", "names", "words")
MEASURES = ("called", "saved", "unwanted")
_COUNTS = ("yes", "of", "yes_from", "of_from", "cells")
Cell = tuple[str, ...]
"""Levels of the factors, in the order of `FACTORS`."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """One changed level of a factor against the level it is measured from."""

    factor: str
    to: str
    start: str


@dataclass(frozen=True, slots=True)
class _Fit:
    """One design on one model and calling mode: `gaps` holds the effect of each contrast by family."""

    key: dict[str, Hashable]
    design: str
    gaps: dict[Contrast, pd.Series[float]]
    turns: pd.DataFrame
    cells: int


def effects(turns: pd.DataFrame, *, value: str = "called", level: float = 0.95) -> pd.DataFrame:
    """The main effect of each factor on `called`, `saved` or `unwanted`, as a share: a row each.

    `called` and `saved` are of please-remember turns, `unwanted` of decoys. Columns: `model, calling, design,
    step` (the value), `factor, to, from, effect, lo, hi, p, families`, and the counts at both levels: `yes`
    of `of` turns at `to`, `yes_from` of `of_from` at `from`. `lo` and `hi` are of a t interval over families;
    `p` is adjusted by Holm for the factors of this design, model and mode. Below five families only the
    counts are given. A run without surfaces gives an empty table.

    Cells that stand outside the balanced set, such as anchors, are left out where there is one (`balanced`).
    Per family the effects are fitted by least squares to the means of its cells: that is the difference of
    means where all cells are there, and undoes what a missing cell mixes up where one is not. An effect that
    cannot be told from another (always changed together) is not estimated.
    """
    rows = []
    for fit in _fits(turns, value):
        found = [_row(fit, value, contrast, level) for contrast in fit.gaps]
        known = [row for row in found if not row["few"]]
        for row, p in zip(known, holm([row["p"] for row in known]), strict=True):
            row["p"] = p
        rows += found
    return _table(turns, rows)


def decomposition(turns: pd.DataFrame, *, value: str = "called", level: float = 0.95) -> pd.DataFrame:
    """The effects beside the difference they might explain: that between designs as their authors wrote them.

    The table of `effects` with two more rows for every other design of the run. Factor `design`: the other
    design minus the one with surfaces, paired by family over the tool orders that both were run in, so that
    the order takes no part in it. Factor `rest`: what is left of it in each family when the effect of the
    split is taken away; it lies in what the run did not vary alone, such as other tools and other texts.
    `p` of these rows is not adjusted.
    """
    rows: list[Mapping[Any, Any]] = list(effects(turns, value=value, level=level).to_dict("records"))
    frame = _judged(turns, value)
    for fit in _fits(turns, value):
        here = as_written(frame[(frame[list(fit.key)] == list(fit.key.values())).all(axis=1)])
        for other in sorted(set(here["base"]) - {fit.design}) if fit.design in set(here["base"]) else ():
            gaps, _ = unit_gaps(here, other, fit.design, "y", column="base")
            orders = [set(here.loc[here["base"] == name, "order"]) for name in (other, fit.design)]
            both = here[here["order"].isin(orders[0] & orders[1])]
            counts = _counts(both, "base", other, fit.design)
            cells = both.loc[both["base"].isin([other, fit.design]), ["base", "order"]].drop_duplicates()
            named = {**fit.key, "design": fit.design, "step": value, "to": other, "from": fit.design}
            rows.append(named | {"factor": "design"} | _sure(gaps, level) | counts | {"cells": len(cells)})
            split = Contrast("shape", "split", "as_written")
            if split in fit.gaps:
                left = (gaps - fit.gaps[split]).dropna()
                rows.append(named | {"factor": "rest"} | _sure(left, level))
    return _table(turns, rows)


def explained(turns: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """The decomposition of all of `MEASURES`, one below the other."""
    import pandas as pd

    parts = [decomposition(turns, value=value, level=level) for value in MEASURES]
    return pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)


def balanced(cells: Sequence[Cell]) -> list[Cell]:
    """The largest set of cells in which every pair of factors has its four combinations equally often.

    An orthogonal array of strength 2 and, if one of that size has it, of strength 3 (resolution IV). All
    cells where there is none, or where a factor has more than two levels.
    """
    levels = [sorted(set(column)) for column in zip(*cells, strict=True)]
    varied = [at for at, found in enumerate(levels) if len(found) > 1]
    if not varied or any(len(found) > 2 for found in levels):
        return list(cells)
    signs = np.array([[1 if cell[at] == levels[at][1] else -1 for at in varied] for cell in cells])
    step = 2 if len(varied) == 1 else 4
    for size in range(len(cells) // step * step, len(varied), -step):
        fitting = [
            chosen for chosen in combinations(range(len(cells)), size) if _even(signs[list(chosen)], 2)
        ]
        if fitting:
            best = next((chosen for chosen in fitting if _even(signs[list(chosen)], 3)), fitting[0])
            return [cells[at] for at in best]
    return list(cells)


def _even(signs: NDArray[np.int_], strength: int) -> bool:
    """Whether the product of any so many columns, or fewer, sums to zero."""
    columns = range(signs.shape[1])
    sets = (some for n in range(1, strength + 1) for some in combinations(columns, n))
    return not any(signs[:, list(some)].prod(axis=1).sum() for some in sets)


def _fits(turns: pd.DataFrame, value: str) -> Iterator[_Fit]:
    """Every design that was run behind several surfaces, on each model and calling mode."""
    keys = _keys(turns)
    frame = _judged(turns, value)
    for (*key, design), group in frame.groupby([*keys, "base"], sort=True, dropna=False, observed=True):
        if len(group[list(SURFACE)].drop_duplicates()) < 2:
            continue
        cells = list(group[list(FACTORS)].itertuples(index=False, name=None))
        wanted = balanced(list(dict.fromkeys(cells)))
        kept = group[[cell in wanted for cell in cells]]
        gaps = _fitted(kept.groupby(["family", *FACTORS], observed=True)["y"].mean().unstack("family"))
        yield _Fit(dict(zip(keys, key, strict=True)), str(design), gaps, kept, len(wanted))


def _keys(turns: pd.DataFrame) -> list[str]:
    # a surface may be unreadable to a model where another is not: that does not make it another design
    return [name for name in cell_keys(turns) if name not in ("variant", "fidelity")]


def _judged(turns: pd.DataFrame, value: str) -> pd.DataFrame:
    """The turns that have a verdict, as `y`, and their design without its surface, as `base`."""
    if value not in MEASURES:
        raise InputError(f"Factors move {', '.join(MEASURES)}, not {value!r}{nearest(value, MEASURES)}.")
    if value == "unwanted":
        frame = turns[turns["decoy"].astype(bool)]
        found = wrote(frame)
    else:
        frame = asked_to_remember(turns)
        found = saved(frame) if value == "saved" else frame[value]
    frame = frame.assign(y=found, base=frame["variant"].str.replace(r" \[[^\[\]]*\]$", "", regex=True))
    frame = frame[frame["y"].notna() & (frame["outcome"] != "invalid")]
    return frame.astype({"y": float})


def _contrasts(cells: Sequence[Cell]) -> list[Contrast]:
    found = []
    for at, factor in enumerate(FACTORS):
        levels = sorted({cell[at] for cell in cells})
        wanted = "read_first" if factor == "order" else "as_written"
        start = wanted if wanted in levels else levels[0]
        found += [Contrast(factor, to, start) for to in levels if to != start]
    return found


def _fitted(means: pd.DataFrame) -> dict[Contrast, pd.Series[float]]:
    """The effects in every family by least squares; families in which one cannot be estimated left out.

    `means` has a row for each cell and a column for each family.
    """
    import pandas as pd

    cells: list[Cell] = list(means.index)
    contrasts = _contrasts(cells)
    changed = [[1.0, *(float(cell[FACTORS.index(c.factor)] == c.to) for c in contrasts)] for cell in cells]
    found: dict[Contrast, dict[Hashable, float]] = {contrast: {} for contrast in contrasts}
    for family, values in means.items():
        there = values.notna().to_numpy()
        model = np.array(changed)[there]
        inverse = np.linalg.pinv(model)
        effects = inverse @ values[there].to_numpy(dtype=float)
        # a coefficient is estimable where its unit vector lies in the row space of the model
        known = np.abs(inverse @ model - np.eye(model.shape[1])).max(axis=1) < 1e-8
        for contrast, effect, sure in zip(contrasts, effects[1:], known[1:], strict=True):
            if sure:
                found[contrast][family] = float(effect)
    return {contrast: pd.Series(gaps, dtype=float) for contrast, gaps in found.items()}


def _row(fit: _Fit, value: str, contrast: Contrast, level: float) -> dict[str, Any]:
    named = {**fit.key, "design": fit.design, "step": value, "factor": contrast.factor, "to": contrast.to,
             "from": contrast.start}  # fmt: skip
    counts = _counts(fit.turns, contrast.factor, contrast.to, contrast.start)
    return named | _sure(fit.gaps[contrast], level) | counts | {"cells": fit.cells}


def _sure(gaps: pd.Series[float], level: float) -> dict[str, Any]:
    """An effect over families with its interval; nothing but their number where they are too few."""
    few = len(gaps) < FEW
    none = (math.nan, math.nan, math.nan, math.nan)
    effect, lo, hi, p = none if few else over_units(gaps, level=level)
    return {"effect": effect, "lo": lo, "hi": hi, "p": p, "families": len(gaps), "few": few, "level": level}


def _counts(turns: pd.DataFrame, column: str, to: str, start: str) -> dict[str, int]:
    one, other = (turns.loc[turns[column] == name, "y"] for name in (to, start))
    return {"yes": int(one.sum()), "of": len(one), "yes_from": int(other.sum()), "of_from": len(other)}


def _table(turns: pd.DataFrame, rows: Sequence[Mapping[Any, Any]]) -> pd.DataFrame:
    import pandas as pd

    numbers = ["effect", "lo", "hi", "p", "families", "few", *_COUNTS, "level"]
    columns = [*_keys(turns), "design", "step", "factor", "to", "from", *numbers]
    return pd.DataFrame(list(rows), columns=columns).astype(dict.fromkeys(_COUNTS, "Int64"))
