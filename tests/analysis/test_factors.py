"""Main effects of surfaces, by hand and planted."""

import math
from itertools import product

import pandas as pd
import pytest
import synthetic
from scipy import stats

from memeval.analysis import factors
from memeval.errors import InputError

CELL = {"model": "m", "calling": "native", "smoke": False, "fidelity": "readable"}
PLAIN, SPLIT = "as_written", "split"
# Two factors, all four cells: how often a family's four stories were saved.
SQUARE = {
    (PLAIN, "read_first"): (1, 0, 2, 1, 2, 0),
    (PLAIN, "write_first"): (2, 2, 2, 1, 3, 0),
    (SPLIT, "read_first"): (3, 2, 2, 4, 3, 2),
    (SPLIT, "write_first"): (4, 4, 2, 4, 4, 2),
}


def turns(counts: dict[tuple[str, str], tuple[int, ...]], design: str = "dual") -> pd.DataFrame:
    """Four please-remember turns a family and cell, so many of them with a saving tool called."""
    rows = [
        CELL
        | {
            "variant": f"{design} x=1" + (f" [{shape}]" if shape != PLAIN else ""), "shape": shape,
            "names": PLAIN, "words": PLAIN, "order": order, "family": f"f{family}", "scenario": f"s{n}",
            "repeat": 0, "session": 1, "turn": 1, "intent": "remember", "decoy": False, "outcome": "ok",
            "called": n < count, "arguments": n < count, "stored": n < count, "serves": ["remember"],
            "wrote": int(n < count),
        }
        for (shape, order), families in counts.items()
        for family, count in enumerate(families)
        for n in range(4)
    ]  # fmt: skip
    return pd.DataFrame(rows).astype(dict.fromkeys(("called", "arguments", "stored"), "boolean"))


def test_an_effect_is_the_mean_over_families_of_changed_minus_as_written() -> None:
    table = factors.effects(turns(SQUARE)).set_index("factor")
    # by hand: per family (split read + split write - plain read - plain write) / 2, in quarters
    split = [(3 + 4 - 1 - 2) / 8, (2 + 4 - 0 - 2) / 8, 0, (4 + 4 - 1 - 1) / 8, (3 + 4 - 2 - 3) / 8, 4 / 8]
    found = stats.ttest_1samp(split, 0)
    interval = found.confidence_interval(0.95)
    row = table.loc["shape"]
    assert (row.effect, row.lo, row.hi) == pytest.approx((sum(split) / 6, interval.low, interval.high))
    assert (row["to"], row["from"], row.families, row.cells) == ("split", "as_written", 6, 4)
    assert (row.yes, row.of, row.yes_from, row.of_from) == (36, 48, 16, 48)
    order = [(2 + 4 - 1 - 3) / 8, (2 + 4 - 0 - 2) / 8, 0, 0, (3 + 4 - 2 - 3) / 8, 0]
    assert table.loc["order", "effect"] == pytest.approx(sum(order) / 6)
    assert table.loc["order", "to"] == "write_first"


def test_p_values_are_adjusted_for_the_number_of_factors() -> None:
    table = factors.effects(turns(SQUARE)).set_index("factor")
    raw = stats.ttest_1samp([0.5, 0.5, 0, 0.75, 0.25, 0.5], 0).pvalue
    assert table.loc["shape", "p"] == pytest.approx(2 * raw)


def test_a_family_that_lacks_a_cell_still_gives_main_effects_without_mixing_them_up() -> None:
    frame = turns(SQUARE)
    gone = (frame["family"] == "f0") & (frame["shape"] == SPLIT) & (frame["order"] == "write_first")
    table = factors.effects(frame[~gone]).set_index("factor")
    # three cells left in f0: split from the two that read first, order from the two as written
    split = [2 / 4, 4 / 8, 0, 6 / 8, 2 / 8, 4 / 8]
    assert table.loc["shape", "effect"] == pytest.approx(sum(split) / 6)
    order = [1 / 4, 4 / 8, 0, 0, 2 / 8, 0]
    assert table.loc["order", "effect"] == pytest.approx(sum(order) / 6)


