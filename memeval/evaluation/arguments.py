"""What a model wrote as a call, made into one that can be run: names, types, and errors it can act on.

Small models write `"10"` for 10, a list as a string, `Memory-Save` for `memory_save`. What is safe is put
right and counted; the rest is answered with an error that names the tools or the parameters there are.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from memeval.messages import Tool

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator


@dataclass(frozen=True, slots=True)
class Arguments:
    """Arguments ready to run, whether anything was put right, or the error to answer with."""

    values: dict[str, Any] = field(default_factory=dict)
    coerced: bool = False
    error: str = ""


def find_tool(name: str, tools: Sequence[Tool]) -> tuple[Tool | None, bool]:
    """The tool a name means, and whether the name had to be put right.

    Exact, else the only tool whose letters and digits are the same (`Memory-Save`, `functions.memory_save`).
    Never a guess by resemblance.
    """
    for tool in tools:
        if tool.name == name:
            return tool, False
    wanted = plain_name(name)
    same = [tool for tool in tools if plain_name(tool.name) == wanted]
    return (same[0], True) if len(same) == 1 else (None, False)


def unknown_tool(name: str, tools: Sequence[Tool]) -> str:
    """The answer to a call of a tool that does not exist."""
    names = ", ".join(tool.name for tool in tools)
    return f"Error: there is no tool {name!r}; the tools are: {names or 'none'}."


def read_arguments(raw: Any, tool: Tool) -> Arguments:
    """Arguments checked against the tool's schema, put right where that is safe."""
    try:
        return _read(raw, tool)
    except (OverflowError, RecursionError):  # of a number of 309 figures, of a thousand brackets
        return Arguments(error=_complaint(tool, "a number is too long or a value is nested too deeply"))


def _read(raw: Any, tool: Tool) -> Arguments:
    coerced = False
    if isinstance(raw, str):
        try:
            raw, coerced = json.loads(raw or "{}"), True
        except ValueError:
            return Arguments(error=_complaint(tool, "the arguments are not a JSON object"))
    if raw is None:
        raw, coerced = {}, True
    if not isinstance(raw, Mapping):
        return Arguments(error=_complaint(tool, "the arguments are not a JSON object"))
    properties = tool.parameters.get("properties", {})
    values: dict[str, Any] = {}
    for name, value in raw.items():
        if name not in properties or (value is None and name not in tool.parameters.get("required", ())):
            coerced = True  # an invented or empty parameter is left out; its loss shows in `coerced`
            continue
        values[name], changed = _coerce(value, properties[name].get("type"))
        coerced |= changed
    problem = next(iter(_validator(json.dumps(tool.parameters)).iter_errors(values)), None)
    if problem is not None:
        place = f"{'.'.join(map(str, problem.absolute_path))}: " if problem.absolute_path else ""
        return Arguments(values, coerced, _complaint(tool, place + problem.message))
    return Arguments(values, coerced)


def _coerce(value: Any, kind: Any) -> tuple[Any, bool]:
    match kind, value:
        case "string", bool():
            return ("true" if value else "false"), True
        case "string", int() | float():
            return str(value), True
        case "string", [str() as only]:
            return only, True
        case "integer", float() if math.isfinite(value):
            return int(value), True
        case "integer" | "number", str() if re.fullmatch(r"\s*-?\d+(\.0*)?\s*", value):
            return int(float(value)), True
        case "number", str() if re.fullmatch(r"\s*-?\d*\.\d+\s*", value):
            return float(value), True
        case "boolean", str() if value.strip().lower() in ("true", "false"):
            return value.strip().lower() == "true", True
        case "array", str():
            return _list(value), True
    return value, False


def _list(text: str) -> list[Any]:
    try:
        parsed = json.loads(text)
    except ValueError:
        parsed = None
    return parsed if isinstance(parsed, list) else [part.strip() for part in text.split(",") if part.strip()]


def _complaint(tool: Tool, problem: str) -> str:
    required = tool.parameters.get("required", ())
    names = ", ".join(
        f"{n} (required)" if n in required else n for n in tool.parameters.get("properties", {})
    )
    return f"Error: {tool.name}: {problem}; its parameters are: {names or 'none'}."


@lru_cache(maxsize=256)
def _validator(schema: str) -> Draft202012Validator:
    # here, because where rfc3987_syntax is installed the import builds grammars for 1.2 s of CPU
    from jsonschema import Draft202012Validator

    # cached: building a validator costs 0.2 ms, a fifth of what a whole trial may cost
    return Draft202012Validator(json.loads(schema))


def plain_name(name: str) -> str:
    """What names are compared by: letters and digits of the last part (`functions.Save-Memory`)."""
    return re.sub(r"[^a-z0-9]", "", name.rpartition(".")[2].lower())
