"""Shared tool builders: save, search, get, update, delete, list, written once. Designs pick names and words.

Every builder takes the name and description that the model reads, and gives a `Tool` over the trial's
store. An empty result is an answer (`No memories found.`), a failed call is an error that says what to do:
the two never read alike (A31 of the requirements). What a builder cannot say is put together with `tool`
from the operations in `memeval.designs.notes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from memeval.designs import notes
from memeval.designs.base import Context
from memeval.designs.formats import CAP, NOTHING_FOUND, Format, Said, fitted, numbered, spoken
from memeval.errors import InputError, TextTooLongError
from memeval.memory.ranking import Ranker, SimilarityFloor
from memeval.memory.service import MemoryService
from memeval.messages import Effect, Intent, Tool, ToolResult
from memeval.records import Hit, Kind, Origin, Where

TIMEOUT = 20.0
"""Seconds a tool may take where its design says nothing else; LoCAL2's own limit."""
MISSING = "there is no memory with the id {id!r}; search for it first."
Run = Callable[[Mapping[str, Any], Context], ToolResult]
Intents = Sequence[Intent] | Callable[[Mapping[str, Any]], tuple[Intent, ...]]


def text(description: str, **more: Any) -> dict[str, Any]:
    """The schema of a string parameter."""
    return {"type": "string", "description": description, **more}


def texts(description: str) -> dict[str, Any]:
    """The schema of a parameter that is a list of strings."""
    return {"type": "array", "items": {"type": "string"}, "description": description}


def parameters(
    properties: Mapping[str, str | Mapping[str, Any]], required: Sequence[str] = ()
) -> dict[str, Any]:
    """A JSON Schema object from its parameters: a schema each, or the description of a string."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            name: text(part) if isinstance(part, str) else dict(part) for name, part in properties.items()
        },
    }
    if required:
        schema["required"] = list(required)
    return schema


def failed(said: str) -> ToolResult:
    """A call that did nothing, with a sentence the model can act on."""
    return ToolResult(text=f"Error: {said}", is_error=True)


def tool(
    name: str, description: str, properties: Mapping[str, str | Mapping[str, Any]], run: Run, *,
    required: Sequence[str] = (), effect: Effect = "read", intents: Intents = (), timeout_s: float = TIMEOUT,
    error: str = "Error: {}",
) -> Tool:  # fmt: skip
    """Any tool. An InputError that `run` raises is answered as an error in the design's own form."""

    def work(args: Mapping[str, Any], ctx: Context) -> ToolResult:
        try:
            return run(args, ctx)
        except (InputError, TextTooLongError) as problem:
            return ToolResult(text=error.format(problem), is_error=True)

    return Tool(
        name=name, description=description, parameters=parameters(properties, required), effect=effect,
        intents=intents if callable(intents) else lambda args: tuple(intents),
        run=work, timeout_s=timeout_s,
    )  # fmt: skip


def search(
    ctx: Context, query: str, where: Where, ranker: Ranker, k: int, *,
    show: Format = numbered, empty: str = NOTHING_FOUND, words: bool = True, cap: int = CAP,
) -> ToolResult:  # fmt: skip
    """A search as a tool's answer: the hits as `show` writes them, as many as fit into `cap` characters."""
    return answer(notes.find(ctx, query, where, ranker, k, words=words), ctx, show=show, empty=empty, cap=cap)


def answer(
    hits: Sequence[Hit], ctx: Context, *, show: Format = numbered, empty: str = NOTHING_FOUND, cap: int = CAP
) -> ToolResult:
    """Hits as a tool's answer, as many as fit; `empty` where there are none."""
    if not hits:
        return ToolResult(text=empty)
    said, shown = fitted(hits, ctx, show, cap)
    return ToolResult(text=said, hits=tuple(shown))


def service(ctx: Context, origin: Origin = "tool") -> MemoryService:
    """The seed's four methods over this trial's store, clock and ids."""
    return MemoryService(ctx.store, clock=ctx.clock, ids=ctx.ids, origin=origin)


