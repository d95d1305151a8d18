"""The design contract: the tools, prompts and hooks a model is given. The thing that is compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from memeval.memory.base import MemoryStore
from memeval.messages import Intent, Message, Tool, ToolCall, ToolResult, Usage
from memeval.models.base import ChatModel
from memeval.records import Clock, Hit, Ids, Scope


@dataclass(frozen=True, slots=True)
class Injection:
    """Text put before the model for one turn only, never kept in history, and the hits it was made of."""

    text: str
    hits: tuple[Hit, ...] = ()


@dataclass(slots=True, kw_only=True)
class Context:
    """What a design's tools and hooks work with in a trial. `state` is the design's own, kept per trial."""

    scope: Scope
    store: MemoryStore
    clock: Clock
    ids: Ids
    model: ChatModel | None = None
    messages: Sequence[Message] = ()
    usage: Usage = field(default_factory=Usage)
    hook_usage: Usage = field(default_factory=Usage)
    query: str = ""
    answer: str = ""
    calls: Sequence[ToolCall] = ()
    turn: int = 0
    state: dict[str, Any] = field(default_factory=dict)


class MemoryDesign:
    """A memory tool design. Subclass it, give it a `name` and tools; every hook does nothing by default.

    `settings` are the design's defaults; a sweep may override them by name, nothing else. One instance
    serves one trial. Design only picks names, texts, schemas, formats and hooks: saving, searching,
    ranking and the loop live elsewhere, once.

        class Sticky(MemoryDesign):
            name = "sticky"
            def tools(self):
                return [save_tool("stick", "Keep a note."), search_tool("look", "Find notes.")]
    """

    name: ClassVar[str] = ""
    defaults: ClassVar[Mapping[str, Any]] = {}
    title: ClassVar[str] = ""

    def __init__(self, **settings: Any) -> None:
        self.settings: dict[str, Any] = {**self.defaults, **settings}

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
        """A tool's result on its way to the model."""
        return result

    def compact(self, ctx: Context, messages: Sequence[Message], directive: str) -> list[Message] | None:
        """Asked before every model request; what it returns replaces the history and stays."""
        return None

    def after_turn(self, ctx: Context) -> None:
        """The turn is over; `ctx.query`, `ctx.answer` and `ctx.calls` say what happened."""

    def after_session(self, ctx: Context) -> None:
        """The session is over."""

    def serves(self) -> frozenset[Intent]:
        """Every intent some tool of this design could serve; a stage without a tool for it is null.

        Tools are asked with each of their parameters alone, then with all, because a dual-mode tool maps
        by its arguments.
        """
        found: set[Intent] = set()
        for tool in self.tools():
            names = list(tool.parameters.get("properties", {}))
            for args in (dict.fromkeys(names, "x"), *({name: "x"} for name in names)):
                found.update(tool.intents(args))
        return frozenset(found)


DesignFactory = Callable[..., MemoryDesign]
