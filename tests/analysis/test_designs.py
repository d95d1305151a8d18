"""Designs side by side: rates, costs, what was exercised."""

import pandas as pd
import pytest
import synthetic

from memeval.analysis import designs, tables


@pytest.fixture(scope="module")
def run() -> synthetic.Frames:
    return synthetic.frames(synthetic.design_rows(5))


KEYS = ["model", "calling", "variant"]


def test_every_design_has_its_rates_and_counts_on_every_model(run) -> None:
    table = designs.side_by_side(run).set_index(KEYS)
    assert len(table) == 15
    saving = tables.saving(run.turns, by_order=False).set_index(KEYS)
    assert table["saved"].to_dict() == pytest.approx(saving["rate"].to_dict())
    assert table["saved yes"].to_dict() == saving["successes"].to_dict()
    row = table.iloc[0]
    assert row["passed lo"] < row["passed"] < row["passed hi"]
    assert (row["trials"], row["families"], row["invalid"]) == (47, 12, 1)
    assert row["orders"] == "read_first, write_first"


def test_costs_are_means_over_the_turns_of_valid_trials(run) -> None:
    row = designs.costs(run).set_index(KEYS).loc[("ollama:smollm2", "constrained", "design_02")]
    mine = run.trials[(run.trials["model"] == "ollama:smollm2") & (run.trials["variant"] == "design_02")]
    number = len(run.turns[run.turns["trial_key"].isin(mine["trial_key"])])
    assert row["prompt tokens a turn"] == 300 + 180
    assert row["hook tokens a turn"] == pytest.approx(47 * 180 / number)
    assert (row["hook requests"], row["tool tax"], row["peak prompt"]) == (94, 180, 700)


def test_below_five_families_there_are_counts_and_no_rates() -> None:
    few = designs.side_by_side(synthetic.frames(synthetic.design_rows(2), families=4))
    assert few["passed"].isna().all()
    assert (few["passed of"] == 15).all()


def test_a_design_that_cannot_save_has_nothing_to_judge_of_it(run) -> None:
    turns = run.turns.assign(called=pd.NA, arguments=pd.NA, stored=pd.NA)
    blind = synthetic.Frames(run.trials, turns, run.calls, run.hits, run.cells)
    table = designs.side_by_side(blind)
    assert (table["saved of"] == 0).all()
    assert table["saved"].isna().all()


def test_a_recall_that_broke_before_its_answer_was_not_answered(run) -> None:
    frame = designs.judged(run, "recalled")
    missed = frame[frame["called"] == False]  # noqa: E712
    assert len(missed)
    assert not missed["recalled"].any()


def test_a_question_whose_answer_stands_in_the_conversation_is_no_recall(run) -> None:
    asked = (run.turns["scenario"] == "story-4") & (run.turns["intent"] == "recall")
    turns = run.turns.copy()
    turns.loc[asked, ["called", "arguments", "retrieved"]] = pd.NA
    control = synthetic.Frames(run.trials, turns, run.calls, run.hits, run.cells)
    before, after = (len(designs.judged(found, "recalled")) for found in (run, control))
    assert before - after == asked.sum() > 0


def test_the_best_stands_first_and_what_chance_could_have_made_is_near_it() -> None:
    clear = synthetic.frames(synthetic.design_rows(16), families=40)
    table = designs.standing(designs.judged(clear, "saved"), "saved")
    for _, group in table.groupby(["model", "calling"]):
        assert group["rate"].is_monotonic_decreasing
        assert (group["best"] == group["variant"].iloc[0]).all()
        assert group["near"].iloc[0]
        assert not group["near"].iloc[-1]
        assert group["p"].iloc[-1] < 0.001


def passes(*designs: tuple[str, str, bool, range]) -> pd.DataFrame:
    """Trials of designs (variant, embedder, whether all pass, families)."""
    same = {"model": "m", "calling": "native", "prefix": "card", "repeat": 0, "order": "read_first",
            "outcome": "ok"} | dict.fromkeys(tables.SURFACE, "as_written")  # fmt: skip
    rows = [
        same
        | {"variant": variant, "embedder": embedder, "passed": passed, "family": f"f{n}", "scenario": f"s{n}"}
        for variant, embedder, passed, families in designs
        for n in families
    ]
    return pd.DataFrame(rows).astype({"passed": "boolean"})


def test_designs_stand_to_each_other_within_an_embedder() -> None:
    both = [(name, e, (name == "a") == (e == "hash"), range(12)) for name in "ab" for e in ("hash", "minilm")]
    table = designs.standing(passes(*both), "passed").set_index(["embedder", "variant"])
    assert table["rate"].to_dict() == {
        ("hash", "a"): 1,
        ("hash", "b"): 0,
        ("minilm", "b"): 1,
        ("minilm", "a"): 0,
    }
    assert table["near"].tolist() == [True, False] * 2


def test_designs_with_under_five_families_in_common_are_not_compared() -> None:
    frame = passes(
        ("a", "hash", True, range(20)),
        ("b", "hash", False, range(16, 40)),
        ("c", "hash", False, range(20, 40)),
        ("d", "hash", False, range(8)),
    )
    table = designs.standing(frame, "passed").set_index("variant")
    assert table["common"].to_dict() == {"a": 20, "b": 4, "c": 0, "d": 8}
    assert table.loc[["b", "c"], ["difference", "p", "near"]].isna().all(axis=None)
    assert table.loc["d", "p"] == pytest.approx(2 / 2**8)  # the only comparison made
    assert (bool(table.loc["a", "near"]), bool(table.loc["d", "near"])) == (True, False)


def test_stories_that_all_rated_designs_were_run_on_are_counted() -> None:
    frame = passes(
        ("a", "hash", True, range(20)), ("b", "hash", True, range(4, 30)), ("c", "hash", True, range(3))
    )
    table = designs.sizes(frame).set_index("variant")
    assert table["stories"].to_dict() == {"a": 20, "b": 26, "c": 3}
    assert set(table["common stories"]) == {16}


def test_surfaces_take_no_part_in_the_standing_of_designs() -> None:
    run = synthetic.frames(synthetic.surface_rows())
    table = designs.standing(designs.judged(run, "called"), "called")
    assert set(table["variant"]) == {"local2_dual write_path=tool", "local2_single write_path=tool"}


def test_a_tool_or_hook_that_never_ran_is_named(run) -> None:
    table = designs.exercised(run).set_index(["variant", "part", "name"])
    row = table.loc[("design_02", "tool", "save_memory")]
    made = run.calls[(run.calls["variant"] == "design_02") & (run.calls["name"] == "save_memory")]
    assert (row.calls, row.ok, row.errors, row.live) == (len(made), len(made), 0, "yes")
    assert table.loc[("design_02", "tool", "forget_everything"), "live"] == "not exercised live"
    assert table.loc[("design_02", "hook", "after_turn"), "fired"] == 2 * 47 * 3
    assert table.loc[("design_02", "hook", "compact"), "live"] == "not exercised live"


def test_a_call_that_was_refused_or_leaked_did_not_exercise_its_tool(run) -> None:
    calls = run.calls.head(3).assign(
        name=["Forget-Everything", "functions.forget_everything", "forget_everything"],
        status=["bad_arguments", "bad_arguments", "leaked"], cell="design_02-0",
    )  # fmt: skip
    table = designs.exercised(synthetic.Frames(run.trials, run.turns, calls, run.hits, run.cells))
    row = table.set_index(["variant", "name"]).loc[("design_02", "forget_everything")]
    assert (row.calls, row.ok, row.errors, row.leaked, row.live) == (2, 0, 2, 1, "not exercised live")
