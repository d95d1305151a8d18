"""`memeval rescore`: what is said, what is written, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_setting import Invoke
from filelock import FileLock

from memeval.messages import Reply
from memeval.models.registry import register_model
from memeval.models.scripted import ScriptedModel


@pytest.fixture
def stricter(done: Path, tmp_path: Path) -> Path:
    """The finished run, after one story came to ask more of the reply: it must name the colour."""
    path = tmp_path / "warm.yaml"
    path.write_text(path.read_text().replace("confirms: [colour]", "states: [colour]"))
    return done


def test_nothing_moved_is_said(invoke: Invoke, done: Path) -> None:
    result = invoke("rescore", done)
    assert result.exit_code == 0
    assert result.stdout.startswith("0 of 8 trials got a new verdict by scorer")
    assert "8 trials: nothing differs." in result.stdout


def test_what_moved_is_counted_and_listed(invoke: Invoke, stricter: Path) -> None:
    told = invoke("rescore", stricter).stdout
    assert "4 of 8 trials got a new verdict" in told
    assert "4 moved" in told
    lines = told.splitlines()
    (counted,) = (line for line in lines if line.startswith("passed"))
    assert counted.split() == ["passed", "✓", "✗", "4", "4"]
    listed = [line for line in lines if "passed ✓→✗; s1t1 passed ✓→✗, answered ✓→✗" in line]
    assert len(listed) == 4
    assert all("warm" in line and "scripted:cli" in line for line in listed)
    assert sum("local2_dual write_path=tool" in line for line in listed) == 2
    assert json.loads(invoke("show", stricter, "--json").stdout)["cells"][0]["passed"] == 0


def test_a_dry_run_writes_nothing(invoke: Invoke, stricter: Path) -> None:
    before = {path.name: path.read_bytes() for path in stricter.iterdir()}
    told = invoke("rescore", stricter, "--dry-run").stdout
    assert "4 of 8 trials would get a new verdict" in told
    assert told.endswith("Nothing was written.\n")
    assert {path.name: path.read_bytes() for path in stricter.iterdir()} == before


def test_as_json_it_is_json_alone(invoke: Invoke, stricter: Path) -> None:
    data = json.loads(invoke("rescore", stricter, "--json").stdout)
    assert (data["trials"], data["rescored"], data["kept"]) == (8, 4, {})
    assert {move["column"] for move in data["moves"]} == {"passed", "answered"}
    first = data["moved"][0]
    assert (first["scenario"], first["model"], first["calling"]) == ("warm", "scripted:cli", "native")
    assert first["turns"][0]["after"] == {"passed": False, "answered": False}


def test_all_writes_a_verdict_for_every_trial(invoke: Invoke, done: Path) -> None:
    assert "8 of 8 trials got a new verdict" in invoke("rescore", done, "--all").stdout


def test_what_keeps_its_verdict_is_said_with_the_reason(invoke: Invoke, stricter: Path) -> None:
    lines = (stricter / "transcripts.jsonl").read_bytes().splitlines(keepends=True)
    (stricter / "transcripts.jsonl").write_bytes(b"".join(lines[:-1]))
    assert "1 trial keeps its verdict: no evidence was kept." in invoke("rescore", stricter).stdout
    (stricter / "transcripts.jsonl").unlink()
    told = invoke("rescore", stricter).stdout
    assert "8 trials keep their verdicts: no evidence was kept." in told


def test_stories_may_be_named(invoke: Invoke, stricter: Path) -> None:
    told = invoke("rescore", stricter, "--scenarios", "./cold.yaml").stdout
    assert "4 trials keep their verdicts: their story was not found" in told
    result = invoke("rescore", stricter, "--scenarios", "nowhere.yaml")
    assert result.exit_code == 2
    assert "nowhere.yaml" in result.stderr


def test_a_run_under_way_and_no_run_are_refused(invoke: Invoke, done: Path, tmp_path: Path) -> None:
    with FileLock(done / ".lock"):
        result = invoke("rescore", done)
    assert result.exit_code == 2
    assert "is being written by another memeval" in result.stderr
    assert invoke("rescore", tmp_path).exit_code == 2


def test_a_judge_gives_its_agreement_and_changes_no_verdict(invoke: Invoke, done: Path) -> None:
    opinion = Reply(content='{"verdict": "no", "reason": "Hm."}')
    register_model("scripted:judge", lambda: ScriptedModel(lambda m, t: opinion))
    rows = (done / "rows.jsonl").read_bytes()
    told = invoke("rescore", done, "--judge", "scripted:judge")
    assert told.exit_code == 0
    assert "agrees with the rules on 0 of 8 turns" in told.stdout
    assert "Where they differ: 8 of 8" in told.stdout
    assert (done / "rows.jsonl").read_bytes() == rows
    data = json.loads(invoke("rescore", done, "--judge", "scripted:judge", "--json").stdout)
    assert (data["rules_only"], data["judge_only"]) == (8, 0)


def test_a_judge_that_answers_prose_gives_no_verdict_and_says_so(invoke: Invoke, done: Path) -> None:
    register_model("scripted:judge", lambda: ScriptedModel(lambda m, t: "Well, I rather like it."))
    told = invoke("rescore", done, "--judge", "scripted:judge")
    assert "gave no verdict on any of 8 turns" in told.stdout
    assert told.stdout.count("No verdict on ") == 8
