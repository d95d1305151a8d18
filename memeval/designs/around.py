"""A design around another: it stands for that design and hands everything on, to be changed where need be."""

from __future__ import annotations

from collections.abc import Sequence

from memeval.designs.base import Context, Injection, MemoryDesign
from memeval.messages import Intent, Message, Tool, ToolCall, ToolResult


class Around(MemoryDesign):
    """Another design under its own name. Overrides change how it is seen."""

    def __init__(self, inner: MemoryDesign) -> None:
        super().__init__(**inner.settings)
        self.inner = inner
        self.name, self.title = inner.name, inner.title  # type: ignore[misc]  # as the design it stands for
        self.remembers = inner.remembers  # type: ignore[misc]

    def tools(self) -> Sequence[Tool]:
        return self.inner.tools()

    def system_prompt(self) -> str:
        return self.inner.system_prompt()

    def before_turn(self, ctx: Context) -> Injection | None:
        return self.inner.before_turn(ctx)

    def on_result(self, ctx: Context, call: ToolCall, result: ToolResult) -> ToolResult:
        return self.inner.on_result(ctx, call, result)

    def compact(self, ctx: Context, messages: Sequence[Message], directive: str) -> list[Message] | None:
        return self.inner.compact(ctx, messages, directive)

    def after_turn(self, ctx: Context) -> None:
        self.inner.after_turn(ctx)

    def after_session(self, ctx: Context) -> None:
        self.inner.after_session(ctx)

    def serves(self) -> frozenset[Intent]:
        return self.inner.serves()

    def hooks(self) -> tuple[str, ...]:
        return self.inner.hooks()

    def keeps_topics(self) -> bool:
        return self.inner.keeps_topics()

    def embedder(self, offered: str) -> str:
        return self.inner.embedder(offered)
