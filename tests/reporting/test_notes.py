"""What must be known of a run before its numbers are set beside each other."""

import pandas as pd
import pytest
import synthetic

from memeval.analysis import designs
from memeval.cli import _designs
from memeval.reporting import notes, words


@pytest.fixture(scope="module")
def run() -> synthetic.Frames:
    return synthetic.frames(synthetic.design_rows(3))


def less(run: synthetic.Frames, trials: pd.DataFrame) -> synthetic.Frames:
    """The run with these trials alone."""
    turns = run.turns[run.turns["trial_key"].isin(trials["trial_key"])]
    return synthetic.Frames(trials, turns, run.calls, run.hits, run.cells)


def test_a_run_of_equal_parts_needs_no_note(run) -> None:
    even = run.trials[run.trials["family"] != "family-02"]  # it has an invalid trial, in one order
    assert notes.run_notes(less(run, even)) == ""


def test_designs_run_on_other_stories_are_said_to_be(run, capsys) -> None:
    trials = run.trials[(run.trials["variant"] != "design_02") | (run.trials["family"] > "family-04")]
    said = notes.stories_note(trials)
    assert said.startswith("Not every design was run on the same stories")
    assert "ollama:smollm2, constrained: 7 to 12 stories a design, 7 in common" in said
    _designs.show(less(run, trials), designs=True, exercised=False, as_json=False)
    assert said in capsys.readouterr().out


def test_designs_that_are_only_counted_need_no_common_stories(run) -> None:
    trials = run.trials[(run.trials["variant"] != "design_02") | (run.trials["family"] > "family-08")]
    assert notes.stories_note(trials) == ""


def test_an_odd_number_of_repeats_is_uneven_in_the_order_of_tools(run) -> None:
    odd = run.trials[(run.trials["repeat"] < 3) & (run.trials["family"] != "family-02")]
    said = notes.orders_note(odd)
    assert (
        "ollama:smollm2, constrained: 22 trials a design with tools that read listed first, 11 with" in said
    )
    assert "0 of 11 stories in one order only" in said
    assert "11 of 11 stories in one order only" in notes.orders_note(odd[odd["repeat"] == 0])


def test_equally_many_trials_of_each_order_on_other_stories_are_uneven_too(run) -> None:
    halves = run.trials["family"].str[-2:].astype(int) % 2 == run.trials["repeat"] % 2
    said = notes.orders_note(run.trials[halves & (run.trials["family"] != "family-02")])
    assert "stories in one order only" in said


def test_a_design_with_one_tool_or_an_order_that_was_asked_for_is_not_uneven(run) -> None:
    one = run.trials.assign(tools=[("look",)] * len(run.trials), order="read_first")
    assert notes.orders_note(one) == ""
    assert notes.orders_note(run.trials.assign(order="as_written")) == ""


def test_verdicts_of_several_rules_are_said_to_be(run) -> None:
    early = run.trials["repeat"] == 0
    trials = run.trials.assign(scorer=early.map({True: "2", False: "4"}))
    valid = trials["outcome"] != "invalid"
    assert (
        f"{early.sum()} trials by scorer 2, {(valid & ~early).sum()} trials by scorer 4"
        in notes.scorers_note(trials)
    )
    assert notes.scorers_note(trials[early]) == ""


def test_broken_trials_whose_rest_is_not_known_are_counted() -> None:
    assert notes.lost_note(0) == ""
    assert notes.lost_note(3).startswith("3 broken trials are of stories that no trial ended")


def test_what_was_not_compared_with_the_best_is_not_called_near_it() -> None:
    run = synthetic.frames(synthetic.design_rows(3), families=24)
    turns = run.turns[run.turns["model"] == "ollama:smollm2"]
    half = turns["family"] < "family-12"
    apart = pd.concat([turns[half & (turns["variant"] == "design_01 top_k=12 write_path=auto_turn")],
                       turns[~half & (turns["variant"] == "design_02")]])  # fmt: skip
    frame = designs.judged(synthetic.Frames(run.trials, apart, run.calls, run.hits, run.cells), "called")
    table = designs.standing(frame, "called")
    (said,) = words.standing_lines(table, {name: name for name in table["variant"]}, "called").values()
    assert "Not compared with it, under five families in common: design_0" in said
    assert "Not told apart" not in said
