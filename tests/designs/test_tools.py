"""The shared tool builders: each through success, empty and error, with exact text and store."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memeval.designs import notes
from memeval.designs import tools as build
from memeval.designs.base import Context
from memeval.designs.formats import as_json, fitted, json_list, numbered
from memeval.embedding import open_embedder
from memeval.errors import InputError
from memeval.memory.inmemory import InMemoryStore
from memeval.messages import Tool, ToolResult
from memeval.records import Hit, Scope, SeededIds, StoryClock


@pytest.fixture
def ctx() -> Context:
    store = InMemoryStore("user", open_embedder("hash", cache=None))
    clock = StoryClock(datetime(2026, 5, 30, 9, tzinfo=UTC))
    return Context(scope=Scope("user", "session-1"), store=store, clock=clock, ids=SeededIds(1))


def call(tool: Tool, ctx: Context, **args: object) -> ToolResult:
    return tool.run(args, ctx)


SAVE = build.save_tool("save", "Save.", tags="Tags.", said="Saved as {id}.")
SEARCH = build.search_tool("search", "Search.", limit=("top_k", "How many."), min_score=-1.0)
GET = build.get_tool("get", "Get.")
UPDATE = build.update_tool("update", "Update.", tags="Tags.")
DELETE = build.delete_tool("delete", "Delete.")
LIST = build.list_tool("list", "List.")


def saved(ctx: Context, content: str = "The key is Quillon.", **more: object) -> str:
    (record_id,) = call(SAVE, ctx, content=content, **more).written
    return record_id


def test_saving_keeps_a_record_of_origin_tool_and_says_its_id(ctx: Context) -> None:
    result = call(SAVE, ctx, content="The key is Quillon.", tags=[" Key ", "key", ""])
    (record,) = ctx.store.find()
    assert result.text == f"Saved as {record.id}."
    assert (record.origin, record.tags, record.fields["content"]) == ("tool", ("key",), "The key is Quillon.")


def test_the_same_content_twice_is_two_records(ctx: Context) -> None:
    assert saved(ctx) != saved(ctx)
    assert ctx.store.count() == 2


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"content": " "}, "Error: content is empty; give the text to remember."),
        ({"content": "x" * 50_001}, "Error: content has 50001 characters; at most 50000 can be kept."),
        (
            {"content": "x", "tags": [str(n) for n in range(17)]},
            "Error: there are 17 tags; at most 16 can be kept.",
        ),
        (
            {"content": "x", "tags": ["y" * 65]},
            "Error: the tag 'yyyyyyyyyyyyyyyyyyyy'... has 65 characters; at most 64 can be kept.",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_kept_is_an_error_and_nothing_is_written(
    ctx: Context, args: dict[str, object], said: str
) -> None:
    result = call(SAVE, ctx, **args)
    assert (result.text, result.is_error, ctx.store.count()) == (said, True, 0)


def test_searching_an_empty_store_is_an_answer_and_an_empty_query_an_error(ctx: Context) -> None:
    assert call(SEARCH, ctx, query="key") == ToolResult(text="No memories found.")
    assert call(SEARCH, ctx, query=" ").text == "Error: query is empty; say what to look for."


@pytest.mark.parametrize(("asked", "given"), [(None, 5), (2, 2), (0, 1), (99, 20)])
def test_how_many_are_wanted_is_kept_within_bounds(ctx: Context, asked: int | None, given: int) -> None:
    for n in range(25):
        saved(ctx, f"note {n}")
    args = {} if asked is None else {"top_k": asked}
    assert len(call(SEARCH, ctx, query="note", **args).hits) == given


def test_a_memory_is_read_by_its_id_and_an_unknown_id_says_what_to_do(ctx: Context) -> None:
    assert call(GET, ctx, memory_id=saved(ctx)).text == "The key is Quillon."
    missing = call(GET, ctx, memory_id="note-9")
    assert missing.is_error
    assert missing.text == "Error: there is no memory with the id 'note-9'; search for it first."
    assert call(GET, ctx, memory_id=" ").text.startswith("Error: the id is empty")
    assert call(GET, ctx, memory_id="x" * 300).is_error


def test_a_memory_of_another_kind_is_not_found_by_its_id(ctx: Context) -> None:
    build.write_topic(ctx, "user.name", "Ann")
    (topic,) = ctx.store.find()
    assert call(GET, ctx, memory_id=topic.id).is_error
    assert call(DELETE, ctx, memory_id=topic.id).is_error
    assert ctx.store.count() == 1


def test_an_update_keeps_id_and_first_time_and_tags_that_are_left_out(ctx: Context) -> None:
    record_id = saved(ctx, tags=["key"])
    before = ctx.store.get(record_id)
    assert call(UPDATE, ctx, memory_id=record_id, content="The key is Ortolan.").written == (record_id,)
    after = ctx.store.get(record_id)
    assert before is not None
    assert after is not None
    assert (after.text, after.fields["content"]) == ("The key is Ortolan.", "The key is Ortolan.")
    assert (after.tags, after.created_at, after.updated_at > before.updated_at) == (
        ("key",),
        before.created_at,
        True,
    )
    call(UPDATE, ctx, memory_id=record_id, content="The key is Ortolan.", tags=[])
    cleared = ctx.store.get(record_id)
    assert cleared is not None
    assert cleared.tags == ()


def test_an_update_that_cannot_be_leaves_the_memory_as_it_was(ctx: Context) -> None:
    record_id = saved(ctx)
    before = ctx.store.snapshot()
    assert call(UPDATE, ctx, memory_id=record_id, content="").is_error
    assert call(UPDATE, ctx, memory_id="note-9", content="x").is_error
    assert ctx.store.snapshot() == before


def test_a_deleted_memory_is_gone_and_deleting_it_again_is_an_error(ctx: Context) -> None:
    record_id = saved(ctx)
    assert call(DELETE, ctx, memory_id=record_id).text == "Memory deleted."
    assert ctx.store.count() == 0
    assert call(DELETE, ctx, memory_id=record_id).is_error


def test_the_list_shows_the_newest_first(ctx: Context) -> None:
    assert call(LIST, ctx).text == "No memories found."
    saved(ctx, "one")
    saved(ctx, "two")
    assert [hit.record.text for hit in call(LIST, ctx).hits] == ["two", "one"]


def test_intents_follow_from_what_a_tool_does() -> None:
    assert [t.intents({})[0] for t in (SAVE, SEARCH, GET, UPDATE, DELETE, LIST)] == [
        "remember", "search", "recall", "update", "forget", "search"
    ]  # fmt: skip
    assert [t.effect for t in (SAVE, SEARCH, GET, UPDATE, DELETE, LIST)] == [
        "write", "read", "read", "write", "write", "read"
    ]  # fmt: skip


def test_an_answer_is_cut_at_whole_hits_and_says_how_many_are_left_out(ctx: Context) -> None:
    hits = [Hit(record=notes.add(ctx, f"note {n} " + "x" * 50, "note"), score=1.0) for n in range(9)]
    said, shown = fitted(hits, ctx, numbered, cap=250)
    assert len(shown) == 3
    assert said.endswith("\n(6 more left out to keep this short)")
    assert fitted(hits[:1], ctx, numbered, cap=10)[1] == hits[:1]


def test_json_keeps_umlauts_and_shows_one_object_a_hit(ctx: Context) -> None:
    hit = Hit(record=notes.add(ctx, "Grüße", "note"), score=1.0)
    assert json_list(lambda h: {"text": h.record.text})([hit], ctx) == '[{"text": "Grüße"}]'
    assert as_json({"a": None}) == '{"a": null}'


def test_a_design_may_word_errors_its_own_way(ctx: Context) -> None:
    def run(args: object, ctx: Context) -> ToolResult:
        raise InputError("key is required")

    tool = build.tool("save_topic", "", {}, run, error="[save_topic: {}]")
    assert call(tool, ctx) == ToolResult(text="[save_topic: key is required]", is_error=True)
