from __future__ import annotations

import json
import socket
import threading

import httpx
import pytest
import stamina
from fake_ollama import Answer, FakeOllama, failed, line, said

from memeval.errors import HarnessError, InfrastructureError, InputError, ModelFailureError
from memeval.messages import Message, Tool, ToolCall, ToolResult
from memeval.models.base import Options
from memeval.models.ollama import OllamaModel

SYSTEM = Message(role="system", content="Be brief.")
HELLO = (SYSTEM, Message(role="user", content="Hello!"))
PINNED = {"num_ctx", "num_predict", "temperature", "top_p", "top_k", "repeat_penalty", "seed"}


@pytest.fixture(autouse=True)
def _no_waiting_between_tries():
    with stamina.set_testing(True, attempts=5, cap=True):
        yield


def tool(name: str = "save_memory") -> Tool:
    schema = {"type": "object", "properties": {"content": {"type": "string"}}, "required": ["content"]}
    return Tool(
        name=name,
        description="Save it.",
        parameters=schema,
        effect="write",
        intents=lambda _: ("remember",),
        run=lambda _a, _c: ToolResult(text="ok"),
    )


def ask(fake: FakeOllama, messages=HELLO, *, options: Options | None = None, **more):
    model = OllamaModel("fake", fake.host, patience=0.2)
    try:
        return model.chat(messages, options=options or Options(deadline=20), **more)
    finally:
        model.close()


def test_a_reply_is_put_together_from_its_chunks_with_usage_and_loading_time() -> None:
    chunks = [
        line(message={"content": "Hel", "thinking": "hm"}, done=False),
        line(message={"content": "lo", "thinking": "m"}, done=False),
        said(".", prompt=31, output=7),
    ]
    with FakeOllama([Answer(chunks)]) as fake:
        reply = ask(fake)
    assert (reply.content, reply.thinking, reply.done_reason) == ("Hello.", "hmm", "stop")
    assert (reply.usage.prompt, reply.usage.output, reply.load_seconds) == (31, 7, 2.0)
    assert reply.raw["done"] is True
    assert reply.seconds > 0


def test_calls_that_arrive_before_the_last_chunk_are_kept_in_order() -> None:
    calls = [{"id": f"call_{n}", "function": {"name": f"t{n}", "arguments": {"n": n}}} for n in (1, 2)]
    chunks = [line(message={"content": "", "tool_calls": [call]}, done=False) for call in calls]
    with FakeOllama([Answer([*chunks, said("")])]) as fake:
        reply = ask(fake, tools=[tool()])
    assert reply.tool_calls == (ToolCall("t1", {"n": 1}, "call_1"), ToolCall("t2", {"n": 2}, "call_2"))


def test_everything_is_pinned_in_every_request() -> None:
    with FakeOllama() as fake:
        ask(fake, options=Options(num_ctx=2048, seed=7, temperature=0.0, think=True, deadline=20))
        body = fake.chats()[0]
    assert set(body["options"]) == PINNED
    assert (body["options"]["num_ctx"], body["options"]["seed"]) == (2048, 7)
    assert (body["truncate"], body["shift"], body["stream"], body["keep_alive"]) == (
        False,
        False,
        True,
        "30m",
    )
    assert body["think"] is False  # true is an error on a model that cannot think
    assert "tools" not in body
    assert "format" not in body


def test_thinking_is_asked_for_where_the_model_can_think() -> None:
    with FakeOllama(capabilities=["completion", "thinking"]) as fake:
        ask(fake, options=Options(think="low", deadline=20))
        assert fake.chats()[0]["think"] == "low"


def test_tools_calls_and_results_travel_whole() -> None:
    history = (
        *HELLO,
        Message(
            role="assistant", content="", thinking="x", tool_calls=(ToolCall("save", {"a": {"b": 1}}, "c1"),)
        ),
        Message(role="tool", content="ok \ud800", tool_name="save", call_id="c1"),
    )
    with FakeOllama() as fake:
        ask(fake, history, tools=[tool()])
        body = fake.chats()[0]
    assert body["messages"][2]["tool_calls"] == [
        {"id": "c1", "function": {"name": "save", "arguments": {"a": {"b": 1}}}}
    ]
    assert body["messages"][2]["thinking"] == "x"
    assert (body["messages"][3]["tool_name"], body["messages"][3]["tool_call_id"]) == ("save", "c1")
    assert body["tools"] == [tool().schema()]


