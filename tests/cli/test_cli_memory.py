"""`memeval memory`: a person looks into a store, and rates what is there."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cli_setting import Invoke

from memeval.embedding import open_embedder
from memeval.memory import open_store
from memeval.memory.browse import open_existing
from memeval.records import Record


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A Chroma store with three memories of one user, embedded by `hash`."""
    path = tmp_path / "memories"
    fill(path, "ada", ["The cat is called Mimi.", "The car is red.", "Lunch is at noon."])
    return path


def fill(path: Path, user: str, texts: list[str]) -> None:
    opened = open_store("chroma", path, user, open_embedder("hash", cache=None))
    start = datetime(2026, 5, 1, tzinfo=UTC)
    for n, text in enumerate(texts):
        at = start + timedelta(days=n)
        opened.put(
            Record(id=f"note-{n}", kind="note", text=text, origin="tool", created_at=at, updated_at=at)
        )
    opened.close()


def test_memories_are_listed_newest_first(invoke: Invoke, store: Path) -> None:
    result = invoke("memory", "list", store, "--limit", "2")
    assert result.exit_code == 0
    assert result.stdout.index("Lunch") < result.stdout.index("car")
    assert "Mimi" not in result.stdout
    assert "the newest 2 of 3 memories of 'ada'" in result.stdout


def test_memories_as_json(invoke: Invoke, store: Path) -> None:
    data = json.loads(invoke("memory", "list", store, "--json").stdout)
    assert [record["id"] for record in data] == ["note-2", "note-1", "note-0"]


def test_a_store_is_searched_by_the_embedder_it_was_made_with(invoke: Invoke, store: Path) -> None:
    args = ("memory", "search", store, "the cat Mimi", "--embedder", "hash", "--top-k", "2")
    found = json.loads(invoke(*args, "--json").stdout)
    assert found[0]["id"] == "note-0"
    assert found[0]["cosine"] > found[1]["cosine"]
    assert "2 of 3 memories" in invoke(*args).stdout


def test_the_settings_name_store_and_embedder(invoke: Invoke, store: Path) -> None:
    Path("memory.yaml").write_text(f"chroma_path: {store}\nembedding_model: hash\n", encoding="utf-8")
    assert json.loads(invoke("memory", "search", "red car", "--json").stdout)[0]["id"] == "note-1"
    Path("memory.yaml").rename("elsewhere.yaml")
    assert invoke("memory", "list", "--config", "elsewhere.yaml").exit_code == 0


def test_another_embedder_is_refused_and_the_right_one_named(invoke: Invoke, store: Path) -> None:
    result = invoke("memory", "search", store, "cat")
    assert result.exit_code == 2
    assert "was embedded by hash, not by ollama:nomic-embed-text; give --embedder hash" in result.stderr


def test_of_several_users_one_must_be_named(invoke: Invoke, store: Path) -> None:
    fill(store, "bob", ["Bob likes tea."])
    result = invoke("memory", "list", store)
    assert result.exit_code == 2
    assert "--user: ada, bob" in result.stderr
    assert "Bob likes tea." in invoke("memory", "list", store, "--user", "bob").stdout
    assert "did you mean 'bob'" in invoke("memory", "list", store, "--user", "bobb").stderr


@pytest.mark.parametrize("args", [("list",), ("search", "x")])
def test_a_store_that_is_not_there_is_one_sentence_and_is_not_made(
    invoke: Invoke, tmp_path: Path, args: tuple[str, ...]
) -> None:
    result = invoke("memory", *args)
    assert result.exit_code == 2
    assert "there is no memory store" in result.stderr
    assert not (tmp_path / ".chroma").exists()


@pytest.mark.parametrize("words", [("a", "b", "c"), ("",)])
def test_a_search_wants_a_store_and_one_query(invoke: Invoke, words: tuple[str, ...]) -> None:
    assert invoke("memory", "search", *words).exit_code == 2


def snapshot(store: Path) -> tuple[Record, ...]:
    opened = open_existing(store, "ada")
    kept = opened.snapshot()
    opened.close()
    return kept


