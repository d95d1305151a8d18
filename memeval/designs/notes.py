"""What tools do to a store, written once: add, find, look up, change, remove.

An InputError says, in a sentence the model can act on, why nothing was done; the store is then as it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from memeval.designs.base import Context
from memeval.errors import InputError, ReadOnlyError, TextTooLongError
from memeval.memory.ranking import Ranker
from memeval.records import Hit, Kind, Origin, Record, Scalar, Where

MAX_CONTENT = 50_000
"""Characters of one memory (A24; SynthOrg's limit)."""
MAX_ID = 256
MAX_TAGS, MAX_TAG = 16, 64
OVERFETCH, AT_LEAST = 4, 12
"""A ranker that reorders needs more to choose from than it returns (A6)."""
NEAR_MISS = 0.75
"""How alike two words of topic keys are, from 0 to 1, to be taken for the same one written otherwise."""


def check_content(content: str, empty: str = "content is empty; give the text to remember.") -> str:
    """The content, if it can be kept. Raises InputError."""
    if not content.strip():
        raise InputError(empty)
    if len(content) > MAX_CONTENT:
        raise InputError(f"content has {len(content)} characters; at most {MAX_CONTENT} can be kept.")
    return content


def clean_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Tags as they are kept: trimmed, lower case, each once. Raises InputError beyond 16 tags of 64."""
    kept = tuple(dict.fromkeys(tag.strip().lower() for tag in tags if tag.strip()))
    if len(kept) > MAX_TAGS:
        raise InputError(f"there are {len(kept)} tags; at most {MAX_TAGS} can be kept.")
    for tag in kept:
        if len(tag) > MAX_TAG:
            raise InputError(
                f"the tag {tag[:20]!r}... has {len(tag)} characters; at most {MAX_TAG} can be kept."
            )
    return kept


def limited(value: Any, default: int, most: int) -> int:
    """How many hits are wanted: the default where nothing is said, and from 1 to `most`."""
    return min(max(int(value), 1), most) if value is not None else default


def add(
    ctx: Context, content: str, kind: Kind, *, tags: Iterable[str] = (),
    fields: Mapping[str, Scalar] | None = None, origin: Origin = "tool", by_passage: bool = False,
    record_id: str = "", **scores: float | None,
) -> Record:  # fmt: skip
    """Keep a new record; the same content twice is two records, unless `record_id` says which one it is.

    `scores` are the record's three.
    """
    check_content(content)
    now = ctx.clock()
    record = Record(
        id=record_id or ctx.ids(kind), kind=kind, text=content, origin=origin, created_at=now, updated_at=now,
        tags=clean_tags(tags), fields={"content": content, **(fields or {})}, by_passage=by_passage, **scores,
    )  # fmt: skip
    ctx.store.put(record)
    return record


def ingest_turn(ctx: Context, text: str, kind: Kind, fields: Mapping[str, Scalar] | None = None) -> None:
    """Keep the turn that just ended, as `text` says it; nothing if it had no question or no answer (A13)."""
    if ctx.query.strip() and ctx.answer.strip():
        keep(ctx, text, kind, "ingest_skipped", fields=fields)


def keep(
    ctx: Context, text: str, kind: Kind, skipped: str, *,
    fields: Mapping[str, Scalar] | None = None, final_score: float | None = None,
) -> None:  # fmt: skip
    """Keep what a hook writes, by passage.

    Fire and forget: what the store cannot keep is left out, not cut, and counted under the name `skipped`.
    """
    try:
        add(ctx, text, kind, fields=fields, origin="hook", by_passage=True, final_score=final_score)
    except ReadOnlyError:
        raise  # nothing may be written at all, which is no fault of this text
    except (InputError, TextTooLongError):
        ctx.counts[skipped] += 1


def find(
    ctx: Context, query: str, where: Where, ranker: Ranker, k: int, *, words: bool | str = True
) -> list[Hit]:
    """The best `k` records that count, in the ranker's order.

    `words=False` leaves the word leg out; a text is what it looks for instead of the query.
    """
    if not query.strip():
        raise InputError("query is empty; say what to look for.")
    found = ctx.store.candidates(query, where, k=max(OVERFETCH * k, AT_LEAST), words=words)
    return ranker.rank(found, k)


def look_up(ctx: Context, record_id: str, kinds: Sequence[Kind], missing: str) -> Record:
    """The record of an id and of these kinds. `missing` is what to say where there is none, with {id}."""
    wanted = record_id.strip()
    if not wanted:
        raise InputError("the id is empty; give one that a search or a save returned.")
    record = ctx.store.get(wanted) if len(wanted) <= MAX_ID else None
    if record is None or record.kind not in kinds:
        raise InputError(missing.format(id=wanted[:MAX_ID]))
    return record


def near_miss(ctx: Context, key: str) -> bool:
    """Whether a topic is kept under a key much like this one, which is not kept itself (A11).

    Without what stands before the first point, every word of the key with fewer words opens one of the
    other's, is opened by it, or is three quarters alike: `user.lang` and `user.language_preference`, not
    `user.name` and `user.age`.
    """
    wanted = _words(key)
    topics = ctx.store.find(Where(kinds=("topic",)))
    return any(_alike(wanted, _words(str(topic.fields.get("topic", "")))) for topic in topics)


def _words(key: str) -> list[str]:
    return re.findall(r"[^\W_]+", (key.partition(".")[2] or key)[:MAX_ID])


def _alike(one: Sequence[str], other: Sequence[str]) -> bool:
    few, many = sorted((one, other), key=len)
    return bool(few) and all(any(_same_word(word, another) for another in many) for word in few)


def _same_word(one: str, other: str) -> bool:
    opens = one.startswith(other) or other.startswith(one)
    return opens or SequenceMatcher(None, one, other).ratio() >= NEAR_MISS


def change(
    ctx: Context, record_id: str, content: str, kinds: Sequence[Kind], missing: str, *,
    tags: Iterable[str] | None = None, fields: Mapping[str, Scalar] | None = None, fresh: bool = False,
) -> Record:  # fmt: skip
    """A record with new content under its old id, in one write: it fails whole or not at all (A23).

    When it was first written stays on record unless `fresh`.
    """
    old = look_up(ctx, record_id, kinds, missing)
    check_content(content)
    now = ctx.clock()
    changes: dict[str, Any] = {
        "text": content,
        "updated_at": now,
        "fields": {"content": content, **(fields or {})},
        "origin": "tool",  # whose words they now are
    }
    if tags is not None:
        changes["tags"] = clean_tags(tags)
    if fresh:
        changes["created_at"] = now
    ctx.store.patch(old.id, **changes)
    return ctx.store.get(old.id) or old


def remove(ctx: Context, record_id: str, kinds: Sequence[Kind], missing: str) -> Record:
    """Remove a record from every index and give what it was."""
    old = look_up(ctx, record_id, kinds, missing)
    ctx.store.delete(old.id)
    return old
