"""The numbers behind each figure of the tool report: one function a question, tidy frames in and out.

All rates are of turns or trials whose verdict is not null, per model, calling mode and design variant, and
never over two calling modes at once.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from memeval.analysis.compare import holm, paired
from memeval.analysis.intervals import FEW, rates
from memeval.evaluation.rows import STAGES
from memeval.messages import INTENTS, WRITES

if TYPE_CHECKING:
    import pandas as pd

ROW = ("model", "calling")
MARKS = ("smoke", "fidelity")
SURFACE = ("shape", "names", "words")
LEAKED = "leaked"


def cell_keys(frame: pd.DataFrame) -> list[str]:
    """What tells the rows and colours of a figure apart: model, calling mode, variant and their marks.

    An embedder, its prefix mode or a store is named too as soon as the run has two of it, so that a rate
    never mixes them.
    """
    more = [
        name
        for name in ("embedder", "prefix", "store", "options")
        if name in frame and frame.loc[~frame[name].isin(["", "{}"]), name].nunique() > 1
    ]
    return [*ROW, *more, "variant", *(mark for mark in MARKS if mark in frame)]


def group_keys(frame: pd.DataFrame) -> list[str]:
    """What designs are compared within: the columns of `cell_keys` without the design and its marks."""
    return [name for name in cell_keys(frame) if name not in ("variant", *MARKS)]


def as_written(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of designs as their authors wrote them; all rows where a run has nothing but other surfaces.

    A surface is often run in one tool order only: beside designs run in both it would be compared with its
    order. What surfaces do is in `analysis.factors`.
    """
    written = frame[(frame[[name for name in SURFACE if name in frame]] == "as_written").all(axis=1)]
    return written if len(written) else frame


def overview(trials: pd.DataFrame) -> pd.DataFrame:
    """What was run: per cell its families, trials, outcomes, passes, and whether the tools were readable."""
    import pandas as pd

    rows = []
    for key, group in trials.groupby(cell_keys(trials), sort=True, dropna=False, observed=True):
        valid = group[group["outcome"] != "invalid"]
        rows.append(
            dict(zip(cell_keys(trials), key, strict=True))
            | {
                "families": valid["family"].nunique(),
                "trials": len(valid),
                "passed": int(valid["passed"].fillna(False).sum()),
                "model failures": int((valid["outcome"] == "model_failure").sum()),
                "invalid": len(group) - len(valid),
            }
        )
    return pd.DataFrame(rows)


def given(cells: pd.DataFrame) -> pd.DataFrame:
    """What each cell's model was given, cells that were not run included.

    The order and number of its tools, the tokens of their descriptions (words and signs), what the tools
    cost in prompt tokens as the server counts them (`tool tax`), and whether the model could read them.
    """
    shown = cells[["model", "calling", "variant", "write_path", "embedder"]].copy()
    shown["tool order"] = cells["tool_order"]
    shown["tools"] = cells["tools"].map(len)
    shown["description tokens"] = cells["description_tokens"]
    shown["tool tax"] = cells["tool_tax"]
    shown["fidelity"] = cells["fidelity"]
    shown["notes"] = cells["fidelity_notes"].map("; ".join)
    return shown.sort_values(["model", "calling", "variant", "tool order"]).reset_index(drop=True)


def asked_to_remember(turns: pd.DataFrame) -> pd.DataFrame:
    """The turns in which the user asks for something to be remembered, decoys left out."""
    return turns[(turns["intent"] == "remember") & ~turns["decoy"].astype(bool)]


def saved(turns: pd.DataFrame) -> pd.Series[bool]:
    """Whether what was to be stored was stored by the model itself; null where no tool could have done it.

    A turn that broke before it came to storing was not saved: its `stored` is null only because a stage it
    depends on is broken.
    """
    broken = (turns["called"] == False) | (turns["arguments"] == False)  # noqa: E712  null stays null
    return turns["stored"].mask(turns["stored"].isna() & broken.fillna(False), False)


def saving(
    turns: pd.DataFrame, *, value: str = "saved", by_order: bool = True, level: float = 0.95
) -> pd.DataFrame:
    """How often a "please remember" ended in the right thing stored, by design and tool order.

    With `value="called"`: how often a tool that saves was called at all. Where stories were run in one order
    only, the orders are rates of unlike stories; of `moved` they are not.
    """
    frame = asked_to_remember(turns)
    keys = cell_keys(frame) + (["order"] if by_order else [])
    return rates(frame.assign(saved=saved(frame)), keys, value=value, level=level)


def moved(turns: pd.DataFrame, *, value: str = "saved", level: float = 0.95) -> pd.DataFrame:
    """The rates of `saving` by tool order, over the stories that a design was run on in both orders."""
    frame = turns[turns["order"].isin(["read_first", "write_first"]) & (turns["outcome"] != "invalid")]
    keys = [*cell_keys(turns), "scenario"]
    orders = frame.groupby(keys, dropna=False, observed=True)["order"].transform("nunique")
    return saving(frame[orders == 2], value=value, level=level)