def write_topic(
    ctx: Context, topic: str, content: str, prefixes: Sequence[str] = (), said: Said = "Memory saved: {topic}"
) -> ToolResult:
    """Upsert a topic; with `prefixes`, refuse keys that start with none of them (A12)."""
    if not topic.strip():
        raise InputError("topic is empty; give a key such as 'user.name'.")
    notes.check_content(content, "content is empty; give the value to store.")
    key = MemoryService.key(topic)
    if prefixes and not key.startswith(tuple(prefixes)):
        raise InputError(f"topic {topic!r} must start with one of: {', '.join(prefixes)}")
    record_id = service(ctx).write_topic(key, content)
    record = ctx.store.get(record_id)
    return ToolResult(text=spoken(said, record) if record else "", written=(record_id,))


def read_topic(
    ctx: Context, topic: str, found: Said = "{content}", missing: str = NOTHING_FOUND
) -> ToolResult:
    """The value of a topic, by its exact key; `found` is how it is shown, with {topic} and {content}.

    A key that only comes near a kept one is counted as `near_miss_keys`, and finds nothing all the same.
    """
    if not topic.strip():
        raise InputError("topic is empty; give a key such as 'user.name'.")
    record = service(ctx).topic_record(topic)
    if record is None:
        if notes.near_miss(ctx, MemoryService.key(topic)):
            ctx.counts["near_miss_keys"] += 1
        return ToolResult(text=missing.format(topic=topic))
    return ToolResult(text=spoken(found, record), hits=(Hit(record=record, score=1.0),))


# builders


def save_topic_tool(
    name: str, description: str, *, topic: str, content: str, prefixes: Sequence[str] = (),
    said: Said = "Memory saved: {topic}", names: tuple[str, str] = ("topic", "content"),
    error: str = "Error: {}",
) -> Tool:  # fmt: skip
    """A tool that stores a value under a key; `topic` and `content` describe its parameters."""
    key, value = names
    return tool(
        name, description, {key: topic, value: content},
        lambda args, ctx: write_topic(ctx, args[key], args[value], prefixes, said),
        required=names, effect="write", intents=("remember", "update"), error=error,
    )  # fmt: skip


def recall_topic_tool(
    name: str, description: str, *, topic: str, found: Said = "{content}", missing: str = NOTHING_FOUND,
    parameter: str = "topic", error: str = "Error: {}",
) -> Tool:  # fmt: skip
    """A tool that looks a key up exactly."""
    return tool(
        name, description, {parameter: topic},
        lambda args, ctx: read_topic(ctx, args[parameter], found, missing),
        required=[parameter], intents=("recall",), error=error,
    )  # fmt: skip


def save_tool(
    name: str, description: str, *, content: str | Mapping[str, Any] = "The text to remember.",
    parameter: str = "content", tags: str = "", kind: Kind = "note", said: Said = "Memory saved.",
    intents: Intents = ("remember", "note"), by_passage: bool = False, timeout_s: float = TIMEOUT,
    error: str = "Error: {}",
) -> Tool:  # fmt: skip
    """A tool that adds a free-form note; the same content twice is two notes. `tags` describes its tags."""

    def run(args: Mapping[str, Any], ctx: Context) -> ToolResult:
        record = notes.add(ctx, args[parameter], kind, tags=args.get("tags") or (), by_passage=by_passage)
        return ToolResult(text=spoken(said, record), written=(record.id,))

    more = {"tags": texts(tags)} if tags else {}
    return tool(
        name, description, {parameter: content, **more}, run,
        required=[parameter], effect="write", intents=intents, timeout_s=timeout_s, error=error,
    )  # fmt: skip


def search_tool(
    name: str, description: str, *, query: str = "What to look for.", kinds: tuple[Kind, ...] = ("note",),
    top_k: int = 5, limit: tuple[str, str] | None = None, most: int = 20, min_score: float = 0.3,
    ranker: Ranker | None = None, words: bool = False, show: Format = numbered, empty: str = NOTHING_FOUND,
    timeout_s: float = TIMEOUT, error: str = "Error: {}", cap: int = CAP,
) -> Tool:  # fmt: skip
    """A tool that searches; by meaning with a floor unless a `ranker` is given, `words` with the word leg.

    `limit` names and describes a parameter for how many are wanted, `top_k` of them unless it is given and
    at most `most`.
    """
    order = ranker or SimilarityFloor(min_score)

    def run(args: Mapping[str, Any], ctx: Context) -> ToolResult:
        k = notes.limited(args.get(limit[0]) if limit else None, top_k, most)
        return search(
            ctx, args["query"], Where(kinds=kinds), order, k, show=show, empty=empty, words=words, cap=cap
        )

    more = {limit[0]: {"type": "integer", "description": limit[1]}} if limit else {}
    return tool(
        name, description, {"query": query, **more}, run,
        required=["query"], intents=("search", "recall"), timeout_s=timeout_s, error=error,
    )  # fmt: skip


