"""Fresh stores for trials."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from storing import Tiny, record

from memeval.errors import InputError
from memeval.memory import KINDS
from memeval.memory.browse import users
from memeval.memory.factory import Stores


@pytest.mark.parametrize("kind", KINDS)
def test_each_namespace_and_user_gets_an_empty_store_of_its_own(kind: str, tmp_path: Path) -> None:
    stores = Stores(kind, tmp_path, Tiny())
    made = [stores.fresh("one", "ann"), stores.fresh("one", "bob"), stores.fresh("two", "ann")]
    for n, store in enumerate(made):
        store.put(record("a", f"text {n}"))
    assert [[r.text for r in store.find()] for store in made] == [["text 0"], ["text 1"], ["text 2"]]
    assert [store.user for store in made] == ["ann", "bob", "ann"]
    stores.drop("one")
    stores.drop("never there")
    assert made[2].count() == 1
    assert stores.fresh("one", "ann").count() == 0
    stores.close()


@pytest.mark.parametrize("kind", KINDS)
def test_asking_twice_for_one_store_is_refused(kind: str, tmp_path: Path) -> None:
    stores = Stores(kind, tmp_path, Tiny())
    stores.fresh("one", "ann")
    with pytest.raises(InputError, match="'one' has a store of user 'ann' already"):
        stores.fresh("one", "ann")
    stores.close()


@pytest.mark.parametrize("kind", KINDS)
def test_threads_may_share_the_stores(kind: str) -> None:
    stores = Stores(kind, None, Tiny())

    def trial(n: int) -> list[str]:
        store = stores.fresh(f"{n}", "ann")
        for m in range(3):
            store.put(record(f"{m}", f"text {n} {m}"))
        found = [r.text for r in store.candidates(f"text {n}").records]
        stores.drop(f"{n}")
        return found

    with ThreadPoolExecutor(4) as pool:
        for n, found in enumerate(pool.map(trial, range(12))):
            assert sorted(found) == [f"text {n} {m}" for m in range(3)]
    stores.close()


def test_what_a_killed_run_left_is_not_found_again(tmp_path: Path) -> None:
    stores = Stores("chroma", tmp_path, Tiny())
    stores.fresh("one", "ann").put(record("a"))
    left = stores.fresh("two", "ann")
    left.put(record("b"))
    stores._open.clear()  # as if the process had ended here: nothing dropped
    left.close()
    stores.close()
    again = Stores("chroma", tmp_path, Tiny("other"))
    assert again.fresh("one", "ann").find() == []
    again.close()


def test_nothing_is_left_after_the_last_trial(tmp_path: Path) -> None:
    stores = Stores("chroma", tmp_path, Tiny())
    stores.fresh("one", "ann").put(record("a"))
    stores.close()
    assert users(tmp_path) == []
    own = Stores("chroma", None, Tiny())
    folder = own._folder.path
    assert folder.is_dir()
    own.close()
    assert not folder.exists()


def test_an_unknown_kind_is_named_with_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'inmemory'"):
        Stores("in-memory", None, Tiny())
