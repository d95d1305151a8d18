"""Designs side by side: what each got done, what it cost, and what of it was exercised at all."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from memeval.analysis.compare import holm, paired
from memeval.analysis.intervals import rates
from memeval.analysis.tables import ROW, as_written, asked_to_remember, cell_keys, saved, unwanted
from memeval.messages import READS

if TYPE_CHECKING:
    import pandas as pd

    from memeval.evaluation.results import Run

STEPS = ("passed", "called", "saved", "recalled", "unwanted")
"""What is counted of a design: trials that passed; please-remember turns in which a tool that saves was called
and the right thing stored; recall turns that were answered; decoy turns in which something was saved."""

_COSTS = {
    "prompt_tokens": "prompt tokens a turn",
    "output_tokens": "output tokens a turn",
    "hook_tokens": "hook tokens a turn",
    "seconds_model": "model seconds a turn",
    "seconds_hooks": "hook seconds a turn",
}
NOT_LIVE = "not exercised live"
TOOL, HOOK = "tool", "hook"


def judged(run: Run, step: str) -> pd.DataFrame:
    """The trials or turns that a step is counted over, with the verdict in the column of its name."""
    turns = run.turns
    if step == "passed":
        return run.trials
    if step == "recalled":
        frame = turns[turns["intent"].isin(READS) & ~turns["decoy"].astype(bool)]
        return frame.assign(recalled=frame["answered"])
    if step == "unwanted":
        frame = turns[turns["decoy"].astype(bool)]
        return frame.assign(unwanted=unwanted(frame))
    frame = asked_to_remember(turns)
    return frame.assign(saved=saved(frame))


def steps(run: Run, *, level: float = 0.95) -> pd.DataFrame:
    """Every rate of every design, as `rates` gives them, one below the other; `step` says which."""
    import pandas as pd

    # a frame of turns has the same marks as one of trials, so that all steps have the same keys
    keys = cell_keys(run.trials)
    parts = [rates(judged(run, step), keys, value=step, level=level).assign(step=step) for step in STEPS]
    return pd.concat(parts, ignore_index=True)


def side_by_side(run: Run, *, level: float = 0.95) -> pd.DataFrame:
    """One row a model, calling mode and variant: its trials, rates and costs.

    Each of `STEPS` has its rate (null below five families), `... yes` and `... of`; `passed` also the ends of
    its interval. Tokens and seconds are means over the turns of valid trials. `hook tokens`, `hook requests`
    and `hook seconds` are what the design itself asked of the model; `tool tax` is what its tools cost in
    every prompt, `peak prompt` the longest prompt, in tokens as the server counted them.
    """
    keys = cell_keys(run.trials)
    table = _sizes(run.trials, keys)
    found = steps(run, level=level)
    for step, part in found.groupby("step", sort=False):
        few = part["few"].astype(bool)
        shown = part[keys].assign(
            **{
                str(step): part["rate"].mask(few),
                **({f"{step} lo": part["lo"].mask(few), f"{step} hi": part["hi"].mask(few)}
                   if step == "passed" else {}),
                f"{step} yes": part["successes"], f"{step} of": part["trials"],
            }
        )  # fmt: skip
        table = table.merge(shown, on=keys, how="left")
        counts = [f"{step} yes", f"{step} of"]
        table[counts] = table[counts].fillna(0).astype(int)
    return table.merge(costs(run), on=keys, how="left")


def _sizes(trials: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for key, group in trials.groupby(keys, sort=True, dropna=False, observed=True):
        valid = group[group["outcome"] != "invalid"]
        rows.append(
            dict(zip(keys, key, strict=True))
            | {
                "orders": ", ".join(sorted(set(valid["order"]))),
                "trials": len(valid),
                "families": valid["family"].nunique(),
                "model failures": int((valid["outcome"] == "model_failure").sum()),
                "invalid": len(group) - len(valid),
            }
        )
    return pd.DataFrame(rows, columns=[*keys, "orders", "trials", "families", "model failures", "invalid"])


def costs(run: Run) -> pd.DataFrame:
    """What each design cost on each model and calling mode; valid trials only."""
    import pandas as pd

    keys = cell_keys(run.trials)
    trials = run.trials[run.trials["outcome"] != "invalid"]
    turns = run.turns[run.turns["outcome"] != "invalid"].groupby("trial_key").size()
    trials = trials.assign(_turns=trials["trial_key"].map(turns).fillna(0))
    rows = []
    for key, group in trials.groupby(keys, sort=True, dropna=False, observed=True):
        number = float(group["_turns"].sum()) or math.nan
        tax = group["tool_tax"].dropna()
        rows.append(
            dict(zip(keys, key, strict=True))
            | {name: float(group[column].sum()) / number for column, name in _COSTS.items()}
            | {
                "hook requests": int(group["hook_requests"].sum()),
                "tool tax": int(tax.max()) if len(tax) else None,
                "peak prompt": int(group["peak_prompt"].max()),
            }
        )
    columns = [*keys, *_COSTS.values(), "hook requests", "tool tax", "peak prompt"]
    return pd.DataFrame(rows, columns=columns).astype({"tool tax": "Int64"})


def standing(frame: pd.DataFrame, value: str, *, level: float = 0.95) -> pd.DataFrame:
    """Per model and calling mode every design against the best: `variant, rate, ..., best, difference, p, near`.

    Best is the highest rate among designs with five families or more; surfaces are left out. `p` is of the
    difference paired by family, adjusted by Holm for the designs compared; a design is `near` where chance
    could have made it. Among eight equal designs this group held the true best in 99 to 100 % of simulated
    runs, while the highest rate alone was two points too high.
    """
    import pandas as pd

    written = as_written(frame)
    found = rates(written, [*ROW, "variant"], value=value, level=level)
    parts = []
    for (model, calling), group in found[~found["few"].astype(bool)].groupby(list(ROW), sort=True):
        group = group.sort_values("rate", ascending=False, kind="stable")
        best = str(group["variant"].iloc[0])
        mine = written[(written["model"] == model) & (written["calling"] == calling)]
        gaps = [paired(mine, name, best, value, level=level) for name in group["variant"].iloc[1:]]
        p = [math.nan, *holm([gap.p for gap in gaps])]
        parts.append(
            group.assign(
                best=best, difference=[0.0, *(gap.diff for gap in gaps)], p=p,
                near=[not chance < 1 - level for chance in p],
            )
        )  # fmt: skip
    columns = [*found.columns, "best", "difference", "p", "near"]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def exercised(run: Run) -> pd.DataFrame:
    """What of each variant a model made use of: `variant, part, name, calls, ok, errors, leaked, fired, live`.

    A row for every tool and every hook, over all models and modes. `fired` counts how often a hook did
    something: gave text, wrote, asked the model or counted. `live` says so where nothing of it ever ran.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for variant, cells in run.cells.groupby("variant", sort=True):
        calls = run.calls[run.calls["cell"].isin(cells["cell"])]
        made = Counter(zip(calls["name"].map(_plain), calls["status"], strict=True))
        for name in dict.fromkeys(name for tools in cells["tools"] for name in tools):
            ok, leaked = made[_plain(name), "ok"], made[_plain(name), "leaked"]
            total = sum(count for (called, _), count in made.items() if called == _plain(name)) - leaked
            rows.append(
                {"variant": variant, "part": TOOL, "name": name, "calls": total, "ok": ok,
                 "errors": total - ok, "leaked": leaked, "fired": 0, "live": "yes" if total else NOT_LIVE}
            )  # fmt: skip
        fired = fired_hooks(run.trials[run.trials["cell"].isin(cells["cell"])])
        for name in dict.fromkeys(name for hooks in cells["hooks"] for name in hooks or ()):
            rows.append(
                {"variant": variant, "part": HOOK, "name": name, "calls": 0, "ok": 0, "errors": 0,
                 "leaked": 0, "fired": fired[name], "live": "yes" if fired[name] else NOT_LIVE}
            )  # fmt: skip
    columns = ["variant", "part", "name", "calls", "ok", "errors", "leaked", "fired", "live"]
    return pd.DataFrame(rows, columns=columns)


def fired_hooks(trials: pd.DataFrame) -> Counter[str]:
    """How often each hook did something, over some trials."""
    return sum((Counter(fired or {}) for fired in trials["hooks"]), Counter())


def _plain(name: str) -> str:
    """A tool's name as a call's name is matched with it: `functions.Save-Memory` is `save_memory`."""
    return re.sub(r"[^a-z0-9]", "", name.rpartition(".")[2].lower())
