"""Asked to remember, does it? The numbers of `analysis.ladder` and `analysis.remembered` as sentences."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memeval.analysis.ladder import ALL, DROP, GAP, RUNGS, UNASKED, WROTE
from memeval.analysis.remembered import GUESSABLE, LUCKY, NOT_REACHED
from memeval.analysis.tables import group_keys
from memeval.reporting.figures_ladder import KEPT, MEASURES, NAMES, STEPS
from memeval.reporting.style import MANY, short_variants, span
from memeval.reporting.words import PAIRS, SAID, describe, rate_words, share, signed

if TYPE_CHECKING:
    import pandas as pd

Row = Mapping[Hashable, Any]

NO_LADDER = (
    "No turn of this run is on the ask-strength ladder; the stories of `tag:ladder` are: the same facts, "
    "each told on six rungs."
)


def describe_rungs(numbers: pd.DataFrame, what: str) -> str:
    """A figure of rungs as text."""
    return describe(numbers.assign(stage=numbers["strength"].map(NAMES)), what)


def describe_kept(numbers: pd.DataFrame) -> str:
    """The figure of what was remembered as text."""
    return describe(numbers.assign(step=numbers["step"].map(KEPT)), "Share of questions, by design")


def describe_gaps(numbers: pd.DataFrame) -> str:
    """The figure of differences as text."""
    known = numbers[~numbers["few"].astype(bool)].sort_values("diff", ascending=False, kind="stable")
    parts = [
        f"{row['model']}, {row['calling']}, {row['variant']}, {STEPS[row['step']]}, "
        f"{MEASURES[row['measure']]}: {_points(row)}"
        for row in known.to_dict("records")
    ]
    if len(parts) > SAID:
        parts = [f"most: {parts[0]}", f"least: {parts[-1]}"]
    return f"Differences in percentage points. {'; '.join(parts) or 'Too few families for any'}."


def size_sentence(trials: pd.DataFrame, dose: pd.DataFrame) -> str:
    """How much was run, and how much of it is on the ladder; `dose` is of `ladder.dose`."""
    valid = trials[trials["outcome"] != "invalid"]
    rungs = dose[dose["strength"].isin(RUNGS)]
    said = (
        f"{len(valid)} trials of {valid['scenario'].nunique()} stories, {valid['design'].nunique()} designs"
    )
    if len(rungs):
        idle = dose[dose["strength"] == UNASKED]
        said += (
            f". {_families(rungs)} asked on {rungs['strength'].nunique()} rungs; {_families(idle)} in which "
            "nobody asks for anything to be kept"
        )
    return f"{said}."


def ladder_sentence(dose: pd.DataFrame, gaps: pd.DataFrame) -> str:
    """For each model and mode what came of asking outright, and of asking less plainly."""
    if not dose["strength"].isin(RUNGS).any():
        return NO_LADDER
    lines = []
    names, shared = short_variants(sorted(dose["variant"].unique()))
    stored = gaps["step"] == gaps["measure"].map({GAP: WROTE, DROP: "saved"})
    for label, group in _groups(gaps[stored & (gaps["families"] > 0)]):
        known = group[~group["few"].astype(bool)].sort_values("diff", ascending=False, kind="stable")
        gap, drop = (known[known["measure"] == measure].to_dict("records") for measure in (GAP, DROP))
        first = gap or drop  # without look-alikes in the run there is no gap
        if not first:
            lines.append(f"{label}: too few families for a rate, see the counts.")
        elif len(first) > PAIRS:
            lines.append(f"{label}: {_ranked(first, names)}")
        else:
            for name in (row["variant"] for row in first):
                said = [_outcome(row) for row in (*gap, *drop) if row["variant"] == name]
                lines.append(f"{label}, {names[name]}: {' '.join(said)}")
    lines += [f"All with {shared}."] if shared else []
    return "\n".join(lines)


def gaps_note(gaps: pd.DataFrame) -> str:
    """Why no difference is drawn; empty where one is."""
    if not len(gaps):
        return NO_LADDER
    return "Fewer than five families on one side: only counts can be given." if gaps["few"].all() else ""


def _outcome(row: Row) -> str:
    """A difference of one design in words: what is saved at either end."""
    if row["measure"] == GAP:
        asked = f"Asked outright, it saved something in {share(row['rate'])} of turns"
        right, idle = (
            f"the right thing in {share(row['right'])}",
            f"where nobody asks in {share(row['base'])}",
        )
        return f"{asked} ({right}), {idle}: {_points(row)}."
    ends = [f"{share(row[end])} where {NAMES[row[rung]]}" for end, rung in (("rate", "from"), ("base", "to"))]
    return f"Stored in {' and in '.join(ends)}: {_points(row)}."


def _ranked(rows: Sequence[Row], names: Mapping[str, str]) -> str:
    """Of many designs the three to which asking makes most difference, and those not shown to mind."""
    best = "; ".join(f"{names[row['variant']]} {_points(row)}" for row in rows[:PAIRS])
    what = "something saved when asked outright, minus where nobody asks"
    if rows[0]["measure"] == DROP:
        what = f"stored where {NAMES[rows[0]['from']]}, minus where {NAMES[rows[0]['to']]}"
    blind = [names[row["variant"]] for row in rows if row["lo"] <= 0 or not row["diff"]]
    said = f"{what}: most {best}."
    return said + (f" Not shown to save more when asked: {', '.join(blind)}." if blind else "")


def phantoms_sentence(numbers: pd.DataFrame) -> str:
    """For each model and calling mode, how often a save was claimed that no call had made."""
    known = numbers[(numbers["strength"] == ALL) & (numbers["units"] > 0)]
    if not len(known):
        return "Nothing in this run asks to remember."
    names, _ = short_variants(sorted(known["variant"].unique()))
    lines = []
    for label, group in _groups(known):
        rows = group.sort_values("rate", ascending=False, kind="stable").to_dict("records")
        never = [row for row in rows if not row["successes"]]
        rows = [row for row in rows if row["successes"]][: None if len(rows) <= PAIRS else PAIRS]
        said = [f"{names[row['variant']]} {rate_words(row)}" for row in rows]
        if never:
            which = ", ".join(names[row["variant"]] for row in never) if len(never) <= MANY else "the others"
            high = max(row["hi"] for row in never)
            most = "" if any(row["few"] for row in never) else f", at most {share(high)}"
            said.append(f"never seen of {which} (0 of {span(row['trials'] for row in never)}{most})")
        lines.append(f"{label}, claimed a save that no call had made: {'; '.join(said)}.")
    return "\n".join(lines)


def remembered_sentence(numbers: pd.DataFrame, counted: pd.DataFrame) -> str:
    """What was remembered, by model and mode, of `ladder.kept`; and of `left_out` what does not count."""
    if not len(counted):
        return "No question of this run is about what an earlier session told."
    found = numbers[(numbers["step"] == "remembered") & (numbers["units"] > 0)]
    names, _ = short_variants(sorted(numbers["variant"].unique()))
    lines = []
    for label, group in _groups(found):
        rows = group.sort_values("rate", ascending=False, kind="stable").to_dict("records")
        said = "; ".join(f"{names[row['variant']]} {rate_words(row)}" for row in rows[:PAIRS])
        lines.append(f"{label}, {'remembered' if len(rows) <= PAIRS else 'remembered most'}: {said}.")
    total = counted[["questions", NOT_REACHED, GUESSABLE, LUCKY, "without control", "without story"]].sum()
    reasons = {GUESSABLE: "a fact that a model may know", LUCKY: "what `none` answered right as well"}
    out = [f"{total[name]} ask for {why}" for name, why in reasons.items() if total[name]]
    lines += [f"Left out of {total['questions']} questions: {'; '.join(out)}."] if out else []
    if total[NOT_REACHED]:
        missed = f"{total[NOT_REACHED]} of the {counted['counted'].sum()} questions that count"
        lines.append(f"{missed} were never reached, because the model had failed before: not remembered.")
    if total["without control"]:
        lines.append(
            f"The design `none` was not run on {total['without control']} of {total['questions']} questions: "
            "whether they can be answered without memory is not known; add `none` to the sweep."
        )
    if total["without story"]:
        lines.append(
            f"The stories of {total['without story']} questions are not here as they were run: what is "
            "guessable in them is not known."
        )
    return "\n".join(lines)


def _groups(numbers: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """The numbers of each model and calling mode, with their name."""
    for key_, group in numbers.groupby(group_keys(numbers), sort=True, dropna=False, observed=True):
        yield ", ".join(str(part) for part in key_ if part), group


def _families(numbers: pd.DataFrame) -> str:
    number = span(numbers.loc[numbers["units"] > 0, "units"])
    return f"{number} {'family' if number == '1' else 'families'}"


def _points(row: Row) -> str:
    """`+24 points (+6 to +43)`: a difference with its interval."""
    ends = f"{signed(row['lo'])} to {signed(row['hi'])}" if row["lo"] == row["lo"] else "every family alike"
    return f"{signed(row['diff'])} points ({ends})"
