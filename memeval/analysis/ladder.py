"""When it is asked to remember, does it? By how strongly it is asked, and beside what nobody asked for.

The ask-strength ladder has six rungs, from naming the saving tool down to a mention of the fact (`RUNGS`).
A question of a later session stands on the rung on which its fact was told; one that a broken trial never
reached was not answered. Turns that ask for no memory are the floor: how often a tool that saves is called
there, and how often anything is saved. A design that saves everything is high on every rung, and its floor is
as high.

Left out everywhere is a turn on the rung `save_it` whose conversation had been saved in before it: the user
asks to save what was said a turn ago, and a model that had done so by itself is right to do nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from memeval.analysis.blame import STAGES
from memeval.analysis.compare import paired
from memeval.analysis.designs import judged
from memeval.analysis.failures import INVENTED, NO_REPLY, OTHER, RESTRAINT, UNKNOWN
from memeval.analysis.intervals import FEW, Rate, rate, rates
from memeval.analysis.tables import ROW, as_written, asked_to_remember, can_save, cell_keys, saved, wrote
from memeval.analysis.unreached import with_unreached
from memeval.messages import WRITES
from memeval.scenarios.schema import Strength

if TYPE_CHECKING:
    import pandas as pd

    from memeval.evaluation.results import Run

RUNGS: tuple[str, ...] = get_args(Strength)
EXPLICIT = RUNGS[:4]
"""The rungs on which the user asks; on the others something is only said."""
UNASKED, ELSEWHERE, ALL = "unasked", "elsewhere", "all"
"""What stands beside the rungs: turns that ask for no memory, asks that are on no ladder, all asks."""
STEPS = ("called", "saved", "recalled")
"""A tool that saves was called; the fact was stored by it; the question of a later session was answered."""
WROTE = "wrote"
"""Anything was saved, right or wrong: what can be told of turns that ask and of turns that do not."""
FLOORED = ("called", WROTE)
"""The steps that have a floor."""
DROP, GAP = "drop", "gap"
KNOWN = (OTHER, RESTRAINT, INVENTED, NO_REPLY, UNKNOWN)
"""Failures that no replay tells more about, as `analysis.failures` names them."""


def asked(run: Run) -> pd.DataFrame:
    """The turns that the dose-response curve counts, one row a turn and step: `strength, step, yes`.

    Steps are those of `STEPS` and `wrote`. Turns that forbid saving or call for no memory have the strength
    `unasked` and the steps of `FLOORED`. `yes` is null where the design has no tool for it. A trial that is
    told on two rungs has no rung for its questions.
    """
    import pandas as pd

    turns = as_written(run.turns)
    told = _told(turns)
    asks = told[~_saved_before(turns).loc[told.index]]
    later = _later(judged(run, "recalled"), _told(as_written(with_unreached(run))))
    idle = turns[turns["decoy"].astype(bool) | (turns["intent"] == "none")].assign(strength=UNASKED)
    parts = [
        asks.assign(step="called", yes=asks["called"]),
        asks.assign(step="saved", yes=saved(asks)),
        later.assign(step="recalled", yes=later["recalled"]),
        asks.assign(step=WROTE, yes=wrote(asks)),
        idle.assign(step="called", yes=_called(run, idle)),
        idle.assign(step=WROTE, yes=wrote(idle)),
    ]
    return pd.concat(parts, ignore_index=True)


def _told(turns: pd.DataFrame) -> pd.DataFrame:
    """The turns on some rung."""
    return turns[(turns["strength"] != "") & ~turns["decoy"].astype(bool)]


def _called(run: Run, turns: pd.DataFrame) -> pd.Series[bool]:
    """Whether a tool that saves was called, with success or not, by the calls' intents; null without one.

    Of turns that ask to remember that is their `called`; of others `called` says another thing.
    """
    import pandas as pd

    place = ["trial_key", "session", "turn"]
    calls = run.calls[run.calls["intent"].isin(WRITES) & (run.calls["status"] != "leaked")]
    made = pd.MultiIndex.from_frame(turns[place]).isin(pd.MultiIndex.from_frame(calls[place]))
    return pd.Series(made, turns.index, dtype="boolean").where(can_save(turns))


def _saved_before(turns: pd.DataFrame) -> pd.Series[bool]:
    """Turns on the rung `save_it` before which a call had written in the same conversation."""
    ordered = turns.sort_values(["trial_key", "session", "turn"])
    wrote = ordered.groupby(["trial_key", "session"])["wrote"].cumsum() - ordered["wrote"]
    return (wrote > 0).reindex(turns.index) & (turns["strength"] == "save_it")


def _later(questions: pd.DataFrame, told: pd.DataFrame) -> pd.DataFrame:
    """The questions of sessions after the one in which their trial was told something, with its rung."""
    rungs = told[["trial_key", "strength"]].drop_duplicates().drop_duplicates("trial_key", keep=False)
    rung = dict(zip(rungs["trial_key"], rungs["strength"], strict=True))
    first = questions["trial_key"].map(told.groupby("trial_key")["session"].min())
    found = questions[(questions["session"] > first) & questions["trial_key"].isin(rung)]
    return found.assign(strength=found["trial_key"].map(rung))


def dose(run: Run, *, level: float = 0.95) -> pd.DataFrame:
    """The dose-response curve: a rate with its interval for every cell, `step` and `strength`."""
    found = rates(asked(run), [*cell_keys(run.trials), "step", "strength"], value="yes", level=level)
    return found.sort_values(list(ROW), kind="stable", ignore_index=True)


def gaps(run: Run, *, level: float = 0.95) -> pd.DataFrame:
    """Two numbers a design and step, as shares: `..., step, measure, diff, lo, hi, p, families, few`.

    `drop` is what the strength of asking is worth: the rate on the strongest rung of the run minus that on
    the weakest (`named` minus `mention`), paired by family; of `STEPS`. `gap` is whether asking matters at
    all: the rate over the four rungs that ask minus that of the same step where nobody asks; of `FLOORED`.
    That is Youden's J, sensitivity + specificity - 1 (Cancer 3, 1950, 32-35): 1 for saving when asked and
    only then, 0 for saving regardless, below 0 for saving the wrong way round. Whether what was saved is the
    right thing has no such floor: beside the gap of `wrote`, `right` is the share of the same turns in which
    it was. `rate` and `base` are the two rates, `base_families` the families of the second. Below five
    families on either side no difference is given.
    """
    import pandas as pd

    frame, keys = asked(run), cell_keys(run.trials)
    ends = [rung for rung in RUNGS if rung in set(frame["strength"])]
    rows = []
    cells = frame.groupby(keys, sort=True, dropna=False, observed=True)
    for key, group in cells if ends else ():
        named = dict(zip(keys, key, strict=True))
        steps = {step: group[group["step"] == step] for step in (*STEPS, WROTE)}
        for step in STEPS if len(ends) > 1 else ():
            found = _drop(steps[step], ends[0], ends[-1], level)
            rows.append(named | {"step": step, "measure": DROP} | found)
        asks = {step: turns[turns["strength"].isin(EXPLICIT)] for step, turns in steps.items()}
        for step in FLOORED:
            found = _gap(asks[step], steps[step][steps[step]["strength"] == UNASKED], level)
            right = {"right": _rate(asks["saved"], level).rate} if step == WROTE else {}
            rows.append(named | {"step": step, "measure": GAP} | found | right)
    numbers = ["rate", "right", "base", "diff", "lo", "hi", "p", "families", "base_families", "few", "level"]
    return pd.DataFrame(rows, columns=[*keys, "step", "measure", "from", "to", *numbers])


def _drop(frame: pd.DataFrame, strong: str, weak: str, level: float) -> dict[str, Any]:
    one, other = (_rate(frame[frame["strength"] == rung], level) for rung in (strong, weak))
    none = {"diff": math.nan, "lo": math.nan, "hi": math.nan, "p": math.nan}
    found, families = none, 0
    if one.units and other.units:
        # rungs are stories of their own: a pair is two rungs of one family, told alike otherwise
        alike = frame.drop(columns=["scenario", "session", "turn"])
        gap = paired(alike, strong, weak, "yes", column="strength", level=level)
        families = gap.units
        if families >= FEW:
            # a t interval knows no bounds; NaN, where no family differs from another, stays
            lo, hi = np.clip([gap.lo, gap.hi], -1, 1)
            found = {"diff": gap.diff, "lo": float(lo), "hi": float(hi), "p": gap.p}
    counts = {"families": families, "base_families": families, "few": families < FEW, "level": level}
    return {"from": strong, "to": weak, "rate": one.rate, "base": other.rate} | found | counts


def _gap(asks: pd.DataFrame, idle: pd.DataFrame, level: float) -> dict[str, Any]:
    one, other = _rate(asks, level), _rate(idle, level)
    few = one.few or other.few
    diff, lo, hi = (math.nan, math.nan, math.nan) if few else minus(one, other)
    return {
        "from": "asked", "to": UNASKED, "rate": one.rate, "base": other.rate, "diff": diff, "lo": lo,
        "hi": hi, "p": math.nan, "families": one.units, "base_families": other.units, "few": few,
        "level": level,
    }  # fmt: skip


def _rate(frame: pd.DataFrame, level: float) -> Rate:
    """The rate of `yes` over families."""
    valid = frame[(frame["outcome"] != "invalid") & frame["yes"].notna()]
    found = valid.astype({"yes": int}).groupby("family", observed=True)["yes"]
    return rate(found.sum().to_numpy(), found.count().to_numpy(), level=level)


def minus(one: Rate, other: Rate) -> tuple[float, float, float]:
    """The difference of two rates of unlike families, and its interval, from the intervals of both.

    Newcombe's square-and-add of the distances of each rate to the ends of its own interval (Zou & Donner,
    Statistics in Medicine 27, 2008, 1693-1702, call it MOVER). Simulated coverage at 95 %: 94 to 99 % for 24
    families against 40 or 12, 92 % for 6 against 8 that are very unlike.
    """
    diff = one.rate - other.rate
    down = math.hypot(max(one.rate - one.lo, 0), max(other.hi - other.rate, 0))
    up = math.hypot(max(one.hi - one.rate, 0), max(other.rate - other.lo, 0))
    return diff, max(diff - down, -1.0), min(diff + up, 1.0)


def phantoms(run: Run, *, level: float = 0.95) -> pd.DataFrame:
    """How often the reply claims a save although no call wrote anything: by cell and `strength`.

    Beside the rungs `elsewhere`, asks to remember that are on no ladder, and `all`.
    """
    import pandas as pd

    turns = as_written(run.turns)
    asks = asked_to_remember(turns)
    asks = asks[~_saved_before(turns).loc[asks.index]]
    asks = asks.assign(strength=asks["strength"].where(asks["strength"] != "", ELSEWHERE))
    both = pd.concat([asks, asks.assign(strength=ALL)])
    found = rates(both, [*cell_keys(run.trials), "strength"], value="phantom_save", level=level)
    return found.sort_values(list(ROW), kind="stable", ignore_index=True)


def breaks(run: Run, blamed: pd.DataFrame) -> pd.DataFrame:
    """What broke the failed trials of each cell: a row a stage with its `failures`.

    `blamed` is of `blame.read_blame`. Stages come in the order of the chain, found by replaying a sample
    (`replayed`); after them what can be seen of a failure without. `failed` counts all failed trials of the
    cell, `explained` those of either kind, `sampled` those that were replayed.
    """
    import pandas as pd

    keys = cell_keys(run.trials)
    trials = as_written(run.trials)
    failed = trials[(trials["outcome"] != "invalid") & (trials["passed"] == False)]  # noqa: E712
    found = failed.merge(blamed[["trial_key", "blamed", "in_sample"]], on="trial_key", how="left")
    rows = []
    for key, group in found.groupby(keys, sort=True, dropna=False, observed=True):
        counts = Counter(group["blamed"].dropna())
        sampled = int(group["in_sample"].fillna(False).astype(bool).sum())
        totals = {"explained": counts.total(), "sampled": sampled, "failed": len(group)}
        rows += [
            dict(zip(keys, key, strict=True))
            | {"stage": stage, "replayed": stage in STAGES, "failures": counts[stage]}
            | totals
            for stage in (*STAGES, *KNOWN)
        ]
    columns = ["stage", "replayed", "failures", "explained", "sampled", "failed"]
    return pd.DataFrame(rows, columns=[*keys, *columns])
