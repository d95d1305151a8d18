"""Each kind of failure is blamed on the stage that was broken on purpose."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from runs import STORY

import memeval
from memeval.analysis.blame import blame, read_blame, waterfall
from memeval.errors import InputError
from memeval.evaluation.results import ROWS, TRANSCRIPTS
from memeval.messages import Message, Tool, ToolCall
from memeval.models.registry import register_model
from memeval.models.scripted import ScriptedModel

Script = Callable[[Sequence[Message], Sequence[Tool]], Any]
FACT = "The language is Elixir."


def honest(messages: Sequence[Message], tools: Sequence[Tool]) -> Any:
    """Saves what it is asked to, looks it up, and says what it found."""
    last = messages[-1]
    if last.role == "tool":
        return "It is Elixir." if "Elixir" in last.content else "I found nothing."
    if FACT in last.content:
        return "It is Elixir."
    if "remember" in last.content:
        return ToolCall("save_memory", {"content": "What language do I prefer? Elixir."})
    return ToolCall("search_memory", {"query": "The language is what?"})


def never_saves(messages: Sequence[Message], tools: Sequence[Tool]) -> Any:
    if "remember" in messages[-1].content:
        return "I will remember that."
    return honest(messages, tools)


def saves_badly(messages: Sequence[Message], tools: Sequence[Tool]) -> Any:
    if "remember" in messages[-1].content:
        return ToolCall("save_memory", {"content": "The user prefers a language."})
    return honest(messages, tools)


def never_looks(messages: Sequence[Message], tools: Sequence[Tool]) -> Any:
    last = messages[-1]
    if last.role == "user" and "What language" in last.content and FACT not in last.content:
        return "I do not know."
    return honest(messages, tools)


def asks_badly(messages: Sequence[Message], tools: Sequence[Tool]) -> Any:
    """Looks in the drawer of another topic."""
    last = messages[-1]
    if last.role == "user" and "What language" in last.content and FACT not in last.content:
        return ToolCall("recall_topic", {"topic": "user.shoes"})
    if last.role == "user" and "remember" in last.content:
        return ToolCall("save_topic", {"topic": "user.language", "content": FACT})
    return honest(messages, tools)


def ignores_results(messages: Sequence[Message], tools: Sequence[Tool]) -> Any:
    last = messages[-1]
    if last.role == "tool" and any("What language" in m.content for m in messages):
        return "I could not say."
    return honest(messages, tools)


def ran(tmp_path: Path, script: Script, design: Any = None, repeats: int = 1) -> Path:
    tmp_path.mkdir(parents=True, exist_ok=True)
    story = tmp_path / "story.yaml"
    story.write_text(STORY.format(name="tale"))
    register_model("scripted:blame", lambda: ScriptedModel(script))
    sweep = {
        "sweep": "blamed", "scenarios": [str(story)],
        "designs": [design or {"local2_single": {"write_path": "tool"}}], "models": ["scripted:blame"],
        "embedders": ["hash"], "store": "inmemory", "repeats": repeats,
    }  # fmt: skip
    memeval.run(sweep, tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("script", "stage"),
    [
        (never_saves, "did not save"),
        (saves_badly, "saved badly"),
        (never_looks, "did not look"),
        (asks_badly, "asked badly"),
        (ignores_results, "retrieved but unused"),
    ],
)
def test_a_stage_broken_on_purpose_is_the_one_that_is_blamed(
    tmp_path: Path, script: Script, stage: str
) -> None:
    found = blame(ran(tmp_path, script))
    assert list(found["blamed"]) == [stage]
    assert found["right"][0]["control"] == 0


def test_a_search_that_finds_nothing_is_blamed_on_retrieval(tmp_path: Path) -> None:
    """A floor that only equal words reach: asking better does not help, a hit does."""

    def look(messages: Sequence[Message], tools: Sequence[Tool]) -> Any:
        last = messages[-1]
        if last.role == "tool" and "What language" in str([m.content for m in messages]):
            return "It is Elixir." if "Elixir" in last.content else "Nothing."
        return honest(messages, tools)

    design = tmp_path / "deaf.py"
    tmp_path.mkdir(parents=True, exist_ok=True)
    design.write_text(
        """
