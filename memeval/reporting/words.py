"""Numbers as sentences: the answers that reports open with, and the alternative texts of their figures."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from memeval.analysis.designs import standing
from memeval.analysis.intervals import FEW
from memeval.analysis.tables import (
    asked_to_remember,
    cell_keys,
    differences,
    group_keys,
    saved,
    saving,
)
from memeval.reporting.style import MANY, ORDERS, SMOKE, short_variants, span

if TYPE_CHECKING:
    import pandas as pd


SAID = 48
"""So many rates are read out one by one as the text of a figure."""
PAIRS = 3
"""So many designs are compared each with each; more are compared with the best."""


def share(value: float) -> str:
    """`62%`."""
    return f"{100 * value:.0f}%"


def signed(value: float) -> str:
    """`+24`: percentage points with their sign, and zero without one."""
    points = round(100 * value)
    return f"{points:+d}" if points else "0"


def rate_words(row: Mapping[Hashable, Any]) -> str:
    """A rate in words with its interval and counts; only the counts when they are too few to say."""
    counts = f"{row['successes']:.0f} of {row['trials']:.0f}"
    if not row["trials"]:
        return "nothing to judge"
    if row["few"]:
        return f"{counts}, too few to say"
    return f"{share(row['rate'])} ({100 * row['lo']:.0f} to {share(row['hi'])}; {counts})"


def describe(numbers: pd.DataFrame, what: str) -> str:
    """A figure of rates as text: `what`, then every row's rate, interval and counts.

    Where there are more than `SAID` of them: the highest and the lowest; the figure's table has all.
    """
    keys = [key for key in cell_keys(numbers) if key not in ("smoke", "fidelity")] if len(numbers) else []
    keys += [key for key in ("step", "order", "stage") if key in numbers]
    judged = numbers[numbers["trials"] > 0]
    if many := len(judged) > SAID:
        judged = judged[~judged["few"].astype(bool)].sort_values("rate", ascending=False, kind="stable")
    parts = [
        ", ".join(ORDERS.get(str(row[key]), str(row[key])) for key in keys) + ": " + rate_words(row)
        for row in judged.to_dict("records")
    ]
    if many and parts:
        return f"{what}. {len(parts)} rates; highest: {parts[0]}; lowest: {parts[-1]}."
    return f"{what}. {'; '.join(parts)}." if parts else f"{what}. No turn of this run could be judged."


def describe_intents(counts: pd.DataFrame) -> str:
    """The intent matrix as text: for each panel and row the commonest thing called.

    With many designs, as in the figure, only for turns that ask to remember.
    """
    parts = []
    if counts["variant"].nunique() > MANY:
        counts = counts[counts["asked"] == "remember"]
    for key, group in counts.groupby(["model", "calling", "variant", "asked"], sort=False):
        top = group.sort_values("turns", kind="stable").iloc[-1]
        parts.append(f"{', '.join(map(str, key))}: {top['called']} {top['turns']} of {group['turns'].sum()}")
    return f"What was asked for, and what was called most often for it. {'; '.join(parts)}."


def describe_families(counts: pd.DataFrame) -> str:
    """The tile grid as text: each cell's total."""
    cells = counts.groupby(["model", "calling", "variant"], sort=False)[["successes", "trials"]].sum()
    parts = [f"{', '.join(key)}: {row.successes} of {row.trials}" for key, row in cells.iterrows()]  # type: ignore[arg-type]
    return f"Trials passed, by family and cell. {'; '.join(parts)}."


def describe_quality(table: pd.DataFrame) -> str:
    """The retrieval figures as text."""
    known = table[table["mean"].notna()]
    parts = [
        f"{row['embedder']}, {row['prefix']}: {row['mean']:.2f} ({row['lo']:.2f} to {row['hi']:.2f})"
        for row in known.to_dict("records")
    ]
    metric = table["metric"].iloc[0] if len(table) else "quality"
    return f"{metric} by embedder and prefix mode. {'; '.join(parts)}."


def describe_scores(scores: pd.DataFrame) -> str:
    """The histogram as text: medians of both kinds of query."""
    parts = []
    for embedder, group in scores.groupby("embedder", sort=False):
        has = group["answerable"].astype(bool)
        with_answer, without = group.loc[has, "top_score"].median(), group.loc[~has, "top_score"].median()
        parts.append(f"{embedder}: median {with_answer:.2f} with an answer, {without:.2f} without")
    return f"Cosine of the best hit. {'; '.join(parts)}."


STEPS = {"called": "called a saving tool", "saved": "stored the right thing"}


KINDS = {
    "near": "Not told apart from it",
    "behind": "Less often, beyond chance",
    "not compared": "Not compared with it, under five families in common",
}
"""How a design stands to the best one."""


