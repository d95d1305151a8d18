import os
import signal
import sqlite3
import subprocess
import sys
import threading

import numpy as np
import pytest

from memeval.embedding.cache import EmbeddingCache, cache_key, default_path

WRITER = """
import sys
import numpy as np
from memeval.embedding.cache import EmbeddingCache, cache_key
cache = EmbeddingCache(sys.argv[1])
unit = np.eye(8, dtype=np.float32)
for batch in range(100000):
    cache.put_many({cache_key("d", f"{batch}/{n}", 8): unit[n] for n in range(8)})
    print(batch, flush=True)
"""


def unit(n: int, dim: int = 8) -> np.ndarray:
    return np.eye(dim, dtype=np.float32)[n % dim]


def keys(n: int) -> list[bytes]:
    return [cache_key("d", str(i), 8) for i in range(n)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "vectors.sqlite"


def test_what_is_put_is_got_and_what_is_not_there_is_left_out(path):
    cache = EmbeddingCache(path)
    known = dict(zip(keys(1500), map(unit, range(1500)), strict=True))
    cache.put_many(known)
    found = EmbeddingCache(path).get_many([*known, cache_key("d", "other", 8)])
    assert found.keys() == known.keys()
    assert all(np.array_equal(found[key], known[key]) for key in known)
    assert found[keys(1)[0]].dtype == np.float32


def test_a_key_depends_on_digest_text_and_dims():
    parts = [("d", "a", 8), ("e", "a", 8), ("d", "b", 8), ("d", "a", 4), ("da", "", 8), ("d", "\ud83d", 8)]
    assert len({cache_key(*part) for part in parts}) == len(parts)


def test_the_path_is_the_users_cache_directory_unless_the_environment_says_otherwise(monkeypatch, tmp_path):
    monkeypatch.delenv("MEMEVAL_CACHE", raising=False)
    assert default_path().name == "embeddings.sqlite"
    assert "memeval" in str(default_path())
    monkeypatch.setenv("MEMEVAL_CACHE", str(tmp_path / "mine"))
    assert EmbeddingCache().path == tmp_path / "mine"


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_a_writer_killed_at_any_time_loses_no_batch_it_had_acknowledged(path):
    for acknowledged in (1, 7, 40):
        child = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
        for _ in range(acknowledged):
            child.stdout.readline()
        os.kill(child.pid, signal.SIGKILL)
        child.communicate()
        cache = EmbeddingCache(path)
        wanted = [cache_key("d", f"{batch}/{n}", 8) for batch in range(acknowledged) for n in range(8)]
        assert len(cache.get_many(wanted)) == len(wanted)
        assert cache.count() % 8 == 0  # a batch is all or none
        cache.close()


def test_two_handles_and_many_threads_write_at_once(path):
    caches = [EmbeddingCache(path), EmbeddingCache(path)]

    def write(worker: int) -> None:
        for n in range(10):
            caches[worker % 2].put_many({cache_key("d", f"{worker}/{n}", 8): unit(n)})

    threads = [threading.Thread(target=write, args=(worker,)) for worker in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert caches[0].count() == caches[1].count() == 80


@pytest.mark.parametrize("garbage", [b"this is not a database, it only lies there" * 100, b"\0" * 5000])
def test_a_damaged_file_is_set_aside_with_a_warning_and_the_work_goes_on(path, garbage):
    path.parent.mkdir()
    path.write_bytes(garbage)
    cache = EmbeddingCache(path)
    with pytest.warns(RuntimeWarning, match="damaged"):
        cache.put_many({keys(1)[0]: unit(3)})
    assert np.array_equal(EmbeddingCache(path).get_many(keys(1))[keys(1)[0]], unit(3))
    aside = [file for file in path.parent.iterdir() if ".damaged-" in file.name]
    assert [file.read_bytes() for file in aside] == [garbage]


def test_pages_damaged_in_the_middle_are_noticed_when_they_are_read(path):
    cache = EmbeddingCache(path)
    cache.put_many(dict(zip(keys(3000), map(unit, range(3000)), strict=True)))
    cache.close()
    content = bytearray(path.read_bytes())
    content[4096:-4096] = b"\xff" * (len(content) - 8192)
    path.write_bytes(content)
    with pytest.warns(RuntimeWarning, match="damaged"):
        found = EmbeddingCache(path).get_many(keys(3000))
    assert found == {}


def test_a_vector_that_is_no_unit_vector_any_more_is_not_given_out(path):
    cache = EmbeddingCache(path)
    cache.put_many({key: unit(0) for key in keys(3)})
    with sqlite3.connect(path) as other:
        other.execute("UPDATE vectors SET vector = zeroblob(32) WHERE key = ?", (keys(3)[0],))
        other.execute("UPDATE vectors SET vector = x'0102' WHERE key = ?", (keys(3)[1],))
    other.close()
    assert list(cache.get_many(keys(3))) == [keys(3)[2]]


def test_where_no_file_can_be_written_vectors_stay_in_memory_with_one_warning(tmp_path):
    (tmp_path / "file").write_text("in the way")
    cache = EmbeddingCache(tmp_path / "file" / "vectors.sqlite")
    with pytest.warns(RuntimeWarning, match="MEMEVAL_CACHE"):
        cache.put_many({keys(1)[0]: unit(1)})
    assert np.array_equal(cache.get_many(keys(1))[keys(1)[0]], unit(1))  # no second warning: they are errors
