"""The claims of test_ollama on a real server, with the models that the fixtures were recorded with."""

from __future__ import annotations

import json
import time

import pytest
from live_model import live

from memeval.errors import InfrastructureError, InputError, ModelFailureError
from memeval.evaluation.fidelity import ledger
from memeval.messages import Message, Tool, ToolResult
from memeval.models.base import Options
from memeval.models.calling import ask, calling
from memeval.models.ollama import OllamaModel

pytestmark = pytest.mark.live

SYSTEM = "You are a helpful assistant with a memory."
REMEMBER = (
    Message(role="system", content=SYSTEM),
    Message(role="user", content="Please remember my preferred language is Elixir."),
)
TOOL = Tool(
    name="save_memory",
    description='Save a "fact" & keep it (für später).',
    parameters={
        "type": "object",
        "properties": {"content": {"type": "string", "description": "The fact to keep & recall."}},
        "required": ["content"],
    },
    effect="write",
    intents=lambda _: ("remember",),
    run=lambda _a, _c: ToolResult(text="ok"),
)
PINNED = Options(temperature=0.0, num_predict=60, seed=1, deadline=240)


def test_a_live_native_call_comes_as_a_call_with_everything_counted() -> None:
    model = live("qwen05-json")
    reply = ask(model, "native", REMEMBER, (TOOL,), PINNED)
    assert [call.name for call in (*reply.tool_calls, *reply.leaked)] == ["save_memory"]
    assert reply.usage.prompt > 50
    seen = model.describe()
    assert seen["context_allocated"] == PINNED.num_ctx
    assert (seen["family"], seen["quantization"]) == ("qwen2", "Q4_K_M")
    assert model.healthy()


@pytest.mark.parametrize("name", ["qwen05-json", "smollm2", "notools"])
def test_a_live_constrained_reply_is_always_one_of_the_forms_asked_for(name: str) -> None:
    model = live(name)
    request = calling("constrained").encode(REMEMBER, (TOOL,))
    reply = model.chat(request.messages, schema=request.schema, options=PINNED)
    if reply.done_reason == "length":
        with pytest.raises(ModelFailureError):
            calling("constrained").decode(reply, (TOOL,))
    else:
        assert set(json.loads(reply.content)) in ({"reply"}, {"name", "arguments"})


def test_a_live_server_tells_a_readable_template_from_one_that_prints_structs() -> None:
    good = ledger(live("qwen05-json"), "native", SYSTEM, (TOOL,), PINNED)
    assert (good.status, good.notes) == ("readable", ())
    assert good.tool_tax is not None
    assert good.tool_tax > 20
    bad = ledger(live("smollm2-structs"), "native", SYSTEM, (TOOL,), PINNED)
    assert bad.status == "unreadable"
    assert "Go struct" in bad.notes[0]
    for mode in ("prompted", "constrained"):
        assert ledger(live("smollm2-structs"), mode, SYSTEM, (TOOL,), PINNED).status == "readable"


def test_a_live_prompt_that_does_not_fit_is_context_overflow_and_never_cut() -> None:
    long = (REMEMBER[0], Message(role="user", content="My full name is Elena Rossi. " * 60))
    with pytest.raises(ModelFailureError) as caught:
        live("smollm2").chat(long, options=Options(num_ctx=256, deadline=240))
    assert caught.value.kind == "context_overflow"


def test_a_live_server_refuses_unknown_models_and_tools_without_a_template() -> None:
    live("notools")
    with pytest.raises(InputError, match="ollama pull"):
        OllamaModel("no-such-model").chat(REMEMBER, options=PINNED)
    with pytest.raises(InputError, match="prompted"):
        live("notools").chat(REMEMBER, tools=(TOOL,), options=PINNED)
    assert live("all-minilm").modes == ()


def test_a_live_deadline_ends_a_reply_in_the_middle_and_health_comes_back() -> None:
    model = live("smollm2")
    story = (Message(role="user", content="Tell a very long story about a lighthouse."),)
    started = time.monotonic()
    with pytest.raises(InfrastructureError) as caught:
        model.chat(story, options=Options(num_predict=3000, deadline=0.5))
    assert caught.value.kind == "timeout"
    assert time.monotonic() - started < 60
    assert model.healthy()
