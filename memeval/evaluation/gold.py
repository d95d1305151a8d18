"""Calls as they should have been made: the right tool of a design with the right arguments for a fact.

Roles of parameters are read from their names, which are the same wherever people write memory tools: a
`topic` or `key` names the fact, a `query` looks for it, an `..._id` is a record's, any other text holds it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memeval.messages import READS, Tool, ToolCall
from memeval.records import Record
from memeval.scenarios.schema import Fact

_KEYS = ("topic", "key")
_WORDS = ("query", "q", "question", "search", "text")
_EMPTY: Mapping[str, Any] = {"integer": 1, "number": 1, "boolean": False, "array": [], "object": {}}


def gold_saves(tools: Sequence[Tool], fact: Fact) -> list[ToolCall]:
    """Calls that save a fact in full: one by each tool that saves, so that no choice of a drawer decides."""
    calls = []
    for tool in tools:
        if tool.effect == "write" and (fact.key or not _has(tool, _KEYS)):
            arguments = _filled(tool, key=fact.key, words=fact.text, record="")
            if arguments is not None and {"remember", "note"}.intersection(tool.intents(arguments)):
                calls.append(ToolCall(tool.name, arguments))
    return calls


def look_up(tools: Sequence[Tool], words: str, key: str = "") -> ToolCall | None:
    """A call that looks for something by these words: a tool that takes words, else one that takes a key."""
    readers = [tool for tool in tools if tool.effect == "read"]
    for tool in sorted(readers, key=lambda tool: not _has(tool, _WORDS)):
        if _has(tool, _WORDS):
            names = [name for name in _properties(tool) if name in _WORDS]
            arguments = _filled(tool, key=key, words=words, record="") or {}
            arguments[names[0]] = words
        elif _has(tool, _KEYS) and key:
            arguments = _filled(tool, key=key, words=words, record="") or {}
        else:
            continue
        if READS.intersection(tool.intents(arguments)):
            return ToolCall(tool.name, arguments)
    return None


def asked_well(call: ToolCall, tool: Tool, fact: Fact, held: Sequence[Record]) -> ToolCall:
    """A model's own look-up with what it asked for put right: the fact's words, its key, the record's id.

    `held` are the records that name the fact's value. What only narrows the search is left out.
    """
    given = call.arguments if isinstance(call.arguments, Mapping) else {}
    used = [name for name in _properties(tool) if name in given] or list(_properties(tool))[:1]
    right: dict[str, Any] = {}
    for name in used:
        role = _role(name)
        if role == "words":
            right[name] = fact.text
        elif role == "key":
            right[name] = _held_key(held) or fact.key
        elif role == "record" and held:
            right[name] = held[0].id
    return ToolCall(call.name, right or dict(given), call.id)


def _filled(tool: Tool, *, key: str, words: str, record: str) -> dict[str, Any] | None:
    """Arguments for all that a tool requires; None where an id is required and there is none."""
    values: dict[str, Any] = {}
    said = {"key": key, "words": words, "record": record}
    for name in tool.parameters.get("required", ()):
        part = _properties(tool)[name]
        if part.get("enum"):
            values[name] = part["enum"][0]
        elif part.get("type", "string") != "string":
            values[name] = _EMPTY.get(part["type"])
        elif not said[_role(name)]:
            return None
        else:
            values[name] = said[_role(name)]
    return values


def _role(name: str) -> str:
    if name in _KEYS:
        return "key"
    return "record" if name == "id" or name.endswith(("_id", "_index")) else "words"


def _has(tool: Tool, names: Sequence[str]) -> bool:
    return any(name in _properties(tool) for name in names)


def _properties(tool: Tool) -> Mapping[str, Any]:
    found: Mapping[str, Any] = tool.parameters.get("properties", {})
    return found


def _held_key(held: Sequence[Record]) -> str:
    return next((str(r.fields["topic"]) for r in held if r.fields.get("topic")), "")
