from __future__ import annotations

import json

import jsonschema
import pytest

from memeval.errors import InputError, ModelFailureError
from memeval.messages import Message, Reply, Tool, ToolCall, ToolResult
from memeval.models.base import Options
from memeval.models.calling import ask, calling, reply_schema
from memeval.models.scripted import ScriptedModel

MODES = ("native", "prompted", "constrained")


def tool(name: str, parameter: str) -> Tool:
    schema = {"type": "object", "properties": {parameter: {"type": "string"}}, "required": [parameter]}
    return Tool(
        name=name,
        description=f"{name} für alle",
        parameters=schema,
        effect="write",
        intents=lambda _: ("remember",),
        run=lambda _a, _c: ToolResult(text="ok"),
    )


TOOLS = (tool("save", "content"), tool("search", "query"))
CALL = ToolCall("save", {"content": 'Käse & "Brot"'})
HISTORY = (
    Message(role="system", content="Be kind."),
    Message(role="user", content="Remember cheese."),
    Message(role="assistant", content="", tool_calls=(CALL,)),
    Message(role="tool", content="Memory saved.", tool_name="save"),
    Message(role="assistant", content="Done."),
    Message(role="system", content="The user is in Rome."),
    Message(role="user", content="Thanks."),
)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("history", [HISTORY, HISTORY[1:2]], ids=["with two system texts", "with none"])
def test_exactly_one_system_message_is_sent_and_it_is_the_first(mode, history) -> None:
    sent = calling(mode).encode(history, TOOLS).messages
    assert [m.role for m in sent].count("system") == 1
    assert sent[0].role == "system"
    if len(history) > 1:
        assert "Be kind." in sent[0].content
        assert "The user is in Rome." in sent[0].content


def test_native_passes_tools_and_history_through() -> None:
    request = calling("native").encode(HISTORY, TOOLS)
    assert request.tools == TOOLS
    assert request.schema is None
    assert request.messages[2:4] == HISTORY[2:4]


@pytest.mark.parametrize("mode", ["prompted", "constrained"])
def test_without_the_tool_api_the_tools_stand_in_the_system_text_as_json_lines(mode) -> None:
    request = calling(mode).encode(HISTORY, TOOLS)
    lines = [json.loads(x) for x in request.messages[0].content.split("\n") if x.startswith('{"name"')]
    assert lines == [t.schema()["function"] for t in TOOLS]
    assert "für" in request.messages[0].content
    assert request.tools == ()


@pytest.mark.parametrize("mode", ["prompted", "constrained"])
def test_old_calls_become_the_models_own_json_and_results_the_users_words(mode) -> None:
    sent = calling(mode).encode(HISTORY, TOOLS).messages
    assert json.loads(sent[2].content) == {"name": "save", "arguments": CALL.arguments}
    assert sent[2].role == "assistant"
    assert not sent[2].tool_calls
    assert (sent[3].role, sent[3].content) == ("user", "Result of save: Memory saved.")
    assert sent[4].content == ("Done." if mode == "prompted" else '{"reply": "Done."}')


def test_results_side_by_side_become_one_user_message_so_that_roles_take_turns() -> None:
    two = (
        *HISTORY[:2],
        Message(role="assistant", content="", tool_calls=(CALL, CALL)),
        HISTORY[3],
        HISTORY[3],
        HISTORY[6],
    )
    sent = calling("prompted").encode(two, TOOLS).messages
    assert [m.role for m in sent] == ["system", "user", "assistant", "user"]
    assert sent[3].content.count("Result of save: Memory saved.") == 2
    assert len(json.loads(sent[2].content)) == 2


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("answer", [CALL, [CALL], "Just words."], ids=["call", "calls", "words"])
def test_what_a_model_means_comes_back_the_same_in_every_mode(mode, answer) -> None:
    reply = ask(ScriptedModel([answer]), mode, HISTORY, TOOLS, Options())
    calls = () if isinstance(answer, str) else (CALL,)
    assert reply.tool_calls == calls
    assert reply.content == ("" if calls else "Just words.")
    assert reply.leaked == ()


