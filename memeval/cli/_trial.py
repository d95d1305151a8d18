"""One trial as a person reads it: what was said, called, found and stored, and why it was judged so."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

import click

from memeval.cli._common import MARKS, plain, short
from memeval.reporting.one_trial import STAGES, UNEXPLAINED, laid_out

WIDTH = 100
HISTORY = 12
"""Lines of a compacted history that are shown."""


def draw(data: Mapping[str, Any]) -> None:
    """Print a trial, as `one_trial.whole` gave it."""
    trial = data["trial"]
    click.echo(f"{trial['scenario']}, repeat {trial['repeat']}, trial {trial['trial_key']}")
    click.echo(f"{trial['variant']} · {trial['model']} · {trial['calling']} · tools {trial['order']}")
    click.echo(_outcome(trial))
    for line in _own_doing(trial):
        click.echo(line)
    if not data["messages"]:
        click.echo("What was said was not kept with this run; the calls and verdicts were.")
    elif note := UNEXPLAINED.get(data.get("unexplained", "")):
        click.echo(note)
    session = 0
    for shown in laid_out(data):
        if shown.session != session:
            session = shown.session
            about = data.get("sessions", {}).get(session)
            click.echo(f"\nSession {session}" + (f" ({about})" if about else ""))
        turn = shown.row
        if turn is not None:
            decoy = ", a decoy" if turn["decoy"] else ""
            click.echo(
                f"\n  Turn {shown.turn}" + (f" asks to: {turn['intent']}{decoy}" if turn["intent"] else "")
            )
            if turn.get("expected"):
                _say("expected", turn["expected"])
        for step in shown.steps:
            text = _first(step.text) if step.label == "compacted" else step.text
            _say(step.label, f"{step.note}: {text}" if step.note else text)
        if turn is not None:
            _say("verdict", _verdict(turn))
            for line in _why(turn):
                _say("", line)


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
    if trial["seconds_after_turn"]:
        yield f"after its answers, in after_turn: {trial['seconds_after_turn']:.2f} s"


def _times(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{plain(name)} {count}" for name, count in counts.items())


def _first(history: str) -> str:
    """The beginning of a history that replaced the one before it."""
    lines = history.split("\n")
    if len(lines) <= HISTORY:
        return history
    return "\n".join([*lines[:HISTORY], f"({len(lines) - HISTORY} more lines; --json has them)"])


def _verdict(turn: Mapping[str, Any]) -> str:
    marks = "  ".join(f"{stage} {MARKS[turn[stage]]}" for stage in STAGES)
    more = [name.replace("_", " ") for name in ("phantom_save", "leaked_call") if turn[name]]
    return "  ".join([marks, *more])


def _why(turn: Mapping[str, Any]) -> Iterator[str]:
    """The reasons of a turn's verdicts; those of nulls only where the design or the story makes them null."""
    if turn.get("moved"):
        names = ", ".join(name.replace("_", " ") for name in turn["moved"])
        yield f"judged otherwise today: {names}; `memeval rescore` takes that over"
    for name, why in turn.get("why", {}).items():
        value = why["verdict"]
        if value is True if name == "phantom_save" else value is not None or name == "called":
            mark = MARKS[False if name == "phantom_save" else value]
            yield f"{mark} {name.replace('_', ' ')}: {why['because']}"


def _say(label: str, text: str) -> None:
    lines: list[str] = []
    for line in plain(text).split("\n"):
        lines += textwrap.wrap(line, WIDTH - 14, break_long_words=False, break_on_hyphens=False) or [""]
    for number, line in enumerate(lines):
        click.echo(f"    {label if number == 0 else '':<10}{line}".rstrip())
