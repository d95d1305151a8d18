"""Calls that leaked: written into the reply's text instead of being made."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from memeval.messages import ToolCall

# Seen on a live server around a call: with or without the closing tag, and sometimes with neither.
_OPEN_TAG = re.compile(r"<(tool_call|tool_calls|function_call|response|tools|json)>\s*\[?\s*$", re.IGNORECASE)
_FENCE = re.compile(r"\A\s*```[\w-]*\s*\n?(.*?)\n?\s*```\s*\Z", re.DOTALL)
_IDENTIFIER = re.compile(r"[A-Za-z_][\w.:-]*")
_START = re.compile(r"[{\[]")
_CODE_ARGUMENT = re.compile(r"""(\w+)\s*=\s*('[^']*'|"[^"]*")""")
_CODE_CALL = re.compile(r"""\b(\w+)\(((?:\s*\w+\s*=\s*(?:'[^']*'|"[^"]*")\s*,?)+)\)""")


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


# Line feeds inside strings are common in small models' JSON and readable; NaN could not be sent on.
_DECODER = json.JSONDecoder(strict=False, parse_constant=_refuse)


def find_leaks(text: str, known: Collection[str]) -> tuple[ToolCall, ...]:
    """The calls that stand in a text, in order: bare, in a code fence, in tags, within prose, or as code.

    `known` names the design's tools. A tool that a model invented is kept under the name it gave, if name
    and arguments are both there. Prose, other JSON, and a definition repeated word by word are no calls.
    """
    found: list[ToolCall] = []
    for value, before in _values(text):
        found.extend(_calls(value, known, tagged=bool(_OPEN_TAG.search(before))))
    return tuple(found) or tuple(_written_as_code(text, known))


def _written_as_code(text: str, known: Collection[str]) -> Iterator[ToolCall]:
    """`memory_save(topic='user.name', content='Ada')`: seen where a description gives its example so."""
    for match in _CODE_CALL.finditer(text):
        if match[1] in known:
            pairs = _CODE_ARGUMENT.finditer(match[2])
            yield ToolCall(match[1], {pair[1]: pair[2][1:-1] for pair in pairs})


def whole_calls(text: str, known: Collection[str]) -> tuple[ToolCall, ...]:
    """The calls of a text that is nothing but one call or one list of calls, code-fenced or not."""
    value = whole_json(text)
    items = value if isinstance(value, list) else [value]
    calls = [_call(item, known, tagged=False) for item in items]
    return tuple(call for call in calls if call) if all(calls) else ()


def whole_json(text: str) -> Any:
    """A text as one JSON value, code-fenced or not; None if it is not (or is `null`)."""
    fenced = _FENCE.match(text)
    try:
        return _DECODER.decode((fenced.group(1) if fenced else text).strip())
    except (ValueError, RecursionError):
        return None


def _values(text: str) -> Iterator[tuple[Any, str]]:
    """Every outermost JSON object or list in a text, with the text just before it."""
    at = 0
    while start := _START.search(text, at):
        begin = start.start()
        try:
            value, end = _DECODER.raw_decode(text, begin)
        except (ValueError, RecursionError):
            at = begin + 1
            continue
        yield value, text[max(0, begin - 40) : begin]
        at = end


def _calls(value: Any, known: Collection[str], *, tagged: bool) -> Iterator[ToolCall]:
    """The calls within a JSON value: itself, or in its lists and objects."""
    if call := _call(value, known, tagged=tagged):
        yield call
    elif isinstance(value, list):
        for item in value:
            yield from _calls(item, known, tagged=tagged)
    elif isinstance(value, Mapping) and not _is_definition(value):
        for item in value.values():
            if isinstance(item, list | dict):
                yield from _calls(item, known, tagged=False)


def _call(value: Any, known: Collection[str], *, tagged: bool) -> ToolCall | None:
    """One JSON object as a call, if it is one.

    `{"name": "Elena"}` alone is no call, unless the name is a tool's or it stands in a call's tags.
    """
    if not isinstance(value, Mapping) or _is_definition(value):
        return None
    if isinstance(inner := value.get("function"), Mapping):  # as the OpenAI API nests it
        return _call(inner, known, tagged=tagged)
    name = value.get("name")
    if isinstance(name, str) and _IDENTIFIER.fullmatch(name):
        for key in ("arguments", "parameters"):
            if isinstance(value.get(key), Mapping | str):
                return ToolCall(name, value[key])
        if (name in known or tagged) and set(value) <= {"name", "id", "type", "arguments", "parameters"}:
            return ToolCall(name, {})
    if len(value) == 1:  # {"save_memory": {"content": ...}}
        ((only, arguments),) = value.items()
        if only in known and isinstance(arguments, Mapping):
            return ToolCall(only, arguments)
    return None


def _is_definition(value: Mapping[str, Any]) -> bool:
    """Whether an object is a tool's definition that the model repeats, not a use of it."""
    parameters = value.get("parameters")
    schema = isinstance(parameters, Mapping) and isinstance(parameters.get("properties"), Mapping)
    return "arguments" not in value and (schema or ("description" in value and "parameters" in value))
