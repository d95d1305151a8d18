import pandas as pd

from memeval.analysis import tables

CELL = {"model": "m", "calling": "native", "variant": "dual", "smoke": False, "fidelity": "readable"}


def turn(**given: object) -> dict[str, object]:
    row = {
        "intent": "remember", "decoy": False, "called_intent": "none", "leaked_call": False,
        "leaked_intent": "",
        "called": None, "arguments": None, "stored": None, "retrieved": None, "answered": None,
        "phantom_save": None, "wrote": 0, "family": "f0", "scenario": "s", "repeat": 0, "session": 0,
        "turn": 0,
        "order": "read_first", "outcome": "ok", "serves": ["recall", "remember"],
    }  # fmt: skip
    return CELL | row | given


def turns(*rows: dict[str, object]) -> pd.DataFrame:
    kinds = ("called", "arguments", "stored", "retrieved", "answered", "phantom_save", "leaked_call")
    return pd.DataFrame(list(rows)).astype(dict.fromkeys(kinds, "boolean"))


def test_a_turn_that_broke_before_storing_was_not_saved() -> None:
    frame = turns(
        turn(called=False),
        turn(called=True, arguments=False),
        turn(called=True, arguments=True, stored=False),
        turn(called=True, arguments=True, stored=True),
    )
    assert tables.saving(frame)[["successes", "trials"]].iloc[0].tolist() == [1, 4]


def test_a_design_without_a_tool_to_save_with_has_no_saving_rate() -> None:
    row = tables.saving(turns(turn(), turn())).iloc[0]
    assert (row.trials, row.null) == (0, 2)


def test_decoys_are_no_please_remember_turns_and_tool_orders_stay_apart() -> None:
    frame = turns(
        turn(called=False),
        turn(called=False, order="write_first"),
        turn(called=False, decoy=True),
    )
    found = tables.saving(frame)
    assert found["order"].tolist() == ["read_first", "write_first"]
    assert found["trials"].tolist() == [1, 1]


def test_a_leaked_call_is_counted_apart_unless_another_call_ran() -> None:
    frame = turns(
        turn(leaked_call=True, leaked_intent="remember"),
        turn(leaked_call=True, leaked_intent="remember", called_intent="recall"),
        turn(intent="none", decoy=True, called_intent="remember"),
    )
    counts = tables.intents(frame).set_index(["asked", "called"])["turns"].to_dict()
    assert counts == {("remember", "leaked"): 1, ("remember", "recall"): 1, ("decoy", "remember"): 1}
    assert tables.leaked_intents(frame)["turns"].sum() == 2


def test_an_unwanted_save_is_a_write_on_a_decoy_by_a_design_that_can_write() -> None:
    frame = turns(
        turn(decoy=True, wrote=1), turn(decoy=True), turn(decoy=True, serves=["recall"]), turn(wrote=1)
    )
    row = tables.decoys(frame).iloc[0]
    assert (row.successes, row.trials, row.null) == (1, 2, 1)


def test_a_stage_counts_only_turns_that_reached_it() -> None:
    frame = turns(turn(called=False), turn(called=True, arguments=False), turn(intent="none", called=True))
    found = tables.stages(frame).set_index("stage")
    assert found.loc["called", ["successes", "trials"]].tolist() == [1, 2]
    assert found.loc["arguments", ["successes", "trials"]].tolist() == [0, 1]
    assert found.loc["stored", "trials"] == 0


def test_a_decoy_left_alone_is_no_call() -> None:
    frame = turns(turn(intent="recall", called=False), turn(intent="recall", decoy=True, called=True))
    found = tables.stages(frame).set_index("stage")
    assert found.loc["called", ["successes", "trials"]].tolist() == [0, 1]


def test_orders_are_set_beside_each_other_on_stories_that_were_run_in_both() -> None:
    both = [turn(called=False), turn(called=True, order="write_first")]
    frame = turns(
        *both,
        turn(called=True, scenario="one order"),
        turn(called=False, scenario="another", order="write_first"),
        turn(called=True, scenario="no server"),
        turn(called=None, scenario="no server", order="write_first", outcome="invalid"),
    )
    found = tables.moved(frame, value="called").set_index("order")[["successes", "trials"]]
    assert found.loc["read_first"].tolist() == [0, 1]
    assert found.loc["write_first"].tolist() == [1, 1]
    assert not len(tables.moved(frame[frame["scenario"] != "s"], value="called"))


def test_designs_are_compared_within_an_embedder() -> None:
    rows = [
        turn(
            called=(design == "dual") == (embedder == "hash"),
            variant=design,
            family=f"f{n}",
            scenario=f"s{n}",
        )
        | {"embedder": embedder}
        for design in ("dual", "single")
        for embedder in ("hash", "bundled:minilm")
        for n in range(6)
    ]
    found = tables.differences(turns(*rows), value="called").set_index("embedder")["difference"]
    assert found.to_dict() == {"hash": -1.0, "bundled:minilm": 1.0}


def test_a_second_embedder_becomes_a_row_of_its_own() -> None:
    frame = turns(turn(called=False), turn(called=False)).assign(embedder=["hash", "bundled:minilm"])
    assert len(tables.saving(frame)) == 2
    assert len(tables.saving(frame.assign(embedder="hash"))) == 1


def test_the_overview_shows_invalid_trials_and_counts_no_pass_of_them() -> None:
    passed = pd.array([True, False, None], dtype="boolean")
    trials = pd.DataFrame([CELL | {"family": "f"}] * 3)
    trials = trials.assign(outcome=["ok", "model_failure", "invalid"], passed=passed)
    row = tables.overview(trials).iloc[0]
    assert (row.trials, row.passed, row["model failures"], row.invalid) == (2, 1, 1, 1)
