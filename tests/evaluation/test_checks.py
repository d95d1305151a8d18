"""Verdicts that the saboteurs do not reach: other expectations, other stages."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from stories import ELIXIR, RECALL, SAVE, call, run, story

from memeval.evaluation.checks import CallTrace, TurnTrace, all_named
from memeval.messages import ToolResult
from memeval.records import Hit, Record
from memeval.scenarios.schema import Fact

FACTS = {"language": ELIXIR, "old": {"text": "It was Erlang.", "values": ["Erlang"]}}


def turn(user: str, **expect: Any) -> dict[str, Any]:
    return {"user": user, "expect": expect}


@pytest.mark.parametrize(
    ("reply", "passed"),
    [("It is Elixir.", True), ("It was Erlang, now Elixir.", True), ("It is Elixir or Erlang.", False),
     ("Hm.", False)],
)  # fmt: skip
def test_an_avoided_value_must_not_be_named(reply: str, passed: bool) -> None:
    asked = turn("Which?", intent="recall", answer={"states": ["language"], "avoids": ["old"]})
    assert run(story([asked], facts=FACTS), [reply]).trial.passed is passed


@pytest.mark.parametrize(("reply", "passed"), [("I don't know that.", True), ("It is blue.", False)])
def test_not_knowing_must_be_admitted(reply: str, passed: bool) -> None:
    asked = turn("Which colour?", intent="recall", answer={"admits_unknown": True})
    assert run(story([asked]), [reply]).trial.passed is passed


def test_a_refusal_confirms_nothing_though_it_names_the_value() -> None:
    asked = turn(
        "Remember it: Elixir, my language of choice.", intent="remember", answer={"confirms": ["language"]}
    )
    assert run(story([asked]), [SAVE, "I'm sorry, I cannot do that with Elixir."]).turns[0].answered is False


def test_the_store_must_lack_what_it_must_lack() -> None:
    asked = turn("Just chatting about Elixir.", intent="none", store={"lacks": ["language"]})
    assert run(story([asked]), [SAVE, "Saved."]).trial.passed is False
    assert run(story([asked]), ["Nice."]).trial.passed is True


def test_a_given_record_is_found_and_is_nobodys_save() -> None:
    asked = turn("Which language do I prefer?", intent="recall", facts=["language"], required=["retrieved"])
    tale = story([asked]).model_dump(mode="json")
    tale["sessions"][0]["given"] = [{"text": "Elixir", "key": "user.language", "kind": "topic"}]
    from memeval.scenarios.schema import Scenario

    done = run(Scenario.model_validate(tale), [RECALL, "Elixir."])
    assert (done.turns[0].retrieved, done.trial.passed) == (True, True)
    assert done.hits[0].origin == "given"


def test_a_required_stage_behind_a_broken_one_fails() -> None:
    asked = turn("Which language?", intent="recall", facts=["language"], required=["retrieved"])
    assert run(story([asked]), ["No idea."]).trial.passed is False


def test_a_required_stage_does_not_count_where_no_tool_serves_it() -> None:
    asked = turn("Keep Elixir in mind, please.", intent="remember", facts=["language"], required=["called"])
    assert run(story([asked]), ["Fine."], design="none").trial.passed is True


def test_the_first_call_names_what_a_turn_was_taken_for() -> None:
    asked = turn("Please remember Elixir.", intent="remember", facts=["language"])
    done = run(story([asked]), [call("search_memory", query="Elixir"), SAVE, "Saved."])
    assert (done.turns[0].called_intent, done.turns[0].called_tool) == ("search", "search_memory")
    assert done.turns[0].called is True


def test_a_turn_without_expectation_has_no_verdict_but_a_phantom_is_seen() -> None:
    done = run(story([{"user": "Elixir is nice."}]), ["I'll remember that."])
    row = done.turns[0]
    assert (row.intent, row.called, row.passed, row.phantom_save) == ("", None, None, True)


def test_a_denied_value_is_no_answer() -> None:
    asked = turn("Which?", intent="recall", answer={"states": ["language"]})
    reply = "I don't have any information about Elixir."
    assert run(story([asked]), [reply]).trial.passed is False


def test_where_nothing_is_to_be_known_the_value_is_not_even_named() -> None:
    asked = turn("Which?", intent="recall", answer={"admits_unknown": True, "avoids": ["language"]})
    assert run(story([asked]), ["I don't know which language you prefer."]).trial.passed is True
    assert run(story([asked]), ["I don't know whether it is Elixir."]).trial.passed is False


@pytest.mark.parametrize(
    ("calls", "script", "passed"),
    [
        ({"intents": ["recall", "update"], "ordered": True}, [RECALL, SAVE, "Done."], True),
        ({"intents": ["recall", "update"], "ordered": True}, [SAVE, RECALL, "Done."], False),
        ({"intents": []}, ["Done."], True),
        ({"intents": []}, [RECALL, "Done."], False),
        ({"intents": ["update"], "extra": False}, [RECALL, SAVE, "Done."], False),
        (None, [RECALL, SAVE, RECALL, "Done."], True),
    ],
)
def test_calls_a_story_expects_by_intent(calls: Any, script: list[Any], passed: bool) -> None:
    asked = turn("My language is now Elixir.", intent="update", calls=calls)
    assert run(story([asked]), script).trial.passed is passed


def test_calls_do_not_count_where_no_tool_serves_them() -> None:
    asked = turn("My language is now Elixir.", intent="update", calls={"intents": ["update"]})
    assert run(story([asked]), ["Fine."], design="none").trial.passed is True


QUILLON = Fact(text="The valve is called Quillon.", values=["Quillon"])


def shown(text: str, *, is_error: bool = False, injected: str = "", whole: str = "Quillon") -> list[str]:
    """What a turn showed in which one call found a record that says `whole`, and answered `text`."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    record = Record(id="a", kind="note", text=whole, origin="tool", created_at=now, updated_at=now)
    result = ToolResult(text=text, is_error=is_error, hits=(Hit(record=record, score=1.0),))
    made = CallTrace(name="look", arguments={}, intents=("search",), result=result)
    return TurnTrace(user="?", calls=[made], injected=injected, injected_hits=result.hits).shown()


