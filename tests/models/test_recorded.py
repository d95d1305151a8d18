from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from memeval.errors import InputError, ModelFailureError
from memeval.messages import Message, Tool, ToolCall, ToolResult
from memeval.models import open_model, register_model
from memeval.models.base import Options
from memeval.models.calling import ask
from memeval.models.ollama import OllamaModel
from memeval.models.recorded import RecordedModel, Recorder
from memeval.models.scripted import ScriptedModel

FIXTURES = Path(__file__).parent.parent / "fixtures" / "ollama"
SYSTEM = Message(role="system", content="You are a helpful assistant with a memory.")


def user(text: str) -> Message:
    return Message(role="user", content=text)


REMEMBER = (SYSTEM, user("Please remember my preferred language is Elixir."))
PARTY = (SYSTEM, user("Remember that my sister's birthday is on 3 May and I'm allergic to nuts."))
PINNED = Options(seed=1, temperature=0.0, num_predict=80)


def tool(name: str, description: str, parameter: str, what: str) -> Tool:
    schema = {
        "type": "object",
        "properties": {parameter: {"type": "string", "description": what}},
        "required": [parameter],
    }
    return Tool(
        name=name,
        description=description,
        parameters=schema,
        effect="write",
        intents=lambda _: ("remember",),
        run=lambda _a, _c: ToolResult(text="ok"),
    )


# The tools that the exchanges in the fixtures were recorded with, on Ollama 0.24.0.
TOOLS = (
    tool("save_memory", 'Save a "fact" & keep it (für später).', "content", "The fact to keep & recall."),
    tool("search_memory", "Search what was remembered.", "query", "What to look for."),
)


def recorded(name: str, **more) -> RecordedModel:
    return RecordedModel(FIXTURES / f"{name}.json", **more)


def test_a_real_native_call_is_read_as_a_call() -> None:
    model = recorded("native_call")
    reply = ask(model, "native", REMEMBER, TOOLS, PINNED)
    assert [(c.name, c.arguments) for c in reply.tool_calls] == [
        ("save_memory", {"content": "Elixir is my preferred language."})
    ]
    assert reply.leaked == ()
    assert (reply.usage.prompt, reply.usage.output) == (157, 19)
    assert "native" in model.modes


@pytest.mark.parametrize("seed", [3, 5, 7])
def test_real_leaked_calls_are_recognised_with_their_tool(seed: int) -> None:
    reply = ask(recorded("leaked_call"), "native", PARTY, TOOLS, Options(seed=seed, num_predict=120))
    assert reply.tool_calls == ()
    assert [call.name for call in reply.leaked] == ["save_memory"]


def test_real_constrained_replies_are_words_a_call_or_unreadable_when_cut() -> None:
    model = recorded("constrained")
    assert ask(model, "constrained", REMEMBER, TOOLS, PINNED).content == "Elixir is my preferred language."
    assert ask(model, "constrained", (SYSTEM, user("Hello!")), TOOLS, PINNED).tool_calls == ()
    with pytest.raises(ModelFailureError) as caught:
        ask(model, "constrained", REMEMBER, TOOLS, Options(seed=1, temperature=0.0, num_predict=6))
    assert caught.value.kind == "unreadable_reply"


def test_a_real_context_overflow_is_the_models_failure() -> None:
    long = (SYSTEM, user("My full name is Elena Rossi. " * 60))
    with pytest.raises(ModelFailureError, match="exceeds the context") as caught:
        recorded("context_overflow").chat(long, options=Options(num_ctx=256))
    assert caught.value.kind == "context_overflow"


def test_a_real_reply_that_repeats_a_token_within_a_call_is_the_models_failure() -> None:
    # Ollama 0.24.0 sent no chunk of it: a call that is not whole is held back
    recording = json.loads((FIXTURES / "repeats_in_a_call.json").read_text(encoding="utf-8"))
    first, again = (e for e in recording["exchanges"] if e["path"] == "/api/chat")
    assert first["lines"] == []
    assert again["request"] == first["request"] | {"logprobs": True}
    with pytest.raises(ModelFailureError, match=r"repeats '\.constraint'") as caught:
        list(recorded("repeats_in_a_call")._server.stream(first["request"], 5.0))
    assert caught.value.kind == "runaway_length"


