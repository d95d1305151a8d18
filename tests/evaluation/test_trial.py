"""The one loop: what it forgives, what it records, when it stops."""

from __future__ import annotations

from typing import Any

import pytest
from stories import ASK, RECALL, REMEMBER, SAVE, call, run, story

from memeval.designs import MemoryDesign, register
from memeval.designs.formats import CAP
from memeval.designs.local2 import Local2Single
from memeval.errors import HarnessError, InfrastructureError, InputError, ModelFailureError
from memeval.evaluation.trial import order_tools
from memeval.messages import Message, Reply, Tool, ToolCall, ToolResult, Usage
from memeval.scenarios.schema import Given

TALE = story([REMEMBER])


def test_an_unknown_tool_is_answered_with_the_tools_there_are() -> None:
    done = run(TALE, [call("store_fact", text="Elixir"), SAVE, "Elixir is saved."])
    assert "there is no tool 'store_fact'; the tools are: save_topic, recall_topic" in done.calls[0].text
    assert (done.trial.unknown_tools, done.trial.passed, done.trial.rounds) == (1, True, 2)


def test_bad_arguments_are_answered_with_the_parameters_there_are() -> None:
    done = run(TALE, [call("save_topic", topic="user.language"), SAVE, "Elixir."])
    assert done.calls[0].status == "bad_arguments"
    assert "topic (required), content (required)" in done.calls[0].text
    assert done.trial.bad_arguments == 1


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("Save-Topic", {"topic": "user.language", "content": "Elixir"}),
        ("functions.save_topic", {"topic": "user.language", "content": "Elixir"}),
        ("save_topic", '{"topic": "user.language", "content": "Elixir"}'),
        ("save_topic", {"topic": "user.language", "content": ["Elixir"]}),
        ("save_topic", {"topic": "user.language", "content": "Elixir", "importance": 9}),
    ],
)
def test_what_is_safe_is_put_right_and_counted(name: str, arguments: Any) -> None:
    done = run(TALE, [ToolCall(name, arguments), "Elixir."])
    assert (done.turns[0].stored, done.trial.coerced) == (True, 1)


@pytest.mark.parametrize("mess", ["9" * 309, "-" + "9" * 5000, f"{'9' * 400}.0"])
def test_a_number_without_end_is_a_bad_argument(mess: str) -> None:
    done = run(TALE, [call("memory_search", query="x", top_k=mess), "Fine."], design="oxydra_notes")
    assert (done.trial.outcome, done.calls[0].status) == ("ok", "bad_arguments")
    assert done.calls[0].text.startswith("Error: memory_search: a number is too long or a value is nested")
    assert "query (required)" in done.calls[0].text


@pytest.mark.parametrize("arguments", ["[" * 100_000, {"query": "x", "categories": "[" * 100_000}])
def test_brackets_without_end_are_a_bad_argument(arguments: Any) -> None:
    done = run(TALE, [ToolCall("search_memory", arguments), "Fine."], design="synthorg_tools")
    assert (done.trial.outcome, done.calls[0].status) == ("ok", "bad_arguments")
    assert done.calls[0].text.endswith("its parameters are: query (required), categories, limit.")


def test_half_a_character_in_a_key_is_an_error_the_model_can_read() -> None:
    save = call("save_topic", topic="user.\ud83d", content="Elixir")
    done = run(TALE, [save, call("recall_topic", topic="user.\ud83d"), "Fine."])
    assert [made.status for made in done.calls] == ["tool_error", "ok"]
    assert "half a surrogate pair" in done.calls[0].text
    assert not done.hits


def test_calls_without_end_are_a_model_failure() -> None:
    answers = (call("search_memory", query=f"try {n}") for n in range(100))
    done = run(TALE, lambda messages, tools: next(answers))
    assert (done.trial.outcome, done.trial.passed) == ("model_failure", False)
    assert done.trial.failure.startswith("loop")
    assert done.trial.calls == 5


