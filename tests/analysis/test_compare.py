import math

import pandas as pd
import pytest
from scipy import stats

from memeval.analysis.compare import holm, paired
from memeval.errors import InputError


def trials(passed: dict[str, list[list[bool | None]]]) -> pd.DataFrame:
    """One row a trial: for each design a list of families, each a list of repeats."""
    rows = [
        {
            "variant": design,
            "family": f"f{f}",
            "scenario": f"s{f}",
            "repeat": r,
            "outcome": "ok",
            "passed": value,
        }
        for design, families in passed.items()
        for f, repeats in enumerate(families)
        for r, value in enumerate(repeats)
    ]
    return pd.DataFrame(rows).astype({"passed": "boolean"})


YES, NO = True, False


def test_the_interval_is_the_paired_t_of_family_means() -> None:
    a = [[YES, YES], [YES, NO], [YES, YES], [NO, NO], [YES, YES]]
    b = [[NO, YES], [YES, NO], [NO, NO], [NO, NO], [YES, NO]]
    found = paired(trials({"a": a, "b": b}), "a", "b")
    theirs = stats.ttest_rel([1, 0.5, 1, 0, 1], [0.5, 0.5, 0, 0, 0.5])
    interval = theirs.confidence_interval(0.95)
    assert found.diff == pytest.approx(0.4)
    assert (found.lo, found.hi) == pytest.approx((interval.low, interval.high))
    assert found.p == pytest.approx(theirs.pvalue)
    assert (found.better, found.worse, found.ties, found.units, found.pairs) == (3, 0, 2, 5, 10)


def test_only_pairs_that_both_answered_count() -> None:
    frame = trials({"a": [[YES, None], [YES, YES], [NO, YES]], "b": [[NO, NO], [None, None], [NO, NO]]})
    frame.loc[(frame.variant == "b") & (frame.family == "f2") & (frame.repeat == 1), "outcome"] = "invalid"
    found = paired(frame, "a", "b")
    assert (found.units, found.pairs) == (2, 2)
    assert found.diff == 0.5


def test_without_spread_the_sign_test_speaks_and_no_interval_is_made_up() -> None:
    same = paired(trials({"a": [[YES]] * 6, "b": [[YES]] * 6}), "a", "b")
    assert (same.diff, same.p, same.ties) == (0.0, 1.0, 6)
    assert math.isnan(same.lo)
    always = paired(trials({"a": [[YES]] * 6, "b": [[NO]] * 6}), "a", "b")
    assert (always.diff, always.better) == (1.0, 6)
    assert always.p == pytest.approx(2 / 2**6)


def test_an_unknown_design_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InputError, match="did you mean 'local2_dual'"):
        paired(trials({"local2_dual": [[YES]]}), "local2_dual", "local2_duel")


def test_holm_multiplies_the_smallest_p_by_their_number_and_never_falls() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []
