import re

import matplotlib as mpl
import pandas as pd
import pytest
import synthetic

from memeval.analysis import retrieval_tables, tables
from memeval.reporting import figures, words
from memeval.reporting.show import png, table_html
from memeval.reporting.style import row_label, short_variants


@pytest.fixture(scope="module")
def run() -> synthetic.Frames:
    return synthetic.frames()


def texts(figure) -> str:
    """Everything written in a figure."""
    return " ".join(text.get_text() for text in figure.findobj(mpl.text.Text))


def test_the_headline_draws_each_rate_at_its_place_with_tool_orders_apart(run) -> None:
    numbers = tables.saving(run.turns)
    assert len(figures.headline(tables.obeying(run.turns)).axes) == 4
    figure = figures.headline(numbers)
    assert [ax.get_title("left") or ax.get_title() for ax in figure.axes] == [
        "tools that read listed first",
        "tools that write listed first",
    ]
    for ax, order in zip(figure.axes, ("read_first", "write_first"), strict=True):
        drawn = sorted(float(line.get_xdata()[0]) for line in ax.lines if len(line.get_xdata()) == 1)
        assert drawn == pytest.approx(sorted(numbers.loc[numbers["order"] == order, "rate"]))


def test_rows_are_sorted_by_value_and_name_the_calling_mode(run) -> None:
    numbers = tables.saving(run.turns, by_order=False)
    labels = [label.get_text() for label in figures.phantom_saves(numbers).axes[0].get_yticklabels()]
    means = numbers.groupby(["model", "calling"])["rate"].mean().sort_values(ascending=False)
    assert [label.split("\n")[:2] for label in labels] == [list(key) for key in means.index]


def test_axis_labels_say_how_many_families_and_which_interval(run) -> None:
    said = texts(figures.decoys(tables.decoys(run.turns)))
    assert "6 families" in said
    assert "95% interval (beta-binomial over families)" in said
    assert "all with write_path=tool" in said


def test_too_few_families_are_written_as_counts_not_drawn() -> None:
    few = synthetic.frames(families=6)
    for draw in (figures.headline, figures.order_effect):
        figure = draw(tables.saving(few.turns))
        assert "too few to say" in texts(figure)
        assert not [line for ax in figure.axes for line in ax.lines if len(line.get_xdata()) == 1]


def test_a_variant_with_few_families_is_left_to_the_caption_where_another_has_enough(run) -> None:
    rare = run.turns[run.turns["family"].isin(["family-00", "family-02"])].assign(variant="rare")
    said = texts(figures.headline(tables.saving(pd.concat([run.turns, rare]))))
    assert "too few families to say, not drawn: rare:" in said


def test_a_smoke_test_says_so_in_the_title_and_on_its_rows() -> None:
    said = texts(figures.headline(tables.saving(synthetic.frames(smoke=True).turns)))
    assert "smoke test, not a measurement of your model" in said


def test_unreadable_and_unverified_tools_stand_on_the_row() -> None:
    row = {"model": "m", "calling": "native", "fidelity": "unreadable", "smoke": False}
    assert row_label(row).endswith("tools unreadable to the model")
    assert row_label(row | {"fidelity": "unverified"}).endswith("tools not verified")
    assert row_label(row | {"fidelity": "readable"}) == "m\nnative"


def test_settings_that_all_variants_share_are_said_once() -> None:
    names, shared = short_variants(["a write_path=tool", "b write_path=tool x=1"])
    assert (list(names.values()), shared) == (["a", "b x=1"], "write_path=tool")
    assert short_variants(["a x=1"]) == ({"a x=1": "a x=1"}, "")


def test_the_order_figure_says_how_far_each_design_moves(run) -> None:
    numbers = tables.saving(run.turns)
    rate = numbers.set_index(["model", "calling", "variant", "order"])["rate"]
    key = ("ollama:smollm2", "constrained", "local2_dual write_path=tool")
    move = 100 * (rate[(*key, "write_first")] - rate[(*key, "read_first")])
    assert f"{move:+.0f} points" in texts(figures.order_effect(numbers))


def test_stories_in_one_order_only_say_nothing_of_the_order(run) -> None:
    half = run.turns["family"].str[-2:].astype(int) % 4 < 2
    first = run.turns["order"] == "read_first"
    said = texts(figures.order_effect(tables.moved(run.turns[half == first])))
    assert "No story of this run that asks to remember was run in both orders" in said
    assert "points" not in said
    assert "of stories run in both orders" in texts(figures.order_effect(tables.moved(run.turns)))