def test_a_schema_goes_as_format_and_never_with_tools() -> None:
    with FakeOllama() as fake:
        ask(fake, schema={"type": "object"})
        assert fake.chats()[0]["format"] == {"type": "object"}
        with pytest.raises(HarnessError, match="never sent together"):
            ask(fake, schema={"type": "object"}, tools=[tool()])


def test_a_closed_port_is_server_down_with_the_command_that_mends_it() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        host = f"http://secret@127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(InfrastructureError, match="ollama serve") as caught:
        OllamaModel("fake", host).chat(HELLO, options=Options(deadline=5))
    assert caught.value.kind == "server_down"
    assert "secret" not in str(caught.value)
    assert not OllamaModel("fake", host).healthy()


@pytest.mark.parametrize(
    "answer",
    [
        Answer(silent=True),
        Answer([b" "], endless=True, delay=0.02),
        Answer([line(message={"content": "word "}, done=False)], endless=True, delay=0.01),
        Answer([line(message={"content": "word "}, done=False)], endless=True, delay=0.01, chunked=True),
    ],
    ids=["never answers", "trickles", "generates for ever", "generates for ever, chunked"],
)
def test_one_deadline_covers_a_server_that_never_ends(answer: Answer) -> None:
    with FakeOllama([answer]) as fake, pytest.raises(InfrastructureError) as caught:
        ask(fake, options=Options(deadline=0.3))
    assert caught.value.kind == "timeout"
    assert "0.3 seconds" in str(caught.value)


@pytest.mark.parametrize("chunked", [False, True], ids=["ended by the connection", "chunked"])
def test_a_stream_cut_at_any_byte_is_truncated_and_never_a_short_answer(chunked: bool) -> None:
    whole = said("Hello you.")
    cuts = [Answer([whole[:at]] if at else [], cut=True, chunked=chunked) for at in range(len(whole) - 1)]
    with FakeOllama([*cuts, Answer([whole])]) as fake:
        model = OllamaModel("fake", fake.host)
        kinds = set()
        for _ in cuts:
            with pytest.raises(InfrastructureError) as caught:
                model.chat(HELLO, options=Options(deadline=20))
            kinds.add(caught.value.kind)
        assert kinds == {"truncated"}
        assert model.chat(HELLO, options=Options(deadline=20)).content == "Hello you."


def test_a_reply_that_the_server_broke_off_for_repeating_itself_is_the_models_failure() -> None:
    pieces = [line(message={"role": "assistant", "content": text}) for text in ["So", *[" so"] * 30]]
    with FakeOllama([Answer(pieces)]) as fake, pytest.raises(ModelFailureError) as caught:
        ask(fake)
    assert caught.value.kind == "runaway_length"
    with FakeOllama([Answer(pieces[:-5])]) as fake, pytest.raises(InfrastructureError):
        ask(fake)


@pytest.mark.parametrize(
    ("again", "error"),
    [
        ([line(logprobs=[{"token": " so"}], message={"content": ""}) for _ in range(30)], ModelFailureError),
        ([line(logprobs=[{"token": t}], message={"content": ""}) for t in "abc" * 10], InfrastructureError),
        ([line(logprobs="none", message={"content": ""})] * 30, InfrastructureError),
        ([said("All is well.")], InfrastructureError),
    ],
    ids=["repeats", "does not repeat", "no tokens", "ends this time"],
)
def test_what_is_held_back_of_a_call_is_asked_for_when_a_reply_breaks_off(
    again: list[bytes], error: type[Exception]
) -> None:
    with FakeOllama([Answer([]), Answer(again)]) as fake, pytest.raises(error) as caught:
        ask(fake, tools=[tool()])
    assert getattr(caught.value, "kind", "") == {
        ModelFailureError: "runaway_length", InfrastructureError: "truncated"
    }[error]  # fmt: skip
    first, second = fake.chats()
    assert second == first | {"logprobs": True}


def test_a_whole_last_line_without_its_line_feed_is_a_reply() -> None:
    with FakeOllama([Answer([said("Hi.")[:-1]])]) as fake:
        assert ask(fake).content == "Hi."