def headline_sentence(turns: pd.DataFrame, *, level: float = 0.95) -> str:
    """Whether the designs differ in obeying "please remember": for each model and calling mode a line on
    calling a tool that saves, and one on storing the right thing.

    Over both tool orders, paired by family. A difference that chance could have made is said to be not
    shown, never to be none.
    """
    lines: dict[tuple[str, ...], str] = {}
    smoke: list[bool] = []
    shared = ""
    frame = asked_to_remember(turns)
    frame, keys = frame.assign(saved=saved(frame)), group_keys(frame)
    for step, did in STEPS.items():
        rates = saving(turns, value=step, by_order=False, level=level)
        judged = rates[(rates["units"] > 0) & ~rates["few"].astype(bool)]
        names, shared = short_variants(sorted(judged["variant"].unique()))
        smoke += list(judged["smoke"].astype(bool)) if "smoke" in judged else []
        if len(names) > PAIRS:
            told = standing_lines(standing(frame, step, level=level), names, did)
            lines |= {(*key, step): said for key, said in told.items()}
            continue
        gaps = differences(turns, value=step, level=level)
        for key, group in judged.groupby(keys, sort=True, dropna=False, observed=True):
            mine = gaps[(gaps[keys] == list(key)).all(axis=1)]
            compared = " ".join(difference_words(row, names, did) for row in mine.to_dict("records"))
            each = _join(f"{names[row['variant']]} {rate_words(row)}" for row in group.to_dict("records"))
            said = f"{', '.join(map(str, key))}, {did}: {each}. {compared}"
            lines[(*map(str, key), step)] = said.strip()
    if not lines:
        return "Too few families to say whether the designs differ: see the counts below."
    told_lines = [lines[key] for key in sorted(lines)]
    if shared:
        told_lines.append(f"All with {shared}.")
    if any(smoke):
        which = "This" if all(smoke) else "What is marked so"
        told_lines.append(f"{which} is a {SMOKE}.")
    return "\n".join(told_lines)


def standing_lines(table: pd.DataFrame, names: Mapping[str, str], did: str) -> dict[tuple[str, ...], str]:
    """By model and calling mode, which design `did` so most often and which cannot be told from it.

    `table` is of `designs.standing`.
    """
    lines = {}
    for key, group in table.groupby(group_keys(table), sort=True, dropna=False, observed=True):
        first, *others = group.to_dict("records")
        if not first["rate"]:
            said = f"no design ever did, in {span(group['trials'])} times each"
        else:
            said = f"most often {names[first['variant']]}, {rate_words(first)}"
            told: dict[str, list[str]] = {}
            for row in others:
                kind = "not compared" if row["common"] < FEW else "near" if row["near"] else "behind"
                told.setdefault(kind, []).append(f"{names[row['variant']]} {share(row['rate'])}")
            said += "".join(
                f". {words}: {_join(told[kind])}" for kind, words in KINDS.items() if kind in told
            )
        lines[tuple(map(str, key))] = f"{', '.join(map(str, key))}, {did}: {said}."
    return lines


def difference_words(row: Mapping[Hashable, Any], names: Mapping[str, str], did: str) -> str:
    """A paired difference in words; `did` says in what."""
    points, a, b = 100 * row["difference"], names[row["a"]], names[row["b"]]
    inside = "every family alike"
    if row["lo"] == row["lo"]:
        inside = f"{row['level']:.0%} interval {signed(row['lo'])} to {signed(row['hi'])}"
    chance = "p < .001" if row["p"] < 0.001 else f"p = {row['p']:.3f}".replace("0.", ".")
    sure = f"{inside}; {chance}, adjusted for all comparisons"
    counted = f"it did better in {row['a better']} of {row['families']} families, worse in {row['b better']}"
    if row["p"] < 1 - row["level"]:
        verdict = f"{a} {did} {abs(points):.0f} points {'more' if points > 0 else 'less'} often than {b}"
        return f"{verdict} ({sure}); {counted}."
    gap = f"{signed(row['difference'])} points for {a}"
    return f"No difference is shown between {a} and {b} ({gap}; {sure})."


def quality_sentence(table: pd.DataFrame) -> str:
    """Which embedder and prefix mode came out best, and what cannot be told from it."""
    known = table[table["mean"].notna()].sort_values("mean", ascending=False)
    if not len(known):
        return "No cell of this sweep could be scored."
    best = known.iloc[0]
    near = known.iloc[1:][known.iloc[1:]["hi"] >= best["lo"]]
    first = (
        f"Best: {best['embedder']} with prefix mode {best['prefix']}, {best['metric']} {best['mean']:.2f} "
        f"({best['lo']:.2f} to {best['hi']:.2f}, {best['n']:.0f} queries)."
    )
    if not len(near):
        return first
    others = _join(f"{row['embedder']} {row['prefix']}" for row in near.to_dict("records"))
    return f"{first} Intervals that overlap with its own: {others}."


def _join(words: Iterable[str]) -> str:
    items = list(words)
    return items[0] if len(items) == 1 else f"{'; '.join(items[:-1])}; {items[-1]}"
