"""The author's MemoryService, requirements L2-4 to L2-9 and L2-27, over both stores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from storing import START, Tiny

from memeval.errors import InputError
from memeval.memory import KINDS, open_store
from memeval.memory.service import MemoryService
from memeval.records import SeededIds, StoryClock, topic_id
from memeval.settings import Settings


@pytest.fixture(params=KINDS)
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryService]:
    store = open_store(request.param, tmp_path, "ann", Tiny())
    yield MemoryService(store, StoryClock(START), SeededIds(1))
    store.close()


def embedded(service: MemoryService) -> list[tuple[str, str]]:
    assert isinstance(service.store.embedder, Tiny)
    return service.store.embedder.embedded


def test_a_topic_is_recalled_exactly(service: MemoryService) -> None:
    entry = service.write_topic("user.language_preference", "Elixir")
    assert entry == topic_id("user.language_preference")
    assert service.recall_topic("user.language_preference") == "Elixir"
    assert embedded(service) == [("Elixir", "document")]  # the content; and nothing for the recall


def test_an_episode_is_found_by_meaning_above_the_floor(service: MemoryService) -> None:
    metadata = {"session_id": "s1", "tool_calls": 0}
    entry = service.write_episodic("The capital of Australia is Canberra.", metadata)
    service.write_episodic("zzz qqq", {})
    [hit] = service.search_episodic("capital of Australia")
    assert hit["id"] == entry
    assert hit["content"] == "The capital of Australia is Canberra."
    assert 0.3 < hit["score"] < 1.0
    assert hit["metadata"] == {"type": "episodic", "session_id": "s1", "tool_calls": 0}
    assert embedded(service)[-1] == ("capital of Australia", "query")


def test_writing_a_topic_again_overwrites_it_and_keeps_its_first_time(service: MemoryService) -> None:
    assert service.write_topic("user.name", "Ann") == service.write_topic("user.name", "Anne")
    assert service.recall_topic("user.name") == "Anne"
    assert service.store.count() == 1
    record = service.topic_record("user.name")
    assert record is not None
    assert record.kind == "topic"
    assert record.fields == {"topic": "user.name", "content": "Anne"}
    assert record.created_at < record.updated_at
    assert record.origin == "tool"


def test_topic_keys_are_made_plain_but_never_guessed(service: MemoryService) -> None:
    service.write_topic("  User.Favourite  Colour ", "teal")
    assert service.recall_topic("user.favourite_colour") == "teal"
    assert service.recall_topic("USER.FAVOURITE COLOUR") == "teal"
    assert service.recall_topic("user.favourite") is None
    assert service.recall_topic("user.favorite_colour") is None
    assert service.recall_topic("") is None
    with pytest.raises(InputError, match="needs a key"):
        service.write_topic("  ", "value")


def test_equal_episodes_accumulate(service: MemoryService) -> None:
    ids = [service.write_episodic("The same.", {}) for _ in range(3)]
    assert len(set(ids)) == 3
    assert [hit["id"] for hit in service.search_episodic("The same.")] == sorted(ids)


def test_topics_are_no_episodes_and_episodes_no_topics(service: MemoryService) -> None:
    service.write_topic("user.name", "Ann the painter")
    assert service.search_episodic("Ann the painter") == []
    service.write_episodic("user.name", {"topic": "user.city"})
    assert service.recall_topic("user.city") is None


def test_a_search_gives_at_most_top_k_and_five_by_default(service: MemoryService) -> None:
    for n in range(8):
        service.write_episodic(f"red door number {n}", {})
    assert len(service.search_episodic("red door number")) == 5
    assert len(service.search_episodic("red door number", 7)) == 7
    assert service.search_episodic("red door number", 0) == []
    scores = [hit["score"] for hit in service.search_episodic("red door number 3", top_k=8)]
    assert scores == sorted(scores, reverse=True)


def test_the_settings_decide_on_floor_and_number(service: MemoryService) -> None:
    service.write_episodic("red door", {})
    service.write_episodic("elephants", {})
    strict = MemoryService(service.store, settings=Settings(min_score=0.999, top_k=1))
    assert len(strict.search_episodic("red door")) == 1
    assert strict.search_episodic("red doors") == []
    lenient = MemoryService(service.store, settings=Settings(min_score=-1.0))
    assert len(lenient.search_episodic("red door")) == 2


def test_a_cold_start_is_empty_and_no_error(service: MemoryService) -> None:
    assert service.recall_topic("user.name") is None
    assert service.search_episodic("anything") == []


def test_hits_tell_the_same_as_the_dictionaries(service: MemoryService) -> None:
    service.write_episodic("red door", {"query": "q", "answer": None})
    [hit] = service.search_hits("red door")
    [told] = service.search_episodic("red door")
    assert (hit.record.id, hit.record.text, hit.score) == (told["id"], told["content"], told["score"])
    assert hit.record.fields == {"query": "q"}


def test_what_cannot_be_kept_with_an_episode_is_named(service: MemoryService) -> None:
    with pytest.raises(InputError, match="field 'tools' of record"):
        service.write_episodic("text", {"tools": ["a", "b"]})
    assert service.store.count() == 0


def test_outside_trials_ids_are_random_and_times_the_clocks(service: MemoryService) -> None:
    free = MemoryService(service.store, origin="hook")
    first, second = (service.store.get(free.write_episodic("x", {})) for _ in range(2))
    assert first is not None
    assert second is not None
    assert first.id != second.id
    assert first.created_at <= second.created_at
    assert first.created_at.tzinfo is not None
    assert first.origin == "hook"
