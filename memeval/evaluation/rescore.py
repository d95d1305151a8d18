"""Judging again what a run kept: today's expectations and rules on the evidence of each turn, no model.

A trial whose verdict, expectations or scorer differ gets a verdict row. Nothing that was written before is
changed; the last verdict row of a trial counts when the run is loaded.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from memeval.evaluation.checks import SCORER, Verdict, judge
from memeval.evaluation.evidence import Judged, read_back
from memeval.evaluation.recorder import fold
from memeval.evaluation.results import (
    MANIFEST,
    Run,
    load,
    only_writer,
    read_manifest,
    read_transcripts,
    write_atomically,
    write_verdicts,
)
from memeval.evaluation.rows import REJUDGED, STAGES, TrialRow, TurnRow, VerdictRow
from memeval.evaluation.stories import Stories, tells, turn_at
from memeval.evaluation.sweep import digest
from memeval.messages import Intent
from memeval.scenarios.schema import Scenario, Turn

JUDGED = ("passed", *STAGES, "phantom_save")
"""The columns of verdicts, of trials and of turns."""
EXPECTED = ("intent", "decoy", "strength")
"""Columns of a turn that say what was expected of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescored:
    """What moved: `moves` by column and direction, `moved` by trial; `kept` counts those left as they were.

    A move: `column, before, after` (true, false, null), `trials` and `turns`. A trial that moved: `trial_key,
    scenario, repeat, cell, before, after` (columns to values) and `turns`, each with `session, turn, before,
    after`. The keys of `kept` are `no_evidence, story_changed, story_missing, newer_scorer`.
    """

    run: Path
    scorer: str = SCORER
    trials: int = 0  # that have a verdict: all but the invalid
    rescored: int = 0  # that got a verdict row, or would
    relabelled: int = 0  # of them, those whose family, tags, split, intents, decoys or strengths changed
    kept: dict[str, int] = field(default_factory=dict)
    moves: list[dict[str, Any]] = field(default_factory=list)
    moved: list[dict[str, Any]] = field(default_factory=list)
    dry_run: bool = False


def rescore(
    run: str | Path, scenarios: Sequence[str | Path] | None = None, *,
    everything: bool = False, dry_run: bool = False,
) -> Rescored:  # fmt: skip
    """Judge the trials of a run again by today's expectations and rules, without a model; say what moved.

    `scenarios` are patterns of the stories to judge by, by default those the sweep names and the shipped
    ones. With `everything` a trial gets a verdict row though nothing differs; `dry_run` writes nothing.
    A trial keeps its verdict where no evidence was kept, where its story is missing or shown otherwise now,
    and where a newer scorer judged it. Raises InputError where the run is being written.
    """
    folder = Path(run)
    read_manifest(folder)
    with nullcontext() if dry_run else only_writer(folder, "give the same command when it is done"):
        loaded = load(folder)
        again, kept = _judge_all(loaded, Stories(loaded.manifest, folder, scenarios))
        trials = len(again) + sum(kept.values())
        new = [trial for trial in again if everything or trial.differs]
        found = _summed(folder, trials, new, kept, dry_run)
        if new and not dry_run:
            now = datetime.now(UTC).isoformat(timespec="seconds")
            write_verdicts(folder, [trial.row(now) for trial in new])
            _note(load(folder), found, again, now)
    return found


def judge_again(
    story: Scenario, evidence: Sequence[Mapping[str, Any]], serves: frozenset[Intent]
) -> Iterator[tuple[Judged, Turn, Verdict]]:
    """The turns of a trial with what the story makes of them today, and the verdict of today's rules."""
    for judged in read_back(evidence):
        turn = turn_at(story, judged.session, judged.turn)
        if turn is not None:
            said = judged.said_before
            yield judged, turn, judge(judged.trace, turn.expect, story.facts, judged.store, serves, said)


class _Again(NamedTuple):
    """A trial before and after it was judged again."""

    before: TrialRow
    after: TrialRow
    turns_before: list[TurnRow]
    turns_after: list[TurnRow]
    known: str  # digest of the expectations it was judged by before

    @property
    def differs(self) -> bool:
        return (
            self.known != self.after.expected
            or any(_pick(self.before, (name,)) != _pick(self.after, (name,)) for name in _SEEN)
            or self.turns_before != self.turns_after
        )

    @property
    def relabelled(self) -> bool:
        labels = ("family", "tags", "split")
        return _pick(self.before, labels) != _pick(self.after, labels) or any(
            _pick(one, EXPECTED) != _pick(other, EXPECTED) for one, other in self.pairs()
        )

    def pairs(self) -> Iterator[tuple[TurnRow, TurnRow]]:
        return zip(self.turns_before, self.turns_after, strict=True)

    def row(self, now: str) -> VerdictRow:
        turns = [_pick(turn, ("session", "turn", *EXPECTED, *JUDGED)) for turn in self.turns_after]
        trial = {name: getattr(self.after, name) for name in ("trial_key", "attempt", *REJUDGED)}
        return VerdictRow(**trial, judged_at=now, turns=turns)


_SEEN = tuple(name for name in REJUDGED if name != "expected")


