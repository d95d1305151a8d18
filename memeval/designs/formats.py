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


def fitted(hits: Sequence[Hit], ctx: Context, show: Format, cap: int = CAP) -> tuple[str, Sequence[Hit]]:
    """The hits as text of at most `cap` characters, cut at whole hits; and the hits that were shown.

    One hit alone is always shown: the trial cuts what is still too long.
    """
    shown = list(hits)
    while len(said := show(shown, ctx)) > cap and len(shown) > 1:
        shown.pop()
    if len(shown) < len(hits):
        said += f"\n({len(hits) - len(shown)} more left out to keep this short)"
    return said, shown
