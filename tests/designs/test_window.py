"""A conversation summarized: every request fits, whatever was said."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memeval.designs.base import Context
from memeval.designs.window import summarized
from memeval.embedding import open_embedder
from memeval.memory.inmemory import InMemoryStore
from memeval.messages import Message
from memeval.models.base import Options
from memeval.models.scripted import ScriptedModel
from memeval.records import Scope, SeededIds, StoryClock

ROOM = (1024 - 256) * 3


def context(model: ScriptedModel, num_ctx: int = 1024) -> Context:
    return Context(
        scope=Scope("user", "session-1"), store=InMemoryStore("user", open_embedder("hash", cache=None)),
        clock=StoryClock(datetime(2026, 5, 30, 9, tzinfo=UTC)), ids=SeededIds(1), model=model,
        options=Options(num_ctx=num_ctx, num_predict=256),
    )  # fmt: skip


def requests(model: ScriptedModel) -> list[str]:
    return [messages[-1].content for messages, _ in model.seen]


@pytest.mark.parametrize("summary", ["They count.", "w " * 600])
@pytest.mark.parametrize("lengths", [(1500, 1900, 4000), (9000,), (1, 1, 1), (1850, 1850), (10, 2500, 10)])
def test_every_request_for_a_summary_fits_and_together_they_hold_all(
    lengths: tuple[int, ...], summary: str
) -> None:
    model = ScriptedModel(lambda messages, tools: summary)
    said = [Message(role="user", content=sign * length) for sign, length in zip("ÄÖÜ", lengths, strict=False)]
    assert summarized(context(model), said) == summary.strip()
    assert max(map(len, requests(model))) <= ROOM
    assert all(sum(text.count(m.content[0]) for text in requests(model)) == len(m.content) for m in said)


def test_a_message_that_fits_is_never_parted() -> None:
    model = ScriptedModel(lambda messages, tools: "They count.")
    lines = [sign * 700 for sign in "ÄÖÜ"]
    summarized(context(model), [Message(role="user", content=line) for line in lines])
    first, second = requests(model)
    assert lines[0] in first
    assert lines[1] in first
    assert f"So far: They count.\nuser: {lines[2]}" in second


def test_a_context_without_room_still_comes_to_an_end() -> None:
    model = ScriptedModel(lambda messages, tools: "They count.")
    small = context(model, num_ctx=256)
    assert summarized(small, [Message(role="user", content="Ä" * 1000)]) == "They count."
