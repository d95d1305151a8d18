"""The surface of a design: names, words and cut of its tools, changed while what they do stays the same.

All of it is derived from the tools themselves, so that any two designs can be compared with everything else
held equal: a dual-mode tool split into single-purpose ones, all tools merged into one, names that say
nothing, descriptions made by one rule. The order of tools is the trial's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

from memeval.designs.around import Around
from memeval.designs.base import Context, Injection, MemoryDesign, served
from memeval.designs.reshape import ACTION, merged, split
from memeval.messages import Intent, Message, Tool, ToolCall, ToolResult

Shape = Literal["as_written", "merged", "split"]
Names = Literal["as_written", "neutral"]
Words = Literal["as_written", "terse", "when_to_use", "length_matched"]
SHAPES: tuple[Shape, ...] = get_args(Shape)
LENGTH = 180
"""Words and signs that the descriptions of a design's tools have in all where they are length-matched."""

_WHEN: Mapping[Intent, str] = {
    "remember": "the user asks you to remember something",
    "update": "something that is remembered has changed",
    "note": "something comes up that is worth keeping",
    "recall": "you need a fact from an earlier session",
    "search": "you look for something said in the past",
    "forget": "the user asks you to forget something",
    "compact": "the conversation gets too long",
}
_MORE = (
    "It works on the long-term memory of this assistant, which lasts across sessions.",
    "Give its arguments exactly as their own descriptions say.",
    "If it fails, its answer says why and what to do.",
    "It always answers with a short text.",
    "Call it once for each thing.",
    "It is quick.",
)
"""True of every tool; said, the longest first, to make a description longer without saying more."""


@dataclass(frozen=True, slots=True)
class Surface:
    """How the tools of a design look. All `as_written` is the design as its author wrote it."""

    shape: Shape = "as_written"
    names: Names = "as_written"
    words: Words = "as_written"

    @property
    def label(self) -> str:
        """What differs from the design as written: `split, neutral names`; empty where nothing does."""
        said = {"shape": "{}", "names": "{} names", "words": "{} words"}
        own = [(f.name, getattr(self, f.name)) for f in fields(self)]
        return ", ".join(said[name].format(value) for name, value in own if value != "as_written")

    def on(self, design: MemoryDesign) -> MemoryDesign:
        """A design behind this surface. Raises InputError where its tools cannot be merged."""
        return design if not self.label else Surfaced(design, self)

    def needed(self, design: MemoryDesign) -> Surface:
        """This surface without what changes nothing about a design: a split where nothing can be split."""
        least = self
        for part in fields(self):
            plain: dict[str, Any] = {part.name: "as_written"}
            less = replace(least, **plain)
            if _shown(less.on(design)) == _shown(least.on(design)):
                least = less
        return least


