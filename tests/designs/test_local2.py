"""LoCAL2's two designs, against the words and formats of seed 000."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from memeval.designs import notes, open_design
from memeval.designs.base import Context
from memeval.designs.local2 import SINGLE, Local2Dual, Local2Single
from memeval.designs.surface import Surface
from memeval.designs.tools import NOTHING_FOUND
from memeval.embedding import open_embedder
from memeval.errors import InputError
from memeval.memory.inmemory import InMemoryStore
from memeval.messages import ToolCall, ToolResult
from memeval.records import Scope, SeededIds, StoryClock


@pytest.fixture
def ctx() -> Context:
    store = InMemoryStore("user", open_embedder("hash", cache=None))
    clock = StoryClock(datetime(2026, 5, 30, 9, tzinfo=UTC))
    return Context(scope=Scope("user", "session-1"), store=store, clock=clock, ids=SeededIds(1))


def call(design: Any, ctx: Context, name: str, **args: str) -> ToolResult:
    return next(t for t in design.tools() if t.name == name).run(args, ctx)


def test_the_dual_design_has_the_seeds_two_tools() -> None:
    recall, save = Local2Dual().tools()
    assert (recall.name, save.name) == ("memory_recall", "memory_save")
    assert list(recall.parameters["properties"]) == ["topic", "query"]
    assert "required" not in recall.parameters
    assert save.parameters["required"] == ["topic", "content"]
    assert recall.description.startswith("Retrieve from memory. Two modes: (1) topic lookup — pass topic key")
    assert save.description.endswith("Overwrites any previous value for the same topic key.")


def test_the_single_design_has_the_four_tools_with_the_tables_sentences() -> None:
    tools = {t.name: t for t in Local2Single().tools()}
    assert list(tools) == ["save_topic", "recall_topic", "save_memory", "search_memory"]
    assert tools["save_topic"].description == (
        "User asks to remember a preference, rule, or fact permanently across sessions"
    )
    assert list(tools["save_memory"].parameters["properties"]) == ["content"]


def test_a_saved_topic_is_recalled_in_the_seeds_format(ctx: Context) -> None:
    saved = call(Local2Dual(), ctx, "memory_save", topic="user.language_preference", content="Elixir")
    assert saved.text == "Memory saved: user.language_preference"
    found = call(Local2Dual(), ctx, "memory_recall", topic="user.language_preference")
    assert found.text == "[Memory: user.language_preference]\nElixir"


def test_an_episode_is_shown_in_the_seeds_format(ctx: Context) -> None:
    design = Local2Dual(min_score=0.0)
    ctx.query, ctx.answer = "What is the capital of France?", "Paris."
    design.after_turn(ctx)
    ctx.clock.set(datetime(2026, 5, 31, 9, tzinfo=UTC))  # type: ignore[attr-defined]
    found = call(design, ctx, "memory_recall", query="What is the capital of France?")
    assert re.fullmatch(
        r"\[Memory recall — 2026-05-31\]\n\n1\. \(relevance: \d\.\d\d\) 2026-05-30\n"
        r"   Q: What is the capital of France\?\n   A: Paris\.",
        found.text,
    )
    assert found.hits[0].record.origin == "hook"


@pytest.mark.parametrize("args", [{"topic": "user.name"}, {"query": "anything"}])
def test_a_cold_start_is_an_answer_and_no_error(ctx: Context, args: dict[str, str]) -> None:
    found = call(Local2Dual(), ctx, "memory_recall", **args)
    assert (found.text, found.is_error) == (NOTHING_FOUND, False)


def test_recall_without_arguments_says_what_to_pass(ctx: Context) -> None:
    assert call(Local2Dual(), ctx, "memory_recall", topic=" ").is_error


def test_a_topic_wins_over_a_query(ctx: Context) -> None:
    call(Local2Dual(), ctx, "memory_save", topic="user.name", content="Richard")
    assert "Richard" in call(Local2Dual(), ctx, "memory_recall", topic="user.name", query="zebra").text


def test_a_wrong_prefix_is_refused_unless_prefixes_are_advice(ctx: Context) -> None:
    refused = call(Local2Dual(), ctx, "memory_save", topic="language", content="Elixir")
    assert refused.is_error
    assert "user., project., constraint." in refused.text
    assert ctx.store.count() == 0
    assert not call(
        Local2Dual(topic_prefix="advise"), ctx, "memory_save", topic="language", content="E"
    ).is_error


def test_empty_content_is_an_error_and_writes_nothing(ctx: Context) -> None:
    assert call(Local2Single(), ctx, "save_topic", topic="user.name", content=" ").is_error
    assert call(Local2Single(), ctx, "save_memory", content="").is_error
    assert ctx.store.count() == 0


def test_a_free_note_is_found_by_search(ctx: Context) -> None:
    design = Local2Single()
    assert call(design, ctx, "save_memory", content="The deploy key is Quillon").text == "Memory saved."
    found = call(design, ctx, "search_memory", query="The deploy key is Quillon")
    assert "Quillon" in found.text
    assert found.hits[0].record.origin == "tool"


@pytest.mark.parametrize(("query", "answer"), [("", "an answer"), ("a question", "")])
def test_an_empty_turn_is_not_ingested(ctx: Context, query: str, answer: str) -> None:
    ctx.query, ctx.answer = query, answer
    Local2Dual().after_turn(ctx)
    assert ctx.store.count() == 0


@pytest.mark.parametrize("write_path", ["tool", "off"])
def test_only_auto_turn_ingests(ctx: Context, write_path: str) -> None:
    ctx.query, ctx.answer = "a", "b"
    Local2Dual(write_path=write_path).after_turn(ctx)
    assert ctx.store.count() == 0


@pytest.mark.parametrize(
    ("called", "kept"),
    [
        ((), 1),
        (("memory_save",), 1),
        (("weather",), 1),
        (("memory_save", "memory_recall"), 0),
    ],
)
def test_a13_a_turn_that_read_a_memory_may_be_left_out(
    ctx: Context, called: tuple[str, ...], kept: int
) -> None:
    ctx.query, ctx.answer = "What was it?", "Quillon."
    ctx.calls = [ToolCall(name, {}) for name in called]
    Local2Dual(write_path="auto_unread").after_turn(ctx)
    assert ctx.store.count() == kept
    Local2Dual().after_turn(ctx)
    assert ctx.store.count() == kept + 1


SURFACES = [
    (Surface(shape="merged"), ToolCall("memory", {"action": "memory_recall"}), True),
    (Surface(shape="merged"), ToolCall("memory", {"action": "memory_save"}), False),
    (Surface(shape="split"), ToolCall("memory_recall_query", {}), True),
    (Surface(names="neutral"), ToolCall("tool_a", {}), True),
    (Surface(names="neutral"), ToolCall("tool_b", {}), False),
    (Surface(names="neutral", shape="split"), ToolCall("tool_b", {}), True),
]


@pytest.mark.parametrize(("surface", "made", "reads"), SURFACES)
def test_a13_a_turn_that_read_a_memory_is_known_behind_any_surface(
    ctx: Context, surface: Surface, made: ToolCall, reads: bool
) -> None:
    ctx.query, ctx.answer, ctx.calls = "What was it?", "Quillon.", [made]
    surface.on(Local2Dual(write_path="auto_unread")).after_turn(ctx)
    assert ctx.store.count() == int(not reads)


def test_a_question_without_an_answer_is_shown_by_its_text(ctx: Context) -> None:
    notes.add(ctx, "alpha beta", "episodic", fields={"query": "alpha?"})
    found = call(Local2Dual(min_score=-1.0), ctx, "memory_recall", query="alpha beta")
    assert found.text.endswith(" 2026-05-30\n   alpha beta")


@pytest.mark.parametrize(
    ("design", "setting"),
    [("local2_dual", {"descriptions": "length_matched"}), ("local2_search", {"write_path": "tool"})],
)
def test_a_setting_that_would_do_nothing_is_refused(design: str, setting: dict[str, str]) -> None:
    with pytest.raises(InputError, match="it can be"):
        open_design({design: setting})


def test_without_writes_no_tool_that_writes_is_offered() -> None:
    assert [t.name for t in Local2Single(write_path="off").tools()] == ["recall_topic", "search_memory"]


def test_a_dual_mode_tool_serves_by_its_arguments() -> None:
    recall = Local2Dual().tools()[0]
    assert recall.intents({"topic": "user.name"}) == ("recall",)
    assert recall.intents({"query": "name"})[0] == "search"
    assert Local2Dual().serves() == {"recall", "search", "remember", "update"}


def test_length_matched_descriptions_are_as_long_as_the_two_tools() -> None:
    def length(texts: Any) -> int:
        return sum(len(re.findall(r"\w+|[^\w\s]", text)) for text in texts)

    dual = length(t.description for t in Local2Dual().tools())
    matched = length(SINGLE["length_matched"].values())
    assert abs(matched - dual) / dual < 0.05
    assert length(SINGLE["as_written"].values()) < dual / 2