@pytest.mark.parametrize(
    "answer",
    [
        Answer([b"<html><body>Proxy login</body></html>"], content_type="text/html"),
        Answer([b"<html>\n<body>Proxy login</body></html>\n"], status=502, content_type="text/html"),
        Answer([b"[1, 2]\n"]),
        Answer([line(message={"content": ["no", "text"]}, done=True)]),
        Answer([line(message="Hello", done=True)]),
        Answer([line(message={"tool_calls": [{"name": "flat"}]}, done=True)]),
        Answer([line(message={"content": "x"}, done=True, eval_count="many")]),
    ],
    ids=[
        "html",
        "html 502",
        "list",
        "content no text",
        "message no object",
        "call no function",
        "count no number",
    ],
)
def test_what_is_not_ollama_is_bad_response_and_shows_its_first_bytes(answer: Answer) -> None:
    with (
        FakeOllama([answer]) as fake,
        pytest.raises(InfrastructureError, match="does not answer like Ollama") as caught,
    ):
        ask(fake)
    assert caught.value.kind == "bad_response"
    assert len(str(caught.value)) < 400


def test_an_unparsable_call_is_the_models_failure_with_the_raw_text_kept() -> None:
    text = 'error parsing tool call: raw=\'{"content": "Elix\', err=unexpected end of JSON input'
    for answer in (failed(500, text), Answer([line(message={"content": "a"}, done=False), line(error=text)])):
        with FakeOllama([answer]) as fake, pytest.raises(ModelFailureError, match="Elix") as caught:
            ask(fake)
        assert caught.value.kind == "malformed_call"
        assert len(fake.chats()) == 1  # never retried away


def test_an_error_line_under_200_is_no_reply() -> None:
    chunks = [line(message={"content": "Hel"}, done=False), line(error="an unknown runner error")]
    with (
        FakeOllama([Answer(chunks)]) as fake,
        pytest.raises(InfrastructureError, match="runner error") as caught,
    ):
        ask(fake)
    assert caught.value.kind == "server_error"


@pytest.mark.parametrize(
    "said_by_server",
    [
        "the input length exceeds the context length",
        "the prompt is longer than the context length currently available to the model; shorten it",
    ],
)
def test_a_prompt_that_does_not_fit_is_context_overflow(said_by_server: str) -> None:
    with FakeOllama([failed(400, said_by_server)]) as fake, pytest.raises(ModelFailureError) as caught:
        ask(fake)
    assert caught.value.kind == "context_overflow"


def test_a_reply_that_fills_the_context_is_context_overflow_even_if_it_stopped() -> None:
    with (
        FakeOllama([Answer([said("x", prompt=250, output=6)])]) as fake,
        pytest.raises(ModelFailureError) as caught,
    ):
        ask(fake, options=Options(num_ctx=256, deadline=20))
    assert caught.value.kind == "context_overflow"
    with FakeOllama([Answer([said("x", prompt=249, output=6)])]) as fake:
        assert ask(fake, options=Options(num_ctx=256, deadline=20)).content == "x"


def test_a_prompt_with_fewer_tokens_than_words_was_cut_silently() -> None:
    # Measured on Ollama 0.24 without truncate:false: 28 tokens for a history of 300.
    long = (
        SYSTEM,
        Message(role="user", content="my name is Elena " * 70),
        Message(role="user", content="Who am I?"),
    )
    with FakeOllama([Answer([said("x", prompt=28)])]) as fake, pytest.raises(InfrastructureError) as caught:
        ask(fake, long)
    assert caught.value.kind == "truncated"
    with FakeOllama([Answer([said("x", prompt=0)])]) as fake:  # not counted is no proof
        assert ask(fake, long).content == "x"


def test_a_reply_cut_by_num_predict_comes_back_for_the_trial_to_judge() -> None:
    with FakeOllama([Answer([said("on and on", done_reason="length")])]) as fake:
        assert ask(fake).done_reason == "length"


def test_a_missing_model_is_bad_input_with_the_pull_command() -> None:
    with (
        FakeOllama([failed(404, "model 'fake' not found")]) as fake,
        pytest.raises(InputError, match="ollama pull fake"),
    ):
        ask(fake)
    with (
        FakeOllama() as fake,
        pytest.raises(InputError, match=r"ollama pull othr:1b.*did you mean 'other:1b'"),
    ):
        assert OllamaModel("othr:1b", fake.host).digest