def test_memories_of_one_kind_are_listed_and_an_unknown_kind_is_named(invoke: Invoke, store: Path) -> None:
    assert "3 memories of kind note of 'ada'" in invoke("memory", "list", store, "--kind", "note").stdout
    assert json.loads(invoke("memory", "list", store, "--kind", "topic", "--json").stdout) == []
    result = invoke("memory", "list", store, "--kind", "notes")
    assert result.exit_code == 2
    assert "there is no kind of memory 'notes'; did you mean 'note'?" in result.stderr


def test_scores_and_ratings_are_shown_where_some_memory_has_one(invoke: Invoke, store: Path) -> None:
    search = ("memory", "search", store, "cat", "--embedder", "hash")
    for args in (("memory", "list", store), search):
        heading = invoke(*args).stdout.splitlines()[0]
        assert "rating" not in heading
        assert "final_score" not in heading
    opened = open_existing(store, "ada")
    opened.patch("note-1", rating=-2.0)
    opened.patch("note-2", final_score=8.75)
    opened.close()
    for args in (("memory", "list", store), search):
        heading, _, *rows = invoke(*args).stdout.splitlines()
        assert heading.split()[-3:] == ["final_score", "rating", "text"]
        assert any("note-1" in row and " -2 " in row for row in rows)
        assert any("note-2" in row and " 8.75 " in row for row in rows)


def test_a_search_shows_the_best_passage_of_a_long_memory(invoke: Invoke, store: Path) -> None:
    at = datetime(2026, 6, 1, tzinfo=UTC)
    text = "word " * 200 + "The attic holds a zebra."
    opened = open_store("chroma", store, "ada", open_embedder("hash", cache=None))
    opened.put(Record(id="long", kind="note", text=text, origin="tool", by_passage=True,
                      created_at=at, updated_at=at))  # fmt: skip
    opened.close()
    args = ("memory", "search", store, "attic zebra", "--embedder", "hash", "--json")
    found = {each["id"]: each for each in json.loads(invoke(*args).stdout)}
    assert found["long"]["text"] == text
    assert found["long"]["passage"].endswith("a zebra.")
    assert len(found["long"]["passage"]) < len(text)
    assert found["note-0"]["passage"] == ""


@pytest.mark.parametrize(("value", "rating"), [("2", 2), ("-3", -3), ("+1", 1), ("0", 0)])
def test_a_memory_is_rated_without_its_embedder(invoke: Invoke, store: Path, value: str, rating: int) -> None:
    before = snapshot(store)
    result = invoke("memory", "rate", store, "note-1", value)
    assert result.exit_code == 0
    assert result.stdout == f"note-1 is rated {rating:+}: The car is red.\n"
    after = snapshot(store)
    assert [r.rating for r in after] == [None, rating, None]
    assert [r.updated_at for r in after] == [r.updated_at for r in before]
    assert "was" in invoke("memory", "rate", store, "note-1", "3").stdout


def test_a_rated_memory_as_json_with_the_store_of_the_settings(invoke: Invoke, store: Path) -> None:
    Path("memory.yaml").write_text(f"chroma_path: {store}\nembedding_model: hash\n", encoding="utf-8")
    data = json.loads(invoke("memory", "rate", "note-2", "-1", "--json").stdout)
    assert (data["id"], data["rating"]) == ("note-2", -1.0)
    assert json.loads(invoke("memory", "list", "--json").stdout)[0] == data


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("note-1", "4"), "a rating is a whole number from -3 to 3, and '4' is not"),
        (("note-1", "-4"), "and '-4' is not"),
        (("note-1", "1.5"), "and '1.5' is not"),
        (("note-1", "good"), "and 'good' is not"),
        (("note-l", "1"), "has no memory 'note-l' in"),
        (("note-l", "1"), "; did you mean 'note-"),
        (("zzzz", "1"), "; `memeval memory list` shows what there is"),
        (("note-1",), "is not"),
        (("note-1", "1", "2"), "4 words where ID and VALUE are wanted"),
        (("note-1", "1", "--jsn"), "No such option"),
        (("note-1", "1", "--user", "bob"), "no memories of user 'bob'"),
    ],
)
def test_a_rating_that_cannot_be_given_is_one_sentence_and_changes_nothing(
    invoke: Invoke, store: Path, args: tuple[str, ...], says: str
) -> None:
    before = snapshot(store)
    result = invoke("memory", "rate", store, *args)
    assert result.exit_code == 2
    assert says in result.stderr
    assert snapshot(store) == before
