"""What was kept is judged again: the same rules move nothing, other expectations move what they should."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from pandas.testing import assert_frame_equal
from runs import scripted, sweep

import memeval
from memeval.errors import InfrastructureError, InputError
from memeval.evaluation import rescore as module
from memeval.evaluation.results import (
    MANIFEST,
    ROWS,
    TRANSCRIPTS,
    RunWriter,
    load,
    read_manifest,
    read_rows,
    to_line,
    write_verdicts,
)
from memeval.evaluation.rows import TurnRow, VerdictRow
from memeval.messages import ToolCall
from memeval.models.registry import register_model
from memeval.models.scripted import ScriptedModel

JUDGED = ["passed", "called", "arguments", "stored", "retrieved", "answered", "phantom_save", "broken_at"]
Retell = Callable[[str, str], None]


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A finished run of two stories, two designs, two repeats; every trial passes."""
    register_model("scripted:test", lambda: ScriptedModel(scripted))
    memeval.run(sweep(tmp_path), tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def retell(tmp_path: Path) -> Retell:
    """Changes the text of the stories."""

    def change(old: str, new: str) -> None:
        path = tmp_path / "stories.yaml"
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")

    return change


@pytest.fixture
def gone_on(made: Path, retell: Retell, tmp_path: Path) -> Path:
    """The same run, gone on with after its question was told in other words."""
    plan = sweep(tmp_path / "elsewhere")
    plan["scenarios"] = [str(tmp_path / "stories.yaml")]
    retell("What language do I prefer?", "Which language do I prefer?")
    memeval.run(plan, made)
    return made


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    return [row for row in read_rows(folder) if row["table"] == table]


def test_the_same_rules_and_stories_move_nothing_and_write_nothing(made: Path) -> None:
    before = [(made / name).read_bytes() for name in (ROWS, MANIFEST)]
    found = memeval.rescore(made)
    assert (found.trials, found.rescored, found.kept, found.moves, found.moved) == (8, 0, {}, [], [])
    assert [(made / name).read_bytes() for name in (ROWS, MANIFEST)] == before


def test_other_expectations_move_verdicts_and_the_rows_before_stay(made: Path, retell: Retell) -> None:
    before = (made / ROWS).read_bytes()
    retell("states: [language]", "avoids: [language]")
    found = memeval.rescore(made)
    assert (found.rescored, len(found.moved), found.relabelled) == (8, 8, 0)
    assert found.moves == [
        {"column": "passed", "before": True, "after": False, "trials": 8, "turns": 8},
        {"column": "answered", "before": True, "after": False, "trials": 8, "turns": 8},
    ]
    assert found.moved[0]["turns"] == [
        {
            "session": 2, "turn": 1,
            "before": {"passed": True, "answered": True}, "after": {"passed": False, "answered": False},
        }
    ]  # fmt: skip
    assert (made / ROWS).read_bytes().startswith(before)
    trials = load(made).trials
    assert trials["passed"].tolist() == [False] * 8
    assert set(trials["broken_at"]) == {"s2t1 answered"}
    turns = load(made).turns
    assert turns.groupby("session")["passed"].sum().to_dict() == {1: 8, 2: 0}


def test_a_null_takes_the_place_of_false_and_the_last_verdict_counts(made: Path, retell: Retell) -> None:
    first = load(made).trials[JUDGED]
    retell("intent: remember, facts: [language]", "intent: forget, facts: [language]")
    memeval.rescore(made)
    told = load(made).turns.query("session == 1")
    # neither design can delete: the stage does not apply
    assert told["called"].isna().all()
    assert told["stored"].isna().all()
    retell("intent: forget", "intent: compact")
    memeval.rescore(made)
    assert set(load(made).turns.query("session == 1")["intent"]) == {"compact"}
    retell("intent: compact", "intent: remember")
    memeval.rescore(made)
    assert_frame_equal(load(made).trials[JUDGED], first)
    assert len(rows(made, "verdict")) == 24


def test_once_rescored_nothing_is_left_to_rescore(made: Path, retell: Retell) -> None:
    retell("states: [language]", "avoids: [language]")
    memeval.rescore(made)
    assert memeval.rescore(made).rescored == 0
    assert memeval.rescore(made, everything=True).rescored == 8
    assert len(rows(made, "verdict")) == 16


def test_expectations_that_move_nothing_are_noted_all_the_same(made: Path, retell: Retell) -> None:
    retell("values: [Elixir]", "values: [Elixir, elixir-lang]")
    found = memeval.rescore(made)
    assert (found.rescored, found.moved) == (8, [])
    trials = load(made).trials
    manifest = read_manifest(made)
    assert {story["expected"] for story in manifest["scenarios"].values()} == set(trials["expected"])
    assert [(e["trials"], e["moved"], e["scorer"]) for e in manifest["rescored"]] == [(8, 0, module.SCORER)]


def test_a_newer_scorer_judges_again_and_an_older_one_does_not(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SCORER", "1000")
    assert memeval.rescore(made).rescored == 8
    assert set(load(made).trials["scorer"]) == {"1000"}
    assert read_manifest(made)["scorer"] == "1000"
    monkeypatch.setattr(module, "SCORER", "999")
    found = memeval.rescore(made, everything=True)
    assert (found.rescored, found.kept) == (0, {"newer_scorer": 8})


def test_labels_of_stories_and_turns_are_todays(made: Path, retell: Retell) -> None:
    retell("family: story-0", "family: another")
    retell("expect: {intent: remember", "strength: please\n        expect: {intent: update")
    found = memeval.rescore(made)
    assert (found.rescored, found.relabelled, found.moved) == (8, 8, [])
    run = load(made)
    assert set(run.trials["family"]) == {"another", "story-1"}
    assert set(run.turns["family"]) == {"another", "story-1"}
    assert set(run.turns.query("session == 1")["strength"]) == {"please"}
    assert set(run.turns.query("session == 1")["intent"]) == {"update"}
    assert read_manifest(made)["scenarios"]["story-0"]["family"] == "another"


def test_a_story_shown_otherwise_keeps_its_verdicts(made: Path, retell: Retell) -> None:
    retell("What language do I prefer?", "Which language do I prefer?")
    found = memeval.rescore(made, everything=True)
    assert (found.trials, found.rescored, found.kept) == (8, 0, {"story_changed": 8})


def test_of_a_run_gone_on_with_only_trials_of_todays_story_are_rescored(
    gone_on: Path, retell: Retell
) -> None:
    retell("states: [language]", "avoids: [language]")
    found = memeval.rescore(gone_on)
    assert (found.trials, found.rescored, found.kept) == (8, 8, {})
    run = load(gone_on)
    assert (run.trials["passed"].sum(), run.left_out) == (0, 8)


def test_where_the_manifest_names_no_trials_those_of_older_stories_keep_their_verdicts(
    gone_on: Path, retell: Retell
) -> None:
    manifest = read_manifest(gone_on)
    for cell in manifest["cells"]:
        del cell["trial_keys"]
    (gone_on / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    retell("states: [language]", "avoids: [language]")
    found = memeval.rescore(gone_on)
    assert (found.trials, found.rescored, found.kept) == (16, 8, {"story_changed": 8})
    assert load(gone_on).trials["passed"].sum() == 8


def test_a_request_told_in_other_words_and_a_tool_named_by_the_design_are_the_story(
    tmp_path: Path, retell: Retell
) -> None:
    register_model("scripted:test", lambda: ScriptedModel(scripted))
    plan = sweep(tmp_path, stories=1, designs=["local2_dual", "local2_single"])
    retell("user: Please remember my preferred language is Elixir.",
           "user: Use {save_tool} to remember that I prefer Elixir.\n"
           "        paraphrases: [\"With {save_tool}, remember (please) Elixir.\"]")  # fmt: skip
    run = memeval.run(plan | {"perturb": ["request", "names"], "repeats": 4}, tmp_path / "run")
    assert set(run.trials["request"]) == {"as_written", "paraphrased"}
    assert set(run.trials["perturbed_names"]) == {"as_written", "neutral"}
    found = memeval.rescore(run.folder, everything=True)
    assert (found.trials, found.rescored, found.moved) == (8, 8, [])


def test_trials_without_evidence_keep_their_verdicts(made: Path, retell: Retell) -> None:
    retell("states: [language]", "avoids: [language]")
    lines = (made / TRANSCRIPTS).read_bytes().splitlines(keepends=True)
    (made / TRANSCRIPTS).write_bytes(b"".join(lines[:3]))
    found = memeval.rescore(made)
    assert (found.trials, found.rescored, found.kept) == (8, 3, {"no_evidence": 5})
    assert load(made).trials["passed"].sum() == 5
    (made / TRANSCRIPTS).unlink()
    assert memeval.rescore(made).kept == {"no_evidence": 8}
    assert load(made).trials["passed"].sum() == 5


def test_a_story_that_is_gone_is_said_and_found_where_it_is_named(
    made: Path, tmp_path: Path, retell: Retell
) -> None:
    retell("states: [language]", "avoids: [language]")
    (tmp_path / "moved").mkdir()
    (tmp_path / "stories.yaml").rename(tmp_path / "moved" / "tales.yaml")
    assert memeval.rescore(made).kept == {"story_missing": 8}
    assert memeval.rescore(made, [tmp_path / "moved"]).rescored == 8


def test_files_of_a_sweep_are_found_from_a_folder_above_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register_model("scripted:test", lambda: ScriptedModel(scripted))
    plan = sweep(tmp_path) | {"scenarios": ["./stories.yaml"]}
    monkeypatch.chdir(tmp_path)
    memeval.run(plan, "results/tiny")
    monkeypatch.chdir(Path(__file__).parent)
    found = memeval.rescore(tmp_path / "results" / "tiny", everything=True)
    assert (found.rescored, found.moved) == (8, [])


def test_a_dry_run_says_the_same_and_writes_nothing(made: Path, retell: Retell) -> None:
    retell("states: [language]", "avoids: [language]")
    before = {path.name: path.read_bytes() for path in made.iterdir()}
    would = memeval.rescore(made, dry_run=True)
    assert {path.name: path.read_bytes() for path in made.iterdir()} == before
    done = memeval.rescore(made)
    assert (would.rescored, would.moves, would.moved) == (done.rescored, done.moves, done.moved)


def test_a_run_that_is_being_written_is_refused(made: Path) -> None:
    with (
        FileLock(made / ".lock"),
        pytest.raises(InputError, match="is being written by another memeval; give the same command"),
    ):
        memeval.rescore(made)


def test_a_folder_without_a_run_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="holds no run"):
        memeval.rescore(tmp_path / "empty")
    assert not list((tmp_path / "empty").iterdir())


def fails(messages: Any, tools: Any) -> Any:
    """Saves, then calls the same tool over and over: the trial fails in its second session."""
    return scripted(messages, tools) if len(messages) < 4 else ToolCall(tools[0].name, {"topic": "x"})


def leaks(messages: Any, tools: Any) -> Any:
    """Claims what it never does."""
    return "I have saved it: Elixir."


@pytest.mark.parametrize("script", [scripted, fails, leaks])
@pytest.mark.parametrize(
    "design", ["local2_dual", "oxydra_notes", "synthorg_context", "harness_runs", "none"]
)
def test_judged_again_by_the_same_rules_every_column_stays(tmp_path: Path, script: Any, design: str) -> None:
    def loops(messages: Any, tools: Any) -> Any:
        if script is fails and "remember" not in messages[-1].content and tools:
            return ToolCall(tools[0].name, {"topic": "x", "query": "x"})
        return script(messages, tools) if tools else "I have saved it."

    register_model("scripted:test", lambda: ScriptedModel(loops))
    run = memeval.run(sweep(tmp_path, stories=1, designs=[design], repeats=1), tmp_path / "run")
    found = memeval.rescore(run.folder, everything=True)
    again = load(run.folder)
    assert (found.rescored, found.moved, found.relabelled) == (1, [], 0)
    assert_frame_equal(again.trials.drop(columns="expected"), run.trials.drop(columns="expected"))
    assert_frame_equal(again.turns, run.turns)


def test_an_invalid_trial_has_no_verdict_to_renew(tmp_path: Path) -> None:
    left = ["once"]

    def trouble(messages: Any, tools: Any) -> Any:
        if left and "What language" in messages[-1].content:
            left.clear()
            raise InfrastructureError("too late", kind="timeout")
        return scripted(messages, tools)

    register_model("scripted:test", lambda: ScriptedModel(trouble))
    plan = sweep(tmp_path, stories=1, designs=["local2_dual"], repeats=2)
    run = memeval.run(plan, tmp_path / "run")
    assert sorted(run.trials["outcome"]) == ["invalid", "ok"]
    assert memeval.rescore(run.folder, everything=True).trials == 1
    # run again as a new attempt, it is judged from that attempt's evidence
    done = memeval.run(plan, tmp_path / "run")
    assert sorted(done.trials["attempt"]) == [1, 2]
    found = memeval.rescore(run.folder, everything=True)
    assert (found.rescored, found.moved) == (2, [])


def test_a_verdict_of_another_attempt_or_of_no_trial_is_not_seen(made: Path) -> None:
    run = load(made)
    key = run.trials["trial_key"][0]
    turn = {"session": 1, "turn": 1, "passed": False}
    write_verdicts(made, [VerdictRow(trial_key=key, attempt=2, turns=[turn]), VerdictRow(trial_key="nobody")])
    assert_frame_equal(load(made).trials, run.trials)
    assert_frame_equal(load(made).turns, run.turns)


def test_a_file_with_verdicts_cut_at_any_byte_opens_again(made: Path, retell: Retell) -> None:
    retell("states: [language]", "avoids: [language]")
    start = (made / ROWS).stat().st_size
    memeval.rescore(made)
    whole = (made / ROWS).read_bytes()
    ends = [at + 1 for at in range(start - 1, len(whole)) if whole[at : at + 1] == b"\n"]
    for size in [*range(start, len(whole), 97), *ends, *(end - 1 for end in ends[1:])]:
        (made / ROWS).write_bytes(whole[:size])
        judged = sum(end <= size for end in ends) - 1
        assert (~load(made).trials["passed"]).sum() == judged
        RunWriter(made).close()
        assert len(rows(made, "verdict")) == judged
        assert len(rows(made, "trial")) == 8
    assert memeval.rescore(made).rescored == 1
    assert (~load(made).trials["passed"]).sum() == 8


def test_what_a_kill_left_behind_is_gone_before_verdicts_are_written(made: Path, retell: Retell) -> None:
    retell("states: [language]", "avoids: [language]")
    with (made / ROWS).open("ab") as file:
        file.write(to_line("turn", TurnRow(trial_key="orphan", session=1, turn=1)) + b'{"table": "turn", "tr')
    memeval.rescore(made)
    assert not load(made).damaged
    assert not [row for row in rows(made, "turn") if row["trial_key"] == "orphan"]
    assert load(made).trials["passed"].sum() == 0


def test_a_run_goes_on_after_it_was_rescored(made: Path, retell: Retell, tmp_path: Path) -> None:
    retell("states: [language]", "avoids: [language]")
    memeval.rescore(made)
    plan = sweep(tmp_path / "elsewhere", repeats=3)
    plan["scenarios"] = [str(tmp_path / "stories.yaml")]
    done = memeval.run(plan, made)
    assert len(done.trials) == 12
    assert done.trials["passed"].sum() == 0
    assert done.trials["broken_at"].nunique() == 1


def test_expectations_that_change_before_a_run_goes_on_are_known_by_trial(
    made: Path, retell: Retell, tmp_path: Path
) -> None:
    before = {name: story["expected"] for name, story in read_manifest(made)["scenarios"].items()}
    plan = sweep(tmp_path / "elsewhere", repeats=3) | {"scenarios": [str(tmp_path / "stories.yaml")]}
    retell("values: [Elixir]", "values: [Elixir, elixir-lang]")
    run = memeval.run(plan, made)
    assert {name: story["expected"] for name, story in run.manifest["scenarios"].items()} == before
    third = run.trials["repeat"] == 2
    assert set(run.trials.loc[~third, "expected"]) == {""}
    assert not set(run.trials.loc[third, "expected"]) & {"", *before.values()}
    found = memeval.rescore(made)  # the older ones alone stand on other expectations
    assert (found.rescored, found.moved) == (8, [])


def test_a_story_that_is_what_it_was_stands_on_its_own_expectations_again(
    made: Path, retell: Retell, tmp_path: Path
) -> None:
    before = read_manifest(made)["scenarios"]
    plan = sweep(tmp_path / "elsewhere") | {"scenarios": [str(tmp_path / "stories.yaml")]}
    changes = [
        ("Please remember", "Please do remember"),
        ("values: [Elixir]", "values: [Elixir, elixir-lang]"),
    ]
    for old, new in changes:
        retell(old, new)
    other = memeval.run(plan, made)
    assert not any(other.manifest["scenarios"][name] == story for name, story in before.items())
    assert set(other.trials["expected"]) == {""}
    for old, new in changes:
        retell(new, old)
    again = memeval.run(plan, made)
    assert (again.manifest["scenarios"], set(again.trials["expected"])) == (before, {""})


def test_the_manifest_names_the_scorers_that_verdicts_stand_on(
    made: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plan = sweep(tmp_path / "elsewhere") | {"scenarios": [str(tmp_path / "stories.yaml")]}
    for module_of in ("runner", "recorder"):
        monkeypatch.setattr(f"memeval.evaluation.{module_of}.SCORER", "999")
    assert memeval.run(plan, made).manifest["scorer"] == module.SCORER
    run = memeval.run(plan | {"repeats": 3}, made)
    assert run.manifest["scorer"] == ", ".join(sorted(set(run.trials["scorer"]))) == f"{module.SCORER}, 999"
    assert memeval.run(plan | {"seed": 1}, made).manifest["scorer"] == "999"


def test_runs_from_before_are_loaded_and_keep_their_verdicts() -> None:
    results = Path(__file__).parents[2] / "results"
    for name in ("example", "please-remember", "designs", "dual-vs-single", "compaction"):
        run = load(results / name)
        assert len(run.trials)
        if not run.manifest.get("rescored"):
            assert set(run.trials["expected"]) == {""}
        found = memeval.rescore(run.folder, dry_run=True)
        assert found.kept == {"no_evidence": found.trials}


def test_the_manifest_stays_json(made: Path, retell: Retell) -> None:
    retell("states: [language]", "avoids: [language]")
    before = read_manifest(made)
    memeval.rescore(made)
    after = json.loads((made / MANIFEST).read_text(encoding="utf-8"))
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed == {"rescored", "scenarios"}
    assert after["rescored"][0]["kept"] == {}
