"""Designs side by side: what each got done, what it cost, and what of it was exercised at all."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

from memeval.analysis.compare import holm, paired
from memeval.analysis.intervals import FEW, rates
from memeval.analysis.tables import as_written, asked_to_remember, cell_keys, group_keys, saved, wrote
from memeval.analysis.unreached import PLACE, with_unreached
from memeval.evaluation.arguments import plain_name
from memeval.messages import READS

if TYPE_CHECKING:
    import pandas as pd

    from memeval.evaluation.results import Run

STEPS = ("passed", "called", "saved", "recalled", "unwanted")
"""What is counted of a design: trials that passed; please-remember turns in which a tool that saves was
called, and the right thing stored; recall turns that were answered rightly, controls left out, whose answer
stands in the conversation; decoy turns in which something was saved. What comes out in the end (`passed`,
`recalled`) is of every valid trial: a question that a broken trial never reached was not answered. The steps
on the way there (`called`, `saved`, `unwanted`) are of turns that were reached.
"""
RAN = ("ok", "tool_error", "timeout")
"""Statuses of calls that reached the tool."""

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
    if step == "passed":
        return run.trials
    turns = run.turns
    if step == "recalled":
        turns = with_unreached(run)
        frame = turns[turns["intent"].isin(READS) & ~turns["decoy"].astype(bool)]
        frame = frame[~_controls(frame)]
        return frame.assign(recalled=_recalled(frame))
    if step == "unwanted":
        frame = turns[turns["decoy"].astype(bool)]
        return frame.assign(unwanted=wrote(frame))
    frame = asked_to_remember(turns)
    return frame.assign(saved=saved(frame))


def _recalled(turns: pd.DataFrame) -> pd.Series[bool]:
    """Whether what was asked for was answered; a turn that broke before its answer, or was never reached,
    was not."""
    broken = (turns[["called", "arguments", "retrieved"]] == False).any(axis=1)  # noqa: E712  null stays null
    found = turns["answered"].mask(turns["answered"].isna() & broken, False)
    elsewhere = found.notna().groupby([turns[name] for name in PLACE]).transform("any")
    return found.mask(~turns["reached"] & (elsewhere | turns["asks"]), False)


def _controls(turns: pd.DataFrame) -> pd.Series[bool]:
    """Turns whose answer stands in the conversation: no design that has a tool for them was to use it."""
    import pandas as pd

    serves = pd.Series([bool(READS & set(named)) for named in turns["serves"]], index=turns.index, dtype=bool)
    used = turns["called"].notna() | turns["retrieved"].notna()
    place = [turns[name] for name in PLACE]
    could, did = (column.groupby(place).transform("any") for column in (serves & turns["reached"], used))
    return could.astype(bool) & ~did.astype(bool)


def steps(run: Run, *, level: float = 0.95) -> pd.DataFrame:
    """Every rate of every design, as `rates` gives them, one below the other; `step` says which."""
    import pandas as pd

    # a frame of turns has the same marks as one of trials, so that all steps have the same keys
    keys = cell_keys(run.trials)
    parts = [rates(judged(run, step), keys, value=step, level=level).assign(step=step) for step in STEPS]
    return pd.concat(parts, ignore_index=True)


def side_by_side(run: Run, *, level: float = 0.95) -> pd.DataFrame:
    """One row a model, calling mode and variant: its trials, rates and costs.

    `stories` are those it was run on, `common stories` those that all designs rated beside it were run on.
    Each of `STEPS` has its rate (null below five families), `... yes` and `... of`; `passed` also the ends of
    its interval. Tokens and seconds are means over the turns of valid trials. `hook tokens`, `hook requests`
    and `hook seconds` are what the design itself asked of the model; `tool tax` is what its tools cost in
    every prompt, `peak prompt` the longest prompt, in tokens as the server counted them.
    """
    keys = cell_keys(run.trials)
    table, found = sizes(run.trials), steps(run, level=level)
    for step in STEPS:
        part = found[found["step"] == step]
        few = part["few"].astype(bool)
        columns = {step: part["rate"].mask(few)}
        if step == "passed":
            columns |= {"passed lo": part["lo"].mask(few), "passed hi": part["hi"].mask(few)}
        counts = {f"{step} yes": part["successes"], f"{step} of": part["trials"]}
        table = table.merge(part[keys].assign(**columns, **counts), on=keys, how="left")
        table[list(counts)] = table[list(counts)].fillna(0).astype(int)
    return table.merge(costs(run), on=keys, how="left")


def sizes(trials: pd.DataFrame) -> pd.DataFrame:
    """How much of each design counts: a row a model, calling mode and variant.

    `common stories` are those that every design with five families or more on the same model and calling mode
    was run on.
    """
    import pandas as pd

    keys, groups = cell_keys(trials), group_keys(trials)
    rows: list[dict[Any, Any]] = []
    for _, beside in trials.groupby(groups, sort=True, dropna=False, observed=True):
        cells = list(beside.groupby(keys, sort=True, dropna=False, observed=True))
        valid = [cell[cell["outcome"] != "invalid"] for _, cell in cells]
        rated = [set(cell["scenario"]) for cell in valid if cell["family"].nunique() >= FEW]
        rows += [
            dict(zip(keys, key, strict=True))
            | {
                "orders": ", ".join(sorted(set(counts["order"]))),
                "trials": len(counts),
                "stories": counts["scenario"].nunique(),
                "common stories": len(set.intersection(*rated)) if rated else 0,
                "families": counts["family"].nunique(),
                "model failures": int((counts["outcome"] == "model_failure").sum()),
                "invalid": len(cell) - len(counts),
            }
            for (key, cell), counts in zip(cells, valid, strict=True)
        ]
    numbers = ["trials", "stories", "common stories", "families", "model failures", "invalid"]
    return pd.DataFrame(rows, columns=[*keys, "orders", *numbers])


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
                "peak prompt": int(group["peak_prompt"].max()) or None,  # not noted by every version
            }
        )
    columns = [*keys, *_COSTS.values(), "hook requests", "tool tax", "peak prompt"]
    return pd.DataFrame(rows, columns=columns).astype({"tool tax": "Int64", "peak prompt": "Int64"})


def standing(frame: pd.DataFrame, value: str, *, level: float = 0.95) -> pd.DataFrame:
    """Every design against the best of its model, calling mode and, where the run has two, embedder.

    Best is the highest rate among designs with five families or more; surfaces are left out. `p` is of the
    difference paired by family, adjusted by Holm for the designs compared; a design is `near` where chance
    could have made it. Among eight equal designs this group held the true best in 99 to 100 % of simulated
    runs, while the highest rate alone was two points too high. `common` is the number of families that both
    were run on. Below five a design was not compared: `difference`, `p` and `near` are null.
    """
    import pandas as pd

    written = as_written(frame)
    keys = group_keys(written)
    found = rates(written, [*keys, "variant"], value=value, level=level)
    parts = []
    for key, group in found[~found["few"].astype(bool)].groupby(keys, sort=True, dropna=False, observed=True):
        group = group.sort_values("rate", ascending=False, kind="stable")
        best = str(group["variant"].iloc[0])
        mine = written[(written[keys] == list(key)).all(axis=1)]
        gaps = [paired(mine, name, best, value, level=level) for name in group["variant"].iloc[1:]]
        adjusted = iter(holm([gap.p for gap in gaps if gap.units >= FEW]))
        p = [next(adjusted) if gap.units >= FEW else math.nan for gap in gaps]
        near = [None if math.isnan(chance) else not chance < 1 - level for chance in p]
        parts.append(
            group.assign(
                best=best, common=[group["units"].iloc[0], *(gap.units for gap in gaps)],
                difference=[0.0, *(gap.diff if gap.units >= FEW else math.nan for gap in gaps)],
                p=[math.nan, *p], near=pd.array([True, *near], dtype="boolean"),
            )
        )  # fmt: skip
    columns = [*found.columns, "best", "common", "difference", "p", "near"]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def exercised(run: Run) -> pd.DataFrame:
    """What of each variant was made use of: `variant, part, name, calls, ok, errors, leaked, fired, live`.

    A row for every tool and every hook, over all models and modes. `errors` are calls that were refused or
    failed. `fired` counts how often a hook did something: gave text, wrote, asked the model or counted.
    `live` says so where nothing of a part ever ran.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for variant, cells in run.cells.groupby("variant", sort=True):
        calls = run.calls[run.calls["cell"].isin(cells["cell"])]
        made = Counter(zip(calls["name"].map(plain_name), calls["status"], strict=True))
        for name in dict.fromkeys(name for tools in cells["tools"] for name in tools):
            own = Counter({status: n for (called, status), n in made.items() if called == plain_name(name)})
            total, ran = own.total() - own["leaked"], sum(own[status] for status in RAN)
            rows.append(
                {"variant": variant, "part": TOOL, "name": name, "calls": total, "ok": own["ok"],
                 "errors": total - own["ok"], "leaked": own["leaked"], "live": "yes" if ran else NOT_LIVE}
            )  # fmt: skip
        fired = fired_hooks(run.trials[run.trials["cell"].isin(cells["cell"])])
        for name in dict.fromkeys(name for hooks in cells["hooks"] for name in hooks or ()):
            rows.append(
                {"variant": variant, "part": HOOK, "name": name, "fired": fired[name],
                 "live": "yes" if fired[name] else NOT_LIVE}
            )  # fmt: skip
    numbers = ("calls", "ok", "errors", "leaked", "fired")
    table = pd.DataFrame(rows, columns=["variant", "part", "name", *numbers, "live"])
    return table.astype(dict.fromkeys(numbers, "Int64"))


def fired_hooks(trials: pd.DataFrame) -> Counter[str]:
    """How often each hook did something, over some trials."""
    return sum((Counter(fired or {}) for fired in trials["hooks"]), Counter())
