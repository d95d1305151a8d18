"""Shared tool builders: saving, looking up and searching, written once. Designs pick names and words.

Every builder takes the name and description that the model reads, and gives a `Tool` over the trial's
store. An empty result is an answer (`No memories found.`), a failed call is an error that says what to do:
the two never read alike (A31 of the requirements).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from memeval.designs.base import Context
from memeval.memory.ranking import SimilarityFloor
from memeval.memory.service import MemoryService
from memeval.messages import Intent, Tool, ToolResult
from memeval.records import Hit, Kind, Origin, Record, Where

NOTHING_FOUND = "No memories found."
Format = Callable[[Sequence[Hit], Context], str]


def parameters(properties: Mapping[str, str], required: Sequence[str] = ()) -> dict[str, Any]:
    """A JSON Schema object of string parameters, from their names and descriptions."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: {"type": "string", "description": text} for name, text in properties.items()},
    }
    if required:
        schema["required"] = list(required)
    return schema


def failed(text: str) -> ToolResult:
    """A call that did nothing, with a sentence the model can act on."""
    return ToolResult(text=f"Error: {text}", is_error=True)


def service(ctx: Context, origin: Origin = "tool") -> MemoryService:
    """The seed's four methods over this trial's store, clock and ids."""
    return MemoryService(ctx.store, clock=ctx.clock, ids=ctx.ids, origin=origin)


def write_topic(ctx: Context, topic: str, content: str, prefixes: Sequence[str], said: str) -> ToolResult:
    """Upsert a topic; with `prefixes`, refuse keys that start with none of them (A12)."""
    if not topic.strip():
        return failed("topic is empty; give a key such as 'user.name'.")
    if not content.strip():
        return failed("content is empty; give the value to store.")
    key = MemoryService.key(topic)
    if prefixes and not key.startswith(tuple(prefixes)):
        return failed(f"topic {topic!r} must start with one of: {', '.join(prefixes)}")
    record = service(ctx).write_topic(key, content)
    return ToolResult(text=said.format(topic=key), written=(record,))


def read_topic(ctx: Context, topic: str, found: str) -> ToolResult:
    """The value of a topic, by its exact key; `found` is how it is shown, with {topic} and {content}."""
    if not topic.strip():
        return failed("topic is empty; give a key such as 'user.name'.")
    record = service(ctx).topic_record(topic)
    if record is None:
        return ToolResult(text=NOTHING_FOUND)
    text = found.format(topic=record.fields.get("topic", topic), content=record.text)
    return ToolResult(text=text, hits=(Hit(record=record, score=1.0),))


def write_note(ctx: Context, content: str, kind: Kind, said: str) -> ToolResult:
    """Add a record; the same content twice is two records."""
    if not content.strip():
        return failed("content is empty; give the text to remember.")
    now = ctx.clock()
    record = Record(
        id=ctx.ids(kind), kind=kind, text=content, origin="tool", created_at=now, updated_at=now,
        fields={"content": content},
    )  # fmt: skip
    return ToolResult(text=said, written=(ctx.store.put(record),))


def search(
    ctx: Context, query: str, kinds: tuple[Kind, ...], *, top_k: int, min_score: float, show: Format
) -> ToolResult:
    """The nearest records by meaning, none below `min_score` cosine."""
    if not query.strip():
        return failed("query is empty; say what to look for.")
    found = ctx.store.candidates(query, Where(kinds=kinds), k=top_k, words=False)
    hits = tuple(SimilarityFloor(min_score).rank(found, top_k))
    return ToolResult(text=show(hits, ctx) if hits else NOTHING_FOUND, hits=hits)


def numbered(hits: Sequence[Hit], ctx: Context) -> str:  # noqa: ARG001 - a Format takes both
    """One line a hit: `1. (relevance: 0.91) the text`."""
    return "\n".join(f"{n}. (relevance: {h.score:.2f}) {h.record.text}" for n, h in enumerate(hits, 1))


def _always(*intents: Intent) -> Callable[[Mapping[str, Any]], tuple[Intent, ...]]:
    return lambda args: intents


def save_topic_tool(
    name: str, description: str, *, topic: str, content: str,
    prefixes: Sequence[str] = (), said: str = "Memory saved: {topic}",
) -> Tool:  # fmt: skip
    """A tool that stores a value under a key; `topic` and `content` describe its parameters."""
    return Tool(
        name=name,
        description=description,
        parameters=parameters({"topic": topic, "content": content}, ["topic", "content"]),
        effect="write",
        intents=_always("remember", "update"),
        run=lambda args, ctx: write_topic(ctx, args["topic"], args["content"], prefixes, said),
    )


def recall_topic_tool(name: str, description: str, *, topic: str, found: str = "{content}") -> Tool:
    """A tool that looks a key up exactly."""
    return Tool(
        name=name,
        description=description,
        parameters=parameters({"topic": topic}, ["topic"]),
        effect="read",
        intents=_always("recall"),
        run=lambda args, ctx: read_topic(ctx, args["topic"], found),
    )


def save_tool(
    name: str, description: str, *, content: str = "The text to remember.", kind: Kind = "note",
    said: str = "Memory saved.", intents: tuple[Intent, ...] = ("remember", "note"),
) -> Tool:  # fmt: skip
    """A tool that adds a free-form note; `content` describes its parameter."""
    return Tool(
        name=name,
        description=description,
        parameters=parameters({"content": content}, ["content"]),
        effect="write",
        intents=_always(*intents),
        run=lambda args, ctx: write_note(ctx, args["content"], kind, said),
    )


def search_tool(
    name: str, description: str, *, query: str = "What to look for.", kinds: tuple[Kind, ...] = ("note",),
    top_k: int = 5, min_score: float = 0.3, show: Format = numbered,
) -> Tool:  # fmt: skip
    """A tool that searches by meaning; `query` describes its parameter."""
    return Tool(
        name=name,
        description=description,
        parameters=parameters({"query": query}, ["query"]),
        effect="read",
        intents=_always("search", "recall"),
        run=lambda args, ctx: search(
            ctx, args["query"], kinds, top_k=top_k, min_score=min_score, show=show
        ),
    )  # fmt: skip