def test_the_same_call_three_times_is_a_loop() -> None:
    done = run(TALE, lambda messages, tools: RECALL)
    assert done.trial.failure.startswith("loop")
    assert done.trial.calls == 2


def test_a_reply_that_does_not_end_is_a_model_failure() -> None:
    done = run(TALE, [SAVE, Reply(content="and and and", done_reason="length")])
    assert done.trial.failure.startswith("runaway_length")
    assert done.turns[0].stored is True
    assert done.turns[0].answered is False


def test_a_model_failure_is_a_score_and_infrastructure_is_not() -> None:
    failed = run(TALE, [ModelFailureError("cannot be read", kind="unreadable_reply")])
    assert (failed.trial.outcome, failed.trial.passed) == ("model_failure", False)
    invalid = run(TALE, [InfrastructureError("gone", kind="timeout")])
    assert (invalid.trial.outcome, invalid.trial.passed, invalid.trial.called) == ("invalid", None, None)
    assert invalid.trial.invalid_reason == "timeout: gone"


def test_leaked_calls_are_counted_apart_and_not_run() -> None:
    leaked = Reply(content="", leaked=(SAVE,), usage=Usage(5, 5))
    text = (
        '```json\n{"name": "save_topic", "arguments": {"topic": "user.language", "content": "Elixir"}}\n```'
    )
    for reply in (text, leaked):
        done = run(TALE, [reply])
        if reply is text:
            assert (done.turns[0].leaked_call, done.turns[0].leaked_intent) == (True, "remember")
            assert (done.turns[0].called, done.turns[0].wrote) == (False, 0)
            assert done.calls[0].status == "leaked"


def test_a_new_session_starts_with_nothing_but_the_system_message() -> None:
    seen: list[int] = []

    def script(messages: Any, tools: Any) -> str:
        seen.append(len(messages))
        assert [m.role for m in messages].count("system") == 1
        return "Fine."

    run(story([REMEMBER, ASK], [ASK]), script)
    assert seen == [2, 4, 2]


def test_an_injection_is_for_its_turn_and_not_kept() -> None:
    requests: list[str] = []

    def script(messages: Any, tools: Any) -> str:
        requests.append("\n".join(m.content for m in messages))
        return "Elixir."

    run(story([REMEMBER], [ASK, {"user": "Thanks."}]), script, design="full_context")
    assert "From earlier sessions" not in requests[0]
    assert requests[1].count("From earlier sessions") == 1
    assert requests[2].count("From earlier sessions") == 1


def test_a_long_answer_of_a_tool_is_cut_and_says_so() -> None:
    class Flood(MemoryDesign):
        name = "flood_for_test"

        def tools(self) -> list[Tool]:
            return [
                Tool(
                    name="flood", description="Floods.", parameters={"type": "object", "properties": {}},
                    effect="read", intents=lambda a: ("recall",),
                    run=lambda a, c: ToolResult(text="x" * (CAP + 7)),
                )
            ]  # fmt: skip

    register(Flood)
    done = run(TALE, [call("flood"), "ok"], design="flood_for_test")
    assert done.calls[0].text.endswith("(7 more characters left out)")


@pytest.mark.parametrize("where", ["tools", "before_turn", "after_turn", "system_prompt"])
def test_a_bug_in_a_design_names_the_design_the_story_and_the_line(where: str) -> None:
    def broken(self: Any, *args: Any) -> None:
        raise KeyError("oops")

    design = type("Broken", (MemoryDesign,), {"name": "broken_for_test", where: broken})
    register(design)
    with pytest.raises(HarnessError, match=rf"'broken_for_test'|{where}.*KeyError.*test_trial.py, line \d+"):
        run(TALE, ["ok"], design="broken_for_test")


def test_a_tool_that_gives_no_result_is_its_authors_bug() -> None:
    class Lazy(MemoryDesign):
        name = "lazy_for_test"

        def tools(self) -> list[Tool]:
            return [
                Tool(
                    name="lazy", description="", parameters={"type": "object", "properties": {}},
                    effect="read", intents=lambda a: (), run=lambda a, c: "text",  # type: ignore
                )
            ]  # fmt: skip

    register(Lazy)
    with pytest.raises(HarnessError, match="gave str; it must give a ToolResult"):
        run(TALE, [call("lazy")], design="lazy_for_test")


