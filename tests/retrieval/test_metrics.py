import numpy as np
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from memeval.retrieval import metrics


def both(
    scores: np.ndarray, grades: np.ndarray, k: int
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Our numbers and pytrec-eval's, for the questions that have a relevant document."""
    documents = [f"d{i:03d}" for i in range(scores.shape[1])]
    ranking = metrics.rank(scores, documents)
    ranked = metrics.ranked_grades(grades.astype(float), ranking)
    kept = np.flatnonzero((grades > 0).any(axis=1))
    ours = {name: list(of(ranked, k)[kept]) for name, of in metrics.METRICS.items()}
    # trec_eval breaks ties by id, descending: our rule said to it by scores that are the places themselves.
    run = {
        f"q{q}": {documents[d]: float(len(documents) - at) for at, d in enumerate(ranking[q])} for q in kept
    }
    qrel = {f"q{q}": {documents[d]: int(g) for d, g in enumerate(grades[q]) if g} for q in kept}
    wanted = {f"recall.{k}", f"success.{k}", f"ndcg_cut.{k}", "recip_rank"}
    judged = pytrec_eval.RelevanceEvaluator(qrel, wanted).evaluate(run)
    rows = [judged[f"q{q}"] for q in kept]
    theirs = {
        "recall": [row[f"recall_{k}"] for row in rows],
        "hit": [row[f"success_{k}"] for row in rows],
        "ndcg": [row[f"ndcg_cut_{k}"] for row in rows],
        # recip_rank knows no cut; at a cut it is 0 beyond.
        "mrr": [row["recip_rank"] if row["recip_rank"] >= 1 / k else 0.0 for row in rows],
    }
    return ours, theirs


@pytest.mark.parametrize("k", [1, 3, 5, 10, 100])
@pytest.mark.parametrize("levels", [3, 50, 10**9])
def test_all_metrics_agree_with_pytrec_eval_with_and_without_ties(k: int, levels: int) -> None:
    generator = np.random.default_rng(k + levels)
    scores = generator.integers(0, levels, (40, 30)) / levels
    grades = generator.integers(0, 3, (40, 30)) * (generator.random((40, 30)) < 0.1)
    ours, theirs = both(scores, grades, k)
    assert ours.keys() == theirs.keys()
    for name in ours:
        np.testing.assert_allclose(ours[name], theirs[name], atol=1e-6, err_msg=name)


def test_ties_go_by_document_id_ascending_wherever_the_documents_stand() -> None:
    ranking = metrics.rank([[0.5, 0.9, 0.5, 0.5]], ["c", "z", "a", "b"])
    assert ranking.tolist() == [[1, 2, 3, 0]]


def test_numbers_worked_out_by_hand() -> None:
    ranked = np.array([[0.0, 1, 0, 1], [1, 0, 0, 0], [0, 0, 0, 2]])
    assert metrics.recall(ranked, 2).tolist() == [0.5, 1, 0]
    assert metrics.hit(ranked, 2).tolist() == [1, 1, 0]
    assert metrics.mrr(ranked, 3).tolist() == [0.5, 1, 0]
    first = (1 / np.log2(3) + 1 / np.log2(5)) / (1 + 1 / np.log2(3))
    np.testing.assert_allclose(metrics.ndcg(ranked, 4), [first, 1, 1 / np.log2(5)])


def test_a_question_without_an_answer_has_no_number_instead_of_a_zero() -> None:
    ranked = np.array([[0.0, 0], [1, 0]])
    for of in metrics.METRICS.values():
        assert np.isnan(of(ranked, 2)[0])
        assert of(ranked, 2)[1] == 1


@given(st.lists(st.lists(st.sampled_from([0.0, 1, 2]), min_size=6, max_size=6), min_size=1, max_size=5))
def test_every_metric_lies_between_0_and_1_and_only_ndcg_may_fall_with_k(rows: list[list[float]]) -> None:
    ranked = np.array(rows)
    answerable = (ranked > 0).any(axis=1)
    for name, of in metrics.METRICS.items():
        values = np.array([of(ranked, k)[answerable] for k in range(1, 8)])
        assert ((values >= 0) & (values <= 1 + 1e-12)).all()
        assert name == "ndcg" or (np.diff(values, axis=0) >= 0).all()


def test_false_recall_counts_unanswerable_questions_whose_best_score_reaches_the_floor() -> None:
    assert metrics.false_recall([0.2, 0.3, 0.5, 0.1], 0.3) == 0.5
    assert np.isnan(metrics.false_recall([], 0.3))


def test_auroc_is_the_chance_of_the_right_order_with_ties_counted_half() -> None:
    assert metrics.auroc([3, 4], [1, 2]) == 1
    assert metrics.auroc([1, 2], [3, 4]) == 0
    assert metrics.auroc([1, 1], [1, 1]) == 0.5
    assert metrics.auroc([1, 3], [2]) == 0.5
    assert np.isnan(metrics.auroc([], [1]))


def test_the_bootstrap_is_the_same_for_the_same_seed_and_holds_the_mean() -> None:
    values = np.random.default_rng(1).random(50)
    first, again, other = (metrics.bootstrap(values, 2000, seed) for seed in (1, 1, 2))
    assert first == again != other
    assert first[0] == pytest.approx(values.mean())
    assert first[1] < first[0] < first[2]
    assert 0.12 < first[2] - first[1] < 0.2  # 2 x 1.96 x 0.289 / sqrt(50) = 0.16


def test_questions_without_a_number_do_not_count() -> None:
    values = [0.0, 1, 1, 0, 1]
    assert metrics.bootstrap([*values, np.nan], 500) == metrics.bootstrap(values, 500)
    assert np.isnan(metrics.bootstrap([np.nan])).all()


@pytest.mark.parametrize("value", [1.0, 0.0, 0.5])
def test_equal_values_get_an_interval_that_narrows_with_their_number(value: float) -> None:
    few, many = (metrics.bootstrap([value] * n, 500) for n in (5, 50))
    assert few[0] == many[0] == value
    assert 0 <= few[1] <= value <= few[2] <= 1
    assert few[2] - few[1] > many[2] - many[1] > 0.05


def test_five_hits_of_five_get_wilsons_interval() -> None:
    assert metrics.bootstrap([1.0] * 5) == pytest.approx((1, 0.5655, 1), abs=1e-4)


def test_equal_differences_get_an_interval_around_them() -> None:
    mean, low, high = metrics.bootstrap([0.0] * 30, low=-1, high=1)
    assert mean == 0
    assert -0.4 < low < 0 < high < 0.4


def test_one_outlier_among_equals_still_gives_an_interval() -> None:
    mean, low, high = metrics.bootstrap([1.0] * 9 + [0.0], 2000)
    assert low < mean == 0.9
    assert np.isfinite([low, high]).all()
