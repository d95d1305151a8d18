"""What every store does, whichever it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from storing import START, Tiny, record

from memeval.embedding.base import Purpose, Vectors
from memeval.errors import InfrastructureError, InputError, TextTooLongError
from memeval.memory import KINDS, MemoryStore, open_store
from memeval.memory.chunking import passages
from memeval.memory.ranking import SimilarityFloor
from memeval.records import EVERYTHING, Hit, Record, Where


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryStore]:
    made = open_store(request.param, tmp_path / "store", "ann", Tiny())
    yield made
    made.close()


def test_a_record_comes_back_as_it_was_put(store: MemoryStore) -> None:
    given = record(
        "a", "Grüße\x00 from \U0001f600, 乌龙 and e\u0301", tags=("x", "y z"), origin="hook", kind="topic",
        fields={"topic": "user.name", "n": 2**70, "x": 0.1, "yes": True, "one": 1, "empty": ""},
        final_score=7.5, rating=-3.0, updated_at=START + timedelta(microseconds=1), by_passage=True,
    )  # fmt: skip
    assert store.put(given) == "a"
    found = store.get("a")
    assert found == given
    assert found is not None
    assert found.fields["yes"] is True
    assert found.fields["one"] is not True
    assert found.critic is None
    assert store.find() == [given]


def test_putting_an_id_again_replaces_the_record_whole(store: MemoryStore) -> None:
    store.put(record("a", "red", fields={"colour": "red"}, tags=("old",), critic=4.0))
    store.put(record("a", "blue", fields={"shade": "light"}))
    assert store.get("a") == record("a", "blue", fields={"shade": "light"})
    assert store.count() == 1
    assert np.isnan(store.candidates("red").keyword).all()


def test_what_a_caller_changes_afterwards_does_not_reach_the_store(store: MemoryStore) -> None:
    fields = {"colour": "red"}
    store.put(record("a", fields=fields))
    fields["colour"] = "blue"
    assert store.find(Where(fields={"colour": "red"}))


@pytest.mark.parametrize("name", ["nobody", "", "a' OR 1=1", "x\ud83d"])
def test_an_unknown_id_is_an_answer_and_no_error(store: MemoryStore, name: str) -> None:
    store.put(record("a"))
    assert store.get(name) is None
    assert store.patch(name, text="new") is False
    assert store.delete(name) is False
    assert store.count() == 1


def test_a_patch_merges_fields_and_embeds_only_a_changed_text(store: MemoryStore) -> None:
    store.put(record("a", "red", fields={"colour": "red", "size": 1}, tags=("t",)))
    assert isinstance(store.embedder, Tiny)
    store.embedder.embedded.clear()
    assert store.patch("a", fields={"size": 2}, tags=(), final_score=9.0)
    assert store.embedder.embedded == []
    assert store.get("a") == record("a", "red", fields={"colour": "red", "size": 2}, final_score=9.0)
    assert store.patch("a", text="green")
    assert store.embedder.embedded == [("green", "document")]
    found = store.candidates("green")
    assert found.cosine.tolist() == [1.0]
    assert found.keyword_rank.tolist() == [1]


def test_a_patch_of_what_a_record_has_not_changes_nothing(store: MemoryStore) -> None:
    store.put(record("a"))
    with pytest.raises(InputError, match="did you mean 'critic'"):
        store.patch("a", rating=1.0, critik=3.0)
    with pytest.raises(InputError, match="no 'id' that could be changed"):
        store.patch("a", id="b")
    assert store.get("a") == record("a")


def test_a_deleted_record_is_gone_from_both_legs(store: MemoryStore) -> None:
    store.put(record("a", "a red door"))
    store.put(record("b", "a blue door"))
    assert store.delete("a")
    assert not store.delete("a")
    assert [r.id for r in store.candidates("red door").records] == ["b"]


def test_records_are_found_oldest_first_then_by_id(store: MemoryStore) -> None:
    for name, minute in (("c", 1), ("a", 2), ("b", 1), ("d", 0)):
        store.put(record(name, minute=minute))
    assert [r.id for r in store.find()] == ["d", "b", "c", "a"]
    assert [r.id for r in store.find(limit=2)] == ["d", "b"]
    assert [r.id for r in store.snapshot()] == ["d", "b", "c", "a"]


def test_where_narrows_every_reading(store: MemoryStore) -> None:
    store.put(record("a", kind="topic", tags=("x", "y"), fields={"n": 1}))
    store.put(record("b", kind="episodic", tags=("y",), origin="hook"))
    store.put(record("c", kind="note", fields={"n": True}))
    for where, ids in (
        (Where(kinds=("topic", "note")), "ac"),
        (Where(tags=("x", "y")), "ab"),
        (Where(tags=("x", "y"), tag_match="all"), "a"),
        (Where(origin="hook"), "b"),
        (Where(origin="tool", kinds=("episodic",)), ""),
        (Where(fields={"n": 1}, exclude=frozenset("c")), "a"),
    ):
        assert "".join(r.id for r in store.find(where)) == ids
        assert store.count(where) == len(ids)
        assert "".join(sorted(r.id for r in store.candidates("a text", where).records)) == ids


def test_records_that_count_are_found_among_many_nearer_ones_that_do_not(store: MemoryStore) -> None:
    store.restore([record(f"n{n}", f"the red door {n}") for n in range(60)])
    store.put(record("far", "elephants", kind="episodic"))
    found = store.candidates("the red door", Where(kinds=("episodic",)), 5)
    assert [r.id for r in found.records] == ["far"]
    assert found.keyword_rank.tolist() == [0]
    store.put(record("word", "a door", kind="archive"))
    found = store.candidates("the red door", Where(kinds=("archive",)), 1)
    assert found.keyword_rank.tolist() == [1]


def test_candidates_hold_both_legs_and_their_ranks(store: MemoryStore) -> None:
    for name, text in (("a", "red doors"), ("b", "blue windows"), ("c", "a door of iron"), ("d", "reeds")):
        store.put(record(name, text))
    found = store.candidates("red doors", k=2)
    by_id = {r.id: at for at, r in enumerate(found.records)}
    assert found.cosine[by_id["a"]] == 1.0
    assert found.cosine_rank[by_id["a"]] == 1
    assert found.keyword_rank[by_id["a"]] == 1
    assert found.keyword_rank[by_id["c"]] == 2  # porter: door and doors are one word
    assert found.keyword[by_id["a"]] > found.keyword[by_id["c"]] > 0
    assert sorted(found.cosine_rank.tolist()) in ([0, 1, 2], [1, 2])
    without = store.candidates("red doors", k=2, words=False)
    assert len(without) == 2
    assert np.isnan(without.keyword).all()
    assert not without.keyword_rank.any()
    assert store.embedder.embedded[-1] == ("red doors", "query")  # type: ignore[attr-defined]


def test_the_keyword_leg_may_look_for_other_words_and_cosines_stay_those_of_the_query(
    store: MemoryStore,
) -> None:
    for name, text in (("a", "red doors"), ("b", "blue windows"), ("c", "a gate of iron")):
        store.put(record(name, text))
    exact = store.candidates("red doors", k=3, words=False)
    cosine = {r.id: value for r, value in zip(exact.records, exact.cosine.tolist(), strict=True)}
    found = store.candidates("red doors", k=1, words="iron")
    assert [r.id for r in found.records] == ["a", "c"]
    assert (found.cosine_rank.tolist(), found.keyword_rank.tolist()) == ([1, 0], [0, 1])
    assert found.cosine.tolist() == [cosine["a"], cosine["c"]]
    assert np.isnan(found.keyword).tolist() == [True, False]
    assert not store.candidates("red doors", k=3, words="").keyword_rank.any()
    assert store.embedder.embedded[-1] == ("red doors", "query")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "query",
    ["what's my dog?", "C++", "foo-bar", '"', "NEAR(", "AND", "a\x00b", "topic:travel", "NOT dog", "50%", "_",
     "*", "", "   ", "bob@example.com", "BA-117", "x' OR 1=1 --", "\ud83d", "乌龙", "﷽" * 20],
)  # fmt: skip
def test_a_query_is_text_and_never_an_operator(store: MemoryStore, query: str) -> None:
    store.put(record("a", "NOT a dog AND no NEAR miss; topic travel"))
    store.put(record("b", "foo bar"))
    assert len(store.candidates(query, k=5)) == 2


def test_ligatures_and_full_width_letters_are_found_by_their_plain_forms(store: MemoryStore) -> None:
    store.put(record("a", "the ﬁle of Ａｎｎ"))
    assert store.candidates("file").keyword_rank.tolist() == [1]
    assert store.candidates("ann").keyword_rank.tolist() == [1]


def test_an_empty_store_finds_nothing_and_embeds_nothing(store: MemoryStore) -> None:
    assert len(store.candidates("anything")) == 0
    store.put(record("a"))
    assert len(store.candidates("anything", k=0)) == 0
    store.delete("a")
    assert len(store.candidates("anything")) == 0
    assert store.embedder.embedded == [("a text", "document")]  # type: ignore[attr-defined]


def test_equal_texts_are_separate_records_and_tie_by_id(store: MemoryStore) -> None:
    for name in ("c", "a", "b"):
        store.put(record(name, "the same"))
    hits = SimilarityFloor(0.5).rank(store.candidates("the same", k=2), 2)
    assert [(hit.record.id, hit.score) for hit in hits] == [("a", 1.0), ("b", 1.0)]


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (record("a", "half \ud83d"), "half a surrogate pair"),
        (record("a", fields={"x": "\ud83d"}), "half a surrogate pair"),
        (record("a", fields={"x": None}), "field 'x' of record 'a' is NoneType"),
        (record("a", fields={"x": ["list"]}), "field 'x' of record 'a' is list"),
        (record("", "no id"), "needs an id"),
        (record("a", created_at=START.replace(tzinfo=None)), "without a time zone"),
    ],
)
def test_what_could_not_come_back_is_refused(store: MemoryStore, bad: Record, says: str) -> None:
    with pytest.raises(InputError, match=says):
        store.put(bad)
    assert store.count() == 0


def test_a_text_too_long_fails_the_call_that_wrote_it_and_changes_nothing(store: MemoryStore) -> None:
    store.put(record("a", "short"))
    for write in (
        lambda: store.put(record("a", "long " * 300)),
        lambda: store.patch("a", text="long " * 300, critic=1.0),
        lambda: store.restore([record("b"), record("c", "long " * 300)]),
    ):
        with pytest.raises(TextTooLongError):
            write()
    assert store.snapshot() == (record("a", "short"),)


def test_restore_makes_the_store_hold_just_the_snapshot(store: MemoryStore) -> None:
    for name in "abc":
        store.put(record(name, f"text {name}", minute=ord(name)))
    before = store.snapshot()
    store.delete("a")
    store.put(replace(before[1], text="other"))
    store.patch("c", critic=2.0)
    store.put(record("d", "new"))
    store.restore(before)
    assert store.snapshot() == before
    found = store.candidates("text b other new")
    assert sorted(r.id for r in found.records) == ["a", "b", "c"]
    assert found.cosine[found.keyword_rank == 1] == found.cosine.max()
    store.restore(())
    assert store.find(EVERYTHING) == []
    assert len(store.candidates("text")) == 0


def test_an_unknown_kind_of_store_is_named_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no store 'croma'; did you mean 'chroma'\?"):
        open_store("croma", tmp_path, "ann", Tiny())


# texts kept by passage

SIGNS = "".join(f"{n:04} " for n in range(120))  # 600 characters
LONG = f"{SIGNS[:300]}an elephant {SIGNS[:500]}of green marble {SIGNS[:500]}in the cellar {SIGNS[:200]}"


def tell(store: MemoryStore, query: str, where: Where = EVERYTHING, k: int = 20) -> dict[str, Hit]:
    """What a query turns up, nearest first."""
    hits = SimilarityFloor(-1.0).rank(store.candidates(query, where, k), 99)
    return {hit.record.id: hit for hit in hits}


def passage_with(word: str) -> str:
    [found] = [passage for passage in passages(LONG) if word in passage]
    return found


@pytest.mark.parametrize("word", ["elephant", "marble", "cellar"])
def test_a_long_text_has_one_place_and_its_best_passages_cosine(store: MemoryStore, word: str) -> None:
    long = record("long", LONG, by_passage=True)
    store.put(long)
    store.put(record("short", f"a {word}", by_passage=True))
    store.put(record("plain", "a cellar"))
    assert store.count() == 3
    assert store.get("long") == long
    found = tell(store, passage_with(word))
    assert sorted(found) == ["long", "plain", "short"]
    assert next(iter(found)) == "long"
    assert found["long"].cosine == 1.0
    assert found["long"].passage == passage_with(word)
    assert found["short"].passage == found["plain"].passage == ""
    [query] = store.embedder.embed([word], "query")
    cosine = store.embedder.embed(passages(LONG)) @ query
    assert tell(store, word)["long"].cosine == pytest.approx(float(cosine.max()), abs=2e-6)
    assert tell(store, word)["long"].passage == passages(LONG)[int(cosine.argmax())]


def test_many_near_passages_of_one_text_leave_the_other_places_to_others(store: MemoryStore) -> None:
    crowd = "the red door " * 400
    assert len(passages(crowd)) > 4 * 2  # more than are asked for at first
    store.put(record("crowd", crowd, by_passage=True))
    for name in "cab":
        store.put(record(name, f"elephants {SIGNS} and a red door behind {SIGNS}", by_passage=True))
    found = store.candidates("the red door", k=2, words=False)
    assert [r.id for r in found.records] == ["crowd", "a"]
    assert found.cosine_rank.tolist() == [1, 2]
    assert list(tell(store, "the red door", Where(exclude=frozenset({"crowd", "a"})), k=1)) == ["b"]


def test_a_later_passage_is_found_among_many_nearer_records_that_do_not_count(store: MemoryStore) -> None:
    store.restore([record(f"n{n}", passage_with("cellar")) for n in range(60)])
    store.put(record("long", LONG, kind="observation", by_passage=True))
    found = tell(store, passage_with("cellar"), Where(kinds=("observation",)), k=3)
    assert list(found) == ["long"]
    assert found["long"].passage == passage_with("cellar")
    assert found["long"].keyword is not None


def test_a_text_found_by_word_alone_has_its_best_passages_cosine(store: MemoryStore) -> None:
    store.restore([record(f"n{n}", "red doors") for n in range(9)])
    store.put(record("long", f"{LONG} zebra", by_passage=True))
    found = store.candidates("red doors zebra", k=1)
    at = [r.id for r in found.records].index("long")
    assert found.cosine_rank[at] == 0
    assert found.hit(at, 0.0).passage in passages(f"{LONG} zebra")
    assert found.cosine[at] == tell(store, "red doors zebra")["long"].cosine


def test_a_change_of_text_embeds_all_passages_and_any_other_none(store: MemoryStore) -> None:
    store.put(record("a", LONG, by_passage=True))
    assert isinstance(store.embedder, Tiny)
    store.embedder.embedded.clear()
    assert store.patch("a", rating=2.0, fields={"n": 1})
    assert store.embedder.embedded == []
    changed = LONG.replace("marble", "glass")
    assert store.patch("a", text=changed)
    assert [text for text, _ in store.embedder.embedded] == passages(changed)
    assert store.get("a") == record("a", changed, by_passage=True, rating=2.0, fields={"n": 1})
    assert tell(store, passage_with("marble"))["a"].score < 1
    assert tell(store, passages(changed)[-1])["a"].score == 1
    assert store.patch("a", text="short")
    assert tell(store, "short")["a"].score == 1
    assert tell(store, passages(changed)[-1])["a"].score < 0.5


def test_a_text_may_come_to_be_kept_by_passage_and_whole_again(store: MemoryStore) -> None:
    text = f"an elephant {SIGNS}in the cellar {SIGNS[:300]}"
    assert len(passages(text)) == 2
    store.put(record("a", text))
    for by_passage, query, passage in ((True, passages(text)[1], passages(text)[1]), (False, text, "")):
        assert tell(store, query)["a"].score < 1
        assert store.patch("a", by_passage=by_passage)
        assert tell(store, query)["a"].score == 1
        assert tell(store, query)["a"].passage == passage


def test_a_deleted_long_text_is_gone_with_all_its_passages(store: MemoryStore) -> None:
    store.put(record("a", LONG, by_passage=True))
    assert store.delete("a")
    assert tell(store, "cellar") == {}
    store.put(record("b", "something"))
    assert list(tell(store, "cellar")) == ["b"]
    store.put(record("a", "short"))
    assert tell(store, passage_with("cellar"))["a"].score < 0.5


def test_restore_brings_long_texts_back(store: MemoryStore) -> None:
    store.put(record("a", LONG, by_passage=True))
    store.put(record("b", f"{LONG} zebra", by_passage=True))
    before = store.snapshot()
    store.patch("a", text="other")
    store.delete("b")
    store.put(record("c", f"{SIGNS} {LONG}", by_passage=True))
    store.restore(before)
    assert store.snapshot() == before
    found = tell(store, passage_with("cellar"))
    assert sorted(found) == ["a", "b"]
    assert found["a"].score == 1
    store.restore(())
    assert tell(store, "cellar") == {}


def test_a_text_too_long_for_the_embedder_is_kept_by_passage_only(store: MemoryStore) -> None:
    assert len(LONG) > 1000
    with pytest.raises(TextTooLongError):
        store.put(record("a", LONG))
    store.put(record("a", LONG, by_passage=True))
    with pytest.raises(TextTooLongError):
        store.patch("a", by_passage=False)
    assert store.snapshot() == (record("a", LONG, by_passage=True),)


@pytest.mark.parametrize("by_passage", [True, False])
def test_where_embedding_fails_the_old_record_stays_whole(
    store: MemoryStore, by_passage: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = record("a", f"an elephant {SIGNS}in the cellar", by_passage=by_passage, tags=("t",))
    store.put(old)
    before = tell(store, "elephant in the cellar")

    def fail(texts: Sequence[str], purpose: Purpose = "document") -> Vectors:
        raise InfrastructureError("the server is down")

    for write in (
        lambda: store.put(record("a", LONG, by_passage=True)),
        lambda: store.patch("a", text=LONG, by_passage=True, tags=()),
        lambda: store.restore([record("b", LONG, by_passage=True)]),
    ):
        with monkeypatch.context() as broken:
            broken.setattr(store.embedder, "embed", fail)
            with pytest.raises(InfrastructureError, match="is down"):
                write()
        assert store.snapshot() == (old,)
        assert tell(store, "elephant in the cellar") == before
