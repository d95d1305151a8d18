"""The two ends of the scale: no memory at all, and everything ever said put before the model."""

from __future__ import annotations

from memeval.designs.base import Context, Injection, MemoryDesign
from memeval.records import Where


class NoMemory(MemoryDesign):
    """No tools, no hooks: what a story scores on luck and world knowledge alone."""

    name = "none"
    title = "no memory"


class FullContext(MemoryDesign):
    """Every turn of earlier sessions, and all that the story gave, before each turn: an upper bound."""

    name = "full_context"
    title = "all past turns in the prompt"

    def before_turn(self, ctx: Context) -> Injection | None:
        said = [
            f"User: {q}\nAssistant: {a}" for session, q, a in self._past(ctx) if session != ctx.scope.session
        ]
        given = [record.text for record in ctx.store.find(Where(origin="given"))]
        if not said and not given:
            return None
        return Injection("From earlier sessions:\n" + "\n".join([*given, *said]))

    def after_turn(self, ctx: Context) -> None:
        self._past(ctx).append((ctx.scope.session, ctx.query, ctx.answer))

    @staticmethod
    def _past(ctx: Context) -> list[tuple[str, str, str]]:
        past: list[tuple[str, str, str]] = ctx.state.setdefault(f"past:{ctx.scope.user}", [])
        return past
