from __future__ import annotations

import pytest

from memeval.errors import HarnessError, InfrastructureError
from memeval.messages import Message, Reply, ToolCall
from memeval.models.base import Options
from memeval.models.scripted import ScriptedModel

ASK = (Message(role="user", content="one two three"),)


def test_a_list_is_answered_in_turn_and_its_end_is_a_bug_of_the_test() -> None:
    model = ScriptedModel(["a", ToolCall("t", {})])
    assert model.chat(ASK, options=Options()).content == "a"
    assert model.chat(ASK, options=Options()).content == '{"name": "t", "arguments": {}}'
    with pytest.raises(HarnessError, match="has 2 answers"):
        model.chat(ASK, options=Options())
    assert len(model.seen) == 3


def test_a_function_sees_what_was_asked_and_words_are_counted() -> None:
    model = ScriptedModel(lambda messages, _tools: messages[-1].content.upper())
    reply = model.chat(ASK, options=Options())
    assert reply.content == "ONE TWO THREE"
    assert (reply.usage.prompt, reply.usage.output) == (3, 3)


def test_words_are_wrapped_under_a_schema_and_a_reply_never() -> None:
    model = ScriptedModel(["hi", Reply(content="as it is")])
    assert model.chat(ASK, schema={}, options=Options()).content == '{"reply": "hi"}'
    assert model.chat(ASK, schema={}, options=Options()).content == "as it is"


def test_an_error_in_the_script_is_raised() -> None:
    model = ScriptedModel([InfrastructureError("gone", kind="server_down")])
    with pytest.raises(InfrastructureError, match="gone"):
        model.chat(ASK, options=Options())


def test_there_is_a_rendering_only_if_one_was_given() -> None:
    assert ScriptedModel([]).render(ASK) is None
    assert ScriptedModel([], render=lambda m, _t: m[0].content).render(ASK) == "one two three"
