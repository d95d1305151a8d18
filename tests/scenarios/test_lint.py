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
    sessions = [{"turns": [{"user": "Hello.", "expect": {"calls": {"intents": []}}}]}]
    assert rules(story(facts={}, sessions=sessions)) == []


def test_a_value_shared_by_two_families_is_found_and_named() -> None:
    tell, ask = {"user": "I like teal."}, asking("What do I like?", states=["colour"])
    found = lint([story("a", "f"), story("b", "g", tell=tell, ask=ask)])
    assert [(f.scenario, f.rule) for f in found] == [("b", "shared-value")]
    assert "'a', of family 'f'" in str(found[0])


def test_a_paraphrase_that_names_the_answer_is_found() -> None:
    ask = asking("Which colour?", states=["colour"]) | {"paraphrases": ["What is it?", "Is it teal or red?"]}
    (found,) = lint([story(ask=ask)])
    assert (found.rule, "names 'teal'" in found.message) == ("echo", True)


MAELOR = {"caterer": {"text": "Cegin Maelor cooks.", "values": ["Cegin Maelor"], "key": "project.cegin"}}


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("Which caterer is it?", []),
        ("When do the people from Maelor come?", ["leak"]),
        ("When do the people from Maelors come?", []),
        ("Which Cegin is it?", []),  # what it is about stands in the key
    ],
)
def test_a_question_with_a_part_of_its_answer_is_found(question: str, found: list[str]) -> None:
    tell = {"user": "Cegin Maelor cooks."}
    ask = {"user": question, "expect": {"intent": "recall", "answer": {"states": ["caterer"]}}}
    assert rules(story(facts=MAELOR, tell=tell, ask=ask)) == found


def three(*turns: dict[str, Any], users: str = "aaa") -> list[dict[str, Any]]:
    """Sessions of one turn each, on three days, of the users of these letters."""
    days = [f"2026-01-0{day}T09:00:00Z" for day in (1, 2, 3)]
    return [{"at": d, "user": u, "turns": [t]} for d, u, t in zip(days, users, turns, strict=True)]


TELL = {"user": "My colour is teal.", "expect": {"intent": "remember", "facts": ["colour"]}}
ASK = asking("Which colour?", states=["colour"])


@pytest.mark.parametrize(
    "between",
    [
        {"user": "Does teal go with brown?"},
        {"user": "Find what goes with teal.", "expect": {"intent": "search"}},
        {"user": "Does teal go with brown?", "expect": {"intent": "none", "forbid": ["remember"]}},
    ],
)
def test_a_question_that_names_what_is_asked_for_later_is_found(between: dict[str, Any]) -> None:
    (found,) = lint([story(sessions=three(TELL, between, ASK))])
    assert (found.rule, found.message) == (
        "leak", "this question names 'teal', and a later turn asks for 'colour'",
    )  # fmt: skip
    # after it was asked for, by another user, and in the words of one who tells it, it is no leak
    assert rules(story(sessions=three(TELL, ASK, between))) == []
    assert rules(story(sessions=three(TELL, between, ASK, users="aba"))) == []
    again = {"user": "It is teal, did you know?", "expect": {"store": {"holds": ["colour"]}}}
    assert rules(story(sessions=three(TELL, again, ASK))) == []
    told = {"user": "So it is teal.", "expect": {"intent": "note", "facts": ["colour"]}}
    assert rules(story(sessions=three(TELL, told, ASK))) == []


SIZE = {"size": {"text": "It is wide.", "values": ["wide"]}}


def of_size(user: str = "Which size?") -> dict[str, Any]:
    return {"user": user, "expect": {"intent": "recall", "answer": {"states": ["size"]}}}


def test_a_value_in_a_title_or_in_what_another_story_gives_is_no_leak() -> None:
    given = [{"text": "Teal is a colour, and it is wide."}]
    other = story("b", "g", facts=SIZE, sessions=[{"given": given, "turns": [of_size()]}])
    titled = story().model_copy(update={"title": "Teal is asked for"})
    assert rules(titled, other) == []


TWO = {
    "old": {"text": "The colour is teal.", "values": ["teal"], "key": "user.colour"},
    "new": {"text": "The colour is ochre.", "values": ["ochre"], "key": "user.colour"},
}


def changed(second: dict[str, Any] | None, ask: dict[str, Any], users: str = "aaa") -> Scenario:
    first = {"user": "My colour is teal.", "expect": {"intent": "remember", "facts": ["old"]}}
    later = {"user": "My colour is ochre."} | ({"expect": second} if second else {})
    last = {"user": "Which colour?", "expect": {"intent": "recall", "answer": ask}}
    return story(facts=TWO, sessions=three(first, later, last, users=users))


def test_facts_that_contradict_each_other_are_found() -> None:
    (found,) = lint([changed({"intent": "remember", "facts": ["new"]}, {"states": ["new"]})])
    assert found.rule == "contradiction"
    assert "'old' and 'new' have the key 'user.colour' and differ" in found.message


@pytest.mark.parametrize(
    ("second", "ask", "users"),
    [
        ({"intent": "update", "facts": ["new"]}, {"states": ["new"]}, "aaa"),
        (None, {"states": ["new"], "avoids": ["old"]}, "aaa"),
        (None, {"states": ["new", "old"]}, "aaa"),  # both hold
        ({"intent": "remember", "facts": ["new"], "store": {"lacks": ["old"]}}, {"states": ["new"]}, "aaa"),
        ({"intent": "remember", "facts": ["new"]}, {"states": ["new"]}, "abb"),  # one a person
    ],
)
def test_facts_of_which_the_story_says_what_holds_do_not_contradict(
    second: dict[str, Any] | None, ask: dict[str, Any], users: str
) -> None:
    assert rules(changed(second, ask, users)) == []


def test_a_value_to_be_lacking_inside_one_to_be_held_is_found() -> None:
    facts = {
        "colour": {"text": "It is dark teal.", "values": ["dark teal"]},
        "old": {"text": "It was teal.", "values": ["teal"]},
    }
    store = {"holds": ["colour"], "lacks": ["old"]}
    told = {
        "user": "My colour is dark teal.",
        "expect": {"intent": "update", "facts": ["colour"], "store": store},
    }
    (found,) = lint([story(facts=facts, tell=told, ask=asking("Which colour?", states=["colour"]))])
    assert (found.rule, "to be lacking" in found.message) == ("overlapping-values", True)


def test_a_text_that_two_families_share_is_found_once() -> None:
    other = story("c", "g", facts=SIZE, tell={"user": "It is wide."}, ask=of_size("WHICH  colour?"))
    found = lint([story(), story("b", "f"), other])
    assert [(f.scenario, f.rule) for f in found] == [("b", "duplicate-story"), ("c", "duplicate-text")]
    assert "'a', of family 'f', has the same words" in found[1].message


def test_stories_with_equal_sessions_are_found_and_others_of_a_family_are_not() -> None:
    twin = story("b", ask=asking("Which colour?", states=["colour"]))
    stricter = story("c", ask=asking("Which colour?", states=["colour"], avoids=[]))
    assert rules(story(), twin) == []
    assert rules(twin, stricter) == ["duplicate-story"]
