"""The failed trials of a run: where each broke, as its evidence tells, and a fair sample of them."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memeval.errors import InputError
from memeval.evaluation import language
from memeval.evaluation.checks import judge
from memeval.evaluation.evidence import read_back
from memeval.evaluation.plan import Cell, Plan
from memeval.evaluation.replay import Break, Place
from memeval.evaluation.results import TRANSCRIPTS, read_transcripts
from memeval.evaluation.trial import Trial
from memeval.messages import Intent
from memeval.scenarios.schema import Expect, Scenario

if TYPE_CHECKING:
    import pandas as pd

NO_REPLY = "no usable reply"
RESTRAINT = "saved what it must not"
INVENTED = "said what it must not"
OTHER = "answered right, but a required step failed"
UNKNOWN = "transcript not kept"
"""Failures whose cause needs no replay, or cannot have one."""


@dataclass(slots=True)
class Failure:
    """A failed trial of a run: where it broke, or why that question does not arise."""

    row: Mapping[str, Any]
    cell: Cell
    label: str = ""
    broken: Break | None = None


def failures_of(trials: pd.DataFrame, plan: Plan, folder: Path) -> list[Failure]:
    """The failed trials of a run whose story and cell are still what they were."""
    planned = {trial.key: (cell, trial) for cell, trial in plan.trials()}
    failed = trials[(trials["outcome"] != "invalid") & (trials["passed"] == False)]  # noqa: E712
    rows = {row["trial_key"]: row for row in _records(failed) if row["trial_key"] in planned}
    said = (row for row in read_transcripts(folder) if row["trial_key"] in rows and row.get("evidence"))
    kept = {row["trial_key"]: row for row in said}
    if rows and not kept:
        raise InputError(
            f"{folder} holds no transcripts with evidence ({TRANSCRIPTS}); blame replays what was said, so"
            " it needs a run whose transcripts are there"
        )
    found = []
    for key, row in rows.items():
        cell, trial = planned[key]
        failure = Failure(row, cell)
        if row["outcome"] == "model_failure":
            failure.label = NO_REPLY
        elif key not in kept:
            failure.label = UNKNOWN
        else:
            failure.broken = _break(trial, kept[key], cell.spec.design().serves())
            failure.label = "" if failure.broken else _other(trial.scenario)
        found.append(failure)
    return found


def _break(trial: Trial, kept: Mapping[str, Any], serves: frozenset[Intent]) -> Break | None:
    """The first turn that asked for facts and was answered wrongly; None where there is none."""
    story = trial.scenario
    for judged in read_back(kept["evidence"]):
        expect = story.sessions[judged.session - 1].turns[judged.turn - 1].expect
        if expect is None or not expect.answer.states:
            continue
        only = Expect(answer=expect.answer)
        verdict = judge(judged.trace, only, story.facts, judged.store, serves, judged.said_before)
        if verdict.passed is False:
            at = (judged.session, judged.turn)
            return Break(
                trial=trial, at=at, planted=_planted(story, at, expect.answer.states),
                messages=kept["messages"], evidence=kept["evidence"],
            )  # fmt: skip
    return None


def _planted(story: Scenario, at: Place, names: Sequence[str]) -> Place | None:
    """The turn that told the facts: the last one before that is about them or names their values."""
    found: Place | None = None
    for s, session in enumerate(story.sessions, 1):
        for t, turn in enumerate(session.turns, 1):
            if (s, t) >= at:
                return found
            asked = turn.expect and turn.expect.intent in ("remember", "note", "update")
            about = bool(asked) and bool(set(turn.expect.facts if turn.expect else ()) & set(names))
            says = any(language.names(turn.user, story.facts[name].values) for name in names)
            if about or (says and found is None):
                found = (s, t)
    return found


def _other(story: Scenario) -> str:
    expected = [turn.expect for session in story.sessions for turn in session.turns if turn.expect]
    if any(expect.forbid for expect in expected):
        return RESTRAINT
    if any(expect.answer.avoids or expect.answer.admits_unknown for expect in expected):
        return INVENTED
    return OTHER


def sample(failures: Sequence[Failure], most: int, seed: int) -> list[Failure]:
    """At most so many failures, drawn in turn from every cell and broken stage."""
    strata: dict[Any, list[Failure]] = defaultdict(list)
    for failure in failures:
        stage = str(failure.row["broken_at"]).rpartition(" ")[2]
        strata[failure.cell.row.cell, stage].append(failure)
    draw = random.Random(seed)
    shuffled = [draw.sample(one, len(one)) for _, one in sorted(strata.items())]
    chosen: list[Failure] = []
    while len(chosen) < most and any(shuffled):
        for stratum in shuffled:
            if stratum and len(chosen) < most:
                chosen.append(stratum.pop())
    return chosen


def _records(frame: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for row in frame.to_dict("records"):
        yield {str(key): value for key, value in row.items()}
