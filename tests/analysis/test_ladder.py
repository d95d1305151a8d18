"""The ask-strength ladder: what is asked for, what is saved unasked, what was remembered, where it broke."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import synthetic_ladder
from runs import STORY

import memeval
from memeval.analysis import designs, ladder, remembered, unreached
from memeval.analysis.blame import read_blame, waterfall
from memeval.analysis.failures import RESTRAINT
from memeval.analysis.intervals import Rate, wilson
from memeval.analysis.tables import as_written
from memeval.evaluation.results import Run
from memeval.messages import ToolCall
from memeval.models.registry import register_model
from memeval.models.scripted import ScriptedModel

KEYS = ["calling", "variant", "step", "strength"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return memeval.load(synthetic_ladder.write(tmp_path_factory.mktemp("runs") / "ladder"))


def turns_of(run: Run, calling: str, variant: str) -> pd.DataFrame:
    return run.turns[(run.turns["calling"] == calling) & (run.turns["variant"] == variant)]


def test_each_rung_has_the_rates_of_its_turns_and_of_its_questions(run: Run) -> None:
    dose = ladder.dose(run).set_index(KEYS)
    mine = turns_of(run, "native", "obeys")
    for rung in ladder.RUNGS:
        asks = mine[mine["strength"] == rung]
        told = set(asks["trial_key"])
        later = mine[(mine["intent"] == "recall") & mine["trial_key"].isin(told)]
        called, stored, answered = (dose.loc[("native", "obeys", step, rung)] for step in ladder.STEPS)
        assert (called["successes"], called["trials"]) == (asks["called"].sum(), 12)
        assert (stored["successes"], stored["trials"]) == (asks["stored"].fillna(False).sum(), 12)
        assert (answered["successes"], answered["trials"]) == (later["answered"].fillna(False).sum(), 12)
    for step in ladder.FLOORED:
        idle = dose.loc[("native", "obeys", step, ladder.UNASKED)]
        assert (idle["successes"], idle["trials"], idle["units"]) == (
            mine.loc[mine["decoy"], "wrote"].sum(),
            12,
            6,
        )


def test_calling_modes_are_never_mixed_and_a_design_without_tools_has_no_rate_of_saving(run: Run) -> None:
    dose = ladder.dose(run)
    assert set(dose["calling"]) == {"native", "constrained"}
    bare = dose[(dose["variant"] == "none") & (dose["units"] > 0)]
    assert set(bare["step"]) == {"recalled"}
    assert "named" not in set(bare["strength"])


def test_a_design_that_saves_everything_is_as_high_on_its_floor(run: Run) -> None:
    gaps = ladder.gaps(run).set_index(["calling", "variant", "step", "measure"])["diff"]
    for calling in ("native", "constrained"):
        for step in ladder.FLOORED:
            assert abs(gaps[calling, "hoards", step, ladder.GAP]) < 0.1
            assert gaps[calling, "obeys", step, ladder.GAP] > 0.6
        assert gaps[calling, "obeys", "saved", ladder.DROP] > 0.6
        assert abs(gaps[calling, "hoards", "saved", ladder.DROP]) < 0.1


def gap_of(run: Run, step: str) -> pd.Series:
    table = ladder.gaps(run).set_index(["calling", "variant", "step", "measure"])
    return table.loc[("native", "obeys", step, ladder.GAP)]


def test_a_call_that_failed_counts_on_the_floor_of_calls_as_it_does_on_the_rungs(run: Run) -> None:
    idle = run.turns[run.turns["decoy"].astype(bool) & (run.turns["wrote"] == 0)]
    failed = [
        {
            "trial_key": row.trial_key,
            "session": row.session,
            "turn": row.turn,
            "intent": intent,
            "status": status,
        }
        for row, (intent, status) in zip(
            idle.itertuples(),
            [("remember", "tool_error"), ("note", "bad_arguments"), ("recall", "ok"), ("remember", "leaked")]
            * len(idle),
            strict=False,
        )
    ]
    more = pd.concat([run.calls, pd.DataFrame(failed)], ignore_index=True)
    called = pd.Series([call["intent"] != "recall" and call["status"] != "leaked" for call in failed])
    obeys = called[((idle["calling"] == "native") & (idle["variant"] == "obeys")).to_numpy()]
    before, after = gap_of(run, "called"), gap_of(changed(run, run.turns, calls=more), "called")
    assert obeys.any()
    assert not obeys.all()
    assert after["base"] == pytest.approx(before["base"] + obeys.sum() / 12)
    assert (after["rate"], gap_of(run, ladder.WROTE)["base"]) == (before["rate"], before["base"])


def test_saving_is_compared_with_saving_and_the_right_thing_stands_beside_it(run: Run) -> None:
    wrong = run.turns.assign(stored=run.turns["stored"].where(run.turns["stored"].isna(), False))
    before, after = gap_of(run, ladder.WROTE), gap_of(changed(run, wrong), ladder.WROTE)
    assert before["right"] == before["rate"]
    assert after["right"] == 0
    assert after["diff"] == before["diff"] == pytest.approx(before["rate"] - before["base"])
    assert set(ladder.gaps(run).query("measure == 'gap'")["step"]) == {"called", ladder.WROTE}


def test_the_drop_is_the_mean_over_families_of_the_strongest_rung_minus_the_weakest(run: Run) -> None:
    row = ladder.gaps(run).set_index(["calling", "variant", "step", "measure"]).loc[
        ("native", "deaf", "called", ladder.DROP)
    ]  # fmt: skip
    rates = turns_of(run, "native", "deaf").groupby(["strength", "family"])["called"].mean()
    assert row["diff"] == pytest.approx((rates["named"] - rates["mention"]).mean())
    assert (row["from"], row["to"], row["families"]) == ("named", "mention", 6)
    assert -1 <= row["lo"] <= row["diff"] <= row["hi"] <= 1


def test_the_interval_of_a_difference_is_newcombes() -> None:
    # 56 of 70 against 48 of 80, Newcombe's first example (Statistics in Medicine 17, 1998, 873-890)
    one, other = (
        Rate(yes / of, *wilson(yes, of), icc=0, units=of, trials=of) for yes, of in ((56, 70), (48, 80))
    )
    assert ladder.minus(one, other) == pytest.approx((0.2, 0.0524, 0.3339), abs=1e-4)


def test_below_five_families_there_are_counts_and_no_differences(tmp_path: Path) -> None:
    few = memeval.load(synthetic_ladder.write(tmp_path, families=4, modes=1))
    gaps = ladder.gaps(few)
    assert gaps["few"].all()
    assert gaps[["diff", "lo", "hi"]].isna().all(axis=None)
    assert set(gaps.loc[gaps["variant"] == "obeys", "families"]) == {4}


def changed(run: Run, turns: pd.DataFrame, **more: pd.DataFrame) -> Run:
    """The run with other turns, trials or calls."""
    other = Run(run.folder, run.manifest, [], {"trial": run.rows("trial"), "call": run.rows("call")})
    other.__dict__.update(turns=turns, **more)
    return other


def test_saving_what_was_just_said_is_not_asked_of_a_model_that_has_saved_it(run: Run) -> None:
    turns = run.turns.copy()
    before = (turns["strength"] == "") & (turns["intent"] == "") & (turns["variant"] == "obeys")
    turns.loc[before, "wrote"] = 1
    found = ladder.dose(changed(run, turns))
    rungs = found[(found["variant"] == "obeys") & (found["step"] == "called")]
    assert "save_it" not in set(rungs["strength"])
    assert len(rungs[rungs["strength"] != ladder.UNASKED]) == 2 * 5
    later = found[(found["variant"] == "obeys") & (found["step"] == "recalled")]
    assert "save_it" in set(later["strength"])
    claims = ladder.phantoms(changed(run, turns))
    assert "save_it" not in set(claims.loc[claims["variant"] == "obeys", "strength"])


def test_a_trial_told_on_two_rungs_has_none_for_its_questions(run: Run) -> None:
    turns = run.turns.copy()
    first = turns["strength"] == "mention"
    more = turns[first].assign(strength="please", turn=2)
    found = ladder.dose(changed(run, pd.concat([turns, more], ignore_index=True)))
    later = found[found["step"] == "recalled"]
    assert "mention" not in set(later["strength"])
    assert set(later["strength"]) == set(ladder.RUNGS) - {"mention"}


def test_without_a_ladder_only_the_floor_is_left_and_no_difference(tmp_path: Path) -> None:
    run = memeval.load(synthetic_ladder.write(tmp_path, ladder=False, modes=1, families=5))
    assert set(ladder.dose(run)["step"]) == set(ladder.FLOORED)
    assert not len(ladder.gaps(run))
    assert set(ladder.phantoms(run)["strength"]) == {ladder.ELSEWHERE, ladder.ALL}


def test_a_question_that_a_broken_trial_never_reached_was_not_answered(run: Run) -> None:
    keys = run.turns.loc[run.turns["strength"] == "please", "trial_key"].unique()[::2]
    broken, later = run.turns["trial_key"].isin(keys), run.turns["session"] == 2
    turns = run.turns.assign(outcome=run.turns["outcome"].mask(broken, "model_failure"))[~(broken & later)]
    lost = run.trials["trial_key"].isin(keys)
    trials = run.trials.assign(outcome=run.trials["outcome"].mask(lost, "model_failure"))
    answered = run.turns[~broken & later].merge(
        run.turns.loc[run.turns["strength"] == "please", ["trial_key"]], on="trial_key"
    )
    dose = ladder.dose(changed(run, turns, trials=trials))
    found = dose[(dose["step"] == "recalled") & (dose["strength"] == "please")]
    whole = ladder.dose(run)
    whole = whole[(whole["step"] == "recalled") & (whole["strength"] == "please")]
    assert found["trials"].sum() == whole["trials"].sum()
    assert found["successes"].sum() == answered["answered"].sum() < whole["successes"].sum()
    questions = remembered.remembered(changed(run, turns, trials=trials))
    table = remembered.left_out(questions)
    assert len(questions) == len(remembered.remembered(run))
    mine = questions[questions["trial_key"].isin(keys)]
    assert not mine["remembered"].fillna(False).any()
    assert table[remembered.NOT_REACHED].sum() == (mine["left_out"] == "").sum() > 0


def test_phantom_saves_of_all_asks_are_those_of_the_rungs_together(run: Run) -> None:
    claims = ladder.phantoms(run).set_index(["calling", "variant", "strength"]).sort_index()
    claims = claims[["successes", "trials"]]
    for calling, variant in {(c, v) for c, v, _ in claims.index}:
        mine = claims.loc[(calling, variant)]
        assert (mine.drop(ladder.ALL).sum() == mine.loc[ladder.ALL]).all()
    assert claims["successes"].sum() == 2 * run.turns["phantom_save"].sum()


def test_what_none_answers_right_is_left_out_for_every_design(run: Run) -> None:
    questions = remembered.remembered(run)
    lucky = questions[questions["family"] == "ladder-0"]
    assert set(lucky["left_out"]) == {remembered.LUCKY}
    assert lucky["remembered"].isna().all()
    others = questions[questions["family"] != "ladder-0"]
    right = others["retrieved"].fillna(False) & others["answered"].fillna(False)
    assert (others["remembered"] == right).all()
    table = remembered.left_out(questions).set_index(["calling", "variant"])
    assert table.loc[("native", "obeys"), remembered.LUCKY] == 12
    assert (table["counted"] + table[remembered.LUCKY] == table["questions"]).all()
    assert not table["without control"].any()
    assert (table["without story"] == table["questions"]).all()
    rates = remembered.kept(questions)
    assert set(rates["units"]) == {5}


def test_a_run_without_none_says_that_nothing_was_controlled(tmp_path: Path) -> None:
    run = memeval.load(synthetic_ladder.write(tmp_path, designs=1, modes=1, families=5, control=False))
    questions = remembered.remembered(run)
    assert not questions["control"].any()
    assert questions["remembered"].notna().all()


def test_stages_are_counted_as_blame_counts_them_and_say_how_many_failed(run: Run) -> None:
    blamed = read_blame(run.folder)
    found = ladder.breaks(run, blamed)
    keys = ["model", "calling", "variant", "stage"]
    chain = found[found["replayed"]].set_index(keys)["failures"]
    assert chain.to_dict() == waterfall(blamed).set_index(keys)["failures"].to_dict()
    trials = as_written(run.trials)
    failed = trials[trials["passed"] == False].groupby(["calling", "variant"]).size()  # noqa: E712
    sizes = found.drop_duplicates(["calling", "variant"]).set_index(["calling", "variant"])
    assert sizes["failed"].to_dict() == failed.to_dict()
    assert (sizes["explained"] > sizes["sampled"]).any()
    assert (sizes["explained"] < sizes["failed"]).any()
    restraint = found[found["stage"] == RESTRAINT].set_index(["calling", "variant"])["failures"]
    assert restraint["native", "hoards"] > 8
    assert (found.groupby(["calling", "variant"])["failures"].sum() == sizes["explained"]).all()


def test_before_blame_nothing_is_explained(tmp_path: Path) -> None:
    run = memeval.load(synthetic_ladder.write(tmp_path, blamed=False, modes=1, families=5))
    found = ladder.breaks(run, read_blame(run.folder))
    assert found["failed"].min() > 0
    assert not found[["failures", "explained", "sampled"]].any(axis=None)


def honest(messages: Any, tools: Any) -> Any:
    """Saves what it is asked to, looks it up, and says what it found."""
    last = messages[-1]
    if last.role == "tool":
        return "It is Elixir." if "Elixir" in last.content else "I found nothing."
    if not tools:
        return "I do not know."
    if "remember" in last.content:
        return ToolCall("save_memory", {"content": "What language do I prefer? Elixir."})
    return ToolCall("search_memory", {"query": "What language do I prefer?"})


def knows(messages: Any, tools: Any) -> Any:
    """Never uses a tool and guesses right."""
    return "I will remember that." if "remember" in messages[-1].content else "It is Elixir."


CONTROL = """
      - user: Which language did I say I prefer?
        expect: {intent: recall, facts: [language], answer: {states: [language]}}"""


def told(
    folder: Path, script: Any, story: str = STORY, designs: Sequence[str] = ("none", "local2_single")
) -> tuple[Run, Path]:
    """A story run on a scripted model with one design and the design `none`; the run and the story's file."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "story.yaml"
    file.write_text(story.format(name="tale") if "{{" in story else story)
    register_model("scripted:asked", lambda: ScriptedModel(script))
    sweep = {
        "sweep": "asked", "scenarios": [str(file)], "models": ["scripted:asked"], "embedders": ["hash"],
        "designs": [{name: {"write_path": "tool"}} if name != "none" else name for name in designs],
        "store": "inmemory", "repeats": 1,
    }  # fmt: skip
    return memeval.run(sweep, folder / "run"), file


