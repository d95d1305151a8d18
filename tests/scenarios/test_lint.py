from typing import Any

import pytest

from memeval.scenarios.lint import lint
from memeval.scenarios.schema import Scenario


def story(name: str = "a", family: str = "f", tags: list[str] | None = None, **parts: Any) -> Scenario:
    facts = parts.get("facts", {"colour": {"text": "It is teal.", "values": ["teal"]}})
    tell = {"user": "My colour is teal.", "expect": {"intent": "remember", "facts": ["colour"]}}
    ask = {"user": "Which colour?", "expect": {"intent": "recall", "answer": {"states": ["colour"]}}}
    sessions = parts.get(
        "sessions",
        [
            {"at": "2026-01-01T09:00:00Z", "turns": [parts.get("tell", tell)]},
            {"at": "2026-01-02T09:00:00Z", "turns": [parts.get("ask", ask)]},
        ],
    )
    data = {"scenario": name, "family": family, "title": "T", "tags": tags or [], "facts": facts}
    return Scenario.model_validate({**data, "sessions": sessions})


def rules(*stories: Scenario) -> list[str]:
    return [finding.rule for finding in lint(stories)]


def asking(user: str, **answer: Any) -> dict[str, Any]:
    return {"user": user, "expect": {"intent": "recall", "facts": ["colour"], "answer": answer}}


def test_a_sound_story_has_no_findings() -> None:
    assert rules(story()) == []


def test_a_question_that_names_its_answer_is_found() -> None:
    assert rules(story(ask=asking("Is it Teal?", states=["colour"]))) == ["echo"]
    assert rules(story(ask=asking("Is it tealish?", states=["colour"]))) == []


@pytest.mark.parametrize("word", ["memory_save", "save_topic", "recall_memory", "local2_dual", "a tool call"])
def test_naming_a_tool_or_a_design_is_found(word: str) -> None:
    assert rules(story(ask=asking(f"Use {word}: which colour?", states=["colour"]))) == ["machinery"]


@pytest.mark.parametrize("value", ["7", "The", "yes"])
def test_a_value_that_turns_up_by_chance_is_found(value: str) -> None:
    facts = {"colour": {"text": "It is teal.", "values": ["teal", value]}}
    assert "weak-value" in rules(story(facts=facts, ask=asking("Hm?", states=["colour"])))


def test_a_fact_that_nothing_uses_is_found() -> None:
    facts = {
        "colour": {"text": "It is teal.", "values": ["teal"]},
        "size": {"text": "It is wide.", "values": ["wide"]},
    }
    assert rules(story(facts=facts)) == ["unused-fact"]


def test_a_fact_that_was_never_told_to_this_user_is_found() -> None:
    told = {"user": "My colour is secret.", "expect": {"intent": "remember", "facts": ["colour"]}}
    assert rules(story(tell=told)) == ["never-planted"]
    sessions = [
        {"at": "2026-01-01T09:00:00Z", "user": "ann", "turns": [{"user": "My colour is teal."}]},
        {"at": "2026-01-02T09:00:00Z", "user": "bob", "turns": [asking("Which colour?", states=["colour"])]},
    ]
    assert rules(story(sessions=sessions)) == ["never-planted"]
    sessions[1]["given"] = [{"text": "The colour is teal."}]
    assert rules(story(sessions=sessions)) == []


def test_sessions_out_of_time_order_are_found() -> None:
    turns = [{"user": "My colour is teal."}, asking("Which?", states=["colour"])]
    sessions = [{"at": f"2026-01-0{day}T09:00:00Z", "turns": turns} for day in (2, 2)]
    assert rules(story(sessions=sessions)) == ["time-order"]


def test_a_value_to_avoid_inside_one_to_state_is_found() -> None:
    facts = {
        "colour": {"text": "It is dark teal.", "values": ["dark teal"]},
        "old": {"text": "It was teal.", "values": ["teal"]},
    }
    told = {"user": "My colour is dark teal.", "expect": {"intent": "remember", "facts": ["colour"]}}
    ask = asking("Which colour?", states=["colour"], avoids=["old"])
    assert rules(story(facts=facts, tell=told, ask=ask)) == ["overlapping-values"]


def test_a_decoy_that_forbids_nothing_is_found() -> None:
    assert rules(story(tags=["decoy"])) == ["decoy-without-forbid"]
    ask = {"user": "Remember us?", "expect": {"forbid": ["remember", "note", "update"]}}
    assert rules(story(tags=["decoy"], ask=ask)) == []


def test_a_story_that_expects_nothing_is_found() -> None:
    sessions = [{"turns": [{"user": "Hello.", "expect": {}}]}]
    assert rules(story(facts={}, sessions=sessions)) == ["nothing-expected"]


def test_a_value_shared_by_two_families_is_found_and_named() -> None:
    found = lint([story("a", "f"), story("b", "g"), story("c", "f")])
    assert [(f.scenario, f.rule) for f in found] == [("b", "shared-value")]
    assert "'a', of family 'f'" in str(found[0])
