"""What the trial does around a design: its hooks, its requests, its tools' time, memory that is only read."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest
from stories import ASK, REMEMBER, call, run, story

from memeval.designs import Context, Injection, MemoryDesign, register, save_tool, search_tool
from memeval.designs import tools as build
from memeval.errors import ModelFailureError
from memeval.messages import Message, ToolCall, ToolResult
from memeval.models.base import Options


def registered(**members: Any) -> str:
    """A design with a save and a search tool and some members of its own."""

    def tools(self: MemoryDesign) -> Any:
        return [save_tool("keep", "Keep."), search_tool("look", "Look.", min_score=-1.0)]

    register(type("Mine", (MemoryDesign,), {"name": "mine_for_test", "tools": tools, **members}))
    return "mine_for_test"


def test_a_hook_counts_as_fired_only_when_it_did_something() -> None:
    def before_turn(self: Any, ctx: Context) -> Injection | None:
        return Injection("Mind the language.") if ctx.turn == 2 else None

    name = registered(before_turn=before_turn, after_turn=lambda self, ctx: None)
    result = run(story([REMEMBER, ASK]), ["Yes.", "Elixir."], name)
    assert result.trial.hooks == {"before_turn": 1}


def test_a_hook_that_writes_asks_or_counts_has_fired() -> None:
    def after_turn(self: Any, ctx: Context) -> None:
        if ctx.turn == 1:
            build.notes.add(ctx, "seen", "note", origin="hook")
        elif ctx.turn == 2:
            ctx.counts["looked"] += 2

    name = registered(after_turn=after_turn)
    result = run(story([REMEMBER, ASK]), ["Yes.", "Elixir."], name)
    assert result.trial.hooks == {"after_turn": 2}
    assert result.trial.counts == {"looked": 2}


def test_hooks_see_a_call_as_it_was_understood() -> None:
    seen: list[ToolCall] = []

    def on_result(self: Any, ctx: Context, call: ToolCall, result: ToolResult) -> None:
        seen.append(call)

    name = registered(on_result=on_result, after_turn=lambda self, ctx: seen.extend(ctx.calls))
    made = call("functions.Keep", content="Elixir")
    strange = call("no_such_tool")
    run(story([REMEMBER]), [made, strange, "Yes."], name)
    assert [(one.name, one.arguments) for one in seen] == [
        ("keep", {"content": "Elixir"}),
        ("keep", {"content": "Elixir"}),
        ("no_such_tool", {}),
    ]


def test_what_a_design_asks_of_the_model_is_counted_apart_from_the_conversation() -> None:
    def after_session(self: Any, ctx: Context) -> None:
        ctx.state["said"] = ctx.ask("Sum this up.", system="You sum up.", temperature=0.1).content

    def script(messages: Sequence[Message], tools: Any) -> str:
        if messages[0].content == "You sum up.":
            assert [m.content for m in messages] == ["You sum up.", "Sum this up."]
            assert not tools
            return "one two three"
        return "Elixir"

    plain = run(story([REMEMBER]), ["Elixir"], registered())
    asked = run(story([REMEMBER]), script, registered(after_session=after_session))
    assert (asked.trial.hook_requests, plain.trial.hook_requests) == (1, 0)
    assert asked.trial.hook_tokens == 6 + 3  # what the scripted model counts: words
    assert asked.trial.prompt_tokens == plain.trial.prompt_tokens
    assert asked.trial.hooks == {"after_session": 1}


def test_the_time_after_an_answer_is_on_record_by_itself() -> None:
    def after_turn(self: Any, ctx: Context) -> None:
        threading.Event().wait(0.02)
        ctx.ask("Sum this up.")

    def script(messages: Sequence[Message], tools: Any) -> str:
        if messages[-1].content == "Sum this up.":
            threading.Event().wait(0.02)
        return "Elixir"

    row = run(story([REMEMBER, ASK]), script, registered(after_turn=after_turn)).trial
    assert row.seconds_after_turn >= 4 * 0.02
    assert row.seconds_hooks >= 2 * 0.02
    # it is part of what stood on record before
    assert row.seconds_harness + row.seconds_hooks >= row.seconds_after_turn
    assert run(story([REMEMBER]), ["Elixir"], registered()).trial.seconds_after_turn == 0.0


def test_a_designs_request_that_fails_for_the_model_is_the_models_failure() -> None:
    def before_turn(self: Any, ctx: Context) -> None:
        ctx.ask("Plan.")

    def script(messages: Any, tools: Any) -> str:
        raise ModelFailureError("no end", kind="runaway_length")

    result = run(story([REMEMBER]), script, registered(before_turn=before_turn))
    assert (result.trial.outcome, result.trial.failure) == ("model_failure", "runaway_length: no end")


def test_a_directive_is_handed_to_the_compaction_once_and_its_history_stays() -> None:
    seen: list[str] = []

    def tools(self: Any) -> Any:
        return [build.tool("fold", "Fold.", {}, lambda a, c: ToolResult(text="ok", directive="now"))]

    def compact(self: Any, ctx: Context, messages: Sequence[Message], directive: str) -> Any:
        seen.append(directive)
        if not directive:
            return None
        return [messages[0], Message(role="user", content="Summary. " + ctx.query)]

    requests: list[list[str]] = []

    def script(messages: Sequence[Message], tools: Any) -> Any:
        requests.append([m.content for m in messages[1:]])
        return call("fold") if len(requests) == 1 else "Done."

    name = registered(tools=tools, compact=compact)
    result = run(story([{"user": "Fold it."}, {"user": "And now?"}]), script, name)
    assert seen == ["", "now", ""]
    assert requests == [["Fold it."], ["Summary. Fold it."], ["Summary. Fold it.", "Done.", "And now?"]]
    assert result.trial.hooks == {"compact": 1}
    assert [m["role"] for m in result.transcript.messages].count("compacted") == 1


def test_on_result_may_change_what_the_model_gets() -> None:
    def on_result(self: Any, ctx: Context, made: ToolCall, result: ToolResult) -> ToolResult:
        return ToolResult(text=f"{made.name}: {result.text}", written=result.written)

    result = run(
        story([REMEMBER]), [call("keep", content="Elixir"), "Elixir"], registered(on_result=on_result)
    )
    assert result.calls[0].text == "keep: Memory saved."
    assert result.trial.hooks == {"on_result": 1}


def test_small_talk_fills_the_history_without_asking_the_model() -> None:
    lengths: list[int] = []

    def script(messages: Sequence[Message], tools: Any) -> str:
        lengths.append(len(messages))
        return "Elixir"

    run(story([REMEMBER, {**ASK, "filler": 3}]), script, registered())
    assert lengths == [2, 2 + 1 + 6 + 1]


def test_in_a_read_only_trial_a_write_is_an_error_the_model_can_read_and_hooks_go_on_without() -> None:
    def after_turn(self: Any, ctx: Context) -> None:
        build.notes.add(ctx, ctx.query, "note", origin="hook")

    script = [call("keep", content="Elixir"), "Elixir", "Elixir"]
    result = run(story([REMEMBER, ASK]), script, registered(after_turn=after_turn), read_only=True)
    (made,) = result.calls
    assert (made.status, made.written) == ("tool_error", ())
    assert made.text == "Error: memory is read-only here; nothing was written."
    assert (result.trial.outcome, result.trial.hooks) == ("ok", {})


def test_a_tool_that_takes_too_long_is_answered_for_and_cannot_write_later() -> None:
    late, wrote = threading.Event(), threading.Event()

    def tools(self: Any) -> Any:
        def run(args: Any, ctx: Context) -> ToolResult:
            late.wait(10)
            try:
                build.notes.add(ctx, "too late", "note")
            finally:
                wrote.set()
            return ToolResult(text="saved")

        return [
            build.tool("slow", "Slow.", {}, run, effect="write", timeout_s=0.05),
            search_tool("look", "Look.", min_score=-1.0),
        ]

    def script(messages: Sequence[Message], tools: Any) -> Any:
        last = messages[-1]
        if last.role == "user":
            return call("slow")
        if last.content.startswith("Error: slow"):
            late.set()
            assert wrote.wait(10)
            return call("look", query="late")
        return last.content

    result = run(story([REMEMBER]), script, registered(tools=tools))
    slow, look = result.calls
    assert (slow.status, slow.text) == ("timeout", "Error: slow did not answer within 0.05 s.")
    assert look.text == "No memories found."
    assert result.trial.outcome == "ok"


def test_a_tool_that_waits_for_its_store_too_long_makes_the_trial_invalid() -> None:
    released = threading.Event()

    def tools(self: Any) -> Any:
        def run(args: Any, ctx: Context) -> ToolResult:
            ctx.store.put(build.notes.add(ctx, "x", "note"))  # type: ignore[arg-type]
            return ToolResult(text="")

        return [build.tool("slow", "Slow.", {}, run, timeout_s=0.05)]

    from memeval.memory.inmemory import InMemoryStore

    put = InMemoryStore.put
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(InMemoryStore, "put", lambda self, record: released.wait(10) and put(self, record))
        result = run(story([REMEMBER]), [call("slow"), "x"], registered(tools=tools))
    released.set()
    assert result.trial.outcome == "invalid"
    assert result.trial.invalid_reason.startswith("slow_store: slow did not answer within 0.05 s")


def test_the_longest_prompt_is_the_servers_count_of_one_request() -> None:
    result = run(story([REMEMBER, ASK]), ["Elixir", "Elixir"], registered(), options=Options())
    assert result.trial.peak_prompt == max(turn.prompt_tokens for turn in result.turns)
    assert result.trial.peak_context > result.trial.peak_prompt
