"""Rankers that look beyond nearness, on figures worked out by hand."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest
from storing import START, Tiny, record

from memeval.errors import InputError
from memeval.memory.base import Candidates
from memeval.memory.inmemory import InMemoryStore
from memeval.memory.ranking import Ranker, SimilarityFloor
from memeval.memory.scored import MMR, Boosted, LinearRecency, QualityWeighted, quality_score
from memeval.records import Record


def near(*rows: tuple[float, Record]) -> Candidates:
    """Candidates found by meaning, with these cosines."""
    cosine = np.array([cosine for cosine, _ in rows], dtype=float)
    ranks = np.arange(1, len(rows) + 1)
    return Candidates([r for _, r in rows], cosine, np.full(len(rows), np.nan), ranks, np.zeros_like(ranks))


def scores(ranker: Ranker, candidates: Candidates, k: int = 9) -> dict[str, float]:
    return {hit.record.id: hit.score for hit in ranker.rank(candidates, k)}


def ids(ranker: Ranker, candidates: Candidates, k: int = 9) -> str:
    return "".join(scores(ranker, candidates, k))


# QualityWeighted


@pytest.mark.parametrize(
    ("final_score", "score"),
    [(None, 0.71), (6.9, 0.6635), (7.0, 0.77), (5.8, 0.647), (9.1, 0.833), (0.0, 0.56), (10.0, 0.86)],
)
def test_quality_counts_thirty_percent_and_half_of_that_below_seven(
    final_score: float | None, score: float
) -> None:
    assert quality_score(0.8, final_score, None) == pytest.approx(score, abs=1e-12)


def test_a_run_scored_six_contributes_thirty_and_not_sixty_hundredths() -> None:
    assert quality_score(0.0, 6.0, None) == pytest.approx(0.3 * 0.30)
    assert quality_score(0.0, 6.0, None, floor=6.0) == pytest.approx(0.3 * 0.60)


@pytest.mark.parametrize(
    ("rating", "factor"), [(1, 1.15), (-1, 0.85), (2, 1.3), (3, 1.45), (-3, 0.55), (0, 1.0), (-9, 0.2)]
)
def test_a_rating_multiplies_the_whole_score(rating: float, factor: float) -> None:
    assert quality_score(0.8, 7.0, rating) == pytest.approx(0.77 * factor)


def test_a_rating_can_lift_the_score_beyond_one() -> None:
    assert quality_score(0.8, 9.1, 2) == pytest.approx(1.0829)


def test_quality_jumps_at_seven_and_a_run_without_a_score_comes_before_six_point_nine() -> None:
    runs = [("a", 6.9), ("b", 7.0), ("c", None)]
    candidates = near(*((0.8, record(name, final_score=score)) for name, score in runs))
    assert ids(QualityWeighted(), candidates) == "bca"


def test_low_runs_come_last_and_are_not_left_out() -> None:
    candidates = near((0.9, record("low", final_score=0.5)), (0.7, record("high", final_score=9.0)))
    assert scores(QualityWeighted(), candidates) == pytest.approx(
        {"high": 0.7 * 0.7 + 0.27, "low": 0.63 + 0.0075}
    )
    assert list(scores(QualityWeighted(), candidates)) == ["high", "low"]
    assert list(scores(QualityWeighted(similarity_share=1.0), candidates)) == ["low", "high"]


def test_similarity_is_the_cosine_or_its_place_between_zero_and_one() -> None:
    candidates = near((-0.5, record("a", final_score=8.0, rating=1.0)))
    assert scores(QualityWeighted(), candidates)["a"] == pytest.approx((-0.35 + 0.24) * 1.15)
    assert scores(QualityWeighted(scale="unit"), candidates)["a"] == pytest.approx((0.175 + 0.24) * 1.15)


def test_a_record_found_by_word_alone_is_scored_by_its_true_cosine() -> None:
    store = InMemoryStore("ann", Tiny())
    store.restore([record(f"n{n}", "red doors") for n in range(9)])
    store.put(record("worded", "a zebra among quite other words, none of which was asked for"))
    found = store.candidates("red doors zebra", k=1)
    at = [r.id for r in found.records].index("worded")
    assert found.cosine_rank[at] == 0
    assert scores(QualityWeighted(), found)["worded"] == quality_score(float(found.cosine[at]), None, None)
    assert 0 < found.cosine[at] < 1


# LinearRecency


def hours(name: str, age: float) -> Record:
    return record(name, updated_at=START - timedelta(hours=age))


def test_nearness_and_age_are_added_by_their_shares() -> None:
    candidates = near((0.5, hours("a", 0)), (0.95, hours("b", 100)), (0.6, hours("c", 24)))
    assert scores(LinearRecency(START), candidates) == pytest.approx(
        {"a": 0.42 + 0.3, "b": 0.7 + 0.3 * math.exp(-1), "c": 0.49 + 0.3 * math.exp(-0.24)}
    )
    assert ids(LinearRecency(START), candidates) == "bca"
    assert ids(LinearRecency(START, relevance=0.1, recency=0.9), candidates) == "acb"


def test_the_recency_floor_applies_to_the_combined_score() -> None:
    candidates = near((0.25, hours("old", 1000)), (0.0, hours("fresh", 0)), (0.4, hours("nearer", 1000)))
    assert list(scores(LinearRecency(START), candidates)) == ["fresh", "nearer"]
    assert ids(LinearRecency(START, boost=0.0, min_score=0.301), candidates) == ""
    assert list(scores(LinearRecency(START, min_score=0.0), candidates)) == ["fresh", "nearer", "old"]


def test_what_lies_ahead_of_now_has_no_age() -> None:
    assert scores(LinearRecency(START), near((0.9, hours("a", -50))))["a"] == pytest.approx(1.0)


def test_the_age_is_taken_from_the_last_change_and_the_given_time() -> None:
    changed = record("a", created_at=START - timedelta(days=365), updated_at=START)
    later = START + timedelta(hours=100)
    assert scores(LinearRecency(later), near((0.9, changed)))["a"] == pytest.approx(0.7 + 0.3 * math.exp(-1))


# MMR


def test_a_second_hit_that_says_the_same_gives_way_to_another() -> None:
    candidates = near(
        (0.9, record("a", "The cat is called Mimi.")),
        (0.89, record("b", "The cat is called Mimi now.")),
        (0.7, record("c", "Lunch is at noon.")),
    )
    # a, b share 4 of 5 pairs: 0.7 * 0.89 - 0.3 * 0.8 = 0.383 is less than 0.7 * 0.7 = 0.49.
    assert scores(MMR(SimilarityFloor()), candidates) == {"a": 0.9, "c": 0.7, "b": 0.89}
    assert ids(MMR(SimilarityFloor()), candidates) == "acb"
    assert ids(MMR(SimilarityFloor(), balance=1.0), candidates) == "abc"


def test_only_the_inner_rankers_best_few_are_looked_at() -> None:
    same = [(0.9 - n / 100, record(f"{n}", "one and the same text")) for n in range(4)]
    candidates = near(*same, (0.5, record("x", "something else")))
    assert ids(MMR(SimilarityFloor()), candidates, 2) == "0x"
    assert ids(MMR(SimilarityFloor(), pool=2), candidates, 2) == "01"
    assert ids(MMR(SimilarityFloor(0.6)), candidates, 2) == "01"


def test_likeness_is_to_the_most_alike_of_the_hits_before_and_ties_go_by_id() -> None:
    candidates = near(
        (0.8, record("z", "red door")), (0.8, record("y", "blue wall")), (0.8, record("x", "Red, door!")),
        (0.8, record("w", "one")), (0.8, record("v", "one")),
    )  # fmt: skip
    assert ids(MMR(SimilarityFloor()), candidates) == "vxywz"


# Boosted


def test_an_entity_the_query_names_adds_a_tenth_once_and_a_critic_a_twentieth_a_point() -> None:
    candidates = near(
        (0.80, record("both", fields={"entities": "Rust, Elixir"})),
        (0.80, record("none", fields={"entities": "Erlang, , "})),
        (0.80, record("five", critic=5.0)),
        (0.80, record("one", critic=1.0)),
        (0.80, record("three", critic=3.0)),
    )
    ranker = Boosted(SimilarityFloor(), query="is RUST older than elixir?")
    assert scores(ranker, candidates) == pytest.approx(
        {"both": 0.90, "five": 0.90, "none": 0.80, "three": 0.80, "one": 0.70}
    )
    assert list(scores(ranker, candidates)) == ["both", "five", "none", "three", "one"]


def test_a_better_answer_comes_before_a_nearer_one() -> None:
    candidates = near((0.60, record("bad", critic=1.0)), (0.55, record("good", critic=5.0)))
    assert list(scores(SimilarityFloor(), candidates)) == ["bad", "good"]
    assert list(scores(Boosted(SimilarityFloor()), candidates)) == ["good", "bad"]
    assert list(scores(Boosted(SimilarityFloor()), candidates, 1)) == ["good"]


def test_a_boost_lets_nothing_in_that_was_too_far() -> None:
    candidates = near((0.74, record("a", critic=5.0, fields={"entities": "rust"})), (0.75, record("b")))
    assert ids(Boosted(SimilarityFloor(0.75), query="rust"), candidates) == "b"


# all


@pytest.mark.parametrize(
    "ranker",
    [QualityWeighted(), LinearRecency(START), MMR(SimilarityFloor()), Boosted(SimilarityFloor())],
)
def test_equal_scores_go_by_record_id_and_no_candidates_give_no_hits(ranker: Ranker) -> None:
    assert ids(ranker, near(*((0.5, record(name, name)) for name in "zma"))) == "amz"
    assert ranker.rank(near((0.5, record("a"))), 0) == []
    assert ranker.rank(near(), 5) == []


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: QualityWeighted(similarity_share=1.1), r"similarity share is 1\.1"),
        (lambda: QualityWeighted(scale="l2"), "'l2' is none of cosine, unit"),  # type: ignore[arg-type]
        (lambda: LinearRecency(datetime(2026, 5, 30)), "without a time zone"),
        (lambda: MMR(SimilarityFloor(), balance=-0.1), r"balance is -0\.1"),
        (lambda: MMR(SimilarityFloor(), pool=0), "pool is 0"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(make: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        make()
