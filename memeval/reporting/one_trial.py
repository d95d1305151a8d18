"""One trial as data: what was said, called, found and stored, turn by turn, and why it was judged so."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pandas as pd

    from memeval.evaluation.results import Run

Row = dict[str, Any]
Place = tuple[int, int]
STAGES = ("called", "arguments", "stored", "retrieved", "answered", "passed")
UNEXPLAINED = {
    "no_evidence": "Why a verdict came out as it did is not said: no evidence was kept with this trial.",
    "story_changed": "Why a verdict came out as it did is not said: the story is told otherwise by now.",
    "story_missing": "Why a verdict came out as it did is not said: the story was not found.",
}

_TURN = ("session", "turn", "intent", "decoy", "strength", "called_intent", "called_tool", *STAGES,
         "phantom_save", "leaked_call", "leaked_intent", "wrote", "calls", "rounds", "prompt_tokens",
         "output_tokens", "seconds_model")  # fmt: skip
_CALL = ("session", "turn", "round", "call", "name", "arguments", "intent", "status", "coerced", "written",
         "text")  # fmt: skip
_HIT = ("session", "turn", "call", "rank", "record", "kind", "origin", "score", "cosine", "keyword")


class Step(NamedTuple):
    """Something that was said or done: who or what, its text, and what is to be known of it."""

    label: str
    text: str
    note: str = ""


@dataclass(slots=True)
class Shown:
    """A session's beginning (`turn` 0) or one turn of it, as it is shown."""

    session: int
    turn: int
    row: Row | None
    steps: list[Step] = field(default_factory=list)


def whole(run: Run, trial: Mapping[str, Any]) -> dict[str, Any]:
    """Everything kept of a trial (a row of `run.trials`), as plain data.

    `messages` is empty where transcripts were not kept. Of each turn, `changed` says which records were new,
    changed or gone since the user's last turn; `expected` and `why` are by today's story and rules, and
    `moved` names the verdicts that would come out otherwise. Where they cannot be given `unexplained` says
    why. `sessions` says when and with whom each session was.
    """
    from memeval.analysis.designs import fired_hooks
    from memeval.evaluation.results import read_transcripts

    def rows(frame: pd.DataFrame, keys: Sequence[str]) -> list[Row]:
        own = frame[frame["trial_key"] == trial["trial_key"]]
        return plain_rows(own[[key for key in keys if key in own.columns]])

    own = run.trials[run.trials["trial_key"] == trial["trial_key"]]
    said: Mapping[str, Any] = {}
    for row in read_transcripts(run.folder, trial["trial_key"]):
        if row.get("attempt", 1) == trial["attempt"]:
            said = row
    evidence = said.get("evidence", ())
    data = {
        "trial": {**trial, "hooks": dict(fired_hooks(own))},
        "turns": rows(run.turns, _TURN),
        "calls": rows(run.calls, _CALL),
        "hits": rows(run.hits, _HIT),
        "messages": said.get("messages", []),
        "sessions": {},
        "unexplained": "" if evidence else "no_evidence",
    }
    changed = _changes(evidence)
    for turn in data["turns"]:
        turn["changed"] = changed.get(place(turn), [])
    if evidence:
        _explain(run, data, evidence)
    return data


def _explain(run: Run, data: dict[str, Any], evidence: Sequence[Mapping[str, Any]]) -> None:
    """Add what was expected of each turn, and why its verdict came out as it did."""
    from memeval.evaluation.expectation import expected
    from memeval.evaluation.reasons import reasons
    from memeval.evaluation.rescore import JUDGED, judge_again
    from memeval.evaluation.stories import Stories, tells

    trial = data["trial"]
    story = Stories(run.manifest, run.folder).find(trial["scenario"])
    if isinstance(story, str):
        data["unexplained"] = story
        return
    if not tells(story, evidence):
        data["unexplained"] = "story_changed"
        return
    data["title"] = story.title
    for number, session in enumerate(story.sessions, 1):
        about = [f"{session.at:%Y-%m-%d %H:%M}", session.user if session.user != "user" else "",
                 f"channel {session.channel}" if session.channel else ""]  # fmt: skip
        data["sessions"][number] = ", ".join(filter(None, about))
    rows = {place(row): row for row in data["turns"]}
    serves = frozenset(trial["serves"] or ())
    for judged, turn, verdict in judge_again(story, evidence, serves):
        row = rows.get((judged.session, judged.turn))
        if row is None:
            continue
        row["expected"] = expected(turn.expect, story.facts) if turn.expect else ""
        row["moved"] = [name for name in JUDGED if row[name] != getattr(verdict, name)]
        row["why"] = {
            name: {"verdict": getattr(verdict, name), "because": sentence}
            for name, sentence in reasons(judged, turn.expect, story.facts, serves).items()
        }