def test_factors_that_always_change_together_are_not_estimated() -> None:
    two = {key: SQUARE[key] for key in ((PLAIN, "read_first"), (SPLIT, "write_first"))}
    table = factors.effects(turns(two))
    assert table["effect"].isna().all()
    assert list(table["families"]) == [0, 0]
    assert list(table["of"]) == [24, 24]


def test_too_few_families_are_counted_and_not_rated() -> None:
    few = {key: families[:4] for key, families in SQUARE.items()}
    row = factors.effects(turns(few)).set_index("factor").loc["shape"]
    assert row.few
    assert math.isnan(row.effect)
    assert (row.yes, row.yes_from, row.families) == (25, 11, 4)


def test_a_run_without_surfaces_has_no_effects() -> None:
    plain = {key: counts for key, counts in SQUARE.items() if key[0] == PLAIN}
    assert not len(factors.effects(turns(plain)))
    assert not len(factors.explained(turns(plain)))
    assert "effect" in factors.explained(turns(plain))


def test_the_anchor_that_unbalances_the_half_fraction_is_left_out() -> None:
    half = [
        (shape, order, names, words)
        for (shape, a), (names, b), (words, c) in product(
            *[[(PLAIN, -1), (changed, 1)] for changed in (SPLIT, "neutral", "when_to_use")]
        )
        for order in ["write_first" if a * b * c == 1 else "read_first"]
    ]
    anchor = (PLAIN, "write_first", PLAIN, PLAIN)
    assert set(factors.balanced([anchor, *half])) == set(half)
    assert factors.balanced(half) == half
    odd = [half[0], half[1], anchor]
    assert factors.balanced(odd) == odd  # nothing balanced in it: all are kept


def test_a_factor_of_three_levels_keeps_all_cells() -> None:
    cells = [(shape, "read_first", PLAIN, PLAIN) for shape in (PLAIN, SPLIT, "merged")]
    assert factors.balanced(cells) == cells
    counts = {(PLAIN, "x"): (0,) * 6, (SPLIT, "x"): (1, 1, 1, 1, 1, 2), ("merged", "x"): (4, 4, 4, 4, 4, 3)}
    table = factors.effects(turns(counts)).set_index("to")
    assert table.loc["split", "effect"] == pytest.approx(7 / 24)
    assert table.loc["merged", "effect"] == pytest.approx(23 / 24)


def test_what_is_not_the_split_is_the_difference_without_it() -> None:
    single = {(PLAIN, order): (4, 4, 4, 4, 4, 2) for order in ("read_first", "write_first")}
    frame = pd.concat([turns(SQUARE), turns(single, "single")])
    table = factors.decomposition(frame).set_index("factor")
    whole = [(8 - 3) / 8, (8 - 2) / 8, (8 - 4) / 8, (8 - 2) / 8, (8 - 5) / 8, 4 / 8]
    split = [0.5, 0.5, 0, 0.75, 0.25, 0.5]
    assert table.loc["design", "effect"] == pytest.approx(sum(whole) / 6)
    assert (table.loc["design", "to"], table.loc["design", "from"]) == ("single x=1", "dual x=1")
    rest = [a - b for a, b in zip(whole, split, strict=True)]
    interval = stats.ttest_1samp(rest, 0).confidence_interval(0.95)
    assert tuple(table.loc["rest", ["effect", "lo", "hi"]]) == pytest.approx(
        (sum(rest) / 6, interval.low, interval.high)
    )


def test_unwanted_saves_are_of_decoys_and_an_unknown_rate_is_refused() -> None:
    frame = turns(SQUARE).assign(decoy=True, intent="none")
    assert len(factors.effects(frame, value="unwanted")) == 2
    assert not len(factors.effects(frame, value="saved"))
    with pytest.raises(InputError, match="did you mean 'saved'"):
        factors.effects(frame, value="save")


def test_planted_effects_are_found_within_their_intervals() -> None:
    run = synthetic.frames(synthetic.surface_rows(), families=80, repeats=2)
    table = factors.effects(run.turns).set_index(["calling", "factor"])
    assert set(table["cells"]) == {8}
    for calling in ("native", "constrained"):
        planted = {"shape": 0.3, "order": -0.2, "names": 0.0, "words": 0.0}
        for factor, effect in planted.items():
            row = table.loc[(calling, factor)]
            assert row.lo < effect < row.hi
            assert bool(row.p < 0.05) is bool(effect)