def _judge_all(run: Run, stories: Stories) -> tuple[list[_Again], dict[str, int]]:
    """All trials that can be judged again, and how many cannot, by reason. Invalid ones have no verdict."""
    cells = {cell["cell"]: cell for cell in run.manifest.get("cells", [])}
    expected = {name: story.get("expected", "") for name, story in run.manifest.get("scenarios", {}).items()}
    trials = {row["trial_key"]: row for row in run.rows("trial") if row.get("outcome") != "invalid"}
    turns = defaultdict(list)
    for row in run.rows("turn"):
        turns[row["trial_key"]].append(_read(TurnRow, row))
    found: dict[str, _Again | str] = dict.fromkeys(trials, "no_evidence")
    for said in read_transcripts(run.folder):
        row = trials.get(said["trial_key"], {})
        if not row or "evidence" not in said or said.get("attempt", 1) != row.get("attempt", 1):
            continue
        trial, cell = _read(TrialRow, row), cells[row["cell"]]
        story = stories.find(trial.scenario)
        if _version(trial.scorer) > _version(SCORER):
            found[trial.trial_key] = "newer_scorer"
        elif isinstance(story, str):
            found[trial.trial_key] = story
        elif not tells(story, said["evidence"]):
            found[trial.trial_key] = "story_changed"
        else:
            known = trial.expected or expected.get(trial.scenario, "")
            serves = frozenset(cell.get("serves", ()))
            found[trial.trial_key] = _judge(
                trial, turns[trial.trial_key], story, said["evidence"], serves, known
            )
    again = [trial for trial in found.values() if isinstance(trial, _Again)]
    return again, dict(Counter(reason for reason in found.values() if isinstance(reason, str)))


def _judge(
    trial: TrialRow, turns: Sequence[TurnRow], story: Scenario, evidence: Sequence[Mapping[str, Any]],
    serves: frozenset[Intent], known: str,
) -> _Again:  # fmt: skip
    before = sorted(turns, key=lambda row: (row.session, row.turn))
    after = [replace(row) for row in before]
    row: TurnRow | None
    places = {(row.session, row.turn): row for row in after}
    for row in after:
        if turn := turn_at(story, row.session, row.turn):
            row.expecting(turn)
    for judged, _, verdict in judge_again(story, evidence, serves):
        if row := places.get((judged.session, judged.turn)):
            for name in JUDGED:
                setattr(row, name, getattr(verdict, name))
    new = replace(
        trial, scorer=SCORER, expected=digest(story.expected()), family=story.family, split=story.split,
        tags=tuple(story.tags),
    )  # fmt: skip
    fold(new, after)
    return _Again(trial, new, before, after, known)


def _summed(
    folder: Path, trials: int, new: Sequence[_Again], kept: dict[str, int], dry_run: bool
) -> Rescored:
    counts: dict[tuple[str, Any, Any], Counter[str]] = defaultdict(Counter)
    moved = []
    for trial in new:
        before, after = _moved(trial.before, trial.after)
        turns = []
        for one, other in trial.pairs():
            was, now = _moved(one, other)
            if was:
                turns.append({"session": one.session, "turn": one.turn, "before": was, "after": now})
            for name, value in was.items():
                counts[name, value, now[name]]["turns"] += 1
        for name, value in before.items():
            counts[name, value, after[name]]["trials"] += 1
        if before or turns:
            about = _pick(trial.after, ("trial_key", "scenario", "repeat", "cell"))
            moved.append({**about, "before": before, "after": after, "turns": turns})
    moves = [
        {"column": name, "before": was, "after": now, "trials": count["trials"], "turns": count["turns"]}
        for (name, was, now), count in sorted(counts.items(), key=lambda item: JUDGED.index(item[0][0]))
    ]
    return Rescored(
        run=folder, trials=trials, rescored=len(new), relabelled=sum(trial.relabelled for trial in new),
        kept=kept, moves=moves, moved=moved, dry_run=dry_run,
    )  # fmt: skip


def _note(run: Run, found: Rescored, again: Sequence[_Again], now: str) -> None:
    """Write into the manifest that the run was judged again, and what its verdicts stand on now."""
    manifest = dict(run.manifest)
    entry = {"at": now, "scorer": found.scorer, "trials": found.rescored, "moved": len(found.moved)}
    manifest["rescored"] = [*manifest.get("rescored", []), entry | {"kept": found.kept}]
    judged = [row for row in run.rows("trial") if row.get("outcome") != "invalid"]
    manifest["scorer"] = ", ".join(sorted({row.get("scorer", "") for row in judged}))
    digests = defaultdict(set)
    for row in judged:
        digests[row["scenario"]].add(row.get("expected", ""))
    for trial in again:
        after = trial.after
        if digests[after.scenario] == {after.expected}:  # else older verdicts stand on what it says
            manifest["scenarios"][after.scenario] |= {
                "family": after.family, "tags": list(after.tags), "expected": after.expected
            }  # fmt: skip
    text = json.dumps(manifest, indent=1, ensure_ascii=False, allow_nan=False, default=str)
    write_atomically(run.folder / MANIFEST, text + "\n")


def _moved(before: TrialRow | TurnRow, after: TrialRow | TurnRow) -> tuple[dict[str, Any], dict[str, Any]]:
    """The verdict columns that differ, as they were and as they are."""
    names = [name for name in JUDGED if getattr(before, name) != getattr(after, name)]
    return _pick(before, names), _pick(after, names)


def _pick(row: Any, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}


def _read(row: type[Any], data: Mapping[str, Any]) -> Any:
    """The row of kept data; columns that are no more are left out."""
    names = {spec.name for spec in fields(row)}
    values = {name: tuple(v) if isinstance(v, list) else v for name, v in data.items() if name in names}
    return row(**values)


def _version(scorer: str) -> int:
    return int(scorer) if scorer.isdigit() else 0
