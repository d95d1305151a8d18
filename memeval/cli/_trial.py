"""One trial as a person reads it: what was said, called and found, and the verdict on each turn."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from memeval.cli._common import MARKS, plain, records, short

if TYPE_CHECKING:
    from memeval.evaluation.results import Run

STAGES = ("called", "arguments", "stored", "retrieved", "answered", "passed")
WIDTH = 100
HISTORY = 12
"""Lines of a compacted history that are shown."""
Row = dict[str, Any]


def whole(run: Run, trial: Row) -> dict[str, Any]:
    """Everything kept of a trial, as data; `messages` is empty where transcripts were not kept."""
    from memeval.analysis.designs import fired_hooks
    from memeval.evaluation.results import transcript

    def rows(frame: Any, keys: Sequence[str]) -> list[Row]:
        own = frame[frame["trial_key"] == trial["trial_key"]]
        return records(own[[key for key in keys if key in own.columns]])

    turn = ("session", "turn", "intent", "decoy", "called_intent", "called_tool", *STAGES, "phantom_save",
            "leaked_call", "leaked_intent", "wrote", "calls", "rounds", "seconds_model")  # fmt: skip
    call = (
        "session",
        "turn",
        "round",
        "call",
        "name",
        "arguments",
        "intent",
        "status",
        "coerced",
        "written",
        "text",
    )
    hit = ("session", "turn", "call", "rank", "record", "kind", "origin", "score", "cosine", "keyword")
    own = run.trials[run.trials["trial_key"] == trial["trial_key"]]
    return {
        "trial": {**trial, "hooks": dict(fired_hooks(own))},
        "turns": rows(run.turns, turn),
        "calls": rows(run.calls, call),
        "hits": rows(run.hits, hit),
        "messages": transcript(run.folder, trial["trial_key"]),
    }


def draw(data: Mapping[str, Any]) -> None:
    """Print a trial."""
    trial = data["trial"]
    click.echo(f"{trial['scenario']}, repeat {trial['repeat']}, trial {trial['trial_key']}")
    click.echo(f"{trial['variant']} · {trial['model']} · {trial['calling']} · tools {trial['order']}")
    click.echo(_outcome(trial))
    for line in _own_doing(trial):
        click.echo(line)
    if not data["messages"]:
        click.echo("What was said was not kept with this run; the calls and verdicts were.")
    places = sorted({_place(row) for row in (*data["turns"], *data["messages"])})
    session = 0
    for place in places:
        if place[0] != session:
            session = place[0]
            click.echo(f"\nSession {session}")
        here = [message for message in data["messages"] if _place(message) == place]
        if session > 1:
            here = [message for message in here if message["role"] != "system"]  # the same in all sessions
        turn = next((row for row in data["turns"] if _place(row) == place), None)
        calls = [row for row in data["calls"] if _place(row) == place]
        hits = [row for row in data["hits"] if _place(row) == place]
        if turn is not None:
            decoy = ", a decoy" if turn["decoy"] else ""
            click.echo(
                f"\n  Turn {place[1]}" + (f" asks to: {turn['intent']}{decoy}" if turn["intent"] else "")
            )
        for label, text in _lines(here, calls, hits):
            _say(label, text)
        if turn is not None:
            _say("verdict", _verdict(turn))


def _place(row: Row) -> tuple[int, int]:
    return row.get("session", 0), row.get("turn", 0)  # a transcript leaves zeros out


def _outcome(trial: Mapping[str, Any]) -> str:
    if trial["outcome"] == "invalid":
        return f"invalid: {plain(trial['invalid_reason'])}"
    if trial["outcome"] == "model_failure":
        return f"not passed, the model failed: {short(trial['failure'], 300)}"
    if trial["passed"]:
        return "passed"
    where = f", broken at {trial['broken_at']}" if trial["broken_at"] else ""
    return f"not passed{where}" if trial["passed"] is False else "not judged"


def _own_doing(trial: Mapping[str, Any]) -> Iterator[str]:
    """What the design did beside its tools: hooks, figures it counted, what it asked of the model."""
    if trial["hooks"]:
        yield f"hooks that did something: {_times(trial['hooks'])}"
    if trial["counts"]:
        yield f"counted by the design: {_times(trial['counts'])}"
    if trial["hook_requests"]:
        requests = "one request" if trial["hook_requests"] == 1 else f"{trial['hook_requests']} requests"
        seconds = f"{trial['seconds_hooks']:.1f} s"
        yield f"asked of the model by the design: {requests}, {trial['hook_tokens']} tokens, {seconds}"


def _times(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{plain(name)} {count}" for name, count in counts.items())


def _lines(said: Sequence[Row], calls: Sequence[Row], hits: Sequence[Row]) -> Iterator[tuple[str, str]]:
    """What happened in a turn, in order; from the call rows where what was said was not kept."""
    run = [call for call in calls if call["status"] != "leaked"]
    if filler := sum(bool(message.get("filler")) for message in said):
        yield "filler", f"({filler} messages of small talk that no model was asked for)"
    for message in said:
        if message.get("filler"):
            continue
        if message["role"] == "compacted":
            yield "compacted", _first(message["content"])
            continue
        if message["role"] == "tool":
            call = run.pop(0) if run else None
            yield from _result(message["content"], call, hits)
            continue
        if message.get("injected"):
            yield "shown", message["injected"]
        if message.get("thinking"):
            yield "thinking", message["thinking"]
        if message["content"] or not message.get("tool_calls"):
            who = "model" if message["role"] == "assistant" else str(message["role"])
            yield who, message["content"] or "(nothing)"
        for made in message.get("tool_calls", ()):
            yield "call", _call(made)
    if not said:
        for call in run:
            yield "call", _call(call)
            yield from _result(call["text"], call, hits)
    for call in calls:
        if call["status"] == "leaked":
            yield "leaked", f"{_call(call)} (arrived as text, was not run)"


def _first(history: str) -> str:
    """The beginning of a history that replaced the one before it."""
    lines = history.split("\n")
    if len(lines) <= HISTORY:
        return history or "(nothing but the system message)"
    return "\n".join([*lines[:HISTORY], f"({len(lines) - HISTORY} more lines; --json has them)"])


def _result(text: str, call: Row | None, hits: Sequence[Row]) -> Iterator[tuple[str, str]]:
    wrong = call is not None and call["status"] != "ok"
    yield "result", f"({call['status'].replace('_', ' ')}) {text}" if wrong and call else text
    found = [hit for hit in hits if call is not None and hit["call"] == call["call"]]
    if found:
        yield "found", ", ".join(f"{hit['record']} {hit['score']:.2f} ({hit['origin']})" for hit in found)
    if call is not None and call["written"]:
        yield "stored", ", ".join(call["written"])


def _call(call: Mapping[str, Any]) -> str:
    arguments = call["arguments"]
    if not isinstance(arguments, Mapping):
        return f"{call['name']}({arguments!r})"
    said = (f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items())
    return f"{call['name']}({', '.join(said)})"


def _verdict(turn: Mapping[str, Any]) -> str:
    marks = "  ".join(f"{stage} {MARKS[turn[stage]]}" for stage in STAGES)
    more = [name.replace("_", " ") for name in ("phantom_save", "leaked_call") if turn[name]]
    return "  ".join([marks, *more])


def _say(label: str, text: str) -> None:
    lines: list[str] = []
    for line in plain(text).split("\n"):
        lines += textwrap.wrap(line, WIDTH - 14, break_long_words=False, break_on_hyphens=False) or [""]
    for number, line in enumerate(lines):
        click.echo(f"    {label if number == 0 else '':<10}{line}".rstrip())
