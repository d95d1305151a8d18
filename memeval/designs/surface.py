"""The surface of a design: names, words and cut of its tools, changed while what they do stays the same.

All of it is derived from the tools themselves, so that any two designs can be compared with everything else
held equal: a dual-mode tool split into single-purpose ones, all tools merged into one, names that say
nothing, descriptions made by one rule. The order of tools is the trial's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, Literal, get_args

from memeval.designs.around import Around
from memeval.designs.base import Context, Injection, MemoryDesign, served
from memeval.designs.reshape import ACTION, MERGED, Part, merged, split
from memeval.errors import InputError
from memeval.messages import Intent, Message, Tool, ToolCall, ToolResult

Shape = Literal["as_written", "merged", "split"]
Names = Literal["as_written", "neutral"]
Words = Literal["as_written", "terse", "when_to_use", "length_matched"]
SHAPES: tuple[Shape, ...] = get_args(Shape)
NEUTRAL = "tool"
"""What all tools merged into one are called where names say nothing; its actions are `tool_a`, `tool_b`."""
LENGTH = 180
"""Words and signs that the descriptions of a design's tools have in all where they are length-matched."""
QUICK = 20.0
"""Seconds beyond which a tool that may take so long is not called quick."""

_WHEN: Mapping[Intent, str] = {
    "remember": "the user asks you to remember something",
    "update": "something that is remembered has changed",
    "note": "something comes up that is worth keeping",
    "recall": "you need a fact from an earlier session",
    "search": "you look for something said in the past",
    "forget": "the user asks you to forget something",
    "compact": "the conversation gets too long",
}
Holds = Callable[[Tool], bool]


def _any(_tool: Tool) -> bool:
    return True


def _remembers(tool: Tool) -> bool:
    """Whether it works on memory, and not on the conversation or on a scratchpad."""
    return bool(set(served(tool)) - {"compact", "none"})


def _takes(tool: Tool) -> bool:
    return bool(tool.parameters.get("properties"))


_MORE: tuple[tuple[str, Holds], ...] = (
    ("It works on the long-term memory of this assistant, which lasts across sessions.", _remembers),
    ("Give its arguments exactly as their own descriptions say.", _takes),
    ("If it fails, its answer says why and what to do.", _any),
    ("It always answers with a short text.", _any),
    ("It is quick.", lambda tool: tool.timeout_s <= QUICK),
    ("A call that cannot be understood changes nothing, and its answer says what is wrong with it.", _any),
    ("Its answer is for you to read; the user sees only what you write.", _any),
    ("What it is given and what it answers may be in any language.", _takes),
    ("It is called as any other tool is, by its name and with its arguments.", _takes),
    ("When it has answered, go on with what the user asked for.", _any),
    ("It never reaches what belongs to another user.", _any),
)
"""Sentences to make a description longer without saying more, and the tools of which each is true."""
_BULLET = re.compile(r"\s*(?:[-*•]|\d+[.)])\s")


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
        """A design behind this surface. Raises InputError where its tools cannot be shown so."""
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
        written, neutral = list(inner.tools()), surface.names == "neutral"
        parts = split(written) if surface.shape == "split" else [Part(tool, tool.name) for tool in written]
        names = [f"tool_{_letter(n)}" if neutral else part.tool.name for n, part in enumerate(parts)]
        self._parts = dict(zip(names, parts, strict=True))
        if len(self._parts) < len(parts):
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(
                f"design {inner.name!r} has two tools {twice!r} behind the surface {surface.label!r}"
            )
        self._merged = surface.shape == "merged" and len(parts) > 1
        self._names = {tool.name: " or ".join(self._shown_for(tool.name)) for tool in written}
        self._names |= {part.tool.name: name for name, part in self._parts.items()}
        named = [
            replace(
                part.tool,
                name=name,
                description=self._said(part.tool.description),
                parameters=self._everywhere(part.tool.parameters),
            )
            for name, part in self._parts.items()
        ]
        shown = merged(named, NEUTRAL if neutral else MERGED) if self._merged else named
        self._shown_tools = _worded(shown, surface.words)

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
        name, args = call.name, call.arguments
        if self._merged and isinstance(args, Mapping):
            name = str(args.get(ACTION, name))
            args = {key: value for key, value in args.items() if key != ACTION}
        part = self._parts.get(name)
        if part is None:
            return replace(call, name=name, arguments=args)
        return replace(
            call, name=part.of, arguments={**args, **part.fixed} if isinstance(args, Mapping) else args
        )

    def _shown_for(self, own: str) -> list[str]:
        """The names under which the model is shown a tool of the design."""
        return [name for name, part in self._parts.items() if part.of == own]

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
        """A text with the names of tools as the model is shown them; of a split one, all of its names."""
        if not self._names:
            return text
        longest_first = sorted(self._names, key=len, reverse=True)
        written = "|".join(map(re.escape, longest_first))
        return re.sub(rf"(?<!\w)(?:{written})(?!\w)", lambda name: self._names[name[0]], text)


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
    """A description of nearly so many words and signs: its own sentences, then ones that hold for the tool.

    Whole sentences, as many as fit; only a first sentence that is too long by itself is cut, at a word.
    """
    said: list[str] = []
    own = _sentences(tool.description)
    more = [sentence for sentence, holds in _MORE if holds(tool)]
    for sentence in filter(None, (*own, _when(tool), *more)):
        sentence = sentence.rstrip(".!?") + "."
        if sentence not in said and _length(" ".join([*said, sentence])) <= length:
            said.append(sentence)
        elif sentence.startswith(own[0][:-1]) and not said:
            pieces = list(re.finditer(r"\w+|[^\w\s]", sentence))
            said.append(sentence[: pieces[length - 2].end()] + ".")
    text = "".join(said[:1])
    for last, sentence in pairwise(said):
        of_a_list = "\n" in last or _BULLET.match(sentence)
        text += ("\n" if of_a_list else " ") + sentence
    return text


def _share(total: int, parts: int, at: int) -> int:
    return total // parts + (at < total % parts)


def _length(text: str) -> int:
    return len(re.findall(r"\w+|[^\w\s]", text))


def _sentences(text: str) -> list[str]:
    """The sentences of a text, its wrapped lines joined; a list is one, with the `header:` before it."""
    lines: list[str] = [""]
    for line in text.strip().splitlines():
        if _BULLET.match(line) or not line.strip():
            lines.append(line.strip())
        else:
            lines[-1] = f"{lines[-1]} {line.strip()}".strip()
    found: list[str] = []
    for line in filter(None, lines):
        if not _BULLET.match(line):
            found += re.split(r"(?<=[.!?])\s+(?=[A-Z(])", line)
        elif found and (found[-1].endswith(":") or _BULLET.match(found[-1].splitlines()[-1])):
            found[-1] += f"\n{line}"
        else:
            found.append(line)
    return found or [""]


def _letter(number: int) -> str:
    return chr(ord("a") + number) if number < 26 else str(number)


def _shown(design: MemoryDesign) -> tuple[Any, ...]:
    return design.system_prompt(), [tool.schema() for tool in design.tools()]