def test_tools_are_ordered_by_effect_and_else_as_written() -> None:
    tools = Local2Single().tools()
    names = {order: [t.name for t in order_tools(tools, order, 3)] for order in ("read_first", "write_first")}
    assert names["read_first"] == ["recall_topic", "search_memory", "save_topic", "save_memory"]
    assert names["write_first"] == ["save_topic", "save_memory", "recall_topic", "search_memory"]
    assert order_tools(tools, "shuffled", 3) == order_tools(tools, "shuffled", 3)


def test_everything_is_on_record() -> None:
    done = run(story([REMEMBER], [ASK]), [SAVE, "Elixir.", RECALL, "Elixir."], order="write_first", seed=7)
    assert [m["role"] for m in done.transcript.messages] == [
        *("system", "user", "assistant", "tool", "assistant"),
        *("system", "user", "assistant", "tool", "assistant"),
    ]
    assert done.calls[0].written == (done.hits[0].record,)
    assert done.hits[0].origin == "tool"
    assert done.trial.seconds_harness > 0
    assert done.trial.prompt_tokens > 0
    assert done.trial.order == "write_first"


def test_the_model_gets_the_errors_text() -> None:
    def script(messages: list[Message], tools: Any) -> Any:
        return "sorry" if messages[-1].role == "tool" else call("nope")

    done = run(TALE, script)
    assert done.transcript.messages[3]["content"].startswith("Error: there is no tool")


@pytest.mark.parametrize(
    ("design", "kind"),
    [("local2_dual", "topic"), ("local2_search", "episodic"), ("oxydra_notes", "note"),
     ("harness_runs", "observation"), ("synthorg_context", "note")],
)  # fmt: skip
def test_what_a_story_gives_lies_where_the_design_looks(design: str, kind: str) -> None:
    tale = story([ASK])
    given = Given(text="The user's preferred language is Elixir.", key="user.language")
    session = tale.sessions[0].model_copy(update={"given": [given]})
    result = run(tale.model_copy(update={"sessions": [session]}), lambda m, t: "Elixir.", design)
    (kept,) = result.transcript.evidence[0]["changed"].values()
    assert (kept["kind"], kept["origin"]) == (kind, "given")


def telling(given: Given) -> Any:
    """A story that gives a record."""
    tale = story([ASK])
    session = tale.sessions[0].model_copy(update={"given": [given]})
    return tale.model_copy(update={"sessions": [session]})


def test_what_a_story_gives_has_its_key_and_tags_as_tools_write_them() -> None:
    given = Given(text="Elixir", key=" User.Preferred Language", tags=["Work ", "work", " "])
    look = call("recall_topic", topic="user.Preferred language")
    result = run(telling(given), [look, "Elixir."])
    assert result.calls[0].text == "[Memory: user.preferred_language]\nElixir"
    (kept,) = result.transcript.evidence[0]["changed"].values()
    assert tuple(kept["tags"]) == ("work",)


def test_tags_that_no_tool_could_write_name_the_story() -> None:
    given = Given(text="Elixir", tags=[str(number) for number in range(17)])
    with pytest.raises(InputError, match="scenario 'tale', given 'Elixir': there are 17 tags; at most 16"):
        run(telling(given), ["Elixir."])


def test_a_kind_that_a_story_names_is_kept() -> None:
    tale = story([ASK])
    given = Given(text="Elixir, says the log.", kind="message")
    session = tale.sessions[0].model_copy(update={"given": [given]})
    result = run(tale.model_copy(update={"sessions": [session]}), lambda m, t: "Elixir.", "local2_dual")
    (kept,) = result.transcript.evidence[0]["changed"].values()
    assert kept["kind"] == "message"
