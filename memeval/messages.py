"""What is said between a design and a model: messages, tools, calls, results, replies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from memeval.records import Hit

Role = Literal["system", "user", "assistant", "tool"]
Effect = Literal["read", "write"]
Intent = Literal["remember", "recall", "search", "update", "forget", "note", "compact", "none"]
INTENTS: tuple[Intent, ...] = get_args(Intent)
WRITES: frozenset[Intent] = frozenset({"remember", "note", "update"})
READS: frozenset[Intent] = frozenset({"recall", "search"})


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One use of a tool, as the model wrote it. `arguments` is whatever came: an object if all is well."""

    name: str
    arguments: Any
    id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of the canonical history, the same for every calling mode."""

    role: Role
    content: str
    thinking: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_name: str = ""
    call_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool answers. `text` goes to the model; the rest is for the record and the verdicts."""

    text: str
    is_error: bool = False
    hits: tuple[Hit, ...] = ()
    written: tuple[str, ...] = ()
    directive: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A function the model may call. `parameters` is a JSON Schema object.

    `intents(args)` says what a call serves, most fitting first: a dual-mode tool maps by its arguments.
    `run(args, ctx)` gets arguments that passed the schema, and the design's context; after `timeout_s`
    seconds the model is told that the tool did not answer.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    effect: Effect
    intents: Callable[[Mapping[str, Any]], tuple[Intent, ...]]
    run: Callable[[Mapping[str, Any], Any], ToolResult]
    timeout_s: float = 20.0

    def schema(self) -> dict[str, Any]:
        """The tool as the OpenAI and Ollama APIs take it."""
        function = {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}
        return {"type": "function", "function": function}


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the model's server counted them: the whole prompt (cached parts included), and the reply."""

    prompt: int = 0
    output: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.prompt + other.prompt, self.output + other.output)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A model's answer to one request. `leaked` holds calls that arrived as text; they are never run."""

    content: str
    thinking: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    leaked: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    seconds: float = 0.0
    load_seconds: float = 0.0
    done_reason: str = "stop"
    raw: Mapping[str, Any] = field(default_factory=dict)
