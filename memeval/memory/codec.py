"""A record on its way in and out of a store: checked, and as Chroma's metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import datetime
from typing import Any

from memeval.errors import InputError, nearest
from memeval.records import Record, Where

_CHANGEABLE = tuple(f.name for f in fields(Record) if f.name != "id")
_SCORES = ("final_score", "critic", "rating")


def writable(text: str) -> bool:
    """Whether a text can be written down: half a surrogate pair, which JSON can bring in, cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def whole(record: Record) -> Record:
    """The record as a store keeps it: its own copy, or an InputError for what no store could give back."""
    if not record.id:
        raise InputError("a record needs an id, and this one's is empty")
    for name, value in record.fields.items():
        if not isinstance(name, str) or not isinstance(value, str | int | float | bool):
            raise InputError(
                f"field {name!r} of record {record.id!r} is {type(value).__name__};"
                " only text, numbers and truth values are kept"
            )
    for moment in (record.created_at, record.updated_at):
        if moment.tzinfo is None:
            raise InputError(f"record {record.id!r} is stamped {moment} without a time zone; use UTC")
    texts = (record.id, record.text, *record.tags, *record.fields, *record.fields.values())
    if not all(writable(text) for text in texts if isinstance(text, str)):
        raise InputError(f"record {record.id!r} holds half a surrogate pair, which is no character")
    return replace(record, fields=dict(record.fields), tags=tuple(record.tags))


def changed(record: Record, changes: Mapping[str, Any]) -> Record:
    """The record with changes made: `fields` merged, all others replaced."""
    for name in changes:
        if name not in _CHANGEABLE:
            raise InputError(f"a record has no {name!r} that could be changed{nearest(name, _CHANGEABLE)}")
    if "fields" in changes:
        changes = {**changes, "fields": {**record.fields, **changes["fields"]}}
    return whole(replace(record, **changes))


def embeds_alike(left: Record, right: Record) -> bool:
    """Whether two records have the same vectors."""
    return left.text == right.text and left.by_passage == right.by_passage


def encode(record: Record) -> dict[str, str]:
    """A record as metadata; its text is the document, its id the id.

    Always the same keys: `upsert` merges metadata, so a key left out would keep its old value, and Chroma
    drops None and NaN without a word, so what may be missing goes into one JSON text. `type` and `topic` are
    the author's keys, and `type` and `origin` narrow a search.
    """
    topic = record.fields.get("topic", "")
    rest: dict[str, Any] = {
        "created_at": record.created_at.isoformat(),
        "updated_at": record.updated_at.isoformat(),
        "fields": record.fields,
        "tags": record.tags,
        **{name: getattr(record, name) for name in _SCORES},
        "by_passage": record.by_passage,
    }
    return {
        "type": record.kind,
        "topic": topic if isinstance(topic, str) else "",
        "origin": record.origin,
        "record": json.dumps(rest, ensure_ascii=False),
    }


def decode(record_id: str, text: str, metadata: Mapping[str, Any]) -> Record:
    """The record that `encode` was given."""
    rest = json.loads(metadata["record"])
    return Record(
        id=record_id,
        kind=metadata["type"],
        text=text,
        origin=metadata["origin"],
        created_at=datetime.fromisoformat(rest["created_at"]),
        updated_at=datetime.fromisoformat(rest["updated_at"]),
        fields=rest["fields"],
        tags=tuple(rest["tags"]),
        **{name: rest[name] for name in _SCORES},
        by_passage=rest.get("by_passage", False),  # folders of memeval before passages have none
    )


def narrowed(where: Where) -> dict[str, Any] | None:
    """What Chroma can test itself of a `Where`: it lets through at least all that count."""
    tests: list[dict[str, Any]] = []
    if where.kinds:
        tests.append({"type": {"$in": list(where.kinds)}})
    if where.origin is not None:
        tests.append({"origin": where.origin})
    return {"$and": tests} if len(tests) > 1 else tests[0] if tests else None