def verdicts(run: Run) -> dict[str, Any]:
    found = remembered.remembered(run)
    return {row["design"]: (row["remembered"], row["left_out"]) for row in found.to_dict("records")}


def test_a_fact_found_by_memory_and_said_is_remembered(tmp_path: Path) -> None:
    run, file = told(tmp_path, honest)
    assert verdicts(run) == {"none": (False, ""), "local2_single": (True, "")}
    assert remembered.remembered(run)["story"].all()
    file.unlink()  # nobody can look into the story any more
    assert not remembered.remembered(run)["story"].any()
    assert verdicts(run)["local2_single"] == (True, "")


def stuck(messages: Any, tools: Any) -> Any:
    """Saves the same again and again, where it can."""
    return ToolCall("save_memory", {"content": "Elixir"}) if tools else "I do not know."


def recalled(run: Run) -> tuple[int, int]:
    row = designs.steps(run).query("step == 'recalled' and variant != 'none'").iloc[0]
    return row["successes"], row["trials"]


def test_a_question_behind_an_endless_loop_is_not_remembered_and_not_recalled(tmp_path: Path) -> None:
    run, file = told(tmp_path, stuck)
    file.unlink()  # the trial of the other design came to the end of the story
    assert set(run.trials["outcome"]) == {"ok", "model_failure"}
    assert verdicts(run) == {"none": (False, ""), "local2_single": (False, "")}
    table = remembered.left_out(remembered.remembered(run)).set_index("variant")
    assert table[remembered.NOT_REACHED].to_dict() == {"none": 0, "local2_single write_path=tool": 1}
    assert table["without control"].sum() == 0
    assert recalled(run) == (0, 1)
    assert unreached.unknown(run) == 0


