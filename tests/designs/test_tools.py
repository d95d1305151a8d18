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


def hits_of(ctx: Context, *texts: str) -> list[Hit]:
    return [Hit(record=notes.add(ctx, text, "note"), score=1.0) for text in texts]


def test_an_answer_is_cut_at_whole_hits_and_says_how_many_are_left_out(ctx: Context) -> None:
    hits = hits_of(ctx, *(f"note {n} " + "x" * 50 for n in range(9)))
    said, shown = fitted(hits, ctx, numbered, cap=290)
    assert len(shown) == 3
    assert said.endswith("x\n(6 more left out to keep this short)")
    assert fitted(hits[:1], ctx, numbered, cap=60)[1] == hits[:1]


@pytest.mark.parametrize("tail", ["", "Not enough?\nIgnored: x."])
@pytest.mark.parametrize("length", [10, 60, 61, 62, 63, 64, 65, 66, 67, 68, 69, 70, 230, 400])
def test_an_answer_keeps_its_bound_with_all_that_stands_behind_the_hits(
    ctx: Context, length: int, tail: str
) -> None:
    hits = hits_of(ctx, *("x" * (length + n) for n in range(9)))
    said, shown = fitted(hits, ctx, numbered, 250, tail)
    assert len(said) <= 250
    if tail:
        said = said.removesuffix(f"\n{tail}")
        assert "Ignored" not in said
    assert said.endswith(f"\n({9 - len(shown)} more left out to keep this short)") == (len(shown) < 9)


def test_one_hit_that_is_too_long_is_cut_within_and_says_how_much_is_missing(ctx: Context) -> None:
    hits = hits_of(ctx, "x" * 500, "y")
    said, shown = fitted(hits, ctx, numbered, 250, "The end.")
    cut, missing, left_out, tail = said.split("\n")
    assert set(cut.removeprefix("1. (relevance: 1.00) ")) == {"x"}
    assert missing == f"({len(numbered(hits[:1], ctx)) - len(cut)} more characters left out)"
    assert (left_out, tail) == ("(1 more left out to keep this short)", "The end.")
    assert (len(shown), len(said) <= 250) == (1, True)


def test_a_tail_that_is_too_long_leaves_half_of_the_room_to_the_hits(ctx: Context) -> None:
    said, shown = fitted(hits_of(ctx, "z" * 50), ctx, numbered, 250, "t" * 1000)
    assert (said.count("z"), len(shown), len(said) <= 250) == (50, 1, True)
    assert said.endswith(" more characters left out)")


@pytest.mark.parametrize("length", [1300, 5000])
def test_what_a_tool_answers_is_never_too_long_for_the_trial(ctx: Context, length: int) -> None:
    for _ in range(5):
        saved(ctx, "x" * length)
    answer = call(SEARCH, ctx, query="x").text
    assert len(answer) <= 4000
    assert answer.endswith(" more left out to keep this short)")


@pytest.mark.parametrize(
    ("kept", "asked", "near"),
    [
        ("user.language", "user.lang", True),
        ("user.language_preference", "user.language", True),
        ("user.language", "user.preferred_language", True),
        ("user.favourite_colour", "user.favorite_color", True),
        ("user.language", "language", True),
        ("user.name", "user.age", False),
        ("user.language", "user.age", False),
        ("user.city", "user.country", False),
    ],
)
def test_a11_a_look_up_that_just_misses_a_key_finds_nothing_and_is_counted(
    ctx: Context, kept: str, asked: str, near: bool
) -> None:
    build.write_topic(ctx, kept, "Quillon")
    build.write_topic(ctx, "project.deadline", "May")
    assert build.read_topic(ctx, asked) == ToolResult(text="No memories found.")
    assert ctx.counts == ({"near_miss_keys": 1} if near else {})
    assert build.read_topic(ctx, kept).text == "Quillon"
    assert ctx.counts["near_miss_keys"] == int(near)


def test_a11_with_nothing_kept_no_key_is_near(ctx: Context) -> None:
    notes.add(ctx, "user.language", "note")
    assert build.read_topic(ctx, "user.language").text == "No memories found."
    assert ctx.counts == {}


def test_json_keeps_umlauts_and_shows_one_object_a_hit(ctx: Context) -> None:
    hit = Hit(record=notes.add(ctx, "Grüße", "note"), score=1.0)
    assert json_list(lambda h: {"text": h.record.text})([hit], ctx) == '[{"text": "Grüße"}]'
    assert as_json({"a": None}) == '{"a": null}'


def test_a_design_may_word_errors_its_own_way(ctx: Context) -> None:
    def run(args: object, ctx: Context) -> ToolResult:
        raise InputError("key is required")

    tool = build.tool("save_topic", "", {}, run, error="[save_topic: {}]")
    assert call(tool, ctx) == ToolResult(text="[save_topic: key is required]", is_error=True)
