"""Two designs on the same stories: the difference, paired by family."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from memeval.errors import InputError, nearest

if TYPE_CHECKING:
    import pandas as pd

# What must be equal for two rows to be a pair, as far as the frame has it.
PAIRED_ON = ("model", "calling", "embedder", "prefix", "scenario", "repeat", "order", "session", "turn")


@dataclass(frozen=True, slots=True)
class Paired:
    """Design a minus design b, as a share (0.1 is ten percentage points), over families both answered.

    `better`, `worse` and `ties` count families where a did better, worse, or the same as b. Without spread
    among the families a t interval has nothing to stand on: `lo` and `hi` are NaN, and `p` is the exact
    sign test's.
    """

    a: str
    b: str
    diff: float
    lo: float
    hi: float
    p: float
    units: int
    pairs: int
    better: int
    worse: int
    ties: int
    level: float


def paired(
    frame: pd.DataFrame,
    a: str,
    b: str,
    value: str = "passed",
    *,
    unit: str = "family",
    column: str = "variant",
    level: float = 0.95,
) -> Paired:
    """The difference a - b of two values of `column`: a paired t interval over unit means.

    Rows are matched on model, calling mode, embedder, scenario, repeat, tool order and turn; only pairs where
    both are valid and judged count.
    """
    gaps, pairs = unit_gaps(frame, a, b, value, unit=unit, column=column)
    n, better, worse = len(gaps), int((gaps > 0).sum()), int((gaps < 0).sum())
    diff, lo, hi, p = over_units(gaps, level=level)
    return Paired(a, b, diff, lo, hi, p, n, pairs, better, worse, n - better - worse, level)


def unit_gaps(
    frame: pd.DataFrame, a: str, b: str, value: str, *, unit: str = "family", column: str = "variant"
) -> tuple[pd.Series[float], int]:
    """The mean of a - b within every unit that has pairs, by unit; and the number of pairs."""
    for name in (a, b):
        if name not in set(frame[column]):
            raise InputError(
                f"No {column} is called {name!r}{nearest(name, set(frame[column].astype(str)))}."
            )
    valid = frame[(frame["outcome"] != "invalid") & frame[value].notna()] if "outcome" in frame else frame
    keys = [unit, *(key for key in PAIRED_ON if key in frame and key != column)]
    one, other = (valid.loc[valid[column] == name, [*keys, value]].astype({value: float}) for name in (a, b))
    pairs = one.merge(other, on=keys, suffixes=("_a", "_b"))
    return (pairs[f"{value}_a"] - pairs[f"{value}_b"]).groupby(pairs[unit]).mean(), len(pairs)


def over_units(differences: ArrayLike, *, level: float = 0.95) -> tuple[float, float, float, float]:
    """Mean of one difference a unit, the ends of its t interval, and its p value.

    In simulations at 20 to 100 units the false alarms were 3.2 to 4.8 % at a nominal 5 %, also where designs
    differ per prompt but not on average; McNemar over all trials gave up to 9.8 % there. Without spread
    among the units the ends are NaN and p is the exact sign test's.
    """
    from scipy import stats

    gaps = np.asarray(differences, dtype=float)
    n = len(gaps)
    if not n:
        return math.nan, math.nan, math.nan, 1.0
    mean, spread = float(gaps.mean()), float(gaps.std(ddof=1)) if n > 1 else 0.0
    if spread <= 1e-12:
        better, worse = int((gaps > 0).sum()), int((gaps < 0).sum())
        p = float(stats.binomtest(better, better + worse).pvalue) if better + worse else 1.0
        return mean, math.nan, math.nan, p
    error = spread / math.sqrt(n)
    reach = float(stats.t.ppf((1 + level) / 2, n - 1)) * error
    return mean, mean - reach, mean + reach, float(2 * stats.t.sf(abs(mean) / error, n - 1))


def holm(p: Sequence[float]) -> list[float]:
    """The p values adjusted for their number by Holm's step-down method, in the order given."""
    adjusted = np.ones(len(p))
    highest = 0.0
    for rank, index in enumerate(np.argsort(p)):
        highest = max(highest, min(1.0, (len(p) - rank) * p[index]))
        adjusted[index] = highest
    return [float(value) for value in adjusted]
