"""Chat with an Ollama server over its own API: everything pinned, nothing dropped, every fault named."""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import httpx
import stamina

from memeval.errors import HarnessError, InfrastructureError, InputError, ModelFailureError, nearest
from memeval.messages import Message, Reply, Tool, ToolCall, Usage
from memeval.models.base import CallingMode, Options
from memeval.models.server import BusyError, Server

_WORD = re.compile(r"\w+")


class OllamaModel:
    """One model of one Ollama server. Thread-safe.

    `keep_alive` is how long the server holds the model in memory after a request. `patience` is how many
    seconds `healthy` waits for a queue that a timed-out request may have left stuck. `tries` counts the
    attempts while the server is busy (503). `transport` replaces the network, for recording and replaying.
    """

    smoke = False

    def __init__(
        self,
        name: str,
        host: str | None = None,
        *,
        keep_alive: str = "30m",
        patience: float = 60.0,
        tries: int = 5,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.tag = name
        self._keep_alive, self._patience, self._tries = keep_alive, patience, tries
        self._server = Server(host, transport)
        self.host = self._server.host
        self._lock = threading.Lock()
        self._known: dict[str, dict[str, Any]] = {}
        self._options = Options()

    # What the model is

    @property
    def name(self) -> str:
        """`ollama:` and the tag."""
        return f"ollama:{self.tag}"

    @property
    def digest(self) -> str:
        """The server's digest of the model's manifest: weights, template and parameters."""
        return str(self._listed()["digest"])

    @property
    def capabilities(self) -> tuple[str, ...]:
        """What `/api/show` says the model can do: completion, tools, thinking, embedding, ..."""
        return tuple(self._shown().get("capabilities") or ("completion",))

    @property
    def modes(self) -> tuple[CallingMode, ...]:
        """Native only where the template takes tools; none for a model that does not chat."""
        if "completion" not in self.capabilities:
            return ()
        return (
            ("native", "prompted", "constrained")
            if "tools" in self.capabilities
            else ("prompted", "constrained")
        )

    def describe(self) -> Mapping[str, Any]:
        """Server, weights and template. `context_allocated` is what the server really gave, once it runs."""
        details = self._shown().get("details") or {}
        running = self._server.get("/api/ps").get("models") or []
        allocated = [m.get("context_length") for m in running if m.get("digest") == self.digest]
        return {
            "host": self.host,
            "server_version": self._server.get("/api/version").get("version", ""),
            "digest": self.digest,
            "family": details.get("family", ""),
            "parameter_size": details.get("parameter_size", ""),
            "quantization": details.get("quantization_level", ""),
            "template_sha256": hashlib.sha256(str(self._shown().get("template", "")).encode()).hexdigest(),
            "capabilities": list(self.capabilities),
            "context_trained": self._trained(),
            "context_allocated": allocated[0] if allocated else None,
        }

    def _shown(self) -> dict[str, Any]:
        return self._once("show", lambda: self._server.ask("POST", "/api/show", {"model": self.tag}))

    def _listed(self) -> dict[str, Any]:
        def look() -> dict[str, Any]:
            models = {str(m.get("name")): m for m in self._server.get("/api/tags").get("models") or []}
            for name in (self.tag, f"{self.tag}:latest"):
                if name in models:
                    return dict(models[name])
            raise self._absent(models)

        return self._once("tags", look)

    def _once(self, key: str, look: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        if key not in self._known:
            found = look()
            with self._lock:
                self._known.setdefault(key, found)
        return dict(self._known[key])

    def _trained(self) -> int | None:
        info = self._shown().get("model_info") or {}
        lengths = [v for k, v in info.items() if k.endswith(".context_length") and isinstance(v, int)]
        return lengths[0] if lengths else None

    def _absent(self, models: Mapping[str, Any]) -> InputError:
        hint = nearest(self.tag, models)
        return InputError(f"{self.host} has no model {self.tag!r}: `ollama pull {self.tag}` gets it{hint}")

    # Chat

    def chat(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] = (),
        schema: Mapping[str, Any] | None = None,
        options: Options,
    ) -> Reply:
        """One reply, with `options.deadline` seconds for everything: queue, loading, prompt, reply.

        Raises ModelFailureError (`malformed_call`, `context_overflow`), InfrastructureError and InputError.
        A reply cut by `num_predict` comes back with `done_reason == "length"`; the trial judges it.
        """
        if tools and schema is not None:
            # Measured: the grammar then suppresses tool calls (ollama #8095), or parses text into them.
            raise HarnessError("tools and a schema are never sent together: pick one calling mode")
        with self._lock:
            self._options = options
        body = self._body(messages, tools, options) | {"stream": True}
        if schema is not None:
            body["format"] = schema
        started = time.monotonic()
        chunks: list[dict[str, Any]] = []
        end = started + options.deadline
        for attempt in stamina.retry_context(
            on=BusyError, attempts=self._tries, timeout=options.deadline, wait_initial=0.2, wait_max=5.0
        ):
            with attempt:
                chunks = list(self._server.stream(body, max(0.001, end - time.monotonic())))
        reply = self._reply(chunks, time.monotonic() - started)
        self._check_context(messages, reply, options)
        return reply

    def render(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> str | None:
        """The prompt as the server's template makes it, without inference; None if the server cannot tell.

        `_debug_render_only` is unofficial (Ollama 0.11.5 and later); an older server ignores it and would
        generate, hence one token. The options are those of the last chat, because another `num_ctx` would
        make the server load the model anew.
        """
        with self._lock:
            options = self._options
        body = self._body(messages, tools, options) | {"stream": False, "_debug_render_only": True}
        body["options"]["num_predict"] = 1
        info = self._server.ask("POST", "/api/chat", body, options.deadline).get("_debug_info")
        text = info.get("rendered_template") if isinstance(info, dict) else None
        return text if isinstance(text, str) else None

    def healthy(self) -> bool:
        """Whether the next request would be served.

        After a time-out that takes more than the server's word: it may still be working on a prompt whose
        client is gone (seen for minutes), and every later request waits. So one token is asked for, too.
        """
        try:
            self._server.get("/api/version")
            if self._server.timed_out:
                probe = self._body([Message(role="user", content="Hi")], (), self._options)
                probe["options"]["num_predict"] = 1
                list(self._server.stream(probe | {"stream": True}, self._patience))
                self._server.timed_out = False
        except InfrastructureError:
            return False
        return True

    def close(self) -> None:
        """Close the client; the server keeps the model for `keep_alive`."""
        self._server.close()

    def _body(self, messages: Sequence[Message], tools: Sequence[Tool], options: Options) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.tag,
            "messages": [_wire(message) for message in messages],
            # Unset, it means true on models that can think; true is an error on those that cannot.
            "think": options.think if "thinking" in self.capabilities else False,
            "truncate": False,
            "shift": False,
            "keep_alive": self._keep_alive,
            "options": {
                "num_ctx": options.num_ctx,
                "num_predict": options.num_predict,
                "temperature": options.temperature,
                "top_p": options.top_p,
                "top_k": options.top_k,
                "repeat_penalty": options.repeat_penalty,
                "seed": options.seed,
            },
        }
        if tools:
            body["tools"] = [tool.schema() for tool in tools]
        return body

    def _reply(self, chunks: Sequence[Mapping[str, Any]], seconds: float) -> Reply:
        """Chunks into one reply: calls arrive before the last chunk, which is then empty."""
        content, thinking = "", ""
        calls: list[ToolCall] = []
        last = chunks[-1]
        try:
            for chunk in chunks:
                message = chunk.get("message") or {}
                content += message.get("content") or ""
                thinking += message.get("thinking") or ""
                for call in message.get("tool_calls") or []:
                    function = call["function"]
                    arguments = function.get("arguments", {})
                    calls.append(ToolCall(str(function["name"]), arguments, str(call.get("id") or "")))
            usage = Usage(int(last.get("prompt_eval_count") or 0), int(last.get("eval_count") or 0))
            load_seconds = float(last.get("load_duration") or 0) / 1e9
        except (AttributeError, KeyError, TypeError, ValueError):
            raise self._server.garbage(json.dumps(chunks).encode()) from None
        return Reply(
            content=content,
            thinking=thinking,
            tool_calls=tuple(calls),
            usage=usage,
            seconds=seconds,
            load_seconds=load_seconds,
            done_reason=str(last.get("done_reason") or "stop"),
            raw=dict(last),
        )

    def _check_context(self, messages: Sequence[Message], reply: Reply, options: Options) -> None:
        usage = reply.usage
        limit = min(options.num_ctx, self._trained() or options.num_ctx)
        if usage.prompt + usage.output >= limit:
            # With shift:false the server ends such a reply with HTTP 200 and `stop` or `length` (measured).
            raise ModelFailureError(
                f"{self.name} ran out of context: {usage.prompt} prompt and {usage.output} reply tokens"
                f" in {limit}",
                kind="context_overflow",
            )
        # A token hardly ever spans two words, so fewer tokens than words means that part of the prompt was
        # dropped: 28 tokens for a 300-token history when a server does not know `truncate:false`.
        words = sum(len(_WORD.findall(m.content)) for m in messages if m.role != "tool")
        if 0 < usage.prompt < words:
            raise InfrastructureError(
                f"{self.host} read only {usage.prompt} tokens of a prompt of {words} words: it cut the prompt"
                " without saying so; a newer Ollama obeys `truncate: false`",
                kind="truncated",
            )


def _wire(message: Message) -> dict[str, Any]:
    """A message as `/api/chat` takes it; empty parts are left out."""
    wire: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.thinking:
        wire["thinking"] = message.thinking
    if message.tool_calls:
        wire["tool_calls"] = [
            {
                **({"id": call.id} if call.id else {}),
                "function": {
                    "name": call.name,
                    # The server takes an object and nothing else.
                    "arguments": dict(call.arguments)
                    if isinstance(call.arguments, Mapping)
                    else {"value": call.arguments},
                },
            }
            for call in message.tool_calls
        ]
    if message.tool_name:
        wire["tool_name"] = message.tool_name
    if message.call_id:
        wire["tool_call_id"] = message.call_id
    return wire
