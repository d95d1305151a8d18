"""A small sweep over a scripted model, and a program that runs it and may kill itself on the way."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from memeval.messages import Message, Tool, ToolCall
from memeval.models.registry import register_model
from memeval.models.scripted import ScriptedModel

STORY = """
scenario: {name}
family: {name}
title: A test story
facts:
  language: {{text: The language is Elixir., values: [Elixir], key: user.language}}
sessions:
  - turns:
      - user: Please remember my preferred language is Elixir.
        expect: {{intent: remember, facts: [language], answer: {{confirms: [language]}}}}
  - turns:
      - user: What language do I prefer?
        expect: {{intent: recall, facts: [language], answer: {{states: [language]}}}}
"""


def scripted(messages: Any, tools: Any) -> Any:
    """Saves and looks up honestly, whichever of the two designs it is given."""
    last: Message = messages[-1]
    names = {tool.name for tool in tools if isinstance(tool, Tool)}
    if last.role == "tool":
        return "Elixir."
    if "remember" in last.content:
        save = "memory_save" if "memory_save" in names else "save_topic"
        return ToolCall(save, {"topic": "user.language", "content": "Elixir"})
    look = "memory_recall" if "memory_recall" in names else "recall_topic"
    return ToolCall(look, {"topic": "user.language"})


def sweep(folder: Path, stories: int = 2, **more: Any) -> dict[str, Any]:
    """A sweep over stories written into a folder: 2 designs x 2 repeats x stories."""
    folder.mkdir(parents=True, exist_ok=True)
    text = "---".join(STORY.format(name=f"story-{n}") for n in range(stories))
    (folder / "stories.yaml").write_text(text)
    return {
        "sweep": "tiny",
        "scenarios": [str(folder / "stories.yaml")],
        "designs": ["local2_dual", "local2_single"],
        "models": ["scripted:test"],
        "embedders": ["hash"],
        "store": "inmemory",
        "repeats": 2,
        **more,
    }


def main(folder: str, out: str, kill: str) -> None:
    """Run the sweep and, if told so, die by SIGKILL: at the n-th request, or amid the n-th write."""
    import memeval

    what, _, number = kill.partition(":")
    left = int(number or 0)

    def script(messages: Any, tools: Any) -> Any:
        nonlocal left
        if what == "request":
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return scripted(messages, tools)

    real = os.write

    def write(file: int, data: bytes) -> int:
        nonlocal left
        if what == "write":
            left -= 1
            if left == 0:
                real(file, data[: len(data) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
        return real(file, data)

    os.write = write
    register_model("scripted:test", lambda: ScriptedModel(script))
    memeval.run(sweep(Path(folder)), out)


if __name__ == "__main__":
    main(*sys.argv[1:4])
