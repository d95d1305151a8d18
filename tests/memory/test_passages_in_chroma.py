"""Long texts in the durable store: a side collection made when needed, and writes that are all or nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chromadb.api.models.Collection import Collection
from chromadb.errors import InternalError
from storing import Tiny, record

from memeval.errors import InfrastructureError
from memeval.memory.base import MemoryStore
from memeval.memory.browse import open_existing, users
from memeval.memory.chroma import ChromaStore
from memeval.memory.chunking import passages
from memeval.memory.codec import decode, encode
from memeval.memory.factory import Stores
from memeval.memory.folder import Folder
from memeval.memory.inmemory import InMemoryStore
from memeval.memory.keywords import Keywords
from memeval.memory.ranking import SimilarityFloor
from memeval.records import Record

SIGNS = "".join(f"{n:04} " for n in range(110))
OLD = f"an elephant {SIGNS}of green marble {SIGNS}in the cellar"
NEW = f"a zebra {SIGNS}of red brick {SIGNS}in the attic {SIGNS}by the window"
Write = Callable[[MemoryStore], object]


def opened(path: Path) -> ChromaStore:
    return ChromaStore(path, "ann", Tiny())


def collections(path: Path) -> dict[str, int]:
    """How many rows each collection of a folder has; side collections as `passages`."""
    folder = Folder.hold(path)
    try:
        return {
            "passages" if rows.name.endswith(".passages") else "records": rows.count()
            for rows in folder.client.list_collections()
        }
    finally:
        folder.release()


def shown(store: MemoryStore, *, words: bool = True) -> list[tuple[Any, ...]]:
    """All that searches for parts of either text show."""
    return [
        (asked, hit.record, hit.passage, round(hit.score, 4), hit.keyword and round(hit.keyword, 9))
        for asked in ("the elephant", passages(OLD)[1], "a zebra", passages(NEW)[1], passages(NEW)[2])
        for hit in SimilarityFloor(-1.0).rank(store.candidates(asked, words=words), 9)
    ]


def shown_of(*records: Record, words: bool = True) -> list[tuple[Any, ...]]:
    exact = InMemoryStore("ann", Tiny())
    exact.restore(records)
    return shown(exact, words=words)


def test_the_side_collection_is_made_when_a_text_has_several_passages(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.put(record("a", "short", by_passage=True))
    store.put(record("b", SIGNS))
    assert collections(tmp_path) == {"records": 2}
    store.put(record("c", OLD, by_passage=True))
    assert collections(tmp_path) == {"records": 3, "passages": len(passages(OLD)) - 1}
    store.close()


def test_passages_outlive_the_store_and_are_known_to_handles_opened_before_them(tmp_path: Path) -> None:
    early, store = opened(tmp_path), opened(tmp_path)
    store.put(record("a", OLD, by_passage=True))
    assert shown(early) == shown(store) == shown_of(record("a", OLD, by_passage=True))
    early.close()
    store.close()
    again = opened(tmp_path)
    assert shown(again) == shown_of(record("a", OLD, by_passage=True))
    again.close()


def test_a_person_looking_into_the_store_sees_records_and_no_side_collection(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.put(record("a", OLD, by_passage=True))
    store.close()
    assert [(space.user, space.count) for space in users(tmp_path)] == [("ann", 1)]
    reader = open_existing(tmp_path, "ann")
    assert reader.find() == [record("a", OLD, by_passage=True)]
    reader.close()


WRITES: dict[str, tuple[Record, Write, tuple[Record, ...]]] = {
    "put": (
        record("a", OLD, by_passage=True),
        lambda store: store.put(record("a", NEW, by_passage=True)),
        (record("a", NEW, by_passage=True),),
    ),
    "patch": (
        record("a", OLD, by_passage=True, tags=("t",)),
        lambda store: store.patch("a", text=NEW, tags=()),
        (record("a", NEW, by_passage=True),),
    ),
    "shorten": (
        record("a", OLD, by_passage=True),
        lambda store: store.patch("a", text="a zebra"),
        (record("a", "a zebra", by_passage=True),),
    ),
    "lengthen": (
        record("a", "an elephant"),
        lambda store: store.patch("a", text=NEW, by_passage=True),
        (record("a", NEW, by_passage=True),),
    ),
    "make whole": (
        record("a", OLD[:900], by_passage=True),
        lambda store: store.patch("a", by_passage=False),
        (record("a", OLD[:900]),),
    ),
    "delete": (record("a", OLD, by_passage=True), lambda store: store.delete("a"), ()),
    "restore": (
        record("a", OLD, by_passage=True),
        lambda store: store.restore([record("a", NEW, by_passage=True)]),
        (record("a", NEW, by_passage=True),),
    ),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_write_that_breaks_off_leaves_the_old_text_or_the_new_and_never_some_of_each(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, write, new = WRITES[name]
    outcomes = [((old,), shown_of(old)), (new, shown_of(*new))]
    by_meaning = [shown_of(old, words=False), shown_of(*new, words=False)]
    done, steps, last = False, 0, 0
    while not done:
        store = opened(tmp_path / f"{steps}")
        store.put(old)
        with monkeypatch.context() as broken:
            left = breaking(broken, steps)
            try:
                write(store)
                done = left() > 0
            except InfrastructureError:
                assert shown(store, words=False) in by_meaning
        store.close()
        store = opened(tmp_path / f"{steps}")
        at = outcomes.index((store.snapshot(), shown(store)))
        assert at >= last, "a later break cannot undo what an earlier one kept"
        further = sum(len(passages(r.text)) - 1 for r in outcomes[at][0] if r.by_passage)
        assert collections(tmp_path / f"{steps}").get("passages", 0) == further
        store.close()
        last, steps = at, steps + 1
    assert last == 1
    assert steps >= 3


def breaking(patched: pytest.MonkeyPatch, after: int) -> Callable[[], int]:
    """Let the first `after` writes through and fail all later ones; tells how many are left."""
    left = [after]

    def counted(write: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **given: Any) -> Any:
            if left[0] == 0:
                raise InternalError("the disk is gone")
            left[0] -= 1
            return write(*args, **given)

        return call

    for kind, names in ((Collection, ("upsert", "update", "delete")), (Keywords, ("upsert", "delete"))):
        for name in names:
            patched.setattr(kind, name, counted(getattr(kind, name)))
    return lambda: left[0]


def test_rows_of_another_text_are_passed_over_and_cleared_by_the_next_write(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.put(record("a", "short"))
    store._further.write([record("a", OLD, by_passage=True)], [Tiny().embed(passages(OLD))])
    store._further.write([record("gone", OLD, by_passage=True)], [Tiny().embed(passages(OLD))])
    assert shown(store) == shown_of(record("a", "short"))
    store.put(record("a", "short", tags=("t",)))
    assert store._further.owners() == ["gone"]
    store.close()
    again = opened(tmp_path)
    assert again._further.owners() == []
    again.close()


def test_a_side_collection_that_outlived_its_collection_is_dropped(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.put(record("a", OLD, by_passage=True))
    store._folder.client.delete_collection(store._rows.name)
    store.close()
    again = opened(tmp_path)
    assert collections(tmp_path) == {"records": 0}
    again.put(record("a", OLD, by_passage=True))
    assert shown(again) == shown_of(record("a", OLD, by_passage=True))
    again.close()


def test_stores_of_trials_leave_no_side_collection(tmp_path: Path) -> None:
    stores = Stores("chroma", tmp_path, Tiny())
    stores.fresh("one", "ann").put(record("a", OLD, by_passage=True))
    left = stores.fresh("two", "ann")
    left.put(record("b", OLD, by_passage=True))
    stores.drop("one")
    assert collections(tmp_path) == {"records": 1, "passages": len(passages(OLD)) - 1}
    stores._open.clear()  # as if the process had ended here: nothing dropped
    left.close()
    stores.close()
    again = Stores("chroma", tmp_path, Tiny())
    fresh = again.fresh("two", "ann")
    assert shown(fresh) == []
    assert collections(tmp_path) == {"records": 0}
    again.close()
    assert collections(tmp_path) == {}


def test_more_passages_than_one_call_takes_are_written_found_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memeval.memory.collection.BATCH", 2)
    store = opened(tmp_path)
    texts = [record(f"{n}", f"{n} {OLD}", by_passage=True) for n in range(5)]
    store.restore(texts)
    assert collections(tmp_path) == {"records": 5, "passages": 5 * (len(passages(OLD)) - 1)}
    assert shown(store) == shown_of(*texts)
    store.restore(texts[3:])
    assert shown(store) == shown_of(*texts[3:])
    store.restore(())
    assert collections(tmp_path) == {"records": 0, "passages": 0}
    store.close()


def test_a_record_written_before_there_were_passages_is_read_as_whole() -> None:
    before = encode(record("a", fields={}))
    before["record"] = before["record"].replace(', "by_passage": false', "")
    assert "by_passage" not in before["record"]
    assert decode("a", "a text", before) == record("a", fields={})
