"""Compaction at the model's wish, against seed 001 (SO-10) and what 2.E says of deepagents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from stories import call as made
from stories import run, story

from memeval.designs import register
from memeval.designs.base import Context
from memeval.designs.compact_tool import CompactTool
from memeval.designs.formats import as_json
from memeval.designs.memex import Memex
from memeval.designs.window import estimated, transcript
from memeval.embedding import open_embedder
from memeval.errors import InfrastructureError, InputError, ModelFailureError
from memeval.memory.guard import GuardedStore
from memeval.memory.inmemory import InMemoryStore
from memeval.messages import Message, Reply, Tool, ToolCall, ToolResult, Usage
from memeval.models.base import Options
from memeval.models.scripted import ScriptedModel
from memeval.records import Scope, SeededIds, StoryClock
from memeval.scenarios.loader import load_scenarios
from memeval.scenarios.schema import Scenario

SUMMARY = "They plan a trip for 3,140 crowns."
OPTIONS = Options(num_ctx=1000)
OVERFLOW = ModelFailureError("the prompt is too long", kind="context_overflow")
HISTORY = "user: Our trip may cost 3,140 crowns.\nassistant: Gladly noted."


def conversation(*said: str) -> list[Message]:
    """A system message, then the user and the assistant in turn."""
    roles = ("user", "assistant")
    turns = [Message(role=roles[at % 2], content=text) for at, text in enumerate(said)]  # type: ignore[arg-type]
    return [Message(role="system", content="Be brief."), *turns]


def context(answer: Any = SUMMARY, user: str = "user", session: str = "session-1", **more: Any) -> Context:
    """A turn in a context of 1,000 tokens, 500 of them used; `answer` is what the model says to anything."""
    messages = conversation("Our trip may cost 3,140 crowns.", "Gladly noted.", "x" * 500)
    return Context(
        scope=Scope(user, session), store=InMemoryStore(user, open_embedder("hash", cache=None)),
        clock=StoryClock(datetime(2026, 5, 30, 9, tzinfo=UTC)), ids=SeededIds(1), options=OPTIONS,
        model=ScriptedModel(lambda messages, tools: answer),
        **{"messages": messages, "usage": Usage(prompt=500), **more},
    )  # fmt: skip


def call(design: CompactTool, ctx: Context, name: str, **args: Any) -> ToolResult:
    """A call with the message that makes it at the end of the history, as a tool sees it."""
    calling = Message(role="assistant", content="", tool_calls=(ToolCall(name, {}),))
    tool = next(t for t in design.tools() if t.name == name)
    return tool.run(args, replace(ctx, messages=[*ctx.messages, calling]))


def compacted(ctx: Context, **settings: Any) -> list[Message]:
    """The history after a call of the tool."""
    design = CompactTool(**settings)
    result = call(design, ctx, "compact_conversation")
    calling = Message(role="assistant", content="", tool_calls=(ToolCall("compact_conversation", {}),))
    answer = Message(role="tool", content=result.text, tool_name="compact_conversation")
    return design.compact(ctx, [*ctx.messages, calling, answer], result.directive) or []


def valid(messages: Sequence[Message]) -> bool:
    """Whether any chat template takes it: user and assistant in turn, and no result without its call."""
    spoken = [m.role for m in messages[1:] if m.role != "tool" and not m.tool_calls]
    called = all(b.role != "tool" or a.tool_calls or a.role == "tool" for a, b in pairwise(messages))
    alternates = all(a != b for a, b in pairwise(spoken))
    return messages[0].role == "system" and spoken[0] == "user" and called and alternates


def test_2e_the_tool_takes_no_arguments() -> None:
    compact, read = CompactTool().tools()
    assert (compact.name, compact.parameters["properties"]) == ("compact_conversation", {})
    assert list(read.parameters["properties"]) == ["history_id", "page"]
    assert "required" not in read.parameters
    assert CompactTool().serves() == {"compact", "recall"}


def test_so_10_the_description_asks_for_clean_boundaries() -> None:
    said = CompactTool().tools()[0].description
    assert "when one task is done and a new, unrelated one begins" in said
    assert "nor when the user asks on about what was said" in said


@pytest.mark.parametrize(("used", "allowed"), [(424, False), (426, True)])
def test_2e_it_is_allowed_from_half_of_the_trigger_on(used: int, allowed: bool) -> None:
    ctx = context(usage=Usage(prompt=used))
    result = call(CompactTool(), ctx, "compact_conversation")
    too_soon = "Nothing to compact yet — conversation is within the token budget."
    assert result.text == ("Compacted: 2 older messages are a summary now." if allowed else too_soon)
    assert bool(result.directive) == allowed
    assert (result.is_error, ctx.asked.requests) == (False, int(allowed))


def test_2e_where_nothing_is_older_than_the_turn_there_is_nothing_to_compact() -> None:
    ctx = context(messages=conversation("x" * 2000))
    result = call(CompactTool(), ctx, "compact_conversation")
    assert result.text.startswith("Nothing to compact yet")
    assert ctx.asked.requests == 0


def test_2e_older_messages_become_a_summary_before_the_turn() -> None:
    ctx = context()
    kept = compacted(ctx)
    assert [m.role for m in kept] == ["system", "user", "assistant", "tool"]
    assert kept[1].content == (
        "The conversation before this message was replaced by a summary. Its full text is kept as history-1."
        f"\n\n<summary>\n{SUMMARY}\n</summary>\n\n" + "x" * 500
    )
    assert ctx.counts["compactions"] == 1
    assert valid(kept)


def test_2e_the_full_history_is_archived_by_the_design() -> None:
    ctx = context()
    compacted(ctx)
    (record,) = ctx.store.find()
    assert (record.id, record.kind, record.origin) == ("history-1", "archive", "hook")
    assert record.text == HISTORY


def test_2e_the_last_tenth_of_the_context_stays_as_it_is() -> None:
    said = ["a" * 900, "b", "c" * 100, "d" * 100, "e" * 50]
    kept = compacted(context(messages=conversation(*said)))
    assert [m.content for m in kept[2:4]] == ["d" * 100, "e" * 50]
    assert kept[1].content.endswith("</summary>\n\n" + "c" * 100)
    assert len(compacted(context(messages=conversation(*said)), keep=0.05)) == 4


@pytest.mark.parametrize("answer", [OVERFLOW, " "])
def test_2e_a_failed_summary_is_an_error_and_takes_nothing_away(answer: Any) -> None:
    ctx = context(answer)
    result = call(CompactTool(), ctx, "compact_conversation")
    assert result.text == (
        "Error: no summary could be written, so the conversation stays as it is. Go on, and try again later."
    )
    assert (result.is_error, result.directive, ctx.store.count()) == (True, "", 0)
    assert ctx.counts == {"compactions_failed": 1}


def test_2e_trouble_of_the_server_is_no_failure_of_the_summary() -> None:
    ctx = context(InfrastructureError("the server is gone", kind="server_down"))
    with pytest.raises(InfrastructureError):
        call(CompactTool(), ctx, "compact_conversation")


def test_2e_where_nothing_may_be_written_the_summary_stands_alone() -> None:
    ctx = context()
    ctx.store = GuardedStore(ctx.store, read_only=True)
    kept = compacted(ctx)
    assert kept[1].content.startswith(
        f"The conversation before this message was replaced by a summary.\n\n<summary>\n{SUMMARY}"
    )
    assert ctx.counts["histories_not_saved"] == 1


@pytest.mark.parametrize(("used", "fires"), [(849, False), (850, True)])
def test_2e_at_the_trigger_it_compacts_unasked(used: int, fires: bool) -> None:
    ctx = context(usage=Usage(prompt=used))
    kept = CompactTool().compact(ctx, ctx.messages, "")
    assert (kept is not None) == fires
    assert ctx.store.count() == ctx.counts["compactions"] == int(fires)


def test_2e_unasked_compaction_can_be_turned_off() -> None:
    ctx = context(usage=Usage(prompt=999))
    assert CompactTool(auto=False).compact(ctx, ctx.messages, "") is None


def test_2e_an_unasked_compaction_that_fails_leaves_the_history() -> None:
    ctx = context(OVERFLOW, usage=Usage(prompt=900))
    assert CompactTool().compact(ctx, ctx.messages, "") is None
    assert ctx.counts == {"compactions_failed": 1}


def test_2e_what_was_said_since_the_last_count_is_estimated() -> None:
    design, ctx = CompactTool(), context(usage=Usage())
    assert design.compact(ctx, ctx.messages, "") is None
    ctx.usage = Usage(prompt=300)
    answer, question = Message(role="assistant", content="y" * 2200), Message(role="user", content="Go on.")
    more = [*ctx.messages, answer, question]
    assert design.compact(ctx, more, "") is not None


def test_2e_before_the_first_count_all_is_estimated() -> None:
    ctx = context(usage=Usage(), messages=conversation("x" * 4000, "Yes.", "Go on."))
    kept = CompactTool().compact(ctx, ctx.messages, "")
    assert kept is not None
    assert "x" * 100 not in kept[1].content


def test_2e_histories_stay_valid_over_many_compactions() -> None:
    ctx = context(usage=Usage(prompt=900))
    design, messages = CompactTool(), conversation("One")
    for said in ("Two", "Three", "Four"):
        calling = Message(role="assistant", content="", tool_calls=(ToolCall("read_history", {}),))
        result = Message(role="tool", content="z" * 500, tool_name="read_history")
        answer, question = Message(role="assistant", content="Yes."), Message(role="user", content=said)
        messages = [*messages, calling, result, answer, question]
        kept = design.compact(ctx, messages, "")
        assert kept is not None
        messages = kept
        assert valid(messages)
        assert [m.role for m in messages] == ["system", "user"]
    assert [r.id for r in ctx.store.find()] == ["history-1", "history-2", "history-3"]
    assert messages[1].content.count("<summary>") == 1
    assert "Its full text is kept as history-2." in ctx.store.find()[-1].text


def test_2e_a_history_is_read_back_whole() -> None:
    ctx = context()
    compacted(ctx)
    found = call(CompactTool(), ctx, "read_history", history_id="history-1")
    assert found.text == f"history-1, page 1 of 1:\n{HISTORY}"
    assert [hit.record.text for hit in found.hits] == [HISTORY]


def test_2e_a_long_history_is_read_by_page() -> None:
    ctx = context(messages=conversation("word " * 400, "Yes.", "Go on."))
    compacted(ctx)
    pages = [call(CompactTool(), ctx, "read_history", page=page).text for page in (1, 2, 3)]
    heads, texts = zip(*(page.split(":\n", 1) for page in pages), strict=True)
    assert heads == tuple(f"history-1, page {n} of 3" for n in (1, 2, 3))
    assert "".join(texts) == ctx.store.find()[0].text
    beyond = call(CompactTool(), ctx, "read_history", page=4)
    assert (beyond.text, beyond.is_error) == ("Error: history-1 has no page 4; give one from 1 to 3.", True)


def test_2e_without_an_id_the_newest_history_is_read_in_a_later_session_too() -> None:
    ctx = context()
    compacted(ctx)
    ctx.messages = conversation("An owl.", "Where?", "x" * 500)
    compacted(ctx)
    later = context(session="session-2")
    later.store = ctx.store
    found = call(CompactTool(), later, "read_history").text
    assert found.startswith("history-2, page 1 of 1:\nuser: An owl.")


def test_2e_where_no_history_is_saved_a_read_says_so() -> None:
    found = call(CompactTool(), context(), "read_history")
    assert (found.text, found.is_error) == ("No history has been saved yet.", False)


def test_2e_an_unknown_history_is_an_error_that_says_what_to_do() -> None:
    missing = call(CompactTool(), context(), "read_history", history_id="history-9")
    assert missing.is_error
    assert missing.text == "Error: there is no history 'history-9'; leave history_id out to read the newest."


def test_2e_histories_never_cross_users() -> None:
    compacted(context())
    found = call(CompactTool(), context(user="other"), "read_history")
    assert found.text == "No history has been saved yet."


def test_a_transcript_tells_what_was_called_and_what_it_gave() -> None:
    calling = Message(role="assistant", content="", tool_calls=(ToolCall("look", {"at": "ö"}),))
    answer = Message(role="tool", content="A pine.", tool_name="look")
    said = transcript([*conversation("Hello")[1:], calling, answer])
    assert said == 'user: Hello\nassistant: look({"at": "ö"})\nlook: A pine.'


@pytest.mark.parametrize("setting", ["trigger", "keep"])
def test_a_share_that_is_none_is_refused(setting: str) -> None:
    with pytest.raises(InputError, match=f"{setting} is 85"):
        CompactTool(**{setting: 85.0})


# whole trials

TRIP = {"budget": {"text": "The trip may cost 3,140 crowns.", "values": ["3,140"]}}
TELL = {"user": "Our trip may cost 3,140 crowns."}
ASK = {
    "user": "What may the trip cost?",
    "expect": {"intent": "recall", "facts": ["budget"], "answer": {"states": ["budget"]}},
}


def script(answers: Sequence[Any], seen: list[Sequence[Message]]) -> Callable[..., Any]:
    """Gives the answers in turn and keeps the requests; one without tools asks for a summary."""

    def answered(messages: Sequence[Message], tools: Sequence[Tool]) -> Any:
        if not tools:
            return SUMMARY
        seen.append(list(messages))
        return answers[len(seen) - 1]

    return answered


def test_2e_a_whole_story_is_compacted_unasked_before_the_context_runs_out() -> None:
    seen: list[Sequence[Message]] = []
    register(CompactTool)
    tale = story([TELL, {**ASK, "filler": 15}], facts=TRIP)
    result = run(tale, script(["Noted.", "It may cost 3,140 crowns."], seen), "compact_tool", options=OPTIONS)
    assert (result.trial.outcome, result.trial.passed) == ("ok", True)
    assert result.trial.counts == {"compactions": 1}
    assert result.trial.hook_requests > 0
    assert [m.role for m in seen[1]] == ["system", "user", "assistant", "user"]
    assert f"<summary>\n{SUMMARY}\n</summary>\n\n" in seen[1][1].content
    assert seen[1][3].content == ASK["user"]


def test_2e_in_a_whole_story_the_model_compacts_and_reads_back_in_the_next_session() -> None:
    seen: list[Sequence[Message]] = []
    answers = ["Noted.", made("compact_conversation"), "Done.", made("read_history", page=1), "3,140 crowns."]
    register(CompactTool)
    tale = story([TELL, {"user": "Now something new.", "filler": 10}], [ASK], facts=TRIP)
    result = run(tale, script(answers, seen), "compact_tool", options=OPTIONS)
    assert (result.trial.outcome, result.trial.passed) == ("ok", True)
    assert (result.trial.called, result.trial.retrieved) == (True, True)
    assert "<summary>" in seen[2][1].content
    assert [m.role for m in seen[2]][-3:] == ["user", "assistant", "tool"]
    assert TELL["user"] in seen[4][-1].content
    assert all(valid(messages) for messages in seen)


def obedient(value: str, num_ctx: int) -> Callable[..., Any]:
    """A model that compresses when it is told to, knows what its prompt holds, and runs out of context."""

    def answered(messages: Sequence[Message], tools: Sequence[Tool]) -> Any:
        prompt = estimated(messages) + sum(len(as_json(tool.schema())) for tool in tools) // 4
        said = " ".join(message.content for message in messages)
        known = " and ".join(part for part in value.split(" and ") if part in said)
        last = messages[-1].content
        usage = Usage(prompt, 100)
        if prompt + usage.output >= num_ctx:
            raise OVERFLOW
        if "compress" in last and "=== Summary" not in last:
            block = {"db_index": "fact", "db_content": value}
            compress = made("CompressExperience", summary=f"- fact - {value}", db_blocks=[block])
            return Reply(content="", tool_calls=(compress,), usage=usage)
        return Reply(content=f"It is {known}." if known else "I do not know.", usage=usage)

    return answered


@pytest.mark.parametrize("tale", load_scenarios(["tag:carry"]), ids=lambda tale: tale.scenario)
def test_a32_in_the_shipped_stories_the_context_runs_out_unless_room_is_made(tale: Scenario) -> None:
    register(Memex)
    register(CompactTool)
    asked = [turn.expect for session in tale.sessions for turn in session.turns if turn.expect]
    wanted = [name for expect in asked for name in expect.answer.states]
    value = " and ".join(tale.facts[name].values[0] for name in dict.fromkeys(wanted))
    model = obedient(value, tale.sessions[0].options["num_ctx"])
    without = run(tale, model, "none").trial
    assert (without.outcome, without.failure.partition(":")[0]) == ("model_failure", "context_overflow")
    for design in ("memex", "compact_tool"):
        trial = run(tale, model, design).trial
        assert (trial.outcome, trial.passed) == ("ok", True)
        assert trial.counts["compactions"] > 0