from memeval.designs.base import MemoryDesign
from memeval.designs.tools import save_tool, search_tool
from memeval.memory.ranking import SimilarityFloor

class Deaf(MemoryDesign):
    name = "deaf"
    def tools(self):
        return [save_tool("save_memory", "Keep a note."),
                search_tool("search_memory", "Find notes.", ranker=SimilarityFloor(0.999))]
"""
    )
    found = blame(ran(tmp_path, look, f"{design}:Deaf"))
    assert list(found["blamed"]) == ["not retrieved"]


def test_two_broken_stages_are_called_that(tmp_path: Path) -> None:
    def neither(messages: Sequence[Message], tools: Sequence[Tool]) -> Any:
        if "What language" in messages[-1].content and FACT not in messages[-1].content:
            return "I do not know."
        return never_saves(messages, tools)

    found = blame(ran(tmp_path, neither))
    assert list(found["blamed"]) == ["more than one stage"]


def test_what_the_control_gets_right_as_often_is_not_credited_to_a_repair(tmp_path: Path) -> None:
    """A model that is right every other time, whatever memory holds."""
    asked = 0

    def moody(messages: Sequence[Message], tools: Sequence[Tool]) -> Any:
        nonlocal asked
        if "remember" in messages[-1].content:
            return "Fine."
        asked += 1
        return "It is Elixir." if asked % 2 == 0 else "Who knows."

    found = blame(ran(tmp_path, moody))
    assert list(found["blamed"]) == ["unstable"]
    assert 1 <= found["right"][0]["control"] <= 4


def test_a_trial_without_a_reply_is_not_replayed(tmp_path: Path) -> None:
    def loops(messages: Sequence[Message], tools: Sequence[Tool]) -> Any:
        return ToolCall("search_memory", {"query": "x"})

    found = blame(ran(tmp_path, loops))
    assert list(found["blamed"]) == ["no usable reply"]
    assert not found["in_sample"].any()
    assert waterfall(found).empty


def test_blame_goes_on_where_it_was_stopped_and_asks_nothing_twice(tmp_path: Path) -> None:
    folder = ran(tmp_path, never_saves, repeats=3)
    first = blame(folder, most=1)
    assert len(first) == 1
    kept = (folder / "blame.jsonl").read_bytes()
    again = blame(folder, most=3)
    assert len(again) == 3
    assert (folder / "blame.jsonl").read_bytes().startswith(kept)
    assert blame(folder).equals(read_blame(folder))


def test_every_substitution_is_tried_where_that_is_asked_for(tmp_path: Path) -> None:
    found = blame(ran(tmp_path, never_saves), every=True)
    assert set(found["right"][0]) == {"control", "gold write", "oracle hit", "in context"}
    assert set(found["not_tried"][0]) == {"gold text", "forced recall", "gold query"}


def test_the_waterfall_adds_up_to_the_sample(tmp_path: Path) -> None:
    stages = waterfall(blame(ran(tmp_path, never_saves, repeats=2)))
    assert stages["failures"].sum() == 2
    assert set(stages["sampled"]) == {2}


def test_a_run_without_transcripts_is_refused_in_one_sentence(tmp_path: Path) -> None:
    folder = ran(tmp_path, never_saves)
    (folder / TRANSCRIPTS).unlink()
    with pytest.raises(InputError, match="holds no transcripts"):
        blame(folder)


def test_a_replay_leaves_the_run_as_it_was(tmp_path: Path) -> None:
    folder = ran(tmp_path, never_saves)
    before = (folder / ROWS).read_bytes(), json.loads((folder / "manifest.json").read_text())
    blame(folder)
    assert ((folder / ROWS).read_bytes(), json.loads((folder / "manifest.json").read_text())) == before
    assert isinstance(read_blame(folder), pd.DataFrame)