def obeying(turns: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """Both steps of obeying a "please remember", one below the other: `step` is `called` or `saved`."""
    import pandas as pd

    steps = ("called", "saved")
    return pd.concat([saving(turns, value=step, level=level).assign(step=step) for step in steps])


def differences(turns: pd.DataFrame, *, value: str = "saved", level: float = 0.95) -> pd.DataFrame:
    """Every two variants of a model and calling mode (and embedder, where the run has two) compared on the
    saving rate, paired by family.

    With `value="called"`: on how often a tool that saves was called.

    Over both tool orders; `p` is adjusted by Holm for the number of comparisons. Pairs with fewer than five
    families are left out.
    """
    import pandas as pd

    frame = asked_to_remember(turns)
    frame = frame.assign(saved=saved(frame))
    keys, rows = group_keys(frame), []
    for key, group in frame.groupby(keys, sort=True, dropna=False, observed=True):
        judged = group[group[value].notna()]
        for one, other in combinations(sorted(judged["variant"].unique()), 2):
            found = paired(judged, other, one, value, level=level)
            if found.units >= FEW:
                rows.append(
                    dict(zip(keys, key, strict=True))
                    | {"a": other, "b": one, "difference": found.diff, "lo": found.lo, "hi": found.hi,
                       "p": found.p, "families": found.units, "a better": found.better,
                       "b better": found.worse, "equal": found.ties, "level": level}
                )  # fmt: skip
    numbers = ["difference", "lo", "hi", "p", "families", "a better", "b better", "equal", "level"]
    table = pd.DataFrame(rows, columns=[*keys, "a", "b", *numbers])
    return table.assign(p=holm(list(table["p"])))


def stages(turns: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """Where turns break: per stage the rate among turns that reached it, for turns that ask something of
    the memory. A stage whose earlier stage broke is null and does not count. Decoys are left out: of them
    `called` says that nothing was called that must not be."""
    import pandas as pd

    frame = turns[~turns["intent"].isin(["", "none"]) & ~turns["decoy"].astype(bool)]
    keys = cell_keys(frame)
    parts = [rates(frame, keys, value=stage, level=level).assign(stage=stage) for stage in STAGES]
    return pd.concat(parts, ignore_index=True)


def intents(turns: pd.DataFrame) -> pd.DataFrame:
    """Counts of what was called for against what was called: `cell..., asked, called, turns`.

    A call that arrived as text ran nothing: such a turn counts as `leaked` unless another call of it did
    run. Turns that forbid saving are a row of their own, `decoy`.
    """
    frame = turns[(turns["intent"] != "") | turns["decoy"].astype(bool)]
    if "outcome" in frame:
        frame = frame[frame["outcome"] != "invalid"]
    leaked = frame["leaked_call"].fillna(False).astype(bool) & (frame["called_intent"] == "none")
    frame = frame.assign(
        asked=frame["intent"].mask(frame["decoy"].astype(bool), "decoy"),
        called=frame["called_intent"].mask(leaked, LEAKED),
    )
    keys = cell_keys(turns)
    families = frame.groupby(keys, dropna=False, observed=True)["family"].nunique().rename("families")
    counts = frame.groupby([*keys, "asked", "called"], dropna=False, observed=True).size().rename("turns")
    return counts.reset_index().merge(families.reset_index(), on=keys, how="left")


def leaked_intents(turns: pd.DataFrame) -> pd.DataFrame:
    """What the leaked calls meant to do, counted apart from the fact that they leaked."""
    frame = turns[turns["leaked_call"].fillna(False).astype(bool)]
    keys = [*cell_keys(turns), "intent", "leaked_intent"]
    return frame.groupby(keys, dropna=False, observed=True).size().rename("turns").reset_index()


def phantom_saves(turns: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """How often, asked to remember, the reply claims a save although the model wrote nothing."""
    frame = asked_to_remember(turns)
    return rates(frame, cell_keys(frame), value="phantom_save", level=level)


def decoys(turns: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """How often a turn that forbids saving was saved by the model nevertheless."""
    frame = turns[turns["decoy"].astype(bool)]
    return rates(frame.assign(unwanted=wrote(frame)), cell_keys(frame), value="unwanted", level=level)


def wrote(turns: pd.DataFrame) -> pd.Series[bool]:
    """Whether the model saved anything in a turn; null where the design has no tool to save with."""
    return (turns["wrote"] > 0).astype("boolean").where(can_save(turns))


def can_save(turns: pd.DataFrame) -> pd.Series[bool]:
    """Whether the design of a turn has a tool to save with."""
    import pandas as pd

    able = [bool(WRITES & set(serves)) for serves in turns["serves"]]
    return pd.Series(able, index=turns.index, dtype=bool)


def families(trials: pd.DataFrame) -> pd.DataFrame:
    """Passes and valid trials of every family in every cell."""
    frame = trials[(trials["outcome"] != "invalid") & trials["passed"].notna()]
    keys = [*cell_keys(trials), "family"]
    grouped = frame.assign(passed=frame["passed"].astype(int)).groupby(keys, dropna=False, observed=True)
    return grouped["passed"].agg(successes="sum", trials="count").reset_index()


def names_called(calls: pd.DataFrame) -> pd.DataFrame:
    """The tool names that the models wrote, whether they exist or not, and what became of the calls."""
    counts = calls.groupby(["name", "status"], dropna=False, observed=True).size().rename("calls")
    return counts.reset_index().sort_values("calls", ascending=False, ignore_index=True)


def intent_order(names: pd.Series[str]) -> list[str]:
    """Intents in the order of the vocabulary, then `decoy` and `leaked`; only those that occur."""
    present = set(names)
    return [name for name in (*INTENTS, "decoy", LEAKED) if name in present]