@pytest.mark.parametrize("mode", ["prompted", "constrained"])
def test_what_a_mode_decodes_is_what_it_writes_into_the_history(mode) -> None:
    way = calling(mode)
    text = way.encode(HISTORY, TOOLS).messages[2].content
    assert way.decode(Reply(content=text), TOOLS).tool_calls == (CALL,)


@pytest.mark.parametrize(
    ("mode", "content"),
    [
        ("native", '{"name": "save", "arguments": {"content": "x"}}'),
        ("native", 'Sure. <tool_call>{"name": "save", "arguments": {"content": "x"}}'),
        ("prompted", 'Sure. {"name": "save", "arguments": {"content": "x"}}'),
        ("prompted", '<tool_call>{"name": "save", "arguments": {"content": "x"}}</tool_call>'),
        ("constrained", json.dumps({"reply": '{"name": "save", "arguments": {"content": "x"}}'})),
    ],
)
def test_a_call_in_the_wrong_place_is_leaked_and_not_made(mode, content) -> None:
    reply = calling(mode).decode(Reply(content=content), TOOLS)
    assert reply.tool_calls == ()
    assert reply.leaked == (ToolCall("save", {"content": "x"}),)
    assert reply.content


def test_prompted_takes_a_fenced_call_a_list_of_calls_and_an_invented_tool() -> None:
    decode = calling("prompted").decode
    assert decode(Reply(content='```json\n{"name": "save", "arguments": {}}\n```'), TOOLS).tool_calls
    two = decode(Reply(content='[{"name": "a", "arguments": {}}, {"name": "b", "arguments": {}}]'), TOOLS)
    assert [call.name for call in two.tool_calls] == ["a", "b"]


@pytest.mark.parametrize(
    "content", ['{"reply": "I was cut', "plain words", "[]", "3", '{"other": 1}', '{"reply": 3}']
)
def test_a_constrained_reply_that_cannot_be_read_is_the_models_failure(content) -> None:
    with pytest.raises(ModelFailureError) as caught:
        calling("constrained").decode(Reply(content=content, done_reason="length"), TOOLS)
    assert caught.value.kind == "unreadable_reply"


def test_a_constrained_reply_of_nothing_is_an_empty_reply() -> None:
    with pytest.raises(ModelFailureError) as caught:
        calling("constrained").decode(Reply(content=" \n"), TOOLS)
    assert caught.value.kind == "empty_reply"


def test_the_schema_takes_one_call_of_each_tool_or_a_reply_and_nothing_else() -> None:
    check = jsonschema.Draft202012Validator(reply_schema(TOOLS)).is_valid
    assert check({"name": "save", "arguments": {"content": "x"}})
    assert check({"name": "search", "arguments": {"query": "x"}})
    assert check({"reply": "x"})
    assert not check({"name": "save", "arguments": {"query": "x"}})
    assert not check({"name": "other", "arguments": {}})
    assert not check({"reply": "x", "name": "save"})


def test_without_tools_nothing_is_said_of_tools() -> None:
    for mode in MODES:
        request = calling(mode).encode(HISTORY[:2], ())
        assert "tool" not in request.messages[0].content
    assert calling("prompted").encode(HISTORY[:2], ()).messages == HISTORY[:2]
    assert reply_schema(()) == calling("constrained").encode(HISTORY[:2], ()).schema
    assert list(reply_schema(())["properties"]) == ["reply"]
    text = '{"name": "save", "arguments": {}}'
    assert calling("native").decode(Reply(content=text), ()).leaked == ()
    assert calling("prompted").decode(Reply(content=text), ()).content == text


def test_an_unknown_mode_is_bad_input_with_the_nearest_name() -> None:
    with pytest.raises(InputError, match="'constrained'"):
        calling("constraint")  # type: ignore[arg-type]
