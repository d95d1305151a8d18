"""Long texts in passages, each short enough to be embedded whole."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate

from memeval.embedding.base import Embedder, Vectors
from memeval.errors import InputError
from memeval.records import Record


def passages(text: str, size: int = 640, overlap: int = 96) -> list[str]:
    """A text in passages of at most `size` characters; neighbours share at most `overlap`.

    A text of at most `size` is one passage, itself. Cuts fall on white space where there is some in the last
    quarter of a passage, else in the middle of a word; no character is left out. The figures are those
    of Oxydra's store, and Chroma folders depend on them: what is kept of a passage is its number.
    """
    if not 0 <= overlap < size / 2:
        raise InputError(f"passages of {size} characters cannot overlap by {overlap}; take less than half")
    found: list[str] = []
    start = 0
    while len(text) - start > size:
        end = (_breaks(text, start + size - size // 4, start + size) or [start + size])[-1]
        found.append(text[start:end])
        begins = [at for at in _breaks(text, end - overlap, end) if at < end]
        start = (begins or [end - overlap])[0]
    return [*found, text[start:]]


def _breaks(text: str, low: int, high: int) -> list[int]:
    """Where the runs of white space in a stretch of a text end."""
    return [low + run.end() for run in re.finditer(r"\s+", text[low:high])]


def pieces(record: Record) -> list[str]:
    """What is embedded of a record: its text, or the passages of its text that are not blank."""
    if not record.by_passage:
        return [record.text]
    return [passage for passage in passages(record.text) if passage.strip()] or [record.text]


def embedded(embedder: Embedder, records: Sequence[Record]) -> list[Vectors]:
    """The vectors of each record, float32[pieces, dim]; all are embedded before any is given back."""
    if not records:
        return []
    texts = [pieces(record) for record in records]
    vectors = embedder.embed([piece for own in texts for piece in own])
    ends = accumulate(len(own) for own in texts)
    return [vectors[end - len(own) : end] for own, end in zip(texts, ends, strict=True)]
