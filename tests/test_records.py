"""Records, and the clock and ids that stories are replayed by."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from memeval.records import EVERYTHING, Record, SeededIds, StoryClock, Where, topic_id, utc_now

START = datetime(2026, 5, 30, 9, tzinfo=UTC)


def record(**changes: object) -> Record:
    given = {
        "id": "a", "kind": "note", "text": "t", "origin": "tool", "created_at": START, "updated_at": START,
        "tags": ("x", "y"), "fields": {"n": 1},
    }  # fmt: skip
    return Record(**{**given, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("where", "counts"),
    [
        (EVERYTHING, True),
        (Where(kinds=("note", "topic")), True),
        (Where(kinds=("topic",)), False),
        (Where(origin="tool"), True),
        (Where(origin="hook"), False),
        (Where(tags=("y", "z")), True),
        (Where(tags=("y", "z"), tag_match="all"), False),
        (Where(tags=("y", "x"), tag_match="all"), True),
        (Where(tags=("z",)), False),
        (Where(fields={"n": 1}), True),
        (Where(fields={"n": 2}), False),
        (Where(fields={"m": 1}), False),
        (Where(exclude=frozenset("a")), False),
        (Where(kinds=("note",), origin="tool", tags=("x",), fields={"n": 1}, exclude=frozenset("b")), True),
    ],
)
def test_every_condition_must_hold(where: Where, counts: bool) -> None:
    assert where(record()) is counts


def test_a_story_clock_never_reads_the_same_twice_and_never_goes_back() -> None:
    clock = StoryClock(START)
    first, second = clock(), clock()
    assert second - first == timedelta(seconds=1)
    clock.set(START - timedelta(days=1))
    assert clock() == second + timedelta(seconds=1)
    clock.set(START + timedelta(days=1))
    assert clock() == START + timedelta(days=1, seconds=1)


def test_seeded_ids_repeat_with_the_seed_and_never_within_it() -> None:
    def many(seed: int) -> list[str]:
        ids = SeededIds(seed)
        return [ids("episodic") for _ in range(1000)]

    assert many(1) == many(1)
    assert len(set(many(1))) == 1000
    assert not set(many(1)) & set(many(2))
    assert re.fullmatch(r"episodic-[0-9a-f]{12}", many(1)[0])


def test_a_topics_id_comes_from_its_key_alone() -> None:
    assert topic_id("user.name") == topic_id("user.name") != topic_id("user.names")
    assert topic_id("user.name") == "topic-c69f268fb43e3b0bd4643617"  # as in stores that are kept
    assert re.fullmatch(r"topic-[0-9a-f]{24}", topic_id("ключ / *"))


def test_a_key_that_is_no_text_has_an_id_too() -> None:
    assert topic_id("user.\ud83d") != topic_id("user.\ud83e")


def test_the_wall_clock_is_in_utc() -> None:
    assert utc_now().utcoffset() == timedelta(0)
