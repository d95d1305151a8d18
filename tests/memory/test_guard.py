"""A store for one use of it: counted, read-only, taken away."""

from __future__ import annotations

import pytest
from storing import Tiny, record

from memeval.errors import ReadOnlyError
from memeval.memory.guard import GuardedStore
from memeval.memory.inmemory import InMemoryStore


def test_a_guard_passes_everything_on_and_counts_what_was_written() -> None:
    store = InMemoryStore("ann", Tiny())
    guard = GuardedStore(store)
    guard.put(record("a", "red"))
    guard.patch("a", tags=("warm",))
    assert guard.get("a") == store.get("a")
    assert guard.find() == list(guard.snapshot()) == store.find()
    assert len(guard.candidates("red")) == guard.count() == 1
    assert guard.delete("a")
    assert (guard.writes, guard.user, guard.embedder) == (3, "ann", store.embedder)


def test_a_read_only_guard_refuses_every_write_and_nothing_else() -> None:
    store = InMemoryStore("ann", Tiny())
    store.put(record("a", "red"))
    guard = GuardedStore(store, read_only=True)
    for write in (
        lambda: guard.put(record("b")), lambda: guard.patch("a", tags=()), lambda: guard.delete("a"),
        lambda: guard.restore(()),
    ):  # fmt: skip
        with pytest.raises(ReadOnlyError, match="read-only"):
            write()
    assert guard.get("a") == record("a", "red")
    assert guard.writes == 0


def test_a_revoked_guard_refuses_reads_as_well() -> None:
    guard = GuardedStore(InMemoryStore("ann", Tiny()))
    assert guard.revoke()
    with pytest.raises(ReadOnlyError, match="over"):
        guard.put(record("a"))
    with pytest.raises(ReadOnlyError, match="over"):
        guard.find()
