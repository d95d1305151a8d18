"""What a reader of a pytest run is told: the turns that broke a story, and one table of pass rates."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict
from typing import Any

from memeval.cli._common import short, table
from memeval.cli._trial import draw
from memeval.evaluation.evidence import read_back
from memeval.evaluation.recorder import TrialResult
from memeval.evaluation.rows import CellRow
from memeval.pytest_plugin.bench import Ran
from memeval.records import Record
from memeval.scenarios.schema import Expect, Fact, Scenario

SHOWN = 3
"""Failed repeats that are shown whole, those that broke in the same words counted once; `-v` shows all."""
RECORDS = 8
"""Records of a store that are shown, each on one line."""
LINE = 80
AXES = ("design", "model", "calling")
OUTCOMES = ("passed", "failed", "skipped", "error", "xfailed", "xpassed")

Spot = tuple[int, int]  # session and turn, from 1


def failure(ran: Ran, scenario: Scenario, required: float, every: bool = False) -> str:
    """Of every repeat that did not pass: the turn that broke, what the store then held, and the verdict."""
    valid = [result for result in ran.trials if result.trial.outcome != "invalid"]
    failed = [result for result in valid if result.trial.passed is False]
    invalid = len(ran.trials) - len(valid)
    lines = [
        f"passed {len(valid) - len(failed)} of {len(valid)} repeats, {required:.0%} must pass; "
        f"broken at {_where(failed)}" + (f"; {invalid} invalid, not counted" if invalid else "")
    ]
    alike: dict[str, list[tuple[str, TrialResult]]] = {}
    for result in failed:
        head, body = _drawn(_broken(ran.cell, result, scenario))
        alike.setdefault(body, []).append((head, result))
    shown = len(alike) if every else SHOWN
    for body, ((head, _), *others) in list(alike.items())[:shown]:
        same = ", ".join(str(result.trial.repeat) for _, result in others)
        lines += ["", head, *([f"the same in repeat {same}"] if same else []), body]
    if rest := [result for told in list(alike.values())[shown:] for _, result in told]:
        lines += ["", f"{len(rest)} more broke at {_where(rest)}; -v shows them"]
    return "\n".join(lines)


def _drawn(data: Mapping[str, Any]) -> tuple[str, str]:
    """A trial as text: which one it is, and what happened in it."""
    told = io.StringIO()
    with redirect_stdout(told):
        draw(data)
    story, cell, body = told.getvalue().rstrip().split("\n", 2)
    return f"{story}\n{cell}", body


def _where(failed: Sequence[TrialResult]) -> str:
    """`s1t1 called (2x), s2t1 answered`."""
    counts = Counter(_why(result) for result in failed)
    return ", ".join(f"{why} ({count}x)" if count > 1 else why for why, count in counts.most_common())


def _why(result: TrialResult) -> str:
    row = result.trial
    if row.outcome == "model_failure":
        return row.failure.partition(":")[0].replace("_", " ")
    return row.broken_at or "an expectation"


def _broken(cell: CellRow, result: TrialResult, scenario: Scenario) -> dict[str, Any]:
    """A trial as `memeval show` draws it, with nothing in it but the turns that broke."""
    spots = _spots(result)
    names = {"variant": cell.variant, "model": cell.model, "calling": cell.calling}
    said = result.transcript.messages
    messages = [one for one in said if (one.get("session"), one.get("turn")) in spots]
    for judged in read_back(result.transcript.evidence):
        if (spot := (judged.session, judged.turn)) in spots:
            expect = scenario.sessions[spot[0] - 1].turns[spot[1] - 1].expect
            lines = {"store": _held(judged.store.find()), "expected": _expected(expect, scenario.facts)}
            messages += [
                {"session": spot[0], "turn": spot[1], "role": role, "content": text}
                for role, text in lines.items()
            ]
    tables: dict[str, Sequence[Any]] = {
        "turns": result.turns, "calls": result.calls, "hits": result.hits
    }  # fmt: skip
    rows = {
        name: [asdict(row) for row in found if (row.session, row.turn) in spots]
        for name, found in tables.items()
    }
    return {"trial": asdict(result.trial) | names, "messages": messages, **rows}


def _spots(result: TrialResult) -> set[Spot]:
    """The turn at which a trial broke first, and the one that decided: a loss shows when it is asked for."""
    turns = {f"s{turn.session}t{turn.turn}": turn for turn in result.turns}
    first = turns.get(result.trial.broken_at.partition(" ")[0])
    decided = next((turn for turn in result.turns if turn.passed is False), None)
    if result.trial.outcome == "model_failure":
        decided = result.turns[-1] if result.turns else None
    return {(turn.session, turn.turn) for turn in (first, decided) if turn is not None}


def _held(records: Sequence[Record]) -> str:
    lines = [
        short(f"{record.fields.get('topic', record.kind)} ({record.origin}): {record.text}", LINE)
        for record in records[:RECORDS]
    ]
    more = len(records) - RECORDS
    return "\n".join([*lines, f"({more} more)"] if more > 0 else lines) or "(empty)"


def _expected(expect: Expect | None, facts: Mapping[str, Fact]) -> str:
    return "; ".join(_parts(expect, facts)) if expect else "(nothing)"


def _parts(expect: Expect, facts: Mapping[str, Fact]) -> Iterator[str]:
    def values(names: Sequence[str]) -> str:
        return ", ".join(facts[name].values[0] for name in names)

    if expect.required:
        yield f"{', '.join(expect.required)} (required)"
    if expect.forbid:
        yield f"no call to {', '.join(expect.forbid)}"
    for verb in ("confirms", "states", "avoids"):
        if names := getattr(expect.answer, verb):
            yield f"the answer {verb} {values(names)}"
    if expect.answer.admits_unknown:
        yield "the answer admits that it does not know"
    for verb in ("holds", "lacks"):
        if expect.store and (names := getattr(expect.store, verb)):
            yield f"the store {verb} {values(names)}"


def summary(stats: Mapping[str, Sequence[Any]]) -> list[str]:
    """The stories with their pass rates, a column a cell, from the reports that pytest kept."""
    found = [(outcome, _facts(report)) for outcome in OUTCOMES for report in stats.get(outcome, ())]
    stories = [(outcome, facts) for outcome, facts in found if "story" in facts]
    if not stories:
        return []
    cells = list(dict.fromkeys(tuple(facts[axis] for axis in AXES) for _, facts in stories))
    varied = [at for at in range(len(AXES)) if len({cell[at] for cell in cells}) > 1]
    same = [cells[0][at] for at in range(len(AXES)) if at not in varied]
    required = f"{stories[0][1]['required']:.0%} must pass"
    rates: dict[str, dict[tuple[Any, ...], str]] = {}
    for outcome, facts in stories:
        cell = tuple(facts[axis] for axis in AXES)
        rates.setdefault(facts["story"], {})[cell] = _rate(outcome, facts)
    columns = [">" + ("\n".join(cell[at] for at in varied) or "passed") for cell in cells]
    told = io.StringIO()
    with redirect_stdout(told):
        table(
            ["story", *columns],
            [[story, *(row.get(cell, "") for cell in cells)] for story, row in sorted(rates.items())],
        )
    title = " · ".join(["repeats passed", *same, required])
    return [title, *told.getvalue().rstrip().split("\n"), *_notes([facts for _, facts in stories])]


def _facts(report: Any) -> dict[str, Any]:
    told = dict(getattr(report, "user_properties", ()))
    return {name.removeprefix("memeval_"): told[name] for name in told if name.startswith("memeval_")}


def _rate(outcome: str, facts: Mapping[str, Any]) -> str:
    if outcome in ("skipped", "error"):
        return "not run" if outcome == "skipped" else "error"
    return f"{'✗ ' if outcome == 'failed' else ''}{facts['passed']}/{facts['valid']}"


def _notes(stories: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for reason, count in Counter(facts["not_run"] for facts in stories if "not_run" in facts).items():
        yield f"Not run, no verdict ({count}): {short(reason, 300)}"
    counted = [facts for facts in stories if facts.get("invalid") and "not_run" not in facts]
    if counted:
        trials = sum(facts["invalid"] for facts in counted)
        yield f"Invalid trials, not counted ({trials}): {short(counted[-1]['invalid_reason'], 300)}"
    if any(facts.get("smoke") for facts in stories):
        yield "Bundled and scripted models are a smoke test, not a measurement of your model."
