"""Whether the model sees a design as it was written."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from memeval.errors import ModelFailureError
from memeval.messages import Message, Tool, ToolCall
from memeval.models.base import CallingMode, ChatModel, Options
from memeval.models.calling import calling

_WORD = "Quittenmarmelade-4711"  # the past call's argument and its result: words no template brings along
_RESULT = "Stored on shelf 1693 & locked."
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([\"'/\\bfnrt]))")
_CURE = "it needs `{{ json .Function }}` where it says `{{ .Function }}`"
_NAMES = ("name", "parameter name")
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_COMMENT = re.compile(r"^\s*(//|\*|#)\s?", re.MULTILINE)
# How Go prints a struct where a template lacks `json`: seen with Ollama's `{{ .Function }}`.
_STRUCT_MARKS = ("{object <nil>", " <nil> <nil> [", "map[")


@dataclass(frozen=True, slots=True)
class Fidelity:
    """What a model's template makes of a design, for one cell.

    `readable`: all of it stands in the rendered prompt. `unreadable`: `notes` say what does not.
    `unverified`: the prompt cannot be had; that is no pass. `tool_tax` is what the tools cost in prompt
    tokens, None where the model does not report usage.
    """

    status: Literal["readable", "unreadable", "unverified"]
    notes: tuple[str, ...] = ()
    tool_tax: int | None = None
    prompt: str | None = None


def ledger(
    model: ChatModel, mode: CallingMode, system_prompt: str, tools: Sequence[Tool], options: Options
) -> Fidelity:
    """Render a request with a past call and its result, and look for everything that was said in it.

    Costs two requests of one token each, for the tool tax. Raises InfrastructureError and InputError.
    """
    # The tax first: rendering then uses the same options, and the server need not load the model again.
    tax = tool_tax(model, mode, system_prompt, tools, options)
    call = ToolCall(tools[0].name, _sample(tools[0].parameters), "call_1") if tools else None
    history = _history(system_prompt, call)
    request = calling(mode).encode(history, tools)
    prompt = model.render(request.messages, request.tools)
    if prompt is None:
        return Fidelity("unverified", (f"{model.name} does not show its prompt",), tax)
    notes = tuple(missing(prompt, system_prompt, tools, call))
    return Fidelity("unreadable" if notes else "readable", notes, tax, prompt)


def tool_tax(
    model: ChatModel, mode: CallingMode, system_prompt: str, tools: Sequence[Tool], options: Options
) -> int | None:
    """Prompt tokens with the tools less those without, everything else equal; None if nobody counts them."""
    if not tools:
        return 0
    counts = []
    for offered in (tools, ()):
        request = calling(mode).encode(_history(system_prompt, None), offered)
        try:
            reply = model.chat(
                request.messages,
                tools=request.tools,
                schema=request.schema,
                options=replace(options, num_predict=1),
            )
        except ModelFailureError:
            return None  # one token is no reply anyone can judge, and some servers say so
        counts.append(reply.usage.prompt)
    return counts[0] - counts[1] if all(counts) else None


def missing(
    prompt: str, system_prompt: str, tools: Sequence[Tool], call: ToolCall | None = None
) -> Iterator[str]:
    """What was said in a request and does not stand in its rendered prompt, one sentence each.

    Models print tools as JSON, XML, TypeScript or YAML, so the prompt is searched as it is and decoded:
    JSON escapes (Go writes `&` as `\\u0026`), HTML entities, comment signs; white space never counts.
    """
    whole = _Views(prompt)
    if not whole.has(system_prompt):
        yield "the system prompt is not in the prompt as it was written"
    # The system prompt may name tools itself; that is no proof that the model was shown them.
    views = whole.without(system_prompt)
    said = " ".join([system_prompt, *(text for tool in tools for _, text in _said(tool))])
    for mark in _STRUCT_MARKS:
        if mark in prompt and mark not in said:
            yield f"the template prints Go structs ({mark.strip()!r}): {_CURE}"
            break
    else:
        for tool in tools:
            start = re.escape(tool.name) + r"\s+" + re.escape((tool.description.split() or ["\0"])[0])
            if re.search(r"\{" + start, prompt):
                yield f"the template prints {tool.name} as a Go struct: {_CURE}"
                break
    for tool in tools:
        for what, text in _said(tool):
            found = views.names(text) if what in _NAMES else views.has(text)
            if not found:
                yield f"{tool.name}: its {what} {text[:60]!r} is not in the prompt"
    if call is not None:
        if not views.has(_WORD):
            yield f"a past call of {call.name} is dropped: its argument is not in the prompt"
        if not views.has(_RESULT):
            yield f"the result of a past call of {call.name} is dropped"


class _Views:
    """A text as it is, and decoded once and twice, with white space evened out."""

    def __init__(self, text: str) -> None:
        once = _unescape(text)
        forms = [text, once, _unescape(once)]
        forms += [html.unescape(form) for form in forms]
        forms += [_COMMENT.sub("", form) for form in forms]
        self.forms = list(dict.fromkeys(" ".join(form.split()) for form in forms))

    def has(self, text: str) -> bool:
        """Whether a text stands in any of the forms."""
        wanted = " ".join(text.split())
        return any(wanted in form for form in self.forms)

    def names(self, name: str) -> bool:
        """Whether a name stands there as a word of its own: `save` is not shown by `save_memory`."""
        word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
        return any(word.search(form) for form in self.forms)

    def without(self, text: str) -> _Views:
        """The forms without a text."""
        rest = _Views("")
        cut = " ".join(text.split())
        rest.forms = [form.replace(cut, " ") if cut else form for form in self.forms]
        return rest


def _unescape(text: str) -> str:
    def one(match: re.Match[str]) -> str:
        code, letter = match.groups()
        return chr(int(code, 16)) if code else _LETTERS.get(letter, letter)

    plain = _ESCAPE.sub(one, text)
    # Two escapes make one sign beyond the first 65,536: join the halves, keep a lone one.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _said(tool: Tool) -> Iterator[tuple[str, str]]:
    """Every name and description of a tool, nested parameters included."""
    yield "name", tool.name
    if tool.description.strip():
        yield "description", tool.description
    yield from _parameters(tool.parameters)


def _parameters(schema: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, part in (schema.get("properties") or {}).items():
        yield "parameter name", name
        if str(part.get("description", "")).strip():
            yield f"description of {name}", str(part["description"])
        yield from _parameters(part)
    items = schema.get("items")
    if isinstance(items, Mapping):
        yield from _parameters(items)


def _sample(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of the right types; every text, or an extra one if there is none, is the word looked for."""
    plain: dict[str, Any] = {"integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}}
    properties = schema.get("properties") or {}
    sample = {name: plain.get(str(part.get("type")), _WORD) for name, part in properties.items()}
    return sample if _WORD in sample.values() else {**sample, "text": _WORD}


def _history(system_prompt: str, call: ToolCall | None) -> list[Message]:
    messages = [Message(role="system", content=system_prompt), Message(role="user", content="Hello.")]
    if call is not None:
        messages += [
            Message(role="assistant", content="", tool_calls=(call,)),
            Message(role="tool", content=_RESULT, tool_name=call.name, call_id=call.id),
            Message(role="assistant", content="Done."),
            Message(role="user", content="And now?"),
        ]
    return messages
