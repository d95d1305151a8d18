"""Figures and sentences of many designs, and of the factors of one."""

from itertools import pairwise

import matplotlib as mpl
import pandas as pd
import pytest
import synthetic

from memeval.analysis import designs, factors, tables
from memeval.reporting import figures, verdicts, words
from memeval.reporting.style import PAGE, folded, short_variants


@pytest.fixture(scope="module")
def many() -> synthetic.Frames:
    return synthetic.frames(synthetic.design_rows(16), repeats=2)


@pytest.fixture(scope="module")
def steps(many) -> pd.DataFrame:
    return designs.steps(many)


@pytest.fixture(scope="module")
def parts() -> pd.DataFrame:
    return factors.explained(synthetic.frames(synthetic.surface_rows(), families=24).turns)


def texts(figure) -> str:
    return " ".join(text.get_text() for text in figure.findobj(mpl.text.Text))


def drawn(ax) -> list[float]:
    """Where the markers stand, left to right."""
    return sorted(float(line.get_xdata()[0]) for line in ax.lines if len(line.get_xdata()) == 1)


def test_designs_are_rows_best_first_and_models_are_panels(steps) -> None:
    figure = figures.designs_passed(steps)
    assert len(figure.axes) == 3
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    passed = steps[steps["step"] == "passed"]
    order = passed.groupby("variant")["rate"].mean().sort_values(ascending=False, kind="stable")
    assert labels == [folded(name, 30) for name in order.index]
    for ax, (_, part) in zip(figure.axes, passed.groupby(["model", "calling"], sort=False), strict=True):
        assert drawn(ax) == pytest.approx(sorted(part["rate"]))


def test_called_and_stored_stand_beside_each_other_in_a_row(steps) -> None:
    ax = figures.designs_obeyed(steps).axes[0]
    assert len(drawn(ax)) == 2 * 16
    assert len({line.get_marker() for line in ax.lines if len(line.get_xdata()) == 1}) == 2


def test_rows_are_sorted_by_what_is_better_the_more_of_it(steps) -> None:
    ax = figures.designs_beyond(steps).axes[0]
    recalled = steps[steps["step"] == "recalled"].groupby("variant")["rate"].mean()
    order = recalled.sort_values(ascending=False, kind="stable").index
    assert [label.get_text() for label in ax.get_yticklabels()] == [folded(name, 30) for name in order]


def test_costs_name_every_point_once_and_no_name_lies_on_another(many, steps) -> None:
    costs = designs.costs(many)
    figure = figures.designs_cost(steps, costs)
    for ax in figure.axes:
        names = [text for text in ax.texts if text.get_text().strip()]
        assert len(names) == 16
        heights = sorted(text.get_position()[1] for text in names)
        low, high = ax.get_ylim()
        assert min(b - a for a, b in pairwise(heights)) > (high - low) / 25
        assert low <= heights[0] <= heights[-1] <= high
    tokens = costs[[f"{kind} tokens a turn" for kind in ("prompt", "output", "hook")]].sum(axis=1)
    points = [line.get_xdata()[0] for ax in figure.axes for line in ax.lines if len(line.get_xdata()) == 1]
    assert sorted(points) == pytest.approx(sorted(tokens))


def test_the_figures_of_tool_selection_hold_many_designs_within_the_page(many) -> None:
    turns = many.turns
    drawings = {
        "headline": figures.headline(tables.obeying(turns)),
        "order": figures.order_effect(tables.saving(turns)),
        "stages": figures.stages(tables.stages(turns)),
        "phantom": figures.phantom_saves(tables.phantom_saves(turns)),
        "decoys": figures.decoys(tables.decoys(turns)),
        "intents": figures.intent_matrix(tables.intents(turns)),
        "stories": figures.passed(tables.families(many.trials)),
    }
    for figure in drawings.values():
        assert figure.get_figwidth() <= PAGE
    assert len(drawings["headline"].axes) == 6  # two steps on three models
    assert len(drawings["stages"].axes) == 15
    assert "all other turns are in the table only" in texts(drawings["intents"])


def test_families_that_tell_designs_apart_are_drawn_first(many) -> None:
    counts = tables.families(many.trials)
    more = pd.concat(
        [counts.assign(family=counts["family"] + f"-{n}", successes=counts["trials"]) for n in range(4)]
    )
    figure = figures.passed(pd.concat([counts, more]))
    labels = {label.get_text() for label in figure.axes[0].get_yticklabels()}
    assert len(labels) == 40
    assert set(counts["family"]) <= labels
    assert "20 families on which the designs differ less" in texts(figure)