def test_the_matrix_has_a_panel_for_each_design_and_a_column_for_leaked_calls(run) -> None:
    figure = figures.intent_matrix(tables.intents(run.turns))
    assert len(figure.axes) == 6
    for ax in figure.axes:
        assert [label.get_text() for label in ax.get_xticklabels()][-2:] == ["none", "leaked"]
        assert all(0 <= value <= 1 for value in ax.images[0].get_array().ravel())


def test_stages_have_a_row_each_and_stories_a_tile_each(run) -> None:
    axes = figures.stages(tables.stages(run.turns)).axes
    labels = [label.get_text() for label in axes[0].get_yticklabels()]
    assert labels == ["called", "arguments", "stored", "retrieved", "answered"]
    tiles = figures.passed(tables.families(run.trials)).axes[0].images[0].get_array()
    assert tiles.shape == (12, 6)


def test_a_run_without_such_turns_gets_a_sentence_instead_of_empty_axes(run) -> None:
    figure = figures.decoys(tables.decoys(run.turns[~run.turns["decoy"].astype(bool)]))
    assert not figure.axes
    assert "No turn of this run could be judged here." in texts(figure)


def test_the_retrieval_grid_explains_its_empty_cells() -> None:
    queries, cells = synthetic.retrieval()
    quality = retrieval_tables.quality(queries, cells)
    said = texts(figures.retrieval_grid(quality))
    assert "same as\ncard\nby construction" in said
    assert "unsupported" in said
    assert "prefixes unregistered" in said
    assert "50 answerable queries" in said


def test_retrieval_dots_and_histograms_hold_the_numbers() -> None:
    queries, cells = synthetic.retrieval()
    quality = retrieval_tables.quality(queries, cells)
    ax = figures.retrieval_intervals(quality).axes[0]
    drawn = [float(line.get_xdata()[0]) for line in ax.lines if len(line.get_xdata()) == 1]
    assert drawn == pytest.approx(sorted(quality["mean"].dropna(), reverse=True))
    histogram = figures.score_histogram(retrieval_tables.scores(queries))
    assert histogram.axes[0].get_title("left").endswith("(50 with an answer, 10 without)")


def test_drawing_leaves_the_settings_of_others_alone_and_gives_equal_bytes(run) -> None:
    before = dict(mpl.rcParams)
    numbers = tables.saving(run.turns)
    assert png(figures.headline(numbers)) == png(figures.headline(numbers))
    assert dict(mpl.rcParams) == before


def test_alternative_texts_hold_the_numbers(run) -> None:
    numbers = tables.saving(run.turns)
    text = words.describe(numbers, "Saved")
    for row in numbers.to_dict("records"):
        assert f"{row['successes']} of {row['trials']}" in text
    assert "tools that write listed first" in text


def test_the_headline_says_not_shown_where_chance_could_have_made_it(run) -> None:
    said = words.headline_sentence(run.turns)
    gaps = pd.concat(tables.differences(run.turns, value=step) for step in ("called", "saved"))
    assert said.count("No difference is shown") == (gaps["p"] >= 0.05).sum()
    assert said.count("points more often than") == (gaps["p"] < 0.05).sum()
    more = synthetic.frames(families=24).turns
    clear = more.assign(stored=more["variant"].str.startswith("local2_single").astype("boolean"))
    clear = clear.assign(called=True, arguments=True).astype({"called": "boolean", "arguments": "boolean"})
    assert (
        "local2_single stored the right thing 100 points more often than local2_dual"
        in words.headline_sentence(clear)
    )
    assert "Too few families" in words.headline_sentence(synthetic.frames(families=4).turns)


def test_tables_hold_counts_and_no_rates_of_too_few_families() -> None:
    few = tables.saving(synthetic.frames(families=6).turns)
    assert few["few"].all()
    html = table_html(few)
    assert not re.search(r"\d\.\d", html)
    assert f"<td>{few['trials'].iloc[0]}</td>" in html
    assert re.search(r"\d\.\d", table_html(few.assign(few=False)))


def test_tables_escape_what_a_model_wrote(run) -> None:
    html = table_html(tables.names_called(run.calls))
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