def _changes(evidence: Iterable[Mapping[str, Any]]) -> dict[Place, list[Row]]:
    """What was new, changed or gone in the user's store by each turn."""
    known: dict[str, dict[str, Mapping[str, Any]]] = defaultdict(dict)
    found: dict[Place, list[Row]] = {}
    for turn in evidence:
        calls = turn.get("calls", ())
        by = {key: call["name"] for call in calls if not call["is_error"] for key in call["written"]}
        records = known[turn.get("memory_of", "")]
        here = found[place(turn)] = []
        for key, data in turn.get("changed", {}).items():
            before = records.pop(key, None)
            now = data or before or {}
            here.append(
                {
                    "change": "gone" if data is None else "changed" if before else "new",
                    "record": key, "kind": now.get("kind", ""), "origin": now.get("origin", ""),
                    "by": by.get(key, ""), "text": _text(now), "before": _text(before) if before else "",
                }
            )  # fmt: skip
            if data is not None:
                records[key] = data
    return found


def _text(record: Mapping[str, Any]) -> str:
    """A record's text, and what its fields say beyond it."""
    text = record.get("text", "")
    more = [f"{name}: {value}" for name, value in record.get("fields", {}).items() if str(value) not in text]
    return " · ".join([text, *more] if text else more)


def laid_out(data: Mapping[str, Any]) -> Iterator[Shown]:
    """The beginnings of sessions and their turns, in order; the system message once, it stays the same."""
    turns = {place(row): row for row in data["turns"]}
    for at in sorted({place(row) for row in (*data["turns"], *data["messages"])}):
        here = [message for message in data["messages"] if place(message) == at]
        if at[0] > 1:
            here = [message for message in here if message["role"] != "system"]
        calls = [row for row in data["calls"] if place(row) == at]
        hits = [row for row in data["hits"] if place(row) == at]
        row = turns.get(at)
        changed = (row or {}).get("changed", ())
        # what a hook wrote since the last turn or the story gave stands first, what calls wrote last
        before = [_change(entry) for entry in changed if entry["origin"] != "tool"]
        after = [_change(entry) for entry in changed if entry["origin"] == "tool"]
        steps = [*before, *_steps(here, calls, hits), *after]
        if row is not None or steps:
            yield Shown(*at, row, steps)


def place(row: Mapping[str, Any]) -> Place:
    """Session and turn of a row or a message; a transcript leaves zeros out."""
    return row.get("session", 0), row.get("turn", 0)


def _change(entry: Mapping[str, Any]) -> Step:
    """A record that is new, changed or gone: its id, by whom, its text."""
    by = f", by {entry['by']}" if entry["by"] else ""
    was = f" (was: {entry['before']})" if entry["change"] == "changed" else ""
    return Step(entry["change"], f"{entry['text']}{was}", f"{entry['record']} ({entry['origin']}{by})")


def _steps(said: Sequence[Row], calls: Sequence[Row], hits: Sequence[Row]) -> Iterator[Step]:
    """What happened in a turn, in order; from the call rows where what was said was not kept."""
    run = [call for call in calls if call["status"] != "leaked"]
    if filler := sum(bool(message.get("filler")) for message in said):
        yield Step("filler", f"({filler} messages of small talk that no model was asked for)")
    for message in said:
        if message.get("filler"):
            continue
        if message["role"] == "compacted":
            yield Step("compacted", message["content"] or "(nothing but the system message)")
            continue
        if message["role"] == "tool":
            call = run.pop(0) if run else None
            yield from _result(message["content"], call, hits)
            continue
        if message.get("injected"):
            yield Step("shown", message["injected"])
            yield from _found(-1, hits)
        if message.get("thinking"):
            yield Step("thinking", message["thinking"])
        if message["content"] or not message.get("tool_calls"):
            who = "model" if message["role"] == "assistant" else str(message["role"])
            yield Step(who, message["content"] or "(nothing)")
        for made in message.get("tool_calls", ()):
            yield Step("call", _call(made))
    if not said:
        for call in run:
            yield Step("call", _call(call))
            yield from _result(call["text"], call, hits)
    for call in calls:
        if call["status"] == "leaked":
            yield Step("leaked", _call(call), "arrived as text, was not run")


def _result(text: str, call: Row | None, hits: Sequence[Row]) -> Iterator[Step]:
    wrong = call is not None and call["status"] != "ok"
    yield Step("result", text, call["status"].replace("_", " ") if call and wrong else "")
    if call is not None:
        yield from _found(call["call"], hits)
        if call["written"]:
            yield Step("wrote", ", ".join(call["written"]))


def _found(call: int, hits: Sequence[Row]) -> Iterator[Step]:
    found = [f"{hit['record']} {hit['score']:.2f} ({hit['origin']})" for hit in hits if hit["call"] == call]
    if found:
        yield Step("found", ", ".join(found))


def _call(call: Mapping[str, Any]) -> str:
    arguments = call["arguments"]
    if not isinstance(arguments, Mapping):
        return f"{call['name']}({arguments!r})"
    said = (f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items())
    return f"{call['name']}({', '.join(said)})"


def plain_rows(frame: pd.DataFrame) -> list[Row]:
    """A frame's rows as plain data, null where there is nothing."""
    rows: list[Row] = json.loads(frame.to_json(orient="records", date_format="iso"))
    return rows
