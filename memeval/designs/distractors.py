"""Tools of everyday other purposes beside a design's own, as an assistant in use has them.

A memory tool that is called when it stands alone may be overlooked, or another one called in its place, as
soon as there are other tools. These four read or write nothing of memory and serve no intent: a call of one
is recorded, and counts as no use of memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from memeval.designs import tools as build
from memeval.designs.around import Around
from memeval.designs.base import MemoryDesign
from memeval.errors import InputError
from memeval.messages import Effect, Tool, ToolResult


def distractors() -> list[Tool]:
    """Four tools, two that read and two that write; each answers with the same sentence whatever is asked."""
    return [
        _tool(
            "get_weather", "Get the weather of a place for today.",
            {"city": "The city, such as 'Oslo'."}, "read", "Mild and dry, a light wind from the west.",
        ),
        _tool(
            "set_timer", "Set a timer that rings after some minutes.",
            {"minutes": {"type": "integer", "description": "Minutes until it rings."}}, "write",
            "The timer is running.",
        ),
        _tool(
            "send_message", "Send a text message to another person.",
            {"recipient": "Who gets it.", "text": "What it says."}, "write", "The message is on its way.",
        ),
        _tool(
            "calculate", "Work out an arithmetic expression.",
            {"expression": "The expression, such as '3 * (4 + 5)'."}, "read", "The result is 27.",
        ),
    ]  # fmt: skip


def _tool(
    name: str, description: str, properties: Mapping[str, str | Mapping[str, Any]], effect: Effect, said: str
) -> Tool:
    return build.tool(
        name, description, properties, lambda args, ctx: ToolResult(text=said),
        required=list(properties), effect=effect,
    )  # fmt: skip


def crowded(design: Callable[[], MemoryDesign]) -> Callable[[], MemoryDesign]:
    """A design, made anew for every trial, with the distractors beside it.

    Making one raises InputError where a tool of the design has the name of a distractor.
    """
    return lambda: Crowded(design())


class Crowded(Around):
    """A design with the distractors listed after its own tools. Its hooks see the calls of all of them."""

    def __init__(self, inner: MemoryDesign) -> None:
        super().__init__(inner)
        taken = {tool.name for tool in inner.tools()}
        for tool in distractors():
            if tool.name in taken:
                raise InputError(
                    f"design {inner.name!r} has a tool {tool.name!r}, as one of the distractors is called; "
                    "rename it, or leave `distractors` out of `perturb`"
                )

    def tools(self) -> Sequence[Tool]:
        return [*self.inner.tools(), *distractors()]
