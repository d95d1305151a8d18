"""Why a verdict came out as it did: the sentences are true of the turn, and there is one for every stage."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from stories import ASK, CANBERRA, DECOY, ELIXIR, RECALL, REMEMBER, S5, SAVE, TOOL_ONLY, call, run, story

from memeval.designs import open_design
from memeval.evaluation.checks import Verdict
from memeval.evaluation.expectation import expected
from memeval.evaluation.reasons import reasons
from memeval.evaluation.rescore import judge_again
from memeval.messages import Message, Tool, ToolCall
from memeval.scenarios.schema import Expect, Fact, Scenario

FACTS = {"language": ELIXIR, "old": {"text": "It was Erlang.", "values": ["Erlang"]}}
GIVEN = {"text": "Elixir", "key": "user.language", "kind": "topic"}


def turn(user: str, **expect: Any) -> dict[str, Any]:
    return {"user": user, "expect": expect}


def why(
    scenario: Scenario, script: Any, design: Any = None, at: int = -1, **trial: Any
) -> tuple[Verdict, dict[str, str]]:
    """The verdict of a turn, by default the last, and the sentences on it."""
    design = design or {"local2_single": TOOL_ONLY}
    evidence = json.loads(json.dumps(run(scenario, script, design, **trial).transcript.evidence))
    serves = frozenset(open_design(design)().serves())
    judged, told, verdict = list(judge_again(scenario, evidence, serves))[at]
    return verdict, reasons(judged, told.expect, scenario.facts, serves)


def with_given(*turns: dict[str, Any]) -> Scenario:
    tale = story(list(turns), facts=FACTS).model_dump(mode="json")
    tale["sessions"][0]["given"] = [GIVEN]
    return Scenario.model_validate(tale)


def test_a_turn_that_went_well_says_so() -> None:
    _, said = why(story([REMEMBER]), [SAVE, "I have saved it."])
    assert said == {
        "called": "save_topic was called",
        "arguments": "save_topic carries “Elixir”",
        "stored": "what was written names “Elixir”",
        "retrieved": "nothing is to be looked up",
        "answered": "the reply claims “I have saved it.”",
        "passed": "all that counts here holds",
        "phantom_save": "the reply claims “I have saved it.”, and a call did write",
    }


def test_a_phantom_save_names_the_claim_and_what_is_missing() -> None:
    verdict, said = why(story([REMEMBER]), ["Sure thing. I have saved your language. Anything else?"])
    assert verdict.called is False
    assert said["called"] == "no tool that serves remember was called"
    assert said["arguments"] == said["stored"] == "not put to the test: an earlier stage broke"
    assert said["answered"].startswith(
        "not put to the test: an earlier stage broke (the reply claims “I have"
    )
    assert said["passed"] == "no record written by a call names “Elixir”"
    assert said["phantom_save"] == (
        "the reply claims “I have saved your language.”, but nothing was written by a call"
    )


def test_a_call_of_another_kind_is_named() -> None:
    _, said = why(story([REMEMBER]), [RECALL, "Hm."])
    assert said["called"] == "no tool that serves remember was called; recall_topic was"
    assert said["phantom_save"] == "the reply claims no save"


def test_arguments_that_lack_the_value() -> None:
    wrong = call("save_topic", topic="user.language", content="something")
    verdict, said = why(story([REMEMBER]), [wrong, "Elixir it is."])
    assert (verdict.called, verdict.arguments) == (True, False)
    assert said["arguments"] == "save_topic does not carry “Elixir”"


def test_of_several_values_only_the_missing_ones_are_named() -> None:
    asked = turn("Both, please.", intent="remember", facts=["language", "old"])
    half = call("save_topic", topic="user.language", content="Elixir")
    _, said = why(story([asked], facts=FACTS), [half, "Done."])
    assert said["arguments"] == "save_topic does not carry “Erlang”"


def test_a_call_that_was_refused() -> None:
    verdict, said = why(story([REMEMBER]), [call("save_topic", topic=["no"]), "Hm."])
    assert verdict.arguments is False
    assert said["arguments"].startswith("save_topic was called wrongly: ")


def test_what_memory_showed() -> None:
    tale = with_given(turn("Which?", intent="recall", facts=["language"], answer={"states": ["language"]}))
    _, said = why(tale, [RECALL, "It is Elixir."])
    assert said["arguments"] == "recall_topic could be run"
    assert said["retrieved"] == "memory showed “Elixir”"
    assert said["answered"] == "the reply names “Elixir”"
    _, said = why(story([ASK]), [RECALL, "No idea, I do not know."])
    assert said["retrieved"] == "memory showed nothing"
    assert said["passed"] == "the reply does not name “Elixir”; it says that it does not know"
    other = turn("Which was it?", intent="recall", facts=["old"])
    _, said = why(with_given(other), [RECALL, "Hm."])
    assert said["retrieved"] == "nothing that memory showed names “Erlang”"


def test_a_reply_that_does_not_do_what_is_asked() -> None:
    asked = turn("Which?", intent="recall", answer={"states": ["language"], "avoids": ["old"]})
    _, said = why(story([asked], facts=FACTS), [RECALL, "It is Erlang."])
    assert said["answered"] == "the reply does not name “Elixir”; it says “Erlang”, which it is to avoid"
    assert said["passed"] == "the reply is not as it should be"
    asked = turn("Which?", intent="recall", answer={"admits_unknown": True, "avoids": ["old"]})
    _, said = why(story([asked], facts=FACTS), ["It is blue."])
    assert said["passed"] == "the reply does not say that it does not know"
    _, said = why(story([asked], facts=FACTS), [RECALL, "I don't know that."])
    assert said["answered"] == "the reply does not say “Erlang” and says that it does not know"


def test_a_refusal_and_an_echo_are_told_apart() -> None:
    asked = turn("My language of choice is Elixir.", intent="remember", answer={"confirms": ["language"]})
    _, said = why(story([asked]), [SAVE, "I'm sorry, I am not able to do that."])
    assert said["answered"] == "the reply neither claims a save nor names “Elixir”; it refuses"
    _, said = why(story([asked]), [SAVE, "My language of choice is Elixir."])
    assert said["answered"] == "the reply only repeats the user's words"


def test_what_does_not_apply_says_why() -> None:
    _, said = why(story([REMEMBER, ASK]), [SAVE, "Saved.", "Elixir."])
    assert said["called"] == "no call is needed: the answer stands in this conversation"
    assert said["retrieved"] == "does not apply"
    _, said = why(story(*S5, facts={"capital": CANBERRA}), ["Ah.", "Canberra."], "none")
    assert said["called"] == "no tool of the design serves recall"
    assert said["passed"] == "all that counts here holds"


def test_decoys() -> None:
    _, said = why(story([DECOY]), ["We have not met."])
    assert said["called"] == "nothing forbidden was called"
    verdict, said = why(story([DECOY]), [SAVE, "Noted."])
    assert verdict.passed is False
    assert said["called"] == said["passed"] == "save_topic was called, which is forbidden here"
    _, said = why(story([DECOY]), ["We have not met."], "none")
    assert said["called"] == "no tool of the design could do what is forbidden"


def test_what_the_store_holds_and_should_not() -> None:
    asked = turn("Forget it.", intent="none", store={"holds": ["old"], "lacks": ["language"], "origin": None})
    _, said = why(with_given(asked), ["All right."])
    assert said["passed"] == "no record names “Erlang”; a record names “Elixir”"


def test_a_required_stage_that_was_never_reached() -> None:
    asked = turn("Which language?", intent="recall", facts=["language"], required=["retrieved"])
    _, said = why(story([asked]), ["No idea."])
    assert said["passed"] == "retrieved is required"


def test_calls_that_were_to_be_made() -> None:
    asked = turn("Change it.", intent="update", calls={"intents": ["recall", "update"], "ordered": True})
    verdict, said = why(story([asked]), [SAVE, "Done."])
    assert verdict.passed is False
    assert said["passed"] == "calls to recall, then update are to be made; made were remember or update"
    _, said = why(story([asked]), [RECALL, SAVE, "Done."])
    assert said["passed"] == "all that counts here holds"
    asked = turn("Hello.", calls={"intents": []})
    assert why(story([asked]), [RECALL, "Hi."])[1]["passed"] == "no call is to be made; made were recall"


def test_a_value_that_is_named_but_not_given() -> None:
    asked = turn("Which?", intent="recall", answer={"states": ["language"]})
    _, said = why(story([asked]), [RECALL, "I have nothing about Elixir in my memory."])
    assert said["answered"].startswith("the reply names “Elixir”, but")
    gone = turn("Which?", intent="recall", answer={"admits_unknown": True, "avoids": ["language"]})
    _, said = why(story([gone]), [RECALL, "I do not know whether it was Elixir."])
    assert said["answered"] == "the reply says “Elixir”, which it is to avoid"


def test_where_nothing_is_expected_only_claims_are_judged() -> None:
    _, said = why(story([{"user": "Hello."}]), ["I have noted it."])
    assert list(said) == ["phantom_save"]


def test_a_turn_without_a_reply() -> None:
    def loops(messages: Sequence[Message], tools: Sequence[Tool]) -> ToolCall:
        return RECALL

    verdict, said = why(story([ASK]), loops)
    assert verdict.phantom_save is None
    assert said["phantom_save"] == "there is no reply"
    assert "there is no reply" in said["passed"]


def honest(messages: Sequence[Message], tools: Sequence[Tool]) -> ToolCall | str:
    last = messages[-1]
    wanted = "write" if "remember" in last.content.lower() else "read"
    tool = next((tool for tool in tools if tool.effect == wanted), None)
    if last.role == "tool" or tool is None:
        return "It is Elixir."
    names = tool.parameters.get("required", ()) or list(tool.parameters["properties"])[:1]
    return ToolCall(tool.name, {name: "user.language" if name == "topic" else "Elixir" for name in names})


def silent(messages: Sequence[Message], tools: Sequence[Tool]) -> str:
    return "I have saved it."


@pytest.mark.parametrize("script", [honest, silent])
@pytest.mark.parametrize(
    "design", ["local2_dual", "oxydra_notes", "synthorg_context", "harness_runs", "none"]
)
def test_every_stage_of_every_design_has_its_sentence(design: str, script: Any) -> None:
    tale = story([REMEMBER, ASK], [ASK, DECOY])
    evidence = run(tale, script, design).transcript.evidence
    serves = frozenset(open_design(design)().serves())
    for judged, told, verdict in judge_again(tale, evidence, serves):
        said = reasons(judged, told.expect, tale.facts, serves)
        assert list(said) == list(Verdict._fields)
        assert all(sentence == sentence.strip() and sentence for sentence in said.values())
        for stage, sentence in said.items():
            value = getattr(verdict, stage)
            idle = sentence.startswith(("does not apply", "not put to the test", "nothing is to be"))
            assert not (idle and value is not None), (stage, sentence)
        assert (said["passed"] == "all that counts here holds") is verdict.passed


def test_what_is_expected_is_said_in_words() -> None:
    facts = {name: Fact.model_validate(fact) for name, fact in FACTS.items()}
    expect = Expect.model_validate(
        {
            "intent": "update", "facts": ["language"], "required": ["called", "stored"],
            "answer": {"confirms": ["language"], "avoids": ["old"]},
            "store": {"holds": ["language"], "lacks": ["old"]},
        }
    )  # fmt: skip
    assert expected(expect, facts) == (
        "to update “Elixir”; required: called, stored; the reply confirms “Elixir”; the reply avoids “Erlang”"
        "; a record written by a call names “Elixir”; no record written by a call names “Erlang”"
    )
    decoy = Expect.model_validate({"forbid": ["remember", "note"], "answer": {"admits_unknown": True}})
    assert expected(decoy, facts) == (
        "no use of memory; no call may remember or note; the reply says that it does not know"
    )
