"""Sentences of a reply, what of it is said in the reply's own voice, and which part of a sentence asks."""

from __future__ import annotations

import re

from memeval.evaluation.values import folded


def either(*alternatives: str) -> str:
    """The alternatives of a pattern as one group, so that long ones can be written line by line."""
    return f"(?:{'|'.join(alternatives)})"


_CODE = re.compile(r"```.*?(?:```|\Z)|<(tool_call|function_call|tool)>.*?(?:</\1>|\Z)", re.DOTALL)
_OBJECT_LINE = re.compile(r"^[^\S\n]*(?:\{|\[[^\S\n]*[\[{\"]).*$", re.MULTILINE)
_QUOTED = re.compile(r'"[^"\n]*"')
_BOUNDARY = re.compile(r"(?<=[.!?])[\"')\]]*\s+|\s*\n\s*")
_SHORT = re.compile(r"\b(?:dr|mr|mrs|ms|st|prof|e\.g|i\.e|vs|approx|resp|etc|a\.m|p\.m)\.$")

_OPENING = either(
    r"so|and|but|or|hm+|sorry|okay|ok|well|wait|also|then|by the way|for example|thanks|thank you",
    r"(?:just )?to (?:confirm|clarify|be sure)",
)
_ASKING = re.compile(
    rf"(?:{_OPENING}\W+)*"
    + either(
        r"(?:is|are|was|were|do|does|did|can|could|would|will|wo|ca|should|have|has|had)(?:n't)?",
        r"am|shall|may|might|what|which|whose|whom|who|where|when|why|how|any|anything",
    )
    + r"\b"
)
_PART = re.compile(r"[,;:(]\s*|\s-\s|\b(?:and|but|or)\s")
_TAG = re.compile(r",\s(?:right|correct|yes|no|ok|okay|yeah|eh|huh|true)\s?\?\W*$")


def sentences(text: str) -> list[tuple[int, int]]:
    """Where the sentences of a folded text start and end; a line break ends one, as after a list item."""
    bounds, start = [], 0
    for gap in _BOUNDARY.finditer(text):
        if "\n" in gap[0] or not _SHORT.search(text, max(start, gap.start() - 8), gap.start()):
            bounds.append((start, gap.start()))
            start = gap.end()
    return [*bounds, (start, len(text))]


def spoken(reply: str) -> list[str]:
    """The folded sentences of a reply without code, calls and what stands in double quotes, which is left as
    a `this`. A reply that is one quotation is taken as said.
    """
    text = folded(_OBJECT_LINE.sub("", _CODE.sub("\n", reply)))
    if text.count('"') == 2 and text[0] == text[-1] == '"':
        text = text[1:-1]
    text = _QUOTED.sub("this", text)
    return [text[start:end] for start, end in sentences(text) if end > start]


def told(sentence: str) -> str:
    """The part of a sentence that asks nothing: "It's Elixir" of "It's Elixir, shall I go on?"."""
    return sentence[: question_start(sentence)]


def question_start(sentence: str) -> int:
    """Where the asking part of a sentence begins, its length if nothing is asked.

    A tag ("..., right?") asks for agreement only: the sentence before it is told.
    """
    if "?" not in sentence[-4:]:
        return len(sentence)
    starts = [0, *(part.end() for part in _PART.finditer(sentence))]
    found = next((start for start in starts if _ASKING.match(sentence, start)), None)
    if found is not None:
        return found
    return len(sentence) if _TAG.search(sentence) else 0
