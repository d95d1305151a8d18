"""Scenarios as YAML text, in the shape in which people write them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from memeval.scenarios.schema import Scenario

_PLAIN = re.compile(r"[A-Za-z](?:[\w ,.'’!?()/;-]*[\w.'’!?)])?")
_PLAIN_IN_LIST = re.compile(r"[A-Za-z](?:[\w .'’()/-]*[\w.)])?")
_TAKEN = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
_UNSEEN = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_ONE_LINE = frozenset({"answer", "store"})


def document(scenario: Scenario) -> str:
    """A scenario as a YAML document, without what it has by default; reading it gives the same scenario."""
    return "".join(f"{line}\n" for line in _block(scenario.model_dump(exclude_defaults=True)))


def _block(data: Mapping[str, Any]) -> Iterator[str]:
    for key, value in data.items():
        if isinstance(value, Mapping) and key in _ONE_LINE and "text" not in value:
            yield f"{key}: {{{', '.join(f'{name}: {_flow(part)}' for name, part in value.items())}}}"
        elif isinstance(value, Mapping):
            yield f"{key}:"
            yield from (f"  {line}" for line in _block(value))
        elif isinstance(value, list) and any(isinstance(part, Mapping) for part in value):
            yield f"{key}:"
            for part in value:
                lines = _block(part)
                yield f"  - {next(lines)}"
                yield from (f"    {line}" for line in lines)
        else:
            yield f"{key}: {_flow(value) if isinstance(value, list) else scalar(value)}"


def _flow(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(scalar(part, _PLAIN_IN_LIST) for part in value)}]"
    return scalar(value, _PLAIN_IN_LIST)


def scalar(value: Any, plain: re.Pattern[str] = _PLAIN) -> str:
    """A single value; text stands as it is where YAML reads it as that text, else in double quotes."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if not isinstance(value, str):
        return json.dumps(value)
    if plain.fullmatch(value) and value.lower() not in _TAKEN:
        return value
    return _UNSEEN.sub(lambda sign: f"\\u{ord(sign[0]):04x}", json.dumps(value, ensure_ascii=False))
