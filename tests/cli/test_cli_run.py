"""`memeval run`, `show` and `report` over a scripted model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_setting import Invoke, write_sweep

from memeval.messages import Reply
from memeval.models.registry import register_model
from memeval.models.scripted import ScriptedModel


def test_a_run_prints_a_table_and_the_next_command(invoke: Invoke, sweep: Path) -> None:
    result = invoke("run", sweep)
    assert result.exit_code == 0
    assert "local2_dual write_path=tool" in result.stdout
    assert "50% (2/4)" in result.stdout
    assert "Pooled over\nstories and repeats" in result.stdout
    assert "memeval report results/small" in result.stdout
    assert "smoke test" in result.stdout
    assert "8 of 8 trials" in result.stderr


@pytest.mark.parametrize(("loading", "said"), [(1.0, True), (0.1, False)])
def test_a_server_that_loads_its_models_over_and_over_is_spoken_of(
    invoke: Invoke, sweep: Path, loading: float, said: bool
) -> None:
    reply = Reply(content="Noted.", seconds=2.0, load_seconds=loading)
    register_model("scripted:cli", lambda: ScriptedModel(lambda messages, tools: reply, "scripted:cli"))
    found = invoke("run", sweep).stdout
    assert ("The server loaded a model 8 times in 8 trials" in found) is said
    assert ("OLLAMA_MAX_LOADED_MODELS" in found) is said


def test_a_run_as_json_is_json_alone(invoke: Invoke, sweep: Path) -> None:
    data = json.loads(invoke("run", sweep, "--json").stdout)
    dual, none = data["cells"]
    assert (dual["trials"], dual["passed"], dual["called"], dual["stored"], dual["invalid"]) == (
        4,
        2,
        2,
        2,
        0,
    )
    assert (none["variant"], none["called_of"]) == ("none", 0)
    assert data["next"] == "memeval report results/small"


def test_the_same_command_goes_on_and_runs_nothing_twice(invoke: Invoke, sweep: Path, done: Path) -> None:
    before = (done / "rows.jsonl").read_bytes()
    result = invoke("run", sweep)
    assert result.exit_code == 0
    assert (done / "rows.jsonl").read_bytes() == before


def test_a_dry_run_writes_nothing_and_says_that_it_cannot_know_the_time(
    invoke: Invoke, sweep: Path, tmp_path: Path
) -> None:
    result = invoke("run", sweep, "--dry-run")
    assert result.exit_code == 0
    assert "8 trials, 8 to run" in result.stdout
    assert "Estimate: not known" in result.stdout
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"repeats": 3}, "With 3 repeats one tool order comes more often (read_first 2, write_first 1)"),
        ({"repeats": 1}, "With 1 repeat one tool order comes more often (read_first 1, write_first 0)"),
        ({"repeats": 2}, ""),
        ({"repeats": 3, "tool_order": "read_first"}, ""),
        ({"repeats": 3, "designs": ["none"]}, ""),
    ],
)
def test_a_dry_run_says_where_tool_orders_cannot_be_balanced(
    invoke: Invoke, sweep: Path, changes: dict[str, object], said: str
) -> None:
    write_sweep(sweep, **changes)
    told = invoke("run", sweep, "--dry-run").stdout
    assert said in told
    assert ("comes more often" in told) is bool(said)


def test_a_dry_run_shows_repeats_that_differ_by_story_and_the_order(invoke: Invoke, sweep: Path) -> None:
    write_sweep(sweep, parts=[{"repeats": 2}, {"repeats": 4, "scenarios": ["./warm.yaml"]}])
    told = invoke("run", sweep, "--dry-run").stdout
    assert "12 trials, 12 to run" in told
    assert told.count("up to 4") == 2
    assert "blocks of 7 scenarios" in told


def test_trials_that_the_sweep_no_longer_plans_are_spoken_of(invoke: Invoke, sweep: Path, done: Path) -> None:
    assert "left out" not in invoke("show", done).stdout
    write_sweep(sweep, repeats=1)
    said = "Trials left out: 4, of other cells, stories, seeds or repeats than the sweep had"
    assert said in invoke("run", sweep).stdout
    assert said in invoke("show", done).stdout
    assert json.loads(invoke("show", done, "--json").stdout)["left_out"] == 4


def test_cells_of_two_tool_orders_are_told_apart_before_and_after_a_run(
    invoke: Invoke, sweep: Path, tmp_path: Path
) -> None:
    assert "; tools: balanced." in invoke("run", sweep, "--dry-run").stdout
    design = {"local2_dual": {"write_path": "tool"}}
    parts = [{"tool_order": order, "designs": [design]} for order in ("read_first", "write_first")]
    write_sweep(
        sweep,
        parts=[*parts, {"tool_order": "read_first", "surfaces": [{"shape": "split"}], "designs": [design]}],
    )
    before = invoke("run", sweep, "--dry-run").stdout
    assert "tools: each cell as its column says." in before
    for order in ("read_first", "write_first"):
        assert any("local2_dual write_path=tool " in line and order in line for line in before.splitlines())
    data = json.loads(invoke("run", sweep, "--dry-run", "--json").stdout)
    assert data["tool_order"] == ["read_first", "write_first"]
    done = invoke("run", sweep).stdout
    assert done.count("write_first") == 1
    assert any("[split]" in line and "read_first" in line for line in done.splitlines())
    cells = json.loads(invoke("show", tmp_path / "results" / "small", "--json").stdout)["cells"]
    assert {(cell["shape"], cell["tool_order"]) for cell in cells} == {
        ("as_written", "read_first"), ("as_written", "write_first"), ("split", "read_first"),
    }  # fmt: skip


def test_a_dry_run_names_cells_a_model_cannot_do(invoke: Invoke, tmp_path: Path, sweep: Path) -> None:
    write_sweep(sweep, models=["scripted:cli", "bundled:router"], calling=["constrained"])
    data = json.loads(invoke("run", sweep, "--dry-run", "--json").stdout)
    assert {cell["model"] for cell in data["cells"]} == {"scripted:cli"}
    assert any("bundled:router cannot do constrained" in item["reason"] for item in data["unsupported"])
    assert not (tmp_path / "results").exists()


def test_a_dry_run_estimates_from_the_trials_that_are_there(invoke: Invoke, sweep: Path, done: Path) -> None:
    write_sweep(sweep, repeats=4)
    data = json.loads(invoke("run", sweep, "--dry-run", "--json").stdout)
    assert (data["trials"], data["to_run"]) == (16, 8)
    assert data["estimated_seconds"] is not None
    assert data["out"] == "results/small"
    assert done.is_dir()


def test_an_unknown_sweep_is_one_sentence(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("run", "foundig")
    assert result.exit_code == 2
    assert result.stderr == "memeval: there is no sweep file 'foundig'; did you mean 'founding'?\n"
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"models": ["scripted:cly"]}, "scripted:cly"),
        ({"designs": ["local2_duel"]}, "did you mean 'local2_dual'"),
        ({"embedders": ["hasch"]}, "did you mean 'hash'"),
        ({"repeatz": 3}, "unknown key 'repeatz'; did you mean 'repeats'"),
    ],
)
def test_a_wrong_name_ends_with_2_and_nothing_written(
    invoke: Invoke, sweep: Path, tmp_path: Path, changes: dict[str, object], said: str
) -> None:
    write_sweep(sweep, **changes)
    result = invoke("run", sweep)
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "results").exists()


def test_a_server_that_is_down_ends_with_4_and_nothing_written(
    invoke: Invoke, sweep: Path, tmp_path: Path
) -> None:
    write_sweep(sweep, models=["ollama:qwen3:4b"])
    result = invoke("run", sweep, "--host", "http://127.0.0.1:9")
    assert result.exit_code == 4
    assert "ollama serve" in result.stderr
    assert not (tmp_path / "results").exists()


def test_a_folder_of_another_sweep_is_refused(invoke: Invoke, sweep: Path, done: Path) -> None:
    write_sweep(sweep, sweep="other")
    for more in ([], ["--dry-run"]):
        result = invoke("run", sweep, "--out", done, *more)
        assert result.exit_code == 2
        assert "'small'" in result.stderr


def test_an_interrupt_says_what_is_kept(invoke: Invoke, sweep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(_sweep: object, _out: object, *, host: object, progress: Callable[..., None]) -> None:
        progress(0, 8, None)
        progress(3, 8, None)
        raise KeyboardInterrupt

    monkeypatch.setattr("memeval.evaluation.runner.run", stop)
    result = invoke("run", sweep)
    assert result.exit_code == 130
    assert "stopped; 3 of 8 trials are kept in results/small; the same command goes on" in result.stderr


def test_show_prints_cells_and_failures(invoke: Invoke, done: Path) -> None:
    result = invoke("show", done)
    assert result.exit_code == 0
    assert "Where trials broke" in result.stdout
    assert "s1t1 called" in result.stdout


def test_show_as_json_has_every_trial(invoke: Invoke, done: Path) -> None:
    data = json.loads(invoke("show", done, "--json").stdout)
    assert len(data["trials"]) == 8
    assert len(data["failures"]) == sum(trial["passed"] is False for trial in data["trials"])


def test_one_trial_is_shown_as_a_person_reads_it(invoke: Invoke, done: Path) -> None:
    result = invoke("show", done, "warm:0:dual")
    assert result.exit_code == 0
    assert 'call      memory_save(topic="user.colour", content="vermilion")' in result.stdout
    assert "called ✓  arguments ✓  stored ✓  retrieved –  answered ✓  passed ✓" in result.stdout


def test_what_a_model_wrote_cannot_steer_the_terminal(invoke: Invoke, done: Path) -> None:
    assert "\x1b" not in invoke("show", done, "warm:0:dual").stdout


def test_a_broken_stage_is_marked_and_what_depends_on_it_is_null(invoke: Invoke, done: Path) -> None:
    told = invoke("show", done, "cold:1:dual").stdout
    assert "not passed, broken at s1t1 called" in told
    assert "called ✗  arguments –  stored –" in told
    assert "phantom save" in told


def test_a_trial_is_found_by_the_start_of_its_key(invoke: Invoke, done: Path) -> None:
    trial = json.loads(invoke("show", done, "--json").stdout)["trials"][3]
    data = json.loads(invoke("show", done, trial["trial_key"][:10], "--json").stdout)
    assert data["trial"]["trial_key"] == trial["trial_key"]
    assert data["messages"][0]["role"] == "system"


def test_an_ambiguous_trial_is_listed(invoke: Invoke, done: Path) -> None:
    result = invoke("show", done, "warm")
    assert result.exit_code == 2
    assert "4 trials fit 'warm'" in result.stderr
    assert result.stdout.count("warm") == 4
    assert len(json.loads(invoke("show", done, "warm", "--json").stdout)) == 4


@pytest.mark.parametrize("wanted", ["warn", "warm:7", "warm:0:nodesign"])
def test_a_trial_that_is_not_there_is_one_sentence(invoke: Invoke, done: Path, wanted: str) -> None:
    result = invoke("show", done, wanted)
    assert result.exit_code == 2
    assert wanted in result.stderr
    assert result.stdout == ""


def test_verdicts_are_shown_where_transcripts_were_not_kept(invoke: Invoke, done: Path) -> None:
    (done / "transcripts.jsonl").unlink()
    told = invoke("show", done, "warm:0:dual").stdout
    assert "was not kept" in told
    assert "memory_save" in told
    assert "passed ✓" in told


def test_report_refuses_what_is_no_run(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("report", tmp_path)
    assert result.exit_code == 2
    assert result.stderr.startswith("memeval: ")


@pytest.mark.parametrize("given", ["level", "=3"])
def test_report_refuses_a_setting_without_name_or_value(invoke: Invoke, done: Path, given: str) -> None:
    result = invoke("report", done, "--set", given)
    assert result.exit_code == 2
    assert "not of the form name=value" in result.stderr


def test_report_passes_everything_on_and_prints_paths(
    invoke: Invoke, done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def report(*given: object) -> list[Path]:
        asked.extend(given)
        return [tmp_path / "a.html"]

    monkeypatch.setattr("memeval.reporting.report.report", report)
    args = ("--notebook", "tool_selection", "--set", "level=0.9", "--out", tmp_path)
    result = invoke("report", done, *args)
    assert asked == [done, "tool_selection", tmp_path, {"level": "0.9"}]
    assert result.stdout == f"{tmp_path / 'a.html'}\n"
