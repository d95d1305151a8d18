"""What a verdict was reached from is kept, and gives the same verdict again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from runs import scripted, sweep
from stories import ASK, DECOY, ELIXIR, REMEMBER, run, story

import memeval
from memeval.evaluation.checks import Verdict, judge
from memeval.evaluation.evidence import read_back, record_from, written
from memeval.evaluation.recorder import TrialResult
from memeval.evaluation.results import TRANSCRIPTS, from_line
from memeval.messages import Message, Tool, ToolCall
from memeval.models.registry import register_model
from memeval.models.scripted import ScriptedModel
from memeval.scenarios.schema import SAVE_TOOL, Scenario

DESIGNS = ["local2_dual", "local2_single", "oxydra_notes", "synthorg_context", "harness_runs", "full_context"]


def again(result: TrialResult, scenario: Scenario, serves: frozenset[str]) -> list[Verdict]:
    """The verdicts from the evidence alone, after it went through JSON."""
    evidence = json.loads(json.dumps(result.transcript.evidence))
    found = []
    for judged in read_back(evidence):
        expect = scenario.sessions[judged.session - 1].turns[judged.turn - 1].expect
        found.append(
            judge(judged.trace, expect, scenario.facts, judged.store, serves, judged.said_before)  # type: ignore[arg-type]
        )
    return found


def honest(messages: Sequence[Message], tools: Sequence[Tool]) -> ToolCall | str:
    """Uses the first tool that writes where asked to remember, else the first that reads."""
    last = messages[-1]
    if last.role == "tool":
        return "It is Elixir."
    wanted = "write" if "remember" in last.content.lower() else "read"
    for tool in tools:
        if tool.effect == wanted:
            names = tool.parameters.get("required", ()) or list(tool.parameters["properties"])[:1]
            said = {name: "user.language" if name == "topic" else "Elixir" for name in names}
            return ToolCall(tool.name, said)
    return "I have saved it."


@pytest.mark.parametrize("design", DESIGNS)
def test_the_evidence_gives_the_same_verdicts_again(design: str) -> None:
    tale = story([REMEMBER, ASK], [ASK, DECOY])
    result = run(tale, honest, design)
    from memeval.designs import open_design

    serves = open_design(design)().serves()
    kept = [Verdict(*(getattr(turn, name) for name in Verdict._fields)) for turn in result.turns]
    assert again(result, tale, serves) == kept


def test_a_record_survives_its_way_to_disk() -> None:
    tale = story([REMEMBER])
    result = run(tale, honest, "local2_single")
    changed = result.transcript.evidence[0]["changed"]
    assert changed
    for data in changed.values():
        assert written(record_from(json.loads(json.dumps(data)))) == data


def test_only_what_changed_is_written_down() -> None:
    tale = story([REMEMBER, ASK], [ASK])
    result = run(tale, honest, {"local2_single": {"write_path": "tool"}})
    assert ["changed" in turn for turn in result.transcript.evidence] == [True, False, False]


def test_the_transcripts_of_a_run_hold_the_evidence(tmp_path: Path) -> None:
    register_model("scripted:test", lambda: ScriptedModel(scripted))
    memeval.run(sweep(tmp_path, stories=1), tmp_path / "run")
    lines = (tmp_path / "run" / TRANSCRIPTS).read_bytes().splitlines(keepends=True)
    kept = [from_line(line) for line in lines]
    assert kept
    assert all(len(row["evidence"]) == 2 for row in kept if row)


NAMED = {**REMEMBER, "user": f"Use {SAVE_TOOL} to keep that I prefer Elixir.", "strength": "named"}


@pytest.mark.parametrize(
    ("design", "name"),
    [("local2_dual", "memory_save"), ("local2_single", "save_topic"), ("oxydra_notes", "memory_save")],
)
def test_the_placeholder_names_the_designs_own_saving_tool(design: str, name: str) -> None:
    result = run(story([NAMED]), honest, design)
    said = [m["content"] for m in result.transcript.messages if m["role"] == "user"]
    assert said[0] == f"Use {name} to keep that I prefer Elixir."
    assert result.turns[0].strength == "named"


def test_a_story_that_names_the_saving_tool_is_left_out_where_there_is_none(tmp_path: Path) -> None:
    register_model("scripted:test", lambda: ScriptedModel(scripted))
    plan = sweep(tmp_path, stories=1, designs=["none", "local2_single"], repeats=1)
    path = tmp_path / "stories.yaml"
    text = path.read_text()
    named = text.replace("story-0", "story-named").replace("Please remember my", f"Use {SAVE_TOOL}, my")
    path.write_text(text + "---" + named)
    found = memeval.run(plan, tmp_path / "run")
    told = found.trials.groupby("design")["scenario"].nunique().to_dict()
    assert told == {"none": 1, "local2_single": 2}
    assert [item["reason"] for item in found.manifest["unsupported"]] == [
        "scripted:test: 1 stories name its saving tool, and it has none"
    ]


def test_the_split_follows_from_the_family_alone() -> None:
    tale = story([REMEMBER], facts={"language": ELIXIR})
    other = tale.model_copy(update={"scenario": "another"})
    assert tale.split == other.split
    families = [tale.model_copy(update={"family": f"family-{n}"}) for n in range(200)]
    assert 70 < sum(one.split == "test" for one in families) < 130


def test_nothing_written_nothing_kept() -> None:
    result = run(story([DECOY]), lambda messages, tools: "Yes!", "none")
    assert "changed" not in result.transcript.evidence[0]
