"""What only the durable store does: locks, fingerprints, users, a sidecar, and outliving a kill."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from chromadb.api.models.Collection import Collection
from storing import Tiny, record

from memeval.errors import InputError
from memeval.memory.browse import open_existing, users
from memeval.memory.chroma import ChromaStore
from memeval.memory.collection import collection_name
from memeval.memory.folder import Folder
from memeval.records import Where, topic_id

HERE = Path(__file__).parent


def opened(path: Path, user: str = "ann", **given: object) -> ChromaStore:
    return ChromaStore(path, user, Tiny(), **given)  # type: ignore[arg-type]


def child(code: str, path: Path) -> list[str]:
    head = f"import sys; sys.path.insert(0, {str(HERE)!r})\nfrom storing import *\n"
    head += "from memeval.memory.chroma import ChromaStore\n"
    return [sys.executable, "-c", head + code, str(path)]


def test_memories_outlive_the_store_that_kept_them(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.put(record("a", "a red door", fields={"n": 1}))
    before = store.snapshot()
    store.close()
    again = opened(tmp_path)
    assert again.snapshot() == before
    assert again.candidates("red door").cosine[0] > 0.5
    again.close()


def test_a_closed_store_lets_its_folder_be_removed_and_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "store"
    for _ in range(3):
        store = opened(path)
        assert store.count() == 0
        store.put(record("a"))
        store.close()
        store.close()
        shutil.rmtree(path)


def test_another_process_is_refused_in_one_sentence_until_the_last_handle_closes(tmp_path: Path) -> None:
    code = """
from memeval.errors import InputError
try:
    ChromaStore(sys.argv[1], "bob", Tiny()).close()
    print("opened")
except InputError as error:
    print(error)
"""
    first, second = opened(tmp_path), opened(tmp_path, "bob")
    first.close()
    told = subprocess.run(child(code, tmp_path), capture_output=True, text=True, timeout=120, check=True)
    assert told.stdout.strip() == (
        f"memory store {tmp_path} is in use by another process; wait until that has ended,"
        " or choose another chroma_path"
    )
    second.put(record("a"))
    second.close()
    told = subprocess.run(child(code, tmp_path), capture_output=True, text=True, timeout=120, check=True)
    assert told.stdout.strip() == "opened"


def test_a_killed_writer_leaves_a_store_with_all_it_acknowledged(tmp_path: Path) -> None:
    code = """
store = ChromaStore(sys.argv[1], "ann", Tiny())
for n in range(10_000):
    print(store.put(record(f"r{n}", f"memory number {n}", n)), flush=True)
