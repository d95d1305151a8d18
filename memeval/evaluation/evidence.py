"""What a verdict was reached from, kept with the transcript, so that a trial can be judged again.

Per turn: the reply, every call with the records it found and wrote, what was injected, and what changed in
the store since the user's last turn. Read back, it gives the very trace and store that were judged; no model
and no embedder is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from memeval.evaluation.checks import CallTrace, Held, TurnTrace
from memeval.messages import ToolResult
from memeval.records import EVERYTHING, Hit, Record, Where

_PLAIN = ("id", "kind", "text", "origin", "tags", "final_score", "critic", "rating", "by_passage")


@dataclass(slots=True)
class Ledger:
    """The stores of a trial as they were last written down, one a user."""

    known: dict[str, dict[str, Record]] = field(default_factory=dict)

    def changes(self, user: str, store: Held) -> dict[str, Any]:
        """Records new or changed since the user's last turn, by id; null for those that are gone."""
        before = self.known.get(user, {})
        now = {record.id: record for record in store.find(EVERYTHING)}
        self.known[user] = now
        new = {key: written(record) for key, record in now.items() if before.get(key) != record}
        return new | dict.fromkeys(before.keys() - now.keys())


@dataclass(slots=True)
class Kept:
    """A store read back: what one user's memory held when a turn was judged."""

    records: dict[str, Record] = field(default_factory=dict)

    def get(self, record_id: str) -> Record | None:
        """The record of an id."""
        return self.records.get(record_id)

    def find(self, where: Where = EVERYTHING) -> list[Record]:
        """The records that count, oldest first."""
        found = [record for record in self.records.values() if where(record)]
        return sorted(found, key=lambda record: (record.created_at, record.id))


@dataclass(frozen=True, slots=True)
class Judged:
    """One turn as it was judged: the trace, the store, and what the user had said before in the session."""

    session: int
    turn: int
    trace: TurnTrace
    store: Kept
    said_before: tuple[str, ...]


def turn_evidence(trace: TurnTrace, user: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    """A turn's evidence as plain data."""
    calls = [
        {
            "name": call.name, "arguments": dict(call.arguments), "intents": list(call.intents),
            "status": call.status, "is_error": call.result.is_error, "text": call.result.text,
            "written": list(call.result.written), "hits": [_hit(hit) for hit in call.result.hits],
        }
        for call in trace.calls
    ]  # fmt: skip
    kept = {
        "memory_of": user, "user": trace.user, "reply": trace.reply, "calls": calls,
        "injected": trace.injected, "injected_hits": [_hit(hit) for hit in trace.injected_hits],
        "changed": dict(changes),
    }  # fmt: skip
    return {key: value for key, value in kept.items() if value or key in ("reply", "user")}


def read_back(turns: Iterable[Mapping[str, Any]]) -> Iterator[Judged]:
    """The turns of a trial as they were judged, from its evidence."""
    stores: dict[str, dict[str, Record]] = {}
    said: list[str] = []
    session = 0
    for turn in turns:
        if turn["session"] != session:
            session, said = turn["session"], []
        records = stores.setdefault(turn.get("memory_of", ""), {})
        for key, data in turn.get("changed", {}).items():
            if data is None:
                records.pop(key, None)
            else:
                records[key] = record_from(data)
        trace = TurnTrace(
            user=turn["user"], reply=turn["reply"], injected=turn.get("injected", ""),
            injected_hits=_hits(turn.get("injected_hits", ())),
            calls=[_call(call) for call in turn.get("calls", ())],
        )  # fmt: skip
        yield Judged(session, turn["turn"], trace, Kept(dict(records)), tuple(said))
        said.append(turn["user"])


def written(record: Record) -> dict[str, Any]:
    """A record as plain data."""
    data = {name: getattr(record, name) for name in _PLAIN}
    moments = {name: getattr(record, name).isoformat() for name in ("created_at", "updated_at")}
    return {k: v for k, v in data.items() if v or k == "text"} | moments | {"fields": dict(record.fields)}


def record_from(data: Mapping[str, Any]) -> Record:
    """The record of plain data that `written` made."""
    moments = {name: datetime.fromisoformat(data[name]) for name in ("created_at", "updated_at")}
    return Record(**{**data, **moments, "tags": tuple(data.get("tags", ()))})


def _hit(hit: Hit) -> dict[str, Any]:
    return {"record": written(hit.record), "score": hit.score}


def _hits(data: Sequence[Mapping[str, Any]]) -> tuple[Hit, ...]:
    return tuple(Hit(record=record_from(hit["record"]), score=hit["score"]) for hit in data)


def _call(data: Mapping[str, Any]) -> CallTrace:
    result = ToolResult(
        text=data["text"], is_error=data["is_error"], written=tuple(data["written"]),
        hits=_hits(data["hits"]),
    )  # fmt: skip
    return CallTrace(
        name=data["name"], arguments=data["arguments"], intents=tuple(data["intents"]), result=result,
        status=data["status"],
    )  # fmt: skip