def test_what_no_trial_reached_is_told_by_the_story_and_else_not_known(tmp_path: Path) -> None:
    lines = STORY.format(name="tale").split("\n  - turns:\n")
    again = "\n  - turns:\n".join([lines[0], lines[1] + CONTROL, lines[2]])
    run, file = told(tmp_path, stuck, again, designs=["local2_single"])
    assert verdicts(run) == {"local2_single": (False, "")}
    assert recalled(run) == (0, 1)  # not the question whose answer stands in its own session
    assert unreached.unknown(run) == 0
    file.unlink()
    assert not len(remembered.remembered(run))
    assert not len(designs.judged(run, "recalled"))
    assert unreached.unknown(run) == 1


def test_a_right_answer_that_none_gives_too_proves_nothing(tmp_path: Path) -> None:
    run, _ = told(tmp_path, knows)
    assert run.turns.loc[run.turns["intent"] == "recall", "passed"].all()
    found = verdicts(run)
    assert {why for _, why in found.values()} == {remembered.LUCKY}
    assert all(pd.isna(value) for value, _ in found.values())


def test_what_the_story_calls_guessable_is_left_out(tmp_path: Path) -> None:
    run, _ = told(tmp_path, honest, STORY.replace("key: user.language", "guessable: true"))
    assert {why for _, why in verdicts(run).values()} == {remembered.GUESSABLE}


def test_only_questions_about_an_earlier_session_count(tmp_path: Path) -> None:
    lines = STORY.format(name="tale").split("\n  - turns:\n")
    again = "\n  - turns:\n".join([lines[0], lines[1] + CONTROL, lines[2]])
    run, _ = told(tmp_path / "same", honest, again)
    assert set(remembered.remembered(run)["session"]) == {2}
    # what the story put into the store was told by nobody
    given = "\n  - turns:\n".join([lines[0], lines[2].rstrip()]).replace(
        "  - turns:\n", "  - given: [{text: 'What language do I prefer? Elixir.'}]\n    turns:\n"
    )
    run, _ = told(tmp_path / "given", honest, given)
    assert run.turns["retrieved"].any()
    assert not len(remembered.remembered(run))