def test_a_real_refusal_of_an_unknown_model_and_of_tools_is_bad_input() -> None:
    with pytest.raises(InputError, match="ollama pull nope"):
        recorded("unknown_model").chat(REMEMBER, options=PINNED)
    model = recorded("no_tools")
    assert model.modes == ("prompted", "constrained")
    with pytest.raises(InputError, match="does not support tools; use the calling mode"):
        model.chat(REMEMBER, tools=TOOLS, options=PINNED)


def test_a_request_that_was_not_recorded_names_the_nearest_that_was() -> None:
    with pytest.raises(
        InputError, match=r"no answer to POST /api/chat 'Please remember Elixir.'.*'Please remember my"
    ):
        recorded("native_call").chat((SYSTEM, user("Please remember Elixir.")), tools=TOOLS, options=PINNED)


def test_in_order_the_chats_are_answered_whatever_they_ask() -> None:
    model = recorded("constrained", match="order")
    replies = [model.chat((user(text),), options=Options()).content for text in ("a", "b", "c")]
    assert replies[0] == '{"reply": "Elixir is my preferred language."}'
    assert replies[2] == '{"reply": "Elixir'
    with pytest.raises(InputError, match="holds no answer"):
        model.chat((user("d"),), options=Options())


def test_what_is_recorded_is_played_back_the_same(tmp_path: Path) -> None:
    sent: list[str] = []

    def server(request: httpx.Request) -> httpx.Response:
        sent.append(request.url.path)
        if request.url.path == "/api/show":
            info = {"a.context_length": 99, "tokenizer": [1] * 1000}
            return httpx.Response(
                200,
                json={"capabilities": ["completion"], "model_info": info, "modelfile": "FROM /secret/path"},
            )
        said = {"message": {"content": f"Answer {len(sent)}."}, "done": True}
        return httpx.Response(200, content=json.dumps(said) + "\n")

    recorder = Recorder(httpx.MockTransport(server))
    live = OllamaModel("m", transport=recorder)
    first = [live.chat((user("Hi."),), options=PINNED).content for _ in range(2)]
    recorder.save(tmp_path / "m.json", "m")
    assert "secret" not in (tmp_path / "m.json").read_text()
    model = open_model(f"recorded:{tmp_path / 'm.json'}")
    assert [model.chat((user("Hi."),), options=PINNED).content for _ in range(3)] == [*first, first[1]]
    assert model.smoke
    assert model.healthy()
    assert len(model.digest) == 64


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("{", "not JSON"),
        ("{}", "format"),
        ('{"format": "memeval-exchanges-1", "exchanges": [{}]}', "needs method"),
    ],
)
def test_a_file_that_is_no_recording_is_bad_input(tmp_path: Path, text: str, wrong: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(InputError, match=wrong):
        RecordedModel(tmp_path / "x.json")
    with pytest.raises(InputError, match="cannot be read"):
        RecordedModel(tmp_path / "absent.json")


def test_models_are_opened_by_name_and_an_unknown_name_gets_the_nearest() -> None:
    assert open_model("ollama:qwen3:4b", "http://far:1").name == "ollama:qwen3:4b"
    register_model("mine:parrot", lambda: ScriptedModel(["hi"], name="mine:parrot"))
    assert open_model("mine:parrot").name == "mine:parrot"
    with pytest.raises(InputError, match="did you mean 'ollama:qwen3:4b'"):
        open_model("qwen3:4b")
    with pytest.raises(InputError, match="did you mean 'bundled:router'"):
        open_model("bundled:ruoter")
    with pytest.raises(InputError, match="did you mean 'mine:parrot'"):
        open_model("mine:parot")
    with pytest.raises(InputError):
        open_model("ollama:")


def test_a_call_reply_of_a_recording_can_be_compared_with_a_call() -> None:
    call = ask(recorded("native_call"), "native", REMEMBER, TOOLS, PINNED).tool_calls[0]
    assert call == ToolCall("save_memory", {"content": "Elixir is my preferred language."}, call.id)
    assert call.id.startswith("call_")
