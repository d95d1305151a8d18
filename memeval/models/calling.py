"""Three ways to let a model call tools, each a pair of encode and decode around any chat model."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from memeval.errors import InputError, ModelFailureError, nearest
from memeval.messages import Message, Reply, Tool
from memeval.models.base import CallingMode, ChatModel, Options
from memeval.models.leaks import find_leaks, whole_calls, whole_json


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent for a turn. Exactly one system message, the first."""

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    schema: Mapping[str, Any] | None = None


class Calling(Protocol):
    """A calling mode. The trial keeps one canonical history: `encode` rewrites it, `decode` reads replies."""

    mode: CallingMode

    def encode(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Request:
        """The request that this mode sends for a history and the tools that are offered."""

    def decode(self, reply: Reply, tools: Sequence[Tool]) -> Reply:
        """The reply with its calls as calls, and calls in the wrong place as `leaked`."""


def calling(mode: CallingMode) -> Calling:
    """The calling mode of a name. Raises InputError."""
    if mode not in _MODES:
        raise InputError(f"there is no calling mode {mode!r}{nearest(mode, _MODES)}")
    return _MODES[mode]


def ask(
    model: ChatModel,
    mode: CallingMode,
    messages: Sequence[Message],
    tools: Sequence[Tool],
    options: Options,
) -> Reply:
    """One reply of a model through a calling mode. Raises what `chat` raises, and ModelFailureError."""
    way = calling(mode)
    request = way.encode(messages, tools)
    reply = model.chat(request.messages, tools=request.tools, schema=request.schema, options=options)
    return way.decode(reply, tools)


class _Native:
    """The server's tool API: tools and calls travel as data, the model's template writes them out."""

    mode: CallingMode = "native"

    def encode(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Request:
        return Request(_one_system(messages), tuple(tools))

    def decode(self, reply: Reply, tools: Sequence[Tool]) -> Reply:
        return replace(reply, leaked=find_leaks(reply.content, _names(tools))) if tools else reply


class _Prompted:
    """Tools described in the system text; a reply that is as a whole a JSON call is a call."""

    mode: CallingMode = "prompted"

    def encode(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Request:
        how = 'To call a tool, answer with nothing but {"name": "<tool>", "arguments": {...}}.'
        text = _as_text(messages, plain=lambda content: content)
        return Request(_one_system(text, _described(tools, how) if tools else ""))

    def decode(self, reply: Reply, tools: Sequence[Tool]) -> Reply:
        if not tools:
            return reply
        calls = whole_calls(reply.content, _names(tools))
        if calls:
            return replace(reply, content="", tool_calls=calls)
        return replace(reply, leaked=find_leaks(reply.content, _names(tools)))


class _Constrained:
    """As prompted, and the reply held to a JSON Schema: one object per tool, and one `reply`."""

    mode: CallingMode = "constrained"

    def encode(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Request:
        how = 'Answer with one JSON object and nothing else: {"reply": "<your words>"} to answer'
        how += ', or {"name": "<tool>", "arguments": {...}} to call a tool.' if tools else "."
        text = _as_text(messages, plain=lambda content: _json({"reply": content}))
        return Request(_one_system(text, _described(tools, how)), schema=reply_schema(tools))

    def decode(self, reply: Reply, tools: Sequence[Tool]) -> Reply:
        if not reply.content.strip():
            raise ModelFailureError("the model replied nothing", kind="empty_reply")
        value = whole_json(reply.content)
        if isinstance(value, dict) and isinstance(value.get("reply"), str):
            content = value["reply"]
            return replace(reply, content=content, leaked=find_leaks(content, _names(tools)) if tools else ())
        if tools and (calls := whole_calls(reply.content, _names(tools))):
            return replace(reply, content="", tool_calls=calls)
        raise ModelFailureError(
            f"the reply is not one of the JSON objects asked for (ended by {reply.done_reason!r}):"
            f" {reply.content[:200]!r}",
            kind="unreadable_reply",
        )


_MODES: dict[CallingMode, Calling] = {way.mode: way for way in (_Native(), _Prompted(), _Constrained())}


def reply_schema(tools: Sequence[Tool]) -> dict[str, Any]:
    """The JSON Schema of a constrained reply: any one tool's call, or words."""
    forms = [_object({"name": {"const": tool.name}, "arguments": dict(tool.parameters)}) for tool in tools]
    words = _object({"reply": {"type": "string"}})
    return {"anyOf": [*forms, words]} if forms else words


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _json(value: Any) -> str:
    # Umlauts as they are: a small model copies "ü" more surely than "\\u00fc".
    return json.dumps(value, ensure_ascii=False)


def _names(tools: Iterable[Tool]) -> frozenset[str]:
    return frozenset(tool.name for tool in tools)


def _described(tools: Sequence[Tool], how: str) -> str:
    if not tools:
        return how
    lines = [_json(tool.schema()["function"]) for tool in tools]
    return "\n".join(["You can call these tools:", *lines, "", how])


def _one_system(messages: Sequence[Message], more: str = "") -> tuple[Message, ...]:
    """The messages with their system texts as one, first; an empty one too, or the server puts in its own."""
    parts = [m.content for m in messages if m.role == "system" and m.content]
    text = "\n\n".join([*parts, more] if more else parts)
    return (Message(role="system", content=text), *(m for m in messages if m.role != "system"))


def _as_text(messages: Sequence[Message], plain: Callable[[str], str]) -> list[Message]:
    """A history without tool messages: calls as the model's own JSON, results as the user's words.

    What then stands side by side under one role becomes one message: templates of the Gemma family refuse
    anything but user and assistant in turn.
    """
    out: list[Message] = []
    for message in messages:
        if message.role == "tool":
            label = f"Result of {message.tool_name}" if message.tool_name else "Tool result"
            message = Message(role="user", content=f"{label}: {message.content}")
        elif message.role == "assistant":
            calls = [{"name": c.name, "arguments": c.arguments} for c in message.tool_calls]
            written = [_json(calls[0] if len(calls) == 1 else calls)] if calls else []
            said = [plain(message.content)] if message.content or not calls else []
            message = Message(role="assistant", content="\n".join(said + written), thinking=message.thinking)
        if out and message.role == out[-1].role != "system":
            last = out.pop()
            message = replace(last, content=f"{last.content}\n\n{message.content}")
        out.append(message)
    return out