@pytest.mark.parametrize("what", ["tools", "chat", "thinking"])
def test_what_a_model_cannot_do_is_bad_input(what: str) -> None:
    with (
        FakeOllama([failed(400, f'"fake" does not support {what}')]) as fake,
        pytest.raises(InputError, match=what),
    ):
        ask(fake)


def test_a_busy_server_is_tried_again_and_then_given_up() -> None:
    busy = failed(503, "server busy, please try again.  maximum pending requests exceeded")
    with FakeOllama([busy, busy, Answer([said("Here.")])]) as fake:
        assert ask(fake).content == "Here."
        assert len(fake.chats()) == 3
    with FakeOllama([busy]) as fake, pytest.raises(InfrastructureError, match="busy") as caught:
        ask(fake)
    assert caught.value.kind == "server_error"
    assert len(fake.chats()) == 5


def test_any_other_refusal_is_infrastructure_and_not_tried_again() -> None:
    with (
        FakeOllama([failed(500, "cudaMalloc failed")]) as fake,
        pytest.raises(InfrastructureError, match="cudaMalloc"),
    ):
        ask(fake)
    assert len(fake.chats()) == 1


@pytest.mark.parametrize(
    ("capabilities", "modes"),
    [
        (["completion", "tools"], ("native", "prompted", "constrained")),
        (["completion"], ("prompted", "constrained")),
        (["embedding"], ()),
    ],
)
def test_modes_follow_the_capabilities(capabilities: list[str], modes: tuple[str, ...]) -> None:
    with FakeOllama(capabilities=capabilities) as fake:
        assert OllamaModel("fake", fake.host).modes == modes


def test_describe_says_what_a_reader_needs_to_judge_a_run() -> None:
    with FakeOllama() as fake:
        model = OllamaModel("fake", fake.host)
        seen = model.describe()
    assert (seen["server_version"], seen["digest"], seen["quantization"]) == ("0.24.0", "d1", "Q4_K_M")
    assert (seen["family"], seen["parameter_size"], seen["context_allocated"]) == ("qwen2", "0.5B", 4096)
    assert len(seen["template_sha256"]) == 64
    assert (model.name, model.digest, model.smoke) == ("ollama:fake", "d1", False)


def test_rendering_runs_no_model_and_keeps_the_options_of_the_last_chat() -> None:
    with FakeOllama() as fake:
        fake.rendered = "<|im_start|>system"
        model = OllamaModel("fake", fake.host)
        model.chat(HELLO, options=Options(num_ctx=2048, deadline=20))
        assert model.render(HELLO, [tool()]) == "<|im_start|>system"
        assert fake.chats()[-1]["options"]["num_ctx"] == 2048
        assert fake.chats()[-1]["truncate"] is False


def test_a_server_that_does_not_render_says_so_by_none() -> None:
    with FakeOllama([Answer([said("Hi.").split(b"\n")[1]])]) as fake:
        assert OllamaModel("fake", fake.host).render(HELLO) is None
        assert fake.chats()[-1]["options"]["num_predict"] == 1


def test_after_a_time_out_health_means_that_the_queue_moves_again() -> None:
    with FakeOllama([Answer(silent=True), Answer(silent=True), Answer([said("Hi.")])]) as fake:
        model = OllamaModel("fake", fake.host, patience=0.2)
        assert model.healthy()
        with pytest.raises(InfrastructureError):
            model.chat(HELLO, options=Options(deadline=0.2))
        assert not model.healthy()
        assert model.healthy()
        asked = len(fake.chats())
        assert model.healthy()
        assert len(fake.chats()) == asked


def test_one_model_serves_many_threads() -> None:
    with FakeOllama() as fake:
        model = OllamaModel("fake", fake.host)
        replies: list[str] = []

        def chat() -> None:
            replies.append(model.chat(HELLO, options=Options(deadline=20)).content)

        threads = [threading.Thread(target=chat) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert replies == ["Hello."] * 8


def test_a_transport_can_stand_in_for_the_network() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/api/show":
            return httpx.Response(200, json={"capabilities": ["completion"]})
        assert json.loads(request.content)["model"] == "any"
        return httpx.Response(200, content=said("Hi."))

    model = OllamaModel("any", transport=httpx.MockTransport(answer))
    assert model.chat(HELLO, options=Options(deadline=5)).content == "Hi."
