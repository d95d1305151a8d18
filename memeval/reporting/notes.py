"""What must be known of a run before its numbers are set beside each other, as sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memeval.analysis.designs import sizes
from memeval.analysis.intervals import FEW
from memeval.analysis.tables import as_written, cell_keys, group_keys
from memeval.analysis.unreached import unknown
from memeval.reporting.style import span

if TYPE_CHECKING:
    import pandas as pd

    from memeval.evaluation.results import Run


def run_notes(run: Run) -> str:
    """All that applies to a run, a line each; empty where nothing does."""
    trials = as_written(run.trials)
    notes = [
        stories_note(trials),
        orders_note(trials),
        scorers_note(run.trials),
        lost_note(unknown(run)),
    ]
    return "\n".join(filter(None, notes))


def stories_note(trials: pd.DataFrame) -> str:
    """Which designs beside each other were run on different stories; empty where all were run on the same.

    Of designs with five families or more: fewer are counted, not rated.
    """
    table = sizes(trials)
    rated = table[table["families"] >= FEW]
    unlike = [
        f"{_label(key)}: {span(group['stories'])} stories a design, {span(group['common stories'])} in common"
        for key, group in rated.groupby(group_keys(table), sort=True, dropna=False, observed=True)
        if (group["stories"] != group["common stories"]).any()
    ]
    if not unlike:
        return ""
    return (
        "Not every design was run on the same stories, so that rates beside each other are of different ones "
        f"({'. '.join(unlike)}). Where two designs are compared, it is on the stories that both were run on."
    )


def orders_note(trials: pd.DataFrame) -> str:
    """Where a design with several tools was not run in both tool orders equally often; empty where all were.

    Orders that a sweep asks for by another name (as written, shuffled) are nobody's imbalance.
    """
    both, keys = ["read_first", "write_first"], cell_keys(trials)
    many = trials["tools"].map(len) > 1
    frame = trials[many & trials["order"].isin(both) & (trials["outcome"] != "invalid")]
    sizes = frame.groupby([*keys, "scenario", "order"], dropna=False, observed=True).size()
    counts = sizes.unstack("order", fill_value=0).reindex(columns=both, fill_value=0)
    lines = []
    for key, group in counts.groupby(level=group_keys(trials), sort=True, dropna=False):
        if (group["read_first"] == group["write_first"]).all():
            continue
        design = group.groupby(level=keys, dropna=False).sum()
        single = (group == 0).any(axis=1).groupby(level="scenario").all()
        lines.append(
            f"{_label(key)}: {span(design['read_first'])} trials a design with tools that read listed first, "
            f"{span(design['write_first'])} with tools that write; {single.sum()} of {len(single)} stories "
            "in one order only"
        )
    if not lines:
        return ""
    return (
        f"The two tool orders do not come equally often, and an order can move a rate ({'. '.join(lines)})."
    )


def scorers_note(trials: pd.DataFrame) -> str:
    """By how many versions of the rules the trials were judged; empty where it is one."""
    counts = trials.loc[trials["outcome"] != "invalid", "scorer"].value_counts().sort_index()
    if len(counts) < 2:
        return ""
    each = ", ".join(f"{number} trials by scorer {name or 'unknown'}" for name, number in counts.items())
    return (
        f"Not all trials were judged by the same rules: {each}. `memeval rescore RUN` judges all of them by "
        "today's, where the transcripts were kept."
    )


def lost_note(trials: int) -> str:
    """That of so many broken trials it is not known what they never reached; empty where there is none."""
    if not trials:
        return ""
    return (
        f"{trials} broken trials are of stories that no trial ended and that are not here as they were run: "
        "questions that they never reached are not counted."
    )


def _label(key: tuple[object, ...]) -> str:
    return ", ".join(str(part) for part in key if part)
