"""Memex against seed 001 (SO-3 to SO-6, SO-10), the texts of the paper's code (2.E) and A33."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from stories import call as made
from stories import run, story

import memeval.designs.memex as memex
from memeval.designs import register
from memeval.designs.base import Context
from memeval.designs.memex import Memex, described, first_words
from memeval.embedding import open_embedder
from memeval.errors import InputError
from memeval.memory.guard import GuardedStore
from memeval.memory.inmemory import InMemoryStore
from memeval.messages import Message, Reply, Tool, ToolCall, ToolResult, Usage
from memeval.models.base import Options
from memeval.records import Record, Scope, SeededIds, StoryClock

BLOCK = {"db_index": "ctx_budget", "db_content": "The budget is 3,140 crowns."}
SUMMARY = "- ctx_budget - what the trip may cost\nNext: book the train."


def context(user: str = "user", session: str = "session-1", **more: Any) -> Context:
    store = InMemoryStore(user, open_embedder("hash", cache=None))
    clock = StoryClock(datetime(2026, 5, 30, 9, tzinfo=UTC))
    return Context(scope=Scope(user, session), store=store, clock=clock, ids=SeededIds(1), **more)


def history(*said: str) -> list[Message]:
    """A system message, then the user and the assistant in turn."""
    roles = ("user", "assistant")
    turns = [Message(role=roles[at % 2], content=text) for at, text in enumerate(said)]  # type: ignore[arg-type]
    return [Message(role="system", content="Be brief."), *turns]


@pytest.fixture
def ctx() -> Context:
    messages = history("Let us plan a trip.", "Gladly.", "What is next?")
    return context(messages=messages, query="What is next?", options=Options(num_ctx=1000))


def called(messages: Sequence[Message], name: str) -> list[Message]:
    """A history that ends with the message that calls, as a tool sees it."""
    return [*messages, Message(role="assistant", content="", tool_calls=(ToolCall(name, {}),))]


def call(design: Memex, ctx: Context, name: str, **args: Any) -> ToolResult:
    tool = next(t for t in design.tools() if t.name == name)
    return tool.run(args, replace(ctx, messages=called(ctx.messages, name)))


def compress(design: Memex, ctx: Context, summary: str = SUMMARY, *blocks: dict[str, str]) -> ToolResult:
    return call(design, ctx, "CompressExperience", summary=summary, db_blocks=list(blocks or (BLOCK,)))


def after(ctx: Context, name: str, result: ToolResult) -> list[Message]:
    """The history as it is when the tool has answered."""
    return [*called(ctx.messages, name), Message(role="tool", content=result.text, tool_name=name)]


def valid(messages: Sequence[Message]) -> bool:
    """Whether any chat template takes it: user and assistant in turn, and no result without its call."""
    spoken = [m.role for m in messages[1:] if m.role != "tool" and not m.tool_calls]
    called = all(b.role != "tool" or a.tool_calls or a.role == "tool" for a, b in pairwise(messages))
    alternates = all(a != b for a, b in pairwise(spoken))
    return messages[0].role == "system" and spoken[0] == "user" and called and alternates


def test_so_3_the_tools_have_the_papers_names_and_parameters() -> None:
    compress, read = Memex().tools()
    assert (compress.name, read.name) == ("CompressExperience", "ReadExperience")
    assert compress.parameters["required"] == ["summary", "db_blocks"]
    block = compress.parameters["properties"]["db_blocks"]["items"]
    assert list(block["properties"]) == block["required"] == ["db_index", "db_content"]
    assert read.parameters["required"] == list(read.parameters["properties"]) == ["db_index"]


def test_so_3_blocks_are_archived_as_the_models_own_writing(ctx: Context) -> None:
    result = compress(Memex(), ctx)
    (record,) = ctx.store.find()
    assert (record.kind, record.origin, record.text) == ("archive", "tool", BLOCK["db_content"])
    assert record.fields == {"db_index": "ctx_budget", "description": "what the trip may cost"}
    assert result.written == (record.id,) == ("archive-ctx_budget",)
    assert (result.text, result.is_error) == ("Compressed. Kept: ctx_budget.", False)


def test_so_3_the_summary_replaces_all_but_the_system_message_and_the_task(ctx: Context) -> None:
    design = Memex()
    result = compress(design, ctx)
    kept = design.compact(ctx, after(ctx, "CompressExperience", result), result.directive)
    assert kept is not None
    assert [m.role for m in kept] == ["system", "user"]
    assert kept[0] == ctx.messages[0]
    assert kept[1].content.startswith(
        "=== Summary of the conversation so far ===\n[4 messages became this summary.]\n\n" + SUMMARY
    )
    assert kept[1].content.endswith("=== Current message ===\nWhat is next?")
    assert "Gladly." not in kept[1].content
    assert ctx.counts["compactions"] == 1


def test_so_3_without_a_call_the_history_stays_as_it_is(ctx: Context) -> None:
    assert Memex().compact(ctx, ctx.messages, "") is None
    assert ctx.counts == {}


def test_so_3_an_index_used_again_replaces_its_block(ctx: Context) -> None:
    compress(Memex(), ctx)
    compress(Memex(), ctx, SUMMARY, {"db_index": "ctx_budget", "db_content": "Now 4,000 crowns."})
    assert [record.text for record in ctx.store.find()] == ["Now 4,000 crowns."]


def test_so_4_a_block_is_read_back_word_for_word_by_its_index(ctx: Context) -> None:
    compress(Memex(), ctx, SUMMARY, BLOCK, {"db_index": "ctx_day", "db_content": "Friday"})
    found = call(Memex(), ctx, "ReadExperience", db_index=" ctx_budget ")
    assert found.text == "Retrieved [ctx_budget] (27 chars):\n\nThe budget is 3,140 crowns."
    assert [hit.record.id for hit in found.hits] == ["archive-ctx_budget"]


@pytest.mark.parametrize("mode", ["lossless", "rag"])
def test_2e_a_long_block_is_cut_where_the_status_begins(ctx: Context, mode: str) -> None:
    """The trial cuts an answer at 4,000 characters, and would take the status off."""
    design = Memex(mode=mode)
    compress(design, ctx, SUMMARY, {"db_index": "big", "db_content": "word " * 1000})
    found = call(
        design, ctx, "ReadExperience", **{"db_index": "big"} if mode == "lossless" else {"query": "word"}
    )
    said = design.on_result(ctx, made("ReadExperience"), found).text
    assert len(said) == 4000
    assert re.search(r"more characters left out\)\n\n\[Context Status: .*\n\[Available indices: big\]$", said)
    assert found.hits[0].record.text in said


@pytest.mark.parametrize("index", ["CTX_BUDGET", "ctx", "The budget is 3,140 crowns.", "a" * 65])
def test_so_4_an_index_must_match_exactly(ctx: Context, index: str) -> None:
    compress(Memex(), ctx)
    missing = call(Memex(), ctx, "ReadExperience", db_index=index)
    assert missing.is_error
    assert missing.text == f"Error: Index {index[:64]!r} not found. Available: ctx_budget"


def test_so_4_where_nothing_is_archived_a_read_says_so(ctx: Context) -> None:
    missing = call(Memex(), ctx, "ReadExperience", db_index="x")
    assert (missing.text, missing.is_error) == ("Error: Index 'x' not found. Available: none", True)


def test_so_4_a_block_that_the_story_gave_is_read_by_its_id(ctx: Context) -> None:
    now = ctx.clock()
    given = {"kind": "archive", "text": "A pine.", "origin": "given", "created_at": now, "updated_at": now}
    ctx.store.put(Record(id="given-1", **given))
    ctx.store.put(Record(id="given-2", **{**given, "kind": "note"}))
    assert call(Memex(), ctx, "ReadExperience", db_index="given-1").text.endswith("\n\nA pine.")
    assert call(Memex(), ctx, "ReadExperience", db_index="given-2").is_error


def test_so_5_the_index_table_pairs_every_index_with_its_description(ctx: Context) -> None:
    design = Memex()
    compress(design, ctx)
    result = compress(design, ctx, "Trains were compared.", {"db_index": "trains", "db_content": "9:40"})
    kept = design.compact(ctx, after(ctx, "CompressExperience", result), result.directive)
    assert kept is not None
    assert "\n\nIndex table:\n- ctx_budget - what the trip may cost\n- trains\n\n" in kept[1].content


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("- a - the budget", "the budget"),
        ("* `a`: the budget", "the budget"),
        ("a -> the budget", "the budget"),
        ("- a-b - the trains", ""),
        ("- a\n- b - the trains", ""),
        ("the budget is in a", ""),
    ],
)
def test_so_5_a_description_is_what_the_summarys_line_says(line: str, found: str) -> None:
    assert described(f"Index map:\n{line}\nDone.", "a") == found


def test_so_6_the_papers_figures_are_named_as_those_of_a_trained_model() -> None:
    said = " ".join((memex.__doc__ or "").split())
    assert "24.2 to 85.6 %" in said
    assert "must not be expected" in said


def test_so_10_the_description_asks_for_clean_boundaries() -> None:
    assert "one task is done and a new one begins; not within a task" in Memex().tools()[0].description
    assert Memex().serves() == {"compact", "recall"}


def test_2e_a_conversation_of_two_messages_is_not_compressed(ctx: Context) -> None:
    ctx.messages = history("Hello")
    refused = compress(Memex(), ctx)
    assert refused.text == "Not enough messages to compress. Go on with the task."
    assert (refused.is_error, refused.directive, ctx.store.count()) == (True, "", 0)


@pytest.mark.parametrize(
    ("blocks", "said"),
    [
        ([], "db_blocks is empty"),
        ([{"db_index": "my index", "db_content": "x"}], "'my index' is not valid; use 1 to 64 letters"),
        ([{"db_index": "a" * 65, "db_content": "x"}], "is not valid"),
        ([{"db_index": "", "db_content": "x"}], "'' is not valid"),
        ([BLOCK, {"db_index": "b", "db_content": " "}], "db_content of 'b' is empty"),
        ([BLOCK, BLOCK], "'ctx_budget' stands twice"),
        ([BLOCK, {"db_index": "b", "db_content": "\ud800"}], "half a surrogate pair"),
    ],
)
def test_2e_bad_blocks_are_refused_whole(ctx: Context, blocks: list[dict[str, str]], said: str) -> None:
    refused = call(Memex(), ctx, "CompressExperience", summary=SUMMARY, db_blocks=blocks)
    assert refused.text.startswith("Error: ")
    assert said in refused.text
    assert (refused.is_error, refused.directive, ctx.store.count()) == (True, "", 0)


def test_2e_an_empty_summary_is_an_error_and_writes_nothing(ctx: Context) -> None:
    refused = compress(Memex(), ctx, " ")
    assert refused.text.startswith("Error: summary is empty")
    assert ctx.store.count() == 0


def test_2e_where_nothing_may_be_written_nothing_is_compressed(ctx: Context) -> None:
    ctx.store = GuardedStore(ctx.store, read_only=True)
    refused = compress(Memex(), ctx)
    assert (refused.is_error, refused.directive) == (True, "")


def test_2e_an_observation_ends_with_status_and_indices(ctx: Context) -> None:
    design = Memex()
    compress(design, ctx)
    ctx.usage = Usage(prompt=300)
    result = design.on_result(ctx, made("ReadExperience"), ToolResult(text="Found.", is_error=True))
    assert result.is_error
    assert result.text == (
        "Found.\n\n[Context Status: working tokens=300, threshold=700]\n[Available indices: ctx_budget]"
    )


@pytest.mark.parametrize(
    ("used", "ends"),
    [
        (560, "threshold=700]"),
        (561, "[Warning: near the threshold, consider compressing]"),
        (701, "[Warning: above the threshold, compress now]"),
    ],
)
def test_2e_the_status_warns_above_eight_tenths_of_the_threshold(ctx: Context, used: int, ends: str) -> None:
    ctx.usage = Usage(prompt=used)
    assert Memex().before_turn(ctx).text.endswith(ends)


def test_2e_working_tokens_follow_the_servers_count_and_what_was_said_since(ctx: Context) -> None:
    design = Memex()
    design.compact(ctx, ctx.messages, "")
    ctx.usage = Usage(prompt=300, output=9)
    ctx.messages = [*ctx.messages, Message(role="assistant", content="x" * 80)]
    assert "working tokens=325," in design.before_turn(ctx).text


def test_2e_before_the_first_count_working_tokens_are_estimated_tools_included(ctx: Context) -> None:
    said = Memex().before_turn(ctx).text
    used = int(said.partition("tokens=")[2].partition(",")[0])
    schemas = sum(len(json.dumps(tool.schema())) for tool in Memex().tools())
    assert abs(used - schemas / 4) < 40


def test_2e_after_a_compression_the_status_is_of_the_shorter_history(ctx: Context) -> None:
    design = Memex()
    ctx.messages = history("x" * 2000, "Gladly.", "What is next?")
    design.compact(ctx, ctx.messages, "")
    ctx.usage = Usage(prompt=900)
    kept = design.compact(ctx, ctx.messages, "All is settled.")
    assert kept is not None
    assert "[Context Status: working tokens=4" in kept[1].content
    assert "Warning" not in kept[1].content


def test_2e_a_second_compression_in_one_turn_keeps_only_its_own_summary(ctx: Context) -> None:
    design = Memex()
    first = design.compact(ctx, ctx.messages, "The first summary.")
    assert first is not None
    second = design.compact(ctx, [*first, *history()[1:]], "The second summary.")
    assert second is not None
    assert "first" not in second[1].content
    assert second[1].content.count("What is next?") == 1


def test_2e_histories_stay_valid_for_any_template_over_many_turns(ctx: Context) -> None:
    design, messages = Memex(), history("One")
    for turn, said in enumerate(["Two", "Three", "Four"]):
        ctx.messages, ctx.query = messages, messages[-1].content
        result = call(design, ctx, "CompressExperience", summary=f"Turn {turn}", db_blocks=[BLOCK])
        messages = design.compact(ctx, after(ctx, "CompressExperience", result), result.directive) or messages
        assert valid(messages)
        messages = [*messages, Message(role="assistant", content="Yes."), Message(role="user", content=said)]
    assert valid(messages)
    assert [m.role for m in messages] == ["system", "user", "assistant", "user"]


def test_2e_the_next_session_begins_with_what_each_index_holds(ctx: Context) -> None:
    compress(Memex(), ctx)
    later = context(session="session-2", messages=history())
    later.store = ctx.store
    said = Memex().before_turn(later).text
    assert "[Available indices: ctx_budget - what the trip may cost]" in said
    assert "3,140" in call(Memex(), later, "ReadExperience", db_index="ctx_budget").text


def test_2e_indices_never_cross_users(ctx: Context) -> None:
    compress(Memex(), ctx)
    other = context("other", messages=history())
    assert "indices" not in Memex().before_turn(other).text
    assert call(Memex(), other, "ReadExperience", db_index="ctx_budget").is_error


def test_2e_a_status_lists_the_newest_blocks_and_counts_the_older(ctx: Context) -> None:
    for n in range(22):
        compress(Memex(), ctx, SUMMARY, {"db_index": f"b{n}", "db_content": "x"})
    said = Memex().on_result(ctx, made("x"), ToolResult(text="")).text
    assert "[Available indices: b2, b3, " in said
    assert said.endswith("b21, and 2 older]")


def test_2e_lossy_archives_nothing_and_has_nothing_to_read(ctx: Context) -> None:
    design = Memex(mode="lossy")
    (tool,) = design.tools()
    assert tool.parameters["required"] == list(tool.parameters["properties"]) == ["summary"]
    result = call(design, ctx, "CompressExperience", summary="The budget is 3,140.")
    assert (result.text, result.written, ctx.store.count()) == ("Compressed.", (), 0)
    kept = design.compact(ctx, after(ctx, "CompressExperience", result), result.directive)
    assert kept is not None
    assert "The budget is 3,140." in kept[1].content
    assert "Index table" not in kept[1].content
    assert "ReadExperience" not in design.system_prompt()
    assert design.serves() == {"compact"}


def test_2e_rag_takes_the_one_block_whose_words_fit_best(ctx: Context) -> None:
    design = Memex(mode="rag")
    assert list(design.tools()[1].parameters["properties"]) == ["query"]
    compress(design, ctx, SUMMARY, BLOCK, {"db_index": "t", "db_content": "The train leaves at 9:40."})
    found = call(design, ctx, "ReadExperience", query="when does the train leave")
    assert found.text == "Retrieved [t] (25 chars):\n\nThe train leaves at 9:40."
    assert len(found.hits) == 1


@pytest.mark.parametrize("store", ["empty", "filled"])
def test_2e_rag_without_a_matching_word_is_an_answer_and_no_error(ctx: Context, store: str) -> None:
    if store == "filled":
        compress(Memex(mode="rag"), ctx)
    found = call(Memex(mode="rag"), ctx, "ReadExperience", query="zebra")
    assert (found.text, found.is_error, found.hits) == ("No block has any of these words.", False, ())


def test_2e_an_empty_query_is_an_error(ctx: Context) -> None:
    assert call(Memex(mode="rag"), ctx, "ReadExperience", query=" ").is_error


def test_a33_a_summary_is_cut_at_300_words_and_says_so(ctx: Context) -> None:
    long = "Index map:\n" + " ".join(f"w{n}" for n in range(400))
    result = compress(Memex(), ctx, long)
    assert result.directive.startswith("Index map:\nw0 w1 ")
    assert result.directive.endswith("w296 w297\n[cut at 300 words]")
    assert ctx.counts["summaries_cut"] == 1
    assert first_words("a  b\nc", 3) == "a  b\nc"


def test_a33_blocks_take_content_and_no_anchors() -> None:
    assert "anchor" not in json.dumps(Memex().tools()[0].schema())


@pytest.mark.parametrize("settings", [{"threshold": 0.0}, {"threshold": 1.5}, {"summary_tokens": 0}])
def test_a_setting_out_of_range_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"{next(iter(settings))} is "):
        Memex(**settings)


# whole trials

TRIP = {"budget": {"text": "The trip may cost 3,140 crowns.", "values": ["3,140"]}}
TELL = {"user": "Our trip may cost 3,140 crowns."}
ASK = {
    "user": "What may the trip cost?",
    "expect": {"intent": "recall", "facts": ["budget"], "answer": {"states": ["budget"]}},
}


def test_2e_a_whole_story_is_compressed_and_read_back_in_the_next_session() -> None:
    """The blocks come as a JSON string, as small models write them."""
    compressing = made("CompressExperience", summary=SUMMARY, db_blocks=json.dumps([BLOCK]))
    reading = made("ReadExperience", db_index="ctx_budget")
    answers = ["Noted.", compressing, "Done.", reading, "It may cost 3,140 crowns."]
    seen: list[Sequence[Message]] = []

    def script(messages: Sequence[Message], tools: Sequence[Tool]) -> Any:
        seen.append(list(messages))
        return answers[len(seen) - 1]

    register(Memex)
    tale = story([TELL, {"user": "Something else.", "filler": 5}], [ASK], facts=TRIP)
    result = run(tale, script, "memex", options=Options(num_ctx=1000))
    assert (result.trial.outcome, result.trial.passed) == ("ok", True)
    assert (result.trial.called, result.trial.retrieved, result.trial.coerced) == (True, True, 1)
    assert result.trial.counts["compactions"] == 1
    assert [len(messages) for messages in seen] == [2, 14, 2, 2, 4]
    assert all(valid(messages) for messages in seen)
    assert seen[3][1].content.startswith("[Context Status: working tokens=")
    assert "[Available indices: ctx_budget - what the trip may cost]" in seen[3][1].content


@pytest.mark.parametrize("blocks", ['[{"db_index": "a"}]', "a, b", [{"db_index": 1, "db_content": "x"}]])
def test_2e_blocks_of_a_wrong_form_are_bad_arguments_and_compress_nothing(blocks: Any) -> None:
    register(Memex)
    script = ["Noted.", made("CompressExperience", summary=SUMMARY, db_blocks=blocks), "3,140."]
    result = run(story([TELL, ASK], facts=TRIP), script, "memex")
    assert result.trial.bad_arguments == 1
    assert "compactions" not in result.trial.counts


def test_2e_one_users_blocks_are_not_listed_to_another() -> None:
    tale = story([TELL, {"user": "Next."}], [{"user": "Hello."}], facts=TRIP).model_dump()
    tale["sessions"][1]["user"] = "other"
    said: list[str] = []

    def script(messages: Sequence[Message], tools: Sequence[Tool]) -> Reply | str | ToolCall:
        said.append(messages[-1].content)
        return made("CompressExperience", summary=SUMMARY, db_blocks=[BLOCK]) if len(said) == 2 else "Yes."

    register(Memex)
    run(type(story([TELL])).model_validate(tale), script, "memex")
    assert "ctx_budget" in said[2]
    assert "ctx_budget" not in said[3]