"""
    with subprocess.Popen(child(code, tmp_path), stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        told = [writer.stdout.readline().strip() for _ in range(25)]
        writer.send_signal(signal.SIGKILL)
        told += writer.stdout.read().split()
    assert told[:2] == ["r0", "r1"]
    store = opened(tmp_path)
    for name in told:
        assert store.get(name) == record(name, f"memory number {name[1:]}", int(name[1:]))
        hits = store.candidates(f"memory number {name[1:]}", k=1)
        assert name in [r.id for r in hits.records]
        assert hits.cosine[0] == 1.0
    store.put(record("after"))
    assert store.count() >= len(told) + 1
    store.close()


def test_another_embedder_is_refused_by_both_names_and_the_way_out(tmp_path: Path) -> None:
    opened(tmp_path).close()
    with pytest.raises(InputError) as refused:
        ChromaStore(tmp_path, "ann", Tiny("other"))
    assert str(refused.value).endswith(
        "was embedded by tiny (tiny-1), not by other (other-1): use that embedder again, or choose another"
        " collection or chroma_path to start anew"
    )
    opened(tmp_path).close()  # the refusal holds nothing back


def test_a_collection_made_by_others_under_our_name_is_refused(tmp_path: Path) -> None:
    folder = Folder.hold(tmp_path)
    about = {"user": "ann", "embedder": "tiny", "fingerprint": "tiny-1"}
    names = [collection_name("local2.memory", user) for user in ("ann", "bob")]
    folder.client.create_collection(names[0], metadata=about, embedding_function=None)
    folder.client.create_collection(names[1], metadata=about, embedding_function=None)
    with pytest.raises(InputError, match="was not made by cosine"):
        opened(tmp_path)
    with pytest.raises(InputError, match="belongs to 'ann', not to 'bob'"):
        opened(tmp_path, "bob")
    folder.release()


def test_the_sidecar_is_mended_at_opening_both_ways(tmp_path: Path) -> None:
    store = opened(tmp_path)
    for name, text in (("a", "red door"), ("b", "blue door"), ("c", "green door")):
        store.put(record(name, text))
    store.close()
    [file] = tmp_path.glob("*.words.sqlite3")
    with sqlite3.connect(file) as db:
        db.execute("DELETE FROM rows WHERE id = 'a'")
        db.execute("DELETE FROM rows WHERE id = 'b'")
        db.execute("INSERT INTO rows (id, text) VALUES ('b', 'stale'), ('ghost', 'door')")
    db.close()
    store = opened(tmp_path)
    found = store.candidates("red blue door")
    assert {r.id for r in found.records} == {"a", "b", "c"}
    assert (found.keyword_rank > 0).all()
    assert len(store.candidates("stale ghost", k=1)) == 1
    store.close()


@pytest.mark.parametrize("damage", [None, b"no database at all" * 100])
def test_a_sidecar_that_is_gone_or_broken_is_made_anew(tmp_path: Path, damage: bytes | None) -> None:
    store = opened(tmp_path)
    store.put(record("a", "red door"))
    store.close()
    [file] = tmp_path.glob("*.words.sqlite3")
    file.unlink() if damage is None else file.write_bytes(damage)
    store = opened(tmp_path)
    assert store.candidates("door").keyword_rank.tolist() == [1]
    store.close()


def test_two_users_never_reach_each_others_records(tmp_path: Path) -> None:
    ann, bob = opened(tmp_path, "ann"), opened(tmp_path, "bob")
    ann.put(record("secret", "ann's red door", kind="topic", fields={"user": "bob"}))
    ann.put(record(topic_id("user.name"), "Ann"))
    bob.put(record(topic_id("user.name"), "Bob"))
    for name in ("secret", "ann/secret", collection_name("local2.memory", "ann")):
        assert bob.get(name) is None
        assert not bob.patch(name, text="stolen")
        assert not bob.delete(name)
    assert [r.text for r in bob.find()] == ["Bob"]
    assert [r.text for r in bob.candidates("ann's red door").records] == ["Bob"]
    assert bob.find(Where(fields={"user": "bob"})) == []
    bob.restore(())
    assert ann.count() == 2
    assert ann.get(topic_id("user.name")) == record(topic_id("user.name"), "Ann")
    ann.close()
    bob.close()


def test_the_topic_found_by_its_id_is_the_one_the_authors_filter_finds(tmp_path: Path) -> None:
    store = opened(tmp_path)
    for topic in ("user.name", "user.language", ""):
        store.put(record(topic_id(topic), f"value of {topic}", kind="topic", fields={"topic": topic}))
    store.put(record("e", "an episode", kind="episodic", fields={"topic": "user.name"}))
    by_filter = store._rows.get(where={"$and": [{"type": "topic"}, {"topic": "user.name"}]})
    assert by_filter["ids"] == [topic_id("user.name")]
    assert by_filter["documents"] == ["value of user.name"]
    store.close()


def test_three_hundred_equal_memories_hide_no_other(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.restore([record(f"same{n}", "the same again") for n in range(300)])
    others = [record(f"other{n}", f"fact {n} of {n * 7919}") for n in range(40)]
    for other in others:
        store.put(other)
    reached = [store.candidates(r.text, k=1, words=False).records[0].id == r.id for r in others]
    assert all(reached)
    store.close()


def test_a_search_by_word_reads_no_more_rows_at_once_than_a_call_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chroma 1.5.9 refuses more than some 32,000 ids: too many SQL variables."""
    monkeypatch.setattr("memeval.memory.collection.BATCH", 5)
    get, asked = Collection.get, []

    def counted(rows: Collection, ids: Any = None, **given: Any) -> Any:
        asked.append(len(ids or ()))
        return get(rows, ids=ids, **given)

    store = opened(tmp_path)
    store.restore([record(f"{n}", f"door {n}") for n in range(40)])
    store.put(record("late", "a door at the far end of a long and dark hall", tags=("t",)))
    monkeypatch.setattr(Collection, "get", counted)
    found = store.candidates("door", Where(tags=("t",)), k=1)
    assert [r.id for r in found.records] == ["late"]
    assert found.keyword_rank.tolist() == [1]
    assert max(asked) == 5
    store.close()


def test_users_lists_whose_memories_a_folder_holds(tmp_path: Path) -> None:
    for user, count in (("bob", 2), ("ann", 1), ("nobody", 0)):
        store = opened(tmp_path, user)
        for n in range(count):
            store.put(record(f"{n}"))
        store.close()
    listed = users(tmp_path)
    assert [(s.user, s.count, s.collection, s.embedder) for s in listed] == [
        ("ann", 1, "local2.memory", "tiny"), ("bob", 2, "local2.memory", "tiny"),
        ("nobody", 0, "local2.memory", "tiny"),
    ]  # fmt: skip


def test_an_existing_store_is_read_without_an_embedder_and_searched_with_its_own(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.put(record("a", "red door"))
    store.close()
    reader = open_existing(tmp_path, "ann")
    assert reader.snapshot() == (record("a", "red door"),)
    with pytest.raises(InputError, match="opened for reading; to search or write, open it with tiny"):
        reader.candidates("door")
    reader.close()
    searcher = open_existing(tmp_path, "ann", Tiny())
    assert len(searcher.candidates("door")) == 1
    searcher.close()


def test_opening_what_is_not_there_names_it_and_makes_nothing(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    with pytest.raises(InputError, match="there is no memory store in"):
        users(missing)
    assert not missing.exists()
    opened(tmp_path / "store").close()
    with pytest.raises(InputError, match=r"no memories of user 'anne'; did you mean 'ann'\?"):
        open_existing(tmp_path / "store", "anne")
    opened(tmp_path / "store", collection="second").close()
    with pytest.raises(InputError, match=r"several collections of user 'ann', name one: local2"):
        open_existing(tmp_path / "store", "ann")
    open_existing(tmp_path / "store", "ann", collection="second").close()


def test_a_folder_that_is_no_store_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a file")
    with pytest.raises(InputError, match="no folder that can be written"):
        opened(tmp_path / "file")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "chroma.sqlite3").write_bytes(b"garbage " * 1000)
    with pytest.raises(InputError, match="cannot be opened as a Chroma store"):
        opened(broken)
    shutil.rmtree(broken)
    opened(broken).close()


def test_what_is_deleted_is_deleted_from_the_sidecar_as_well(tmp_path: Path) -> None:
    store = opened(tmp_path)
    for name in "abc":
        store.put(record(name, f"text {name}"))
    store.delete("a")
    assert store._keywords.texts() == {"b": "text b", "c": "text c"}
    store.restore([record("c", "changed")])
    assert store._keywords.texts() == {"c": "changed"}
    store.close()
