"""A chat model that says what a script says: for tests, in microseconds, without a network."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from memeval.errors import HarnessError
from memeval.messages import Message, Reply, Tool, ToolCall, Usage
from memeval.models.base import CallingMode, Options

Answer = Reply | str | ToolCall | list[ToolCall] | Exception
Script = Callable[[Sequence[Message], Sequence[Tool]], Answer]


class ScriptedModel:
    """Answers with a function of messages and tools, or with a list of answers taken in turn.

    An answer is words, a call, several calls, a whole Reply, or an exception to raise. Calls are written
    the way the request asks for: as calls if tools came with it, else as JSON; words as `{"reply": ...}`
    under a schema. A Reply is passed on as it is. Tokens are counted as words. `seen` keeps the requests.
    """

    smoke = True
    modes: tuple[CallingMode, ...] = ("native", "prompted", "constrained")

    def __init__(
        self,
        script: Script | Sequence[Answer],
        name: str = "scripted:test",
        *,
        render: Callable[[Sequence[Message], Sequence[Tool]], str | None] | None = None,
    ) -> None:
        self.name = name
        self.digest = name
        self.seen: list[tuple[tuple[Message, ...], tuple[Tool, ...]]] = []
        self._render = render
        self._script = script if callable(script) else self._in_turn(script)

    def _in_turn(self, answers: Sequence[Answer]) -> Script:
        def script(_messages: Sequence[Message], _tools: Sequence[Tool]) -> Answer:
            if len(self.seen) > len(answers):
                raise HarnessError(f"{self.name} has {len(answers)} answers and was asked once more")
            return answers[len(self.seen) - 1]

        return script

    def describe(self) -> Mapping[str, Any]:
        """Its name."""
        return {"model": self.name}

    def chat(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] = (),
        schema: Mapping[str, Any] | None = None,
        options: Options,
    ) -> Reply:
        """What the script answers."""
        self.seen.append((tuple(messages), tuple(tools)))
        answer = self._script(messages, tools)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Reply):
            return answer
        prompt = sum(_words(message.content) for message in messages)
        prompt += sum(_words(tool.description) for tool in tools)
        if isinstance(answer, str):
            content = json.dumps({"reply": answer}) if schema is not None else answer
            return Reply(content=content, usage=Usage(prompt, _words(answer)))
        calls = [answer] if isinstance(answer, ToolCall) else answer
        objects = [{"name": call.name, "arguments": call.arguments} for call in calls]
        text = json.dumps(objects[0] if len(objects) == 1 else objects)
        usage = Usage(prompt, _words(text))
        if tools:
            return Reply(content="", tool_calls=tuple(calls), usage=usage)
        return Reply(content=text, usage=usage)

    def render(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> str | None:
        """What the given function renders; without one there is no rendering."""
        return self._render(messages, tools) if self._render else None

    def healthy(self) -> bool:
        """Always."""
        return True

    def close(self) -> None:
        """Nothing to let go of."""


def _words(text: str) -> int:
    return len(text.split())
