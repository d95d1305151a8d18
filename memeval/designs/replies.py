"""What a model wrote, read: an object within prose, the lines of a list, a text that can be stored."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from memeval.designs.base import Context
from memeval.errors import ModelFailureError
from memeval.models.leaks import whole_json


def read_object(text: str) -> Mapping[str, Any]:
    """The JSON object in a model's reply, code-fenced or within prose; an empty one if none can be read."""
    value = whole_json(text[text.find("{") : text.rfind("}") + 1])
    return value if isinstance(value, dict) else {}


def asked_object(ctx: Context, prompt: str, **options: Any) -> Mapping[str, Any]:
    """The object that the model answers a request of the design with; empty if it gives none."""
    try:
        return read_object(ctx.ask(prompt, temperature=0.1, **options).content)
    except ModelFailureError:
        return {}


def lines_of(value: Any) -> list[str]:
    """The texts of a list that a model wrote, without the bullets it may have put before them."""
    lines = [one_line(item) for item in value] if isinstance(value, list) else []
    return [text for line in lines if (text := re.sub(r"^[•*-]\s+", "", line))]


def one_line(value: Any) -> str:
    """A text on one line; nothing for what is no text."""
    return " ".join(storable(value).split()) if isinstance(value, str) else ""


def storable(text: str) -> str:
    """A text as it can be stored: JSON can bring in half a surrogate pair."""
    return text.encode(errors="replace").decode()
