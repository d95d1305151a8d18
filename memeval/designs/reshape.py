"""The same tools cut otherwise: all of them as one, or one dual-mode tool as several single-purpose ones."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from memeval.errors import InputError
from memeval.messages import Intent, Tool, ToolResult

MERGED = "memory"
ACTION = "action"


@dataclass(frozen=True, slots=True)
class Part:
    """A tool as it is shown, the name of the design's own behind it, and what that is always given."""

    tool: Tool
    of: str
    fixed: Mapping[str, Any] = field(default_factory=dict)


def merged(tools: Sequence[Tool], name: str = MERGED) -> list[Tool]:
    """All tools as one, which takes the name of a tool as its `action`; a single tool stays as it is.

    Raises InputError where two tools mean different types by one parameter.
    """
    if len(tools) < 2:
        return list(tools)
    by_name = {tool.name: tool for tool in tools}

    def chosen(args: Mapping[str, Any]) -> tuple[Tool, dict[str, Any]] | None:
        tool = by_name.get(str(args.get(ACTION)))
        if tool is None:
            return None
        return tool, {name: args[name] for name in tool.parameters.get("properties", {}) if name in args}

    def intents(args: Mapping[str, Any]) -> tuple[Intent, ...]:
        found = chosen(args)
        return found[0].intents(found[1]) if found else ()

    def run(args: Mapping[str, Any], ctx: Any) -> ToolResult:
        found = chosen(args)
        if found is None:  # the schema allows no other action, so only a trial without one comes here
            return _error(f"action must be one of: {', '.join(by_name)}.")
        tool, own = found
        missing = [name for name in tool.parameters.get("required", ()) if name not in own]
        if missing:
            return _error(f"action {tool.name!r} needs {', '.join(missing)} as well.")
        return tool.run(own, ctx)

    does = "\n".join(f"- {tool.name}: {tool.description}" for tool in tools)
    action = {"type": "string", "enum": list(by_name), "description": "What to do."}
    return [
        Tool(
            name=name, description=f"One tool for several actions. The actions are:\n{does}",
            parameters={
                "type": "object", "properties": {ACTION: action, **_united(tools)}, "required": [ACTION],
            },
            effect="write" if any(tool.effect == "write" for tool in tools) else "read",
            intents=intents, run=run, timeout_s=max(tool.timeout_s for tool in tools),
        )
    ]  # fmt: skip


def _united(tools: Sequence[Tool]) -> dict[str, Any]:
    """The parameters of all tools; one that several share says what it means for each."""
    found: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    for tool in tools:
        for name, part in tool.parameters.get("properties", {}).items():
            found.setdefault(name, []).append((tool.name, part))
    united: dict[str, Any] = {}
    for name, uses in found.items():
        first = uses[0][1]
        for owner, part in uses:
            if part.get("type") != first.get("type") or name == ACTION:
                raise InputError(
                    f"tools {uses[0][0]} and {owner} cannot be merged: they mean different things by {name!r}"
                )
        texts = dict.fromkeys(str(part.get("description", "")) for _, part in uses)
        if len(texts) == 1:
            united[name] = first if len(uses) == 1 or all(part == first for _, part in uses) else _loose(uses)
            continue
        said = " ".join(f"For {owner}: {part.get('description', '')}" for owner, part in uses)
        united[name] = {**_loose(uses), "description": said}
    return united


def _loose(uses: Sequence[tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """A parameter with only what all its uses agree on."""
    first = uses[0][1]
    return {key: value for key, value in first.items() if all(part.get(key) == value for _, part in uses)}


def _error(said: str) -> ToolResult:
    return ToolResult(text=f"Error: {said}", is_error=True)


def split(tools: Sequence[Tool]) -> list[Part]:
    """Every dual-mode tool as single-purpose ones, where its intents tell the modes apart; others stay."""
    return [part for tool in tools for part in _split(tool)]


def _split(tool: Tool) -> list[Part]:
    properties: Mapping[str, Any] = tool.parameters.get("properties", {})
    required = list(tool.parameters.get("required", ()))
    for name in required:  # a dispatcher: each value of one parameter is a mode
        values = properties[name].get("enum", ())
        if len(values) > 1 and _differ(tool, [{name: value} for value in values]):
            rest = {key: part for key, part in properties.items() if key != name}
            needed = [key for key in required if key != name]
            texts = _modes(tool.description, len(values))
            return [
                _mode(tool, value, text, rest, needed, {name: value})
                for value, text in zip(values, texts, strict=True)
            ]
    if len(properties) > 1 and not required and _differ(tool, [{name: "x"} for name in properties]):
        texts = _modes(tool.description, len(properties))
        return [
            _mode(tool, name, text, {name: part}, [name], {})
            for (name, part), text in zip(properties.items(), texts, strict=True)
        ]
    return [Part(tool, tool.name)]


def _differ(tool: Tool, calls: Sequence[Mapping[str, Any]]) -> bool:
    """Whether each of some calls has a main intent of its own."""
    main = [tool.intents(args)[:1] for args in calls]
    return all(main) and len(set(main)) == len(main)


def _mode(
    tool: Tool, name: str, description: str, properties: Mapping[str, Any], required: list[str],
    fixed: Mapping[str, Any],
) -> Part:  # fmt: skip
    """One mode of a tool as a tool of its own; the tool itself does the work."""
    schema: dict[str, Any] = {"type": "object", "properties": dict(properties)}
    shown = replace(
        tool, name=f"{tool.name}_{name}", description=description,
        parameters=schema | ({"required": required} if required else {}),
        intents=lambda args: tool.intents({**args, **fixed}),
        run=lambda args, ctx: tool.run({**args, **fixed}, ctx),
    )  # fmt: skip
    return Part(shown, tool.name, fixed)


def _modes(description: str, count: int) -> list[str]:
    """The description of each mode: its own numbered part, `(1) ...; (2) ...`, with what stands around all.

    A description that does not number as many modes is each mode's as it is.
    """
    head, *parts = re.split(r"\(\d\)\s*", description)
    if len(parts) != count:
        return [description] * count
    last, tail = ([*re.split(r"(?<=\.)\s+(?=[A-Z])", parts[-1], maxsplit=1), ""])[:2]
    before = re.sub(r"[^.]*:\s*$", "", head).strip()
    own = [part.strip().rstrip(";,.") for part in (*parts[:-1], last)]
    return [" ".join(filter(None, [before, f"{part[:1].upper()}{part[1:]}.", tail.strip()])) for part in own]