class Surfaced(Around):
    """A design whose tools look otherwise. Its hooks see their own tools, whatever the model was shown."""

    def __init__(self, inner: MemoryDesign, surface: Surface) -> None:
        super().__init__(inner)
        self.surface = surface
        written = list(inner.tools())
        parts = split(written) if surface.shape == "split" else written
        self._names = {tool.name: tool.name for tool in parts}
        if surface.names == "neutral":
            self._names = {tool.name: f"tool_{_letter(n)}" for n, tool in enumerate(parts)}
        self._written = {shown: name for name, shown in self._names.items()}
        named = [
            replace(
                tool,
                name=self._names[tool.name],
                description=self._said(tool.description),
                parameters=self._everywhere(tool.parameters),
            )
            for tool in parts
        ]
        self._shown_tools = _worded(merged(named) if surface.shape == "merged" else named, surface.words)

    def tools(self) -> Sequence[Tool]:
        return [replace(tool, run=self._run(tool)) for tool in self._shown_tools]

    def system_prompt(self) -> str:
        return self._said(self.inner.system_prompt())

    def before_turn(self, ctx: Context) -> Injection | None:
        injection = self.inner.before_turn(self._own(ctx))
        return injection and replace(injection, text=self._said(injection.text))

    def on_result(self, ctx: Context, call: ToolCall, result: ToolResult) -> ToolResult:
        return self.inner.on_result(self._own(ctx), self._call(call), result)

    def compact(self, ctx: Context, messages: Sequence[Message], directive: str) -> list[Message] | None:
        return self.inner.compact(self._own(ctx), messages, directive)

    def after_turn(self, ctx: Context) -> None:
        self.inner.after_turn(self._own(ctx))

    def after_session(self, ctx: Context) -> None:
        self.inner.after_session(self._own(ctx))

    def _own(self, ctx: Context) -> Context:
        return replace(ctx, calls=[self._call(call) for call in ctx.calls])

    def _call(self, call: ToolCall) -> ToolCall:
        """A call as the design's own tool knows it."""
        name = self._written.get(call.name, call.name)
        if self.surface.shape == "merged" and isinstance(call.arguments, Mapping):
            rest = {key: value for key, value in call.arguments.items() if key != ACTION}
            action = str(call.arguments.get(ACTION, name))
            return replace(call, name=self._written.get(action, action), arguments=rest)
        return replace(call, name=name)

    def _run(self, tool: Tool) -> Any:
        def run(args: Mapping[str, Any], ctx: Context) -> ToolResult:
            result = tool.run(args, ctx)
            return replace(result, text=self._said(result.text)) if result.is_error else result

        return run

    def _everywhere(self, schema: Any) -> Any:
        """A schema whose descriptions name the tools as the model is shown them."""
        if isinstance(schema, Mapping):
            said = {key: self._everywhere(part) for key, part in schema.items()}
            text = said.get("description")  # a parameter may be called so, and is then no text
            return said | ({"description": self._said(text)} if isinstance(text, str) else {})
        return [self._everywhere(part) for part in schema] if isinstance(schema, list) else schema

    def _said(self, text: str) -> str:
        """A text with the names of tools as the model is shown them."""
        for name, shown in self._names.items():
            if name != shown:
                text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", shown, text)
        return text


def _worded(tools: Sequence[Tool], words: Words) -> list[Tool]:
    """The tools with descriptions of another kind."""
    match words:
        case "terse":
            said = [_sentences(tool.description)[0] for tool in tools]
        case "when_to_use":
            said = [_when(tool) for tool in tools]
        case "length_matched":
            said = [_as_long(tool, _share(LENGTH, len(tools), at)) for at, tool in enumerate(tools)]
        case _:
            return list(tools)
    return [replace(tool, description=text) for tool, text in zip(tools, said, strict=True)]


def _when(tool: Tool) -> str:
    """When a tool is to be used, by the intents it can serve; its first sentence where it serves none."""
    clauses = [f"when {_WHEN[intent]}" for intent in served(tool) if intent in _WHEN]
    return f"Use this {', or '.join(clauses)}." if clauses else _sentences(tool.description)[0]


def _as_long(tool: Tool, length: int) -> str:
    """A description of nearly so many words and signs: its own sentences, then ones that hold for any tool.

    Whole sentences, as many as fit; only a first sentence that is too long by itself is cut, at a word.
    """
    said: list[str] = []
    own = _sentences(tool.description)
    for sentence in (*own, _when(tool), *_MORE):
        sentence = sentence.rstrip(".!?") + "."
        if sentence not in said and _length(" ".join([*said, sentence])) <= length:
            said.append(sentence)
        elif sentence.startswith(own[0][:-1]) and not said:
            pieces = list(re.finditer(r"\w+|[^\w\s]", sentence))
            said.append(sentence[: pieces[length - 2].end()] + ".")
    return " ".join(said)


def _share(total: int, parts: int, at: int) -> int:
    return total // parts + (at < total % parts)


def _length(text: str) -> int:
    return len(re.findall(r"\w+|[^\w\s]", text))


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.!?])\s+(?=[A-Z(])|\n+", text.strip())


def _letter(number: int) -> str:
    return chr(ord("a") + number) if number < 26 else str(number)


def _shown(design: MemoryDesign) -> tuple[Any, ...]:
    return design.system_prompt(), [tool.schema() for tool in design.tools()]
