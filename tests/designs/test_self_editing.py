"""Self-editing memory: six tools and their words, three tiers, the gate, against 2.B.6 and 2.B.7."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from memeval.designs.base import Context
from memeval.designs.fence import UNTRUSTED
from memeval.designs.self_editing import SelfEditing, dice, terms
from memeval.embedding import open_embedder
from memeval.errors import InfrastructureError, InputError
from memeval.memory.inmemory import InMemoryStore
from memeval.messages import ToolResult
from memeval.records import Scope, SeededIds, StoryClock, Where

LESSON = "Roll back the deploy before draining the connection pool."
WRITES: list[tuple[str, dict[str, str]]] = [
    ("core_memory_write", {}),
    ("archival_memory_write", {"category": "semantic"}),
    ("recall_memory_write", {}),
]


@pytest.fixture
def ctx() -> Context:
    store = InMemoryStore("user", open_embedder("hash", cache=None))
    clock = StoryClock(datetime(2026, 5, 30, 9, tzinfo=UTC))
    return Context(scope=Scope("user", "session-1"), store=store, clock=clock, ids=SeededIds(1))


def call(ctx: Context, name: str, design: SelfEditing | None = None, **args: Any) -> ToolResult:
    return next(t for t in (design or SelfEditing()).tools() if t.name == name).run(args, ctx)


def test_2b6_there_are_six_tools_with_the_parameters_of_synthorg() -> None:
    tools = {t.name: (list(t.parameters["properties"]), t.effect) for t in SelfEditing().tools()}
    assert tools == {
        "core_memory_read": ([], "read"),
        "core_memory_write": (["content"], "write"),
        "archival_memory_search": (["query", "category", "limit"], "read"),
        "archival_memory_write": (["content", "category"], "write"),
        "recall_memory_read": (["memory_id"], "read"),
        "recall_memory_write": (["content"], "write"),
    }


@pytest.mark.parametrize("settings", [{"core_entries": 0}, {"core_tokens": 0}, {"min_score": -2.0}])
def test_a_setting_out_of_range_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"design 'self_editing': {next(iter(settings))} is .*; it must be "):
        SelfEditing(**settings)


def test_2b11_what_is_required_is_said() -> None:
    required = {t.name: t.parameters.get("required", []) for t in SelfEditing().tools()}
    assert required["archival_memory_search"] == ["query"]
    assert required["archival_memory_write"] == ["content", "category"]
    assert required["core_memory_read"] == []


def test_2b6_a_core_memory_is_stored_and_says_its_id(ctx: Context) -> None:
    stored = call(ctx, "core_memory_write", content="The user is called Ida.")
    (record,) = ctx.store.find(Where(kinds=("core",)))
    assert stored.text == f"Core memory stored (id={record.id})."
    assert (stored.written, stored.is_error) == ((record.id,), False)
    assert (record.origin, record.fields["category"]) == ("tool", "semantic")


def test_2b6_an_archival_memory_is_stored_and_says_its_id_and_category(ctx: Context) -> None:
    stored = call(ctx, "archival_memory_write", content="Deploys run on Fridays.", category="Procedural")
    (record,) = ctx.store.find(Where(kinds=("note",)))
    assert stored.text == f"Archival memory stored (id={record.id}, category=procedural)."
    assert record.fields["category"] == "procedural"


def test_2b6_an_event_is_recorded_and_says_its_id(ctx: Context) -> None:
    stored = call(ctx, "recall_memory_write", content="The user moved to Bergen.")
    (record,) = ctx.store.find(Where(kinds=("episodic",)))
    assert stored.text == f"Episodic memory recorded (id={record.id})."


def test_2b11_core_memory_is_read_with_ids(ctx: Context) -> None:
    (first,) = call(ctx, "core_memory_write", content="The user is called Ida.").written
    assert call(ctx, "core_memory_read").text == f"[semantic] (id={first}) The user is called Ida."


def test_2b11_empty_core_memory_is_an_answer_and_no_error(ctx: Context) -> None:
    read = call(ctx, "core_memory_read")
    assert (read.text, read.is_error) == ("No memories found.", False)


def test_2b6_core_memory_is_put_before_every_message(ctx: Context) -> None:
    design = SelfEditing()
    assert design.before_turn(ctx) is None
    call(ctx, "core_memory_write", content="The user is called Ida.")
    call(ctx, "archival_memory_write", content="Deploys run on Fridays.", category="semantic")
    for _ in range(2):
        injection = design.before_turn(ctx)
        assert injection is not None
        assert injection.text == (
            f"{UNTRUSTED}\n<memory-entry>[semantic] The user is called Ida.</memory-entry>"
        )
        assert [hit.record.kind for hit in injection.hits] == ["core"]


def test_2b6_a_twenty_first_core_memory_is_refused(ctx: Context) -> None:
    for number in range(20):
        assert not call(ctx, "core_memory_write", content=f"Fact {number}").is_error
    refused = call(ctx, "core_memory_write", content="One more")
    assert refused.is_error
    assert refused.text == "Error: Core memory is full (20 entries). Keep it in archival memory."
    assert ctx.store.count() == 20


def test_2b6_core_memory_beyond_its_tokens_is_refused_so_that_all_of_it_is_always_shown(ctx: Context) -> None:
    assert not call(ctx, "core_memory_write", content="x" * 3000).is_error
    refused = call(ctx, "core_memory_write", content="y" * 1200)
    assert refused.is_error
    assert "of 1024 tokens" in refused.text
    assert ctx.store.count() == 1
    injection = SelfEditing().before_turn(ctx)
    assert injection is not None
    assert len(injection.hits) == 1


def test_2b11_a_search_finds_archival_memories_and_events_but_not_core(ctx: Context) -> None:
    text = "The staging cluster is called Quillon"
    call(ctx, "core_memory_write", content=text)
    (note,) = call(ctx, "archival_memory_write", content=text, category="semantic").written
    (event,) = call(ctx, "recall_memory_write", content=text).written
    found = call(ctx, "archival_memory_search", query=text)
    assert set(found.text.splitlines()) == {
        f"[semantic] (id={note}) {text}",
        f"[episodic] (id={event}) {text}",
    }
    assert {hit.record.id for hit in found.hits} == {note, event}


def test_2b11_a_search_keeps_to_its_category(ctx: Context) -> None:
    for category in ("semantic", "social"):
        call(ctx, "archival_memory_write", content="Ida likes tea", category=category)
    found = call(ctx, "archival_memory_search", query="Ida likes tea", category="social")
    assert [hit.record.fields["category"] for hit in found.hits] == ["social"]


def test_2b11_a_search_for_an_unknown_category_is_an_error_that_names_them(ctx: Context) -> None:
    found = call(ctx, "archival_memory_search", query="tea", category="drinks")
    assert found.is_error
    assert found.text.startswith("Error: the category 'drinks' is none of working, episodic, semantic")


@pytest.mark.parametrize(("limit", "shown"), [(1, 1), (0, 1), (99, 12), (None, 10)])
def test_2b11_the_limit_is_clamped_and_ten_without_one(ctx: Context, limit: int | None, shown: int) -> None:
    for _ in range(12):
        call(ctx, "archival_memory_write", content="Ida likes tea", category="semantic")
    args = {} if limit is None else {"limit": limit}
    assert len(call(ctx, "archival_memory_search", query="Ida likes tea", **args).hits) == shown


def test_a_search_without_a_match_is_an_answer_and_no_error(ctx: Context) -> None:
    found = call(ctx, "archival_memory_search", query="tea")
    assert (found.text, found.is_error) == ("No memories found.", False)


def test_2b11_a_blank_query_is_an_error(ctx: Context) -> None:
    assert call(ctx, "archival_memory_search", query="  ").is_error


def test_2b6_a_working_memory_is_refused_and_the_categories_are_named(ctx: Context) -> None:
    refused = call(ctx, "archival_memory_write", content="Now at step 3", category="working")
    assert refused.text == (
        "Error: the category 'working' is none of episodic, semantic, procedural, social."
    )
    assert refused.is_error
    assert ctx.store.count() == 0


def test_2b11_a_memory_is_read_by_the_id_a_search_gave(ctx: Context) -> None:
    call(ctx, "recall_memory_write", content="The user moved to Bergen.")
    shown = call(ctx, "archival_memory_search", query="The user moved to Bergen.").text
    read = call(ctx, "recall_memory_read", memory_id=shown.partition("(id=")[2].partition(")")[0])
    assert (read.text, read.is_error) == ("[episodic] The user moved to Bergen.", False)


@pytest.mark.parametrize("memory_id", ["episodic-000000000000", "  ", "z" * 300])
def test_2b11_an_id_of_nothing_is_an_error(ctx: Context, memory_id: str) -> None:
    read = call(ctx, "recall_memory_read", memory_id=memory_id)
    assert read.is_error
    assert read.text.startswith("Error: ")


@pytest.mark.parametrize(("name", "args"), WRITES)
@pytest.mark.parametrize("content", ["", "   ", "x" * 50_001])
def test_2b11_content_that_cannot_be_kept_is_an_error_and_writes_nothing(
    ctx: Context, name: str, args: dict[str, str], content: str
) -> None:
    assert call(ctx, name, SelfEditing(write_gate="on"), content=content, **args).is_error
    assert ctx.store.count() == 0


@pytest.mark.parametrize(("name", "args"), WRITES)
def test_2b9_secrets_are_taken_out_before_a_memory_is_stored(
    ctx: Context, name: str, args: dict[str, str]
) -> None:
    call(ctx, name, content="The password: hunter22hunter, mail ida@example.org", **args)
    (record,) = ctx.store.find()
    assert record.text == "The password: [redacted], mail ida@example.org"
    assert record.fields["content"] == record.text


def test_2b11_trouble_of_the_store_is_never_an_answer(ctx: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **more: Any) -> Any:
        raise InfrastructureError("db down")

    monkeypatch.setattr(InMemoryStore, "candidates", broken)
    with pytest.raises(InfrastructureError):
        call(ctx, "archival_memory_search", query="tea")


# the write gate


def gated(ctx: Context, content: str, known: str = "") -> ToolResult:
    """An archival write with the gate on, after one of `known`."""
    if known:
        call(ctx, "archival_memory_write", content=known, category="semantic")
    return call(
        ctx, "archival_memory_write", SelfEditing(write_gate="on"), content=content, category="semantic"
    )


@pytest.mark.parametrize("known", [LESSON, "Roll back the deploy before draining connection pool."])
def test_2b7_the_same_fact_again_is_not_written_and_no_error(ctx: Context, known: str) -> None:
    again = gated(ctx, LESSON, known)
    (kept,) = ctx.store.find()
    assert again.text == f"Already in memory (id={kept.id}); nothing was written."
    assert (again.is_error, again.written, ctx.counts["duplicates"]) == (False, (), 1)


@pytest.mark.parametrize("known", ["", "Prefer the staging cluster for load tests.", "Roll back the deploy."])
def test_2b7_another_fact_is_written(ctx: Context, known: str) -> None:
    assert gated(ctx, LESSON, known).written
    assert ctx.counts["duplicates"] == 0


def test_2b7_the_nearest_is_named(ctx: Context) -> None:
    gated(ctx, "Something else entirely about billing.")
    (near,) = gated(ctx, LESSON).written
    assert f"(id={near})" in gated(ctx, LESSON).text


def test_2b7_without_the_gate_the_same_fact_is_two_memories(ctx: Context) -> None:
    for _ in range(2):
        call(ctx, "archival_memory_write", content=LESSON, category="semantic")
    assert ctx.store.count() == 2


def test_2b7_the_share_of_terms_is_dice_without_stop_words() -> None:
    assert dice(terms("The user's language is Elixir"), terms("the USER language: Elixir")) == 1.0
    assert dice(terms("language Elixir"), terms("language Gleam")) == 0.5
    assert dice(terms("not yet"), terms("yet")) == pytest.approx(2 / 3)
    assert dice(terms("the"), terms("a")) == 1.0


def test_2b7_a_changed_fact_in_nearly_the_same_words_is_taken_for_a_duplicate(ctx: Context) -> None:
    known = "My preferred programming language for new backend services is Elixir"
    assert not gated(ctx, known.replace("Elixir", "Gleam"), known).written
    short = "My preferred language is Elixir"
    assert gated(ctx, short.replace("Elixir", "Gleam"), short).written
