"""The keyword leg by itself."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from memeval.memory.keywords import MAX_TERMS, Keywords, terms


def test_terms_are_the_words_of_a_text_each_once_and_at_most_32() -> None:
    assert " ".join(terms('User\'s "cat" AND user-name: C++ ﬁle')) == "User s cat AND user name C file"
    assert terms("a a a b") == ["a", "b"]
    assert len(terms(" ".join(f"w{n}" for n in range(100)))) == MAX_TERMS
    assert terms("?!* \x00") == []


def test_more_is_better_and_ties_go_by_id() -> None:
    words = Keywords()
    words.upsert({"c": "red door", "b": "red house and much more besides", "a": "red door", "d": "nothing"})
    found = words.search("red")
    assert [name for name, _ in found] == ["a", "c", "b"]
    assert found[0][1] == found[1][1] > found[2][1]
    assert words.search("red", 1) == found[:1]
    assert words.search("blue") == []


def test_any_word_matches_stems_match_and_accents_do_not_matter() -> None:
    words = Keywords()
    words.upsert({"a": "The cafés were running late"})
    assert words.search("cafe tomorrow")
    assert words.search("runs")
    assert not words.search("caf")


def test_upsert_replaces_and_delete_forgets() -> None:
    words = Keywords()
    assert words.is_empty()
    words.upsert({"a": "red", "b": "blue"})
    assert not words.is_empty()
    words.upsert({"a": "green"})
    assert words.search("red") == []
    assert [name for name, _ in words.search("green")] == ["a"]
    words.delete(["a", "never there"])
    assert words.search("green") == []
    assert words.texts() == {"b": "blue"}
    assert len(words) == 1


def test_scores_of_given_ids_are_those_of_the_search() -> None:
    words = Keywords()
    words.upsert({f"{n}": "red " * n + "thing" for n in range(40)})
    everything = dict(words.search("red"))
    top, also = words.search_scored("red", 2, ["3", "0", "not there"])
    assert top == words.search("red", 2)
    assert also == {"3": everything["3"]}
    assert words.search_scored("?!", 2, ["3"]) == ([], {})


def test_a_file_is_kept_and_threads_may_share_it(tmp_path: Path) -> None:
    words = Keywords(tmp_path / "words")
    threads = [threading.Thread(target=words.upsert, args=({f"{n}": f"word{n} all"},)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    words.close()
    again = Keywords(tmp_path / "words")
    assert len(again) == 8
    assert len(again.search("all")) == 8
    again.close()


@pytest.mark.parametrize("text", ["", "a\x00b", "\u202eabc", "乌龙茶", "x" * 100_000])
def test_any_text_can_be_indexed_and_forgotten(text: str) -> None:
    words = Keywords()
    words.upsert({"a": text})
    words.delete(["a"])
    assert len(words) == 0
    assert words.search(text) == []
