"""Rankers, on candidates written by hand."""

from __future__ import annotations

import numpy as np
import pytest
from storing import record

from memeval.errors import InputError
from memeval.memory.base import Candidates
from memeval.memory.ranking import SimilarityFloor, WeightedFusion

NAN = float("nan")


def given(*rows: tuple[str, float, float, int, int]) -> Candidates:
    names, cosine, keyword, near, worded = zip(*rows, strict=True)
    records = [record(name) for name in names]
    return Candidates(records, np.array(cosine), np.array(keyword), np.array(near), np.array(worded))


THREE = given(("b", 0.9, NAN, 1, 0), ("a", 0.5, 4.0, 2, 1), ("c", 0.1, 2.0, 0, 2))


def ids(hits: object) -> str:
    return "".join(hit.record.id for hit in hits)  # type: ignore[attr-defined]


def test_the_floor_lets_through_what_reaches_it_best_first() -> None:
    hits = SimilarityFloor(0.5).rank(THREE, 5)
    assert [(hit.record.id, hit.score, hit.cosine, hit.keyword) for hit in hits] == [
        ("b", 0.9, 0.9, None), ("a", 0.5, 0.5, 4.0)
    ]  # fmt: skip
    assert ids(SimilarityFloor(-1).rank(THREE, 2)) == "ba"
    assert SimilarityFloor(0.95).rank(THREE, 5) == []
    assert SimilarityFloor(0).rank(THREE, 0) == []


def test_ties_go_by_record_id() -> None:
    tied = given(("z", 0.5, 1.0, 1, 1), ("m", 0.5, 1.0, 1, 1), ("a", 0.5, 1.0, 1, 1))
    assert ids(SimilarityFloor().rank(tied, 3)) == "amz"
    for method in ("rrf", "convex", "minmax"):
        assert ids(WeightedFusion(0.5, method).rank(tied, 3)) == "amz"  # type: ignore[arg-type]


def test_ties_go_to_what_was_written_last_where_that_is_asked() -> None:
    records = [record("a", minute=1), record("b", minute=3), record("c", minute=3), record("d", minute=9)]
    near, ranks = np.array([0.5, 0.5, 0.5, 0.4]), np.array([1, 1, 1, 2])
    tied = Candidates(records, near, np.full(4, NAN), ranks, np.zeros(4, dtype=int))
    assert ids(WeightedFusion(0.3, "minmax", newest_first=True).rank(tied, 4)) == "bcad"
    assert ids(WeightedFusion(0.3, "minmax").rank(tied, 4)) == "abcd"


def test_reciprocal_ranks_are_summed_by_weight() -> None:
    hits = WeightedFusion(0.3).rank(THREE, 3)
    assert {h.record.id: h.score for h in hits} == pytest.approx(
        {"a": 0.7 / 62 + 0.3 / 61, "b": 0.7 / 61, "c": 0.3 / 62}
    )
    assert ids(hits) == "abc"


def test_convex_fusion_weighs_cosine_and_share_of_the_best_score() -> None:
    hits = WeightedFusion(0.4, "convex").rank(THREE, 3)
    assert {h.record.id: h.score for h in hits} == pytest.approx(
        {"b": 0.6 * 0.95, "a": 0.6 * 0.75 + 0.4, "c": 0.6 * 0.55 + 0.4 * 0.5}
    )


def test_minmax_fusion_stretches_each_leg() -> None:
    hits = WeightedFusion(0.3, "minmax").rank(THREE, 3)
    assert {h.record.id: h.score for h in hits} == pytest.approx({"b": 0.7, "a": 0.7 * 0.5 + 0.3, "c": 0.0})
    [only] = WeightedFusion(0.3, "minmax").rank(given(("a", 0.2, -1e-6, 1, 1)), 3)
    assert only.score == pytest.approx(1.0)


@pytest.mark.parametrize("method", ["rrf", "convex", "minmax"])
def test_the_weight_moves_from_meaning_to_words(method: str) -> None:
    assert ids(WeightedFusion(0.0, method).rank(THREE, 1)) == "b"  # type: ignore[arg-type]
    assert ids(WeightedFusion(1.0, method).rank(THREE, 1)) == "a"  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["rrf", "convex", "minmax"])
def test_a_floor_applies_to_cosine_before_fusion(method: str) -> None:
    hits = WeightedFusion(0.5, method, min_score=0.3).rank(THREE, 3)  # type: ignore[arg-type]
    assert sorted(ids(hits)) == ["a", "b"]
    without = given(("b", 0.9, NAN, 1, 0), ("a", 0.5, 4.0, 2, 1))
    assert hits == WeightedFusion(0.5, method).rank(without, 3)  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["rrf", "convex", "minmax"])
def test_without_any_word_or_candidate_nothing_breaks(method: str) -> None:
    ranker = WeightedFusion(0.5, method)  # type: ignore[arg-type]
    assert ids(ranker.rank(given(("a", 0.1, NAN, 2, 0), ("b", 0.2, NAN, 1, 0)), 2)) == "ba"
    empty = Candidates([], np.array([]), np.array([]), np.array([], dtype=int), np.array([], dtype=int))
    assert ranker.rank(empty, 5) == []
    assert SimilarityFloor().rank(empty, 5) == []


def test_a_weight_or_method_that_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match=r"keyword weight is 1\.5"):
        WeightedFusion(1.5)
    with pytest.raises(InputError, match="'rff' is none of rrf, convex, minmax"):
        WeightedFusion(0.5, "rff")  # type: ignore[arg-type]