def test_what_the_model_did_not_read_was_not_shown() -> None:
    assert shown("1. The boiler is green.") == ["1. The boiler is green."]
    assert shown("The boiler is", injected="Of earlier: green.") == ["Of earlier: green.", "The boiler is"]
    assert shown("Error: Quillon is locked.", is_error=True) == []
    assert all_named([QUILLON], shown("1. The valve is called Quillon."))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("Quillon", "Valve:\nQuillon\tis new"),
        ('"Blue Moon" bar', 'The "Blue Moon" bar'),
        ("C:\\notes", "Kept in C:\\notes."),
        ("Jürgen", "Ask Jürgen 🙂"),
    ],
)
def test_a_value_is_read_in_json_too_whole_or_cut_off(value: str, said: str) -> None:
    fact = Fact(text="A fact.", values=[value])
    plain = json.dumps([{"text": said}], ensure_ascii=False)
    for text in (said, plain, json.dumps([{"text": said}]), f"{plain[:-3]}\n(7 more characters left out)"):
        assert all_named([fact], shown(text)), text


@pytest.mark.parametrize("where", ["passage", "cap"])
def test_a_fact_beyond_what_a_search_shows_is_not_retrieved(where: str) -> None:
    facts = {"valve": QUILLON.model_dump(mode="json")}
    pad = "The boiler of the mill was painted green by the miller. " * 30
    said = {
        "passage": f"The valve is called Quillon. {pad}",
        "cap": f"{pad * 3} The valve is called Quillon.",
    }
    design = {"passage": "local2_search", "cap": "local2_dual"}[where]
    tool = {"passage": "search_memory", "cap": "memory_recall"}[where]
    asked = turn("Which valve?", intent="recall", facts=["valve"], required=["retrieved"])
    tale = story([{"user": said[where]}], [asked], facts=facts)
    look = call(tool, query="boiler of the mill painted green by the miller")
    done = run(tale, ["Noted.", look, "Quillon."], {design: {"min_score": -1.0}})
    assert done.hits
    assert "Quillon" not in done.calls[0].text
    assert (done.turns[-1].retrieved, done.trial.passed) == (False, False)
