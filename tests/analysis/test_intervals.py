import math

import numpy as np
import pandas as pd
import pytest

from memeval.analysis.intervals import means, pass_hat_k, rate, rates, wilson
from memeval.errors import InputError


def slow_interval(pairs: list[tuple[int, int]], level: float = 0.95) -> tuple[float, float]:
    """The same posterior another way: plain loops, log-gamma, a finer grid of the mean, coarse in the ICC."""

    def log_beta(a: float, b: float) -> float:
        return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)

    means_, iccs = [(i + 0.5) / 500 for i in range(500)], [(i + 0.5) / 40 for i in range(40)]
    weights = []
    for mean in means_:
        total = 0.0
        for icc in iccs:
            a, b = mean * (1 / icc - 1), (1 - mean) * (1 / icc - 1)
            total += math.exp(sum(log_beta(s + a, t - s + b) - log_beta(a, b) for s, t in pairs))
        weights.append(total)
    below, ends = 0.0, []
    for mean, weight in zip(means_, weights, strict=True):
        for edge in ((1 - level) / 2, (1 + level) / 2):
            if below < edge <= below + weight / sum(weights):
                ends.append(mean)
        below += weight / sum(weights)
    return ends[0], ends[1]


def test_ten_families_that_always_pass_still_have_an_interval() -> None:
    found = rate([5] * 10, [5] * 10)
    assert (found.rate, found.units, found.trials) == (1.0, 10, 50)
    assert found.lo == pytest.approx(0.795, abs=0.005)
    assert found.hi == pytest.approx(0.999, abs=0.002)


def test_successes_and_failures_mirror_each_other() -> None:
    some, others = rate([5, 4, 3, 0, 2, 5], [5] * 6), rate([0, 1, 2, 5, 3, 0], [5] * 6)
    assert some.rate == pytest.approx(1 - others.rate)
    assert some.lo == pytest.approx(1 - others.hi, abs=1e-9)
    assert some.icc == pytest.approx(others.icc)


@pytest.mark.parametrize(
    "pairs", [[(3, 5), (5, 5), (1, 5), (4, 5), (2, 5), (5, 5)], [(0, 2), (4, 6), (1, 1), (2, 3), (3, 3)]]
)
def test_the_grid_agrees_with_an_independent_slow_form(pairs: list[tuple[int, int]]) -> None:
    found = rate(*zip(*pairs, strict=True))
    assert (found.lo, found.hi) == pytest.approx(slow_interval(pairs), abs=0.006)


def test_the_point_is_the_mean_of_the_families_not_of_the_trials() -> None:
    assert rate([10, 0, 0, 0, 0], [10, 1, 1, 1, 1]).rate == pytest.approx(0.2)


def test_trials_that_are_alike_within_a_family_widen_the_interval() -> None:
    alike, mixed = rate([6, 0, 6, 0, 6, 0], [6] * 6), rate([3] * 6, [6] * 6)
    assert alike.icc > 0.5 > mixed.icc
    assert alike.hi - alike.lo > 1.5 * (mixed.hi - mixed.lo)


def test_fewer_than_five_families_are_too_few_to_say() -> None:
    assert rate([1] * 4, [2] * 4).few
    assert not rate([1] * 5, [2] * 5).few
    assert rate([0, 1], [0, 2]).units == 1  # a family without trials does not count


def test_impossible_counts_are_refused() -> None:
    with pytest.raises(InputError, match="more successes"):
        rate([3], [2])
    with pytest.raises(InputError, match="one pair"):
        rate([1, 2], [2])
    with pytest.raises(InputError, match="level"):
        rate([1], [2], level=95)


def test_wilson_gives_the_textbook_interval() -> None:
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert all(math.isnan(end) for end in wilson(0, 0))


def test_pass_hat_k_averages_over_scenarios() -> None:
    assert pass_hat_k([5, 0], [5, 5], 3) == 0.5
    assert pass_hat_k([3], [5], 2) == pytest.approx(3 / 10)
    with pytest.raises(InputError, match=r"pass\^3"):
        pass_hat_k([2], [2], 3)


def test_invalid_and_null_rows_are_counted_and_stand_outside_the_denominator() -> None:
    frame = pd.DataFrame(
        {
            "design": "a",
            "family": list("vwxyzz"),
            "outcome": ["ok", "ok", "model_failure", "ok", "invalid", "ok"],
            "passed": pd.array([True, False, False, None, None, True], dtype="boolean"),
        }
    )
    row = rates(frame, ["design"]).iloc[0]
    assert (row.units, row.trials, row.successes, row.null, row.invalid) == (4, 4, 2, 1, 1)
    assert row.rate == 0.5


def test_a_group_with_nothing_judged_has_no_rate() -> None:
    frame = pd.DataFrame({"design": ["a"], "family": ["f"], "passed": pd.array([None], dtype="boolean")})
    row = rates(frame, ["design"]).iloc[0]
    assert math.isnan(row.rate)
    assert (row.units, row.null, bool(row.few)) == (0, 1, True)


def test_the_bootstrap_is_deterministic_and_holds_the_mean() -> None:
    scores = np.linspace(0, 1, 50)
    frame = pd.DataFrame({"e": ["a"] * 50 + ["b"] * 51, "ndcg@10": [*scores, *scores, None]})
    one, other = means(frame, ["e"], value="ndcg@10").to_dict("records")
    assert {k: one[k] for k in ("mean", "lo", "hi", "n")} == {k: other[k] for k in ("mean", "lo", "hi", "n")}
    assert one["lo"] < one["mean"] < one["hi"]
    assert (one["null"], other["null"]) == (0, 1)
    # the normal approximation is good at n = 50
    assert one["hi"] - one["lo"] == pytest.approx(2 * 1.96 * scores.std() / math.sqrt(50), rel=0.05)
