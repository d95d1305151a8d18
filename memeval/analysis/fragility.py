"""How much of a design's rate hangs on accidents: tool order, names, wording of the request, other tools.

For runs of a sweep with `perturb`, which draws the levels of such accidents anew for each repeat
(`memeval.evaluation.perturb`). Within one design, model and calling mode the outcome of a trial or turn (1 or
0) is taken apart by a linear probability model,

    outcome = story + effect of each accident + what the accidents do in this family only + rest

and each part's share of the variance is its epsilon squared, (SS - df MSE) / SS_total: the sum of squares it
explains, less what chance alone would have given its degrees of freedom (Kelley 1935, PNAS 21, 554; the least
biased of the usual measures in Okada 2013, Behaviormetrika 40, 129). What comes out below zero is zero; the
rest is what is left of one, so that the shares sum to one. MSE is of the fit in which every family has
effects of its own. Where a family was told too few times for that, it is of the fit without, and what the
accidents do in single families is part of the rest, as is always what they do only in combination.

With balanced draws the accidents are orthogonal, and their sums of squares depend on no order. Where trials
are missing each accident has the mean of what it adds over all orders of entering the fit (Lindeman, Merenda
& Gold 1980; Groemping 2006, Journal of Statistical Software 17, 1), after the story. Accidents that always
changed together cannot be told apart and have one share between them.

Intervals of shares are percentiles of a bootstrap over families. They are rough, and lean upward near zero:
whether an accident does anything is said by its effect, with a t interval over families, not by its share.
And a share says nothing of size: of a rate that hardly varies an accident may make all of the variation.
Simulated with 18 families told 8 times, shares were true on average to a point for single accidents; where
there was nothing to find, 5 points stood at `by family` and 1 at `stories`, which the clipping at zero makes.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from memeval.analysis import variance
from memeval.analysis.compare import holm, over_units
from memeval.analysis.designs import STEPS, judged
from memeval.analysis.intervals import FEW, rates
from memeval.analysis.tables import cell_keys
from memeval.analysis.variance import BY_FAMILY, REST, STORIES, TOGETHER, Floats, Sums
from memeval.errors import InputError, nearest
from memeval.evaluation.perturb import ACCIDENTS, LEVELS, Accident

if TYPE_CHECKING:
    import pandas as pd

    from memeval.evaluation.results import Run

PARTS = (*ACCIDENTS, TOGETHER, BY_FAMILY, STORIES, REST)
"""Each accident; those that always changed together; what accidents do in single families only; which story
it is; chance and all else. The last two are no accidents."""
COLUMNS: Mapping[str, str] = {"names": "perturbed_names"}
"""Where the level of an accident stands, if not in the column of its name."""
RESAMPLES = 2000


def effects(run: Run, *, value: str = "saved", level: float = 0.95) -> pd.DataFrame:
    """What each accident does to a rate: a row for each design, model, calling mode and accident.

    `value` is one of `analysis.designs.STEPS`. Columns: those of the cell, `step` (the value), `factor`, its
    levels `to` and `from`, and as shares `effect` (the rate at `to` minus that at `from`, within families),
    `lo`, `hi` (a t interval over families), `p` (adjusted by Holm for the accidents of the design, model and
    mode), `told` (whether it is told apart from no effect at this level), `families`, and the counts at both
    levels: `yes` of `of` at `to`, `yes_from` of `of_from`. Below five families only the counts are given.

    Per family the effects are fitted by least squares with a constant for each story: the difference of means
    where all repeats are there. An effect that cannot be told from another's (always changed together) is not
    estimated.
    """
    rows: list[dict[str, Any]] = []
    for fit in _fits(run, value):
        gaps = fit.sums.effects()
        found = [
            fit.key
            | {"step": value, "factor": name, "to": LEVELS[name][1], "from": LEVELS[name][0]}
            | _sure(gaps[np.isfinite(gaps[:, at]), at], level)
            | _counts(fit.frame, name)
            for at, name in enumerate(fit.accidents)
        ]
        known = [row for row in found if not row["few"]]
        for row, p in zip(known, holm([row["p"] for row in known]), strict=True):
            row |= {"p": p, "told": p < 1 - level}
        rows += found
    columns = [*_keys(run, value), "step", "factor", "to", "from", "effect", "lo", "hi", "p", "told"]
    return _frame(rows, [*columns, "families", "few", "yes", "of", "yes_from", "of_from", "level"])


def shares(
    run: Run, *, value: str = "saved", level: float = 0.95, resamples: int = RESAMPLES, seed: int = 0
) -> pd.DataFrame:
    """What the variance of an outcome is made of: a row for each design, model, calling mode and part.

    Columns: those of the cell, `step` (the value), `part` (one of `PARTS`), `share` with `lo` and `hi` (a
    bootstrap over families), `families`, `trials` (or turns), `few`, `level`. A share is null below five
    families, where the outcome never varies, and for an accident that did not change by itself.
    """
    rows: list[dict[str, Any]] = []
    for fit in _fits(run, value):
        point, lo, hi = _resampled(fit, resamples, seed, level)
        about = {"families": len(fit.sums.families), "trials": len(fit.frame), "few": fit.few, "level": level}
        rows += [
            fit.key | {"step": value, "part": part, "share": point[at], "lo": lo[at], "hi": hi[at]} | about
            for at, part in enumerate([*fit.accidents, TOGETHER, BY_FAMILY, STORIES, REST])
        ]
    columns = [*_keys(run, value), "step", "part", "share", "lo", "hi", "families", "trials", "few", "level"]
    return _frame(rows, columns)


def overall(
    run: Run, *, value: str = "saved", level: float = 0.95, resamples: int = RESAMPLES, seed: int = 0
) -> pd.DataFrame:
    """One row a design, model and calling mode: its rate, and the share of its variance that accidents make.

    The columns of `intervals.rates` over what was perturbed, `step`, and `accidents` with `accidents_lo` and
    `accidents_hi`: the sum of all parts but `stories` and `rest`.
    """
    frame, keys = _perturbed(run, value), _keys(run, value)
    found = rates(frame, keys, value=value, level=level).assign(step=value)
    parts = []
    for fit in _fits(run, value):
        point, lo, hi = (float(ends[-1]) for ends in _resampled(fit, resamples, seed, level))
        parts.append(fit.key | {"accidents": point, "accidents_lo": lo, "accidents_hi": hi})
    sums = _frame(parts, [*keys, "accidents", "accidents_lo", "accidents_hi"])
    return (
        found.merge(sums, on=keys, how="left")
        if parts
        else found.assign(**dict.fromkeys(sums.columns[-3:], math.nan))
    )


@dataclass(frozen=True, slots=True)
class _Fit:
    """One design on one model and calling mode."""

    key: dict[str, Hashable]
    accidents: list[Accident]
    frame: pd.DataFrame
    sums: Sums

    @property
    def few(self) -> bool:
        return len(self.sums.families) < FEW


def _perturbed(run: Run, value: str) -> pd.DataFrame:
    """The trials or turns that a rate is of, those of perturbed cells alone."""
    if value not in STEPS:
        raise InputError(f"Accidents move {', '.join(STEPS)}, not {value!r}{nearest(value, STEPS)}.")
    frame = judged(run, value)
    drawn = [len(names) > 0 for names in frame["perturb"]] if "perturb" in frame else [False] * len(frame)
    return frame[np.array(drawn, dtype=bool)]


def _keys(run: Run, value: str) -> list[str]:
    return cell_keys(_perturbed(run, value))


def _fits(run: Run, value: str) -> Iterator[_Fit]:
    frame, keys = _perturbed(run, value), _keys(run, value)
    frame = frame[(frame["outcome"] != "invalid") & frame[value].notna()]
    story = [name for name in ("scenario", "session", "turn") if name in frame]
    for key, group in frame.groupby(keys, sort=True, dropna=False, observed=True):
        named = {name for names in group["perturb"] for name in names}
        accidents = [name for name in ACCIDENTS if name in named]
        levels = {f"x {name}": group[COLUMNS.get(name, name)] == LEVELS[name][1] for name in accidents}
        group = group.assign(y=group[value], **levels).astype(dict.fromkeys(("y", *levels), float))
        yield _Fit(
            dict(zip(keys, key, strict=True)), accidents, group,
            variance.summed(group, list(levels), story=story),
        )  # fmt: skip


def _resampled(fit: _Fit, resamples: int, seed: int, level: float) -> tuple[Floats, Floats, Floats]:
    """Shares of each part and, last, of all accidents together, with both ends of their intervals."""
    n = len(fit.sums.families)
    none = np.full(len(fit.accidents) + 5, math.nan)
    if fit.few:
        return none, none, none
    draws = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=resamples)
    found = variance.shares(fit.sums, np.vstack([np.ones(n), draws.astype(float)]))
    found = np.column_stack([found, np.nansum(found[:, :-2], axis=1) + 0 * found[:, -1]])
    known = found[1:][np.isfinite(found[1:, -1])]  # families that never vary, drawn alone, have no shares
    if not len(known) or not np.isfinite(found[0, -1]):
        return found[0], none, none
    lo, hi = np.quantile(known, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return found[0], lo, hi


def _sure(gaps: Floats, level: float) -> dict[str, Any]:
    """An effect over families with its interval; nothing but their number where they are too few."""
    few = len(gaps) < FEW
    effect, lo, hi, p = (math.nan,) * 4 if few else over_units(gaps, level=level)
    return {"effect": effect, "lo": lo, "hi": hi, "p": p, "told": False, "families": len(gaps), "few": few,
            "level": level}  # fmt: skip


def _counts(frame: pd.DataFrame, name: Accident) -> dict[str, int]:
    to, start = (frame.loc[frame[f"x {name}"] == x, "y"] for x in (1, 0))
    return {"yes": int(to.sum()), "of": len(to), "yes_from": int(start.sum()), "of_from": len(start)}


def _frame(rows: Sequence[Mapping[Any, Any]], columns: list[str]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(list(rows), columns=columns)
