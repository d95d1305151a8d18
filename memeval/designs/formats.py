"""How memories and outcomes are written for a model. A design picks one, or brings its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from memeval.designs.base import Context
from memeval.records import Hit, Record

NOTHING_FOUND = "No memories found."
CAP = 4000
"""Characters of a tool's answer; hits that do not fit are left out whole, and how many is said (A39)."""

Format = Callable[[Sequence[Hit], Context], str]
Said = str | Callable[[Record], str]
"""What is said of one record: a function, or a template with {id}, {kind}, {content} and its fields."""


def spoken(said: Said, record: Record) -> str:
    """A record in words."""
    if callable(said):
        return said(record)
    return said.format_map({"id": record.id, "kind": record.kind, "content": record.text, **record.fields})


def shown_text(hit: Hit) -> str:
    """What a hit says: the passage that was found, or all of it where it is not split."""
    return hit.passage or str(hit.record.fields.get("content", hit.record.text))


def numbered(hits: Sequence[Hit], ctx: Context) -> str:  # noqa: ARG001 - a Format takes both
    """One line a hit: `1. (relevance: 0.91) the text`."""
    return "\n".join(f"{n}. (relevance: {h.score:.2f}) {shown_text(h)}" for n, h in enumerate(hits, 1))


def json_list(item: Callable[[Hit], Mapping[str, Any]]) -> Format:
    """A JSON array, one object a hit."""
    return lambda hits, ctx: as_json([item(hit) for hit in hits])


def as_json(value: Any) -> str:
    """JSON with umlauts as they are: a small model copies "ü" more surely than its escape."""
    return json.dumps(value, ensure_ascii=False)


def shortened(text: str, most: int) -> str:
    """A text of at most `most` characters; what is cut from its end is said."""
    if len(text) <= most:
        return text
    note = "\n({} more characters left out)"
    kept = max(most - len(note.format(len(text))), 0)
    return text[:kept] + note.format(len(text) - kept)


def fitted(
    hits: Sequence[Hit], ctx: Context, show: Format, cap: int = CAP, tail: str = ""
) -> tuple[str, Sequence[Hit]]:
    """The hits as text of at most `cap` characters, cut at whole hits; and the hits that were shown.

    How many are left out is said behind them, and `tail` stands on lines of its own behind that; both count
    as part of the text, as the trial cuts what is longer at its end. One hit is always shown, cut within if
    it alone is too long; a tail may take half of the room at most.
    """
    behind = f"\n{shortened(tail, cap // 2)}" if tail else ""
    shown = list(hits)
    while True:
        left_out = len(hits) - len(shown)
        note = f"\n({left_out} more left out to keep this short)" if left_out else ""
        said, room = show(shown, ctx), cap - len(note) - len(behind)
        if len(said) <= room or len(shown) <= 1:
            return f"{shortened(said, room)}{note}{behind}", shown
        shown.pop()