def test_effects_are_drawn_in_points_around_zero_with_whole_and_rest_above(parts) -> None:
    numbers = parts[parts["step"] != "unwanted"]
    figure = figures.factors(numbers)
    labels = [label.get_text().replace("\n", " ") for label in figure.axes[0].get_yticklabels()]
    assert labels[0] == "local2_single instead of local2_dual, as written"
    assert labels[1] == "of local2_single, not the split: other tools, other texts"
    assert [label.partition(":")[0] for label in labels[2:]] == [
        "the split",
        "the order",
        "the names",
        "the words",
    ]
    for ax, (_, part) in zip(figure.axes, numbers.groupby(["model", "calling"], sort=True), strict=True):
        places = [x for x in drawn(ax) if x]
        assert places == pytest.approx(sorted(100 * part["effect"]))


def test_effects_of_too_few_families_are_not_drawn() -> None:
    few = factors.explained(synthetic.frames(synthetic.surface_rows(), families=6).turns)
    figure = figures.factors(few)
    assert "counts only" in texts(figure)
    assert all(not drawn(ax) for ax in figure.axes)
    assert "too few families" in verdicts.factors_sentence(few)


def test_the_sentence_names_what_moved_the_rate_and_what_did_not(parts) -> None:
    told = verdicts.factors_sentence(parts)
    lines = [line for line in told.split("\n") if line.startswith("ollama:")]
    assert len(lines) == 2
    for line in lines:
        moved, _, still = line.partition("no effect is shown of")
        assert "the split (called +" in moved
        assert "the order (called -" in moved
        assert still.startswith(" the names, the words (intervals from -")
        assert "by the split and" in line
        assert "not explained" in line


def test_a_run_without_surfaces_is_told_in_one_line(many) -> None:
    parts = factors.explained(many.turns)
    assert verdicts.factors_sentence(parts).count("\n") == 0
    assert verdicts.surfaces_note(many.cells) == ""


def test_surfaces_are_left_to_their_section_and_said_to_be() -> None:
    run = synthetic.frames(synthetic.surface_rows(), repeats=1)
    assert set(tables.as_written(run.turns)["shape"]) == {"as_written"}
    assert "7 other surfaces of local2_dual" in verdicts.surfaces_note(run.cells)
    split = run.turns[run.turns["shape"] == "split"]
    assert len(tables.as_written(split)) == len(split)  # nothing else is there


def test_the_answer_names_the_best_design_and_those_near_it(many) -> None:
    said = verdicts.designs_sentence(many)
    standing = designs.standing(designs.judged(many, "saved"), "saved")
    for (model, calling), group in standing.groupby(["model", "calling"]):
        start = f"{model}, {calling}, stored the right thing"
        line = next(line for line in said.split("\n") if line.startswith(start))
        assert f"most often {group['best'].iloc[0]}, " in line
        near = line.partition("Not told apart from it: ")[2].partition(".")[0]
        assert near.count(";") + 1 == group["near"].sum() - 1


def test_many_designs_are_not_compared_pair_by_pair_in_the_headline(many) -> None:
    said = words.headline_sentence(many.turns)
    assert "most often" in said
    assert "No difference is shown" not in said


def test_tiny_and_smoke_models_are_marked_before_anything_is_read() -> None:
    run = synthetic.frames(synthetic.design_rows(2), families=6, repeats=2)
    run.manifest = {"models": {"ollama:smollm2": {"parameter_size": "134.52M"},
                               "ollama:qwen05-json": {"parameter_size": "4.0B"}}}  # fmt: skip
    assert verdicts.designs_sentence(run).startswith("Tiny models: ollama:smollm2 has 134.52M parameters.")
    smoke = synthetic.frames(synthetic.design_rows(2, smoke=True), families=6, repeats=2)
    assert verdicts.models_note(smoke).endswith("smoke test, not a measurement of your model.")


def test_texts_of_crowded_figures_say_the_ends_and_not_every_point(many, steps, parts) -> None:
    told = words.describe(steps, "Rates")
    assert len(told) < 600
    assert "highest: " in told
    assert "lowest: " in told
    assert "fewest: " in verdicts.describe_costs(pd.concat([designs.costs(many)] * 2))
    assert "the order: tools that write first, called a saving tool: -" in verdicts.describe_factors(parts)


def test_a_surface_is_one_part_of_a_variant() -> None:
    names, shared = short_variants(["a x=1 [split, neutral names]", "a x=1 [neutral names]", "a x=1"])
    assert list(names.values()) == ["a [split, neutral names]", "a [neutral names]", "a"]
    assert shared == "x=1"