def get_tool(
    name: str, description: str, *, record_id: str = "The id of the memory.", parameter: str = "memory_id",
    kinds: tuple[Kind, ...] = ("note",), found: Said = "{content}",
    missing: str = MISSING,
    timeout_s: float = TIMEOUT, error: str = "Error: {}",
) -> Tool:  # fmt: skip
    """A tool that reads one memory by its id; an unknown id is an error that says what to do."""

    def run(args: Mapping[str, Any], ctx: Context) -> ToolResult:
        record = notes.look_up(ctx, args[parameter], kinds, missing)
        return ToolResult(text=spoken(found, record), hits=(Hit(record=record, score=1.0),))

    return tool(
        name, description, {parameter: record_id}, run,
        required=[parameter], intents=("recall",), timeout_s=timeout_s, error=error,
    )  # fmt: skip


def update_tool(
    name: str, description: str, *, record_id: str = "The id of the memory.", parameter: str = "memory_id",
    content: str | Mapping[str, Any] = "The new text.", tags: str = "", kinds: tuple[Kind, ...] = ("note",),
    said: Said = "Memory updated.", missing: str = MISSING, timeout_s: float = TIMEOUT,
    error: str = "Error: {}", fresh: bool = False,
) -> Tool:  # fmt: skip
    """A tool that gives a memory new text under its old id, whole or not at all.

    Tags left out stay, an empty list clears them (A22). `fresh` makes the time of writing new as well.
    """

    def run(args: Mapping[str, Any], ctx: Context) -> ToolResult:
        record = notes.change(
            ctx, args[parameter], args["content"], kinds, missing, tags=args.get("tags"), fresh=fresh
        )
        return ToolResult(text=spoken(said, record), written=(record.id,))

    more = {"tags": texts(tags)} if tags else {}
    return tool(
        name, description, {parameter: record_id, "content": content, **more}, run,
        required=[parameter, "content"], effect="write", intents=("update", "remember"), timeout_s=timeout_s,
        error=error,
    )  # fmt: skip


def delete_tool(
    name: str, description: str, *, record_id: str = "The id of the memory.", parameter: str = "memory_id",
    kinds: tuple[Kind, ...] = ("note",), said: Said = "Memory deleted.",
    missing: str = MISSING,
    timeout_s: float = TIMEOUT, error: str = "Error: {}",
) -> Tool:  # fmt: skip
    """A tool that removes a memory by its id."""

    def run(args: Mapping[str, Any], ctx: Context) -> ToolResult:
        record = notes.remove(ctx, args[parameter], kinds, missing)
        return ToolResult(text=spoken(said, record))

    return tool(
        name, description, {parameter: record_id}, run,
        required=[parameter], effect="write", intents=("forget",), timeout_s=timeout_s, error=error,
    )  # fmt: skip


def list_tool(
    name: str, description: str, *, kinds: tuple[Kind, ...] = ("note",), most: int = 20,
    show: Format = numbered, empty: str = NOTHING_FOUND, timeout_s: float = TIMEOUT, cap: int = CAP,
) -> Tool:  # fmt: skip
    """A tool that lists memories, the newest first."""

    def run(args: Mapping[str, Any], ctx: Context) -> ToolResult:  # noqa: ARG001 - a Run takes both
        newest = list(reversed(ctx.store.find(Where(kinds=kinds))))[:most]
        hits = [Hit(record=record, score=1.0) for record in newest]
        return answer(hits, ctx, show=show, empty=empty, cap=cap)

    return tool(name, description, {}, run, intents=("search", "recall"), timeout_s=timeout_s)
