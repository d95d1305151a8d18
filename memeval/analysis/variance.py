"""The variance of an outcome taken apart by sums over families: what each factor explains, and the rest.

Everything is kept as sums over each family, so that a bootstrap over families is a product with weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
TOGETHER, BY_FAMILY, STORIES, REST = "together", "by family", "stories", "rest"
_EDGE = 1e-9


@dataclass(frozen=True, slots=True)
class Sums:
    """What the rows of each family sum up to, once each story's means are taken off outcome and factors.

    `cross` (families x factors x factors), `moment` (families x factors) and `within` are the products of
    what remains; `between` is the square of each row's story mean.
    """

    families: list[str]
    rows: Floats
    stories: Floats
    total: Floats
    between: Floats
    within: Floats
    cross: Floats
    moment: Floats

    def effects(self) -> Floats:
        """The effect of each factor (columns) in each family (rows), by least squares; null where it cannot
        be told from the others'."""
        inverse = _inverse(self.cross)
        found = np.einsum("fij,fj->fi", inverse, self.moment)
        return np.where(_known(self.cross, inverse), found, math.nan)


def summed(frame: pd.DataFrame, factors: Sequence[str], *, story: Sequence[str]) -> Sums:
    """The sums of a frame with an outcome `y`, a `family`, and factors of 0 and 1; rows of equal `story`
    columns share a constant."""
    columns = ["y", *factors]
    grouped = frame.groupby(["family", *story], sort=False, observed=True)
    means, size = grouped[columns].transform("mean"), grouped["y"].transform("size").to_numpy(dtype=float)
    left, y = (frame[columns] - means).to_numpy(dtype=float), frame["y"].to_numpy(dtype=float)
    families, place = np.unique(frame["family"].astype(str).to_numpy(), return_inverse=True)

    def over(values: Floats) -> Floats:
        sums = np.zeros((len(families), *values.shape[1:]))
        np.add.at(sums, place, values)
        return sums

    products = over(left[:, :, None] * left[:, None, :])
    return Sums(
        [str(name) for name in families], over(np.ones(len(frame))), over(1 / size), over(y),
        over(means["y"].to_numpy(dtype=float) ** 2), products[:, 0, 0], products[:, 1:, 1:],
        products[:, 1:, 0],
    )  # fmt: skip


def shares(sums: Sums, weights: Floats) -> Floats:
    """Shares of the variance for each row of weights, one weight a family: resamples x parts.

    Parts: each factor, `TOGETHER`, `BY_FAMILY`, `STORIES`, `REST`. Each is its epsilon squared,
    (SS - df MSE) / SS_total, at least zero; the rest is what is left of one. The sum of squares of a factor
    is the mean of what it adds over all orders of entering the fit. A factor that cannot be told from another
    is null, and counts to `TOGETHER`; a row without variance is null as a whole.
    """
    n, stories, total, between, within = (
        weights @ part for part in (sums.rows, sums.stories, sums.total, sums.between, sums.within)
    )
    cross, moment = np.tensordot(weights, sums.cross, 1), weights @ sums.moment
    credit, main = _credited(cross, moment)
    own = weights @ _explained(sums.cross, sums.moment)
    freedom, own_freedom = _rank(cross), weights @ _rank(sums.cross)
    whole = sums.cross.sum(axis=0)
    told = _known(whole, _inverse(whole))
    between = between - total**2 / n
    everything, spare = between + within, n - stories - own_freedom
    with np.errstate(divide="ignore", invalid="ignore"):
        each = spare > 0.5  # enough rows for effects of each family's own
        error = np.where(each, (within - own) / spare, (within - main) / (n - stories - freedom))
        parts = np.column_stack(
            [
                np.where(told, credit - error[:, None], math.nan),
                np.where(told, 0, credit).sum(axis=1) - (freedom - told.sum()) * error,
                np.where(each, own - main - (own_freedom - freedom) * error, 0),
                between - (stories - 1) * error,
            ]
        )
        found = np.clip(parts / np.where(everything > _EDGE, everything, math.nan)[:, None], 0, None)
    return np.column_stack([found, 1 - np.nansum(found, axis=1) + 0 * found[:, -1]])


def _credited(cross: Floats, moment: Floats) -> tuple[Floats, Floats]:
    """The sum of squares of each factor, as the mean over all orders of entering, and of all of them."""
    k = moment.shape[1]
    some = [at for size in range(k + 1) for at in combinations(range(k), size)]
    explained = {at: _explained(cross[:, at][:, :, at], moment[:, at]) for at in some}
    credit = np.zeros_like(moment)
    for at in some:
        for one in set(range(k)).difference(at):
            orders = math.factorial(len(at)) * math.factorial(k - len(at) - 1) / math.factorial(k)
            credit[:, one] += orders * (explained[tuple(sorted((*at, one)))] - explained[at])
    return credit, explained[tuple(range(k))]


def _explained(cross: Floats, moment: Floats) -> Floats:
    """What a fit explains of the sum of squares: m' C^-1 m."""
    if not moment.shape[1]:
        return np.zeros(len(moment))
    found: Floats = np.einsum("bi,bij,bj->b", moment, _inverse(cross), moment)
    return found


def _inverse(cross: Floats) -> Floats:
    return np.asarray(np.linalg.pinv(cross, rcond=_EDGE, hermitian=True), dtype=np.float64)


def _rank(cross: Floats) -> Floats:
    if not cross.shape[-1]:
        return np.zeros(len(cross))
    values = np.linalg.eigvalsh(cross)
    found: Floats = (values > _EDGE * np.maximum(values[:, -1:], 1)).sum(axis=1).astype(np.float64)
    return found


def _known(cross: Floats, inverse: Floats) -> NDArray[np.bool_]:
    """Which effects can be estimated: those whose unit vector lies in the row space of the model."""
    found: NDArray[np.bool_] = np.abs(inverse @ cross - np.eye(cross.shape[-1])).max(axis=-1) < 1e-6
    return found
