"""A small sweep over a scripted model, for the tests of commands."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from click.testing import Result

from memeval.messages import Message, Tool, ToolCall

Invoke = Callable[..., Result]

STORY = """\
scenario: {name}
family: {name}
title: A colour the user asks to be remembered
tags: [remember]
facts:
  colour: {{text: The user's favourite colour is {value}., values: [{value}], key: user.colour}}
sessions:
  - turns:
      - user: Please remember that my favourite colour is {value}.
        expect: {{intent: remember, facts: [colour], required: [called], answer: {{confirms: [colour]}}}}
"""


def saves(messages: Sequence[Message], tools: Sequence[Tool]) -> str | ToolCall:
    """Saves what it is told and says so; asked by `forgetful`, only says so."""
    if messages[-1].role == "tool":
        return "I will remember the colour \x1b[31mvermilion."
    names = [tool.name for tool in tools]
    if "vermilion" in messages[-1].content and "memory_save" in names:
        return ToolCall("memory_save", {"topic": "user.colour", "content": "vermilion"})
    return "I have saved it."


def render(messages: Sequence[Message], tools: Sequence[Tool]) -> str:
    """A template that shows everything."""
    said = [[m.role, m.content, [[c.name, c.arguments] for c in m.tool_calls]] for m in messages]
    return json.dumps([[tool.schema() for tool in tools], said], ensure_ascii=False)


def write_sweep(path: Path, **changes: Any) -> Path:
    """A sweep file; `changes` replace its keys."""
    data = {
        "sweep": "small", "scenarios": ["./warm.yaml", "./cold.yaml"],
        "designs": [{"local2_dual": {"write_path": "tool"}}, "none"], "models": ["scripted:cli"],
        "embedders": ["hash"], "store": "inmemory", "repeats": 2, **changes,
    }  # fmt: skip
    path.write_text("".join(f"{key}: {json.dumps(value)}\n" for key, value in data.items()), encoding="utf-8")
    return path
