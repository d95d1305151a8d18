"""The design contract: the tools, prompts and hooks a model is given. The thing that is compared."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from memeval.errors import InputError
from memeval.memory.base import MemoryStore
from memeval.messages import Intent, Message, Reply, Tool, ToolCall, ToolResult, Usage
from memeval.models.base import ChatModel, Options
from memeval.records import Clock, Hit, Ids, Kind, Scope

HOOKS = ("before_turn", "on_result", "compact", "after_turn", "after_session")
"""The methods of a design that the trial calls on its way."""


@dataclass(frozen=True, slots=True)
class Injection:
    """Text put before the model for one turn only, never kept in history, and the hits it was made of."""

    text: str
    hits: tuple[Hit, ...] = ()


@dataclass(slots=True)
class Asked:
    """What a design itself asked of the model, counted apart from the conversation."""

    requests: int = 0
    tokens: int = 0
    seconds: float = 0.0
    busy: bool = False


@dataclass(slots=True, kw_only=True)
class Context:
    """What a design's tools and hooks work with in a trial.

    `messages` is the conversation so far, `usage` what the last request of it cost, `options` how the model
    is asked. `query`, `answer` and `calls` are this turn's, calls by the tool's own name and with the values
    it was given; `final_score` is what the story says a session was worth (0 to 10). `state` is the design's
    own, kept for the trial; `counts` are figures it wants reported with the trial.
    """

    scope: Scope
    store: MemoryStore
    clock: Clock
    ids: Ids
    model: ChatModel | None = None
    options: Options = Options()  # noqa: RUF009 - frozen
    messages: Sequence[Message] = ()
    usage: Usage = field(default_factory=Usage)
    asked: Asked = field(default_factory=Asked)
    counts: Counter[str] = field(default_factory=Counter)
    query: str = ""
    answer: str = ""
    calls: Sequence[ToolCall] = ()
    turn: int = 0
    final_score: float | None = None
    state: dict[str, Any] = field(default_factory=dict)

    def ask(self, prompt: str, *, system: str = "", **options: Any) -> Reply:
        """Ask the trial's model something outside the conversation; tokens and time are counted apart.

        `options` stand in place of the trial's, such as `temperature=0.1`. Raises ModelFailureError where
        the model gives no usable reply, and InfrastructureError.
        """
        if self.model is None:
            raise InputError("this context has no model to ask")
        messages = [Message(role="system", content=system), Message(role="user", content=prompt)]
        started = time.perf_counter()
        self.asked.requests += 1
        self.asked.busy = True
        try:
            reply = self.model.chat(messages, options=replace(self.options, **options))
        finally:
            self.asked.seconds += time.perf_counter() - started
            self.asked.busy = False
        self.asked.tokens += reply.usage.prompt + reply.usage.output
        return reply


class MemoryDesign:
    """A memory tool design. Subclass it, give it a `name` and tools; every hook does nothing by default.

    `settings` are the design's defaults; a sweep may override them by name, nothing else, and `choices`
    lists the values of those that have few. One instance serves one trial. A design only picks names, texts,
    schemas, formats and hooks: saving, searching, ranking and the loop live elsewhere, once.

        class Sticky(MemoryDesign):
            name = "sticky"
            def tools(self):
                return [save_tool("stick", "Keep a note."), search_tool("look", "Find notes.")]
    """

    name: ClassVar[str] = ""
    title: ClassVar[str] = ""
    origin: ClassVar[str] = ""
    defaults: ClassVar[Mapping[str, Any]] = {}
    choices: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    remembers: ClassVar[Kind] = "note"
    """The kind under which it looks for a fact that a story gives."""
    version: ClassVar[int] = 1
    """Raised when what a model can see of a built-in design changes, beyond its prompt and tools: trials of
    an older version are not taken for new ones."""

    def __init__(self, **settings: Any) -> None:
        self.settings: dict[str, Any] = {**self.defaults, **settings}

    def check_range(self, setting: str, least: float, most: float = math.inf) -> None:
        """Raises InputError where a setting lies outside of a range.

        For the constructor: a limit of 0, taken as it is, would look like an empty memory.
        """
        value = self.settings[setting]
        if not least <= value <= most:
            ends = f"from {least} to {most}" if most < math.inf else f"{least} or more"
            raise InputError(f"design {self.name!r}: {setting} is {value}; it must be {ends}")

    def tools(self) -> Sequence[Tool]:
        """The tools as written; the trial sets their order."""
        return ()

    def system_prompt(self) -> str:
        """The one system message."""
        return "You are a helpful assistant."

    def before_turn(self, ctx: Context) -> Injection | None:
        """Text to put before the model for this turn."""
        return None

    def on_result(self, ctx: Context, call: ToolCall, result: ToolResult) -> ToolResult:
        """A tool's result on its way to the model.

        What the trial answers in a tool's place (an unknown tool, bad arguments, a tool that was late) does
        not come here.
        """
        return result

    def compact(self, ctx: Context, messages: Sequence[Message], directive: str) -> list[Message] | None:
        """Asked before every model request; what it returns replaces the history and stays.

        `directive` is what a tool of this turn left for it, given once.
        """
        return None

    def after_turn(self, ctx: Context) -> None:
        """The turn is over; `ctx.query`, `ctx.answer` and `ctx.calls` say what happened."""

    def after_session(self, ctx: Context) -> None:
        """The session is over; `ctx.final_score` says what it was worth, if the story does."""

    def serves(self) -> frozenset[Intent]:
        """Every intent some tool of this design could serve; a stage without a tool for it is null."""
        return frozenset(intent for tool in self.tools() for intent in served(tool))

    def keeps_topics(self) -> bool:
        """Whether some tool of this design takes a topic's key."""
        return any("topic" in tool.parameters.get("properties", {}) for tool in self.tools())

    def embedder(self, offered: str) -> str:
        """The embedder this design remembers with, given the sweep's. Raises InputError to refuse it."""
        return offered

    def hooks(self) -> tuple[str, ...]:
        """The hooks that this design has, by name."""
        return tuple(name for name in HOOKS if getattr(type(self), name) is not getattr(MemoryDesign, name))


def served(tool: Tool) -> list[Intent]:
    """Every intent some call of a tool could serve, each once.

    The tool is asked with all of its parameters, with each alone, and with each value of one that has only
    some, because a dual-mode tool maps by its arguments.
    """
    found: dict[Intent, None] = {}
    properties = tool.parameters.get("properties", {})
    tries = [dict.fromkeys(properties, "x"), *({name: "x"} for name in properties)]
    tries += [{name: value} for name, part in properties.items() for value in part.get("enum", ())]
    for args in tries:
        found |= dict.fromkeys(tool.intents(args))
    return list(found)


def save_tool(tools: Sequence[Tool]) -> str:
    """The name of the tool that a user would name to have something saved; empty where there is none."""
    able = {intent: tool.name for tool in reversed(tools) for intent in served(tool)}
    return able.get("remember") or able.get("note") or ""


DesignFactory = Callable[..., MemoryDesign]
