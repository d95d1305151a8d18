"""Models that fail on purpose: each is first broken at its own stage, and what depends on it is null."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from stories import ASK, CANBERRA, DECOY, RECALL, REMEMBER, S5, SAVE, call, run, story

NEW_SESSION = story([REMEMBER], [ASK])
LOOK_UP: list[Any] = [RECALL, "I found nothing."]


def stages(row: Any) -> tuple[bool | None, ...]:
    return row.called, row.arguments, row.stored, row.retrieved, row.answered


def test_an_honest_model_passes_every_stage() -> None:
    done = run(NEW_SESSION, [SAVE, "Saved: Elixir.", RECALL, "You prefer Elixir."])
    first, second = done.turns
    assert stages(first) == (True, True, True, None, True)
    assert stages(second) == (True, True, None, True, True)
    assert (done.trial.passed, done.trial.broken_at, done.trial.phantom_save) == (True, "", False)


def test_a_model_that_never_stores_is_broken_at_called() -> None:
    done = run(NEW_SESSION, ["Nice choice, Elixir!", *LOOK_UP])
    assert done.trial.broken_at == "s1t1 called"
    assert stages(done.turns[0]) == (False, None, None, None, None)
    assert done.trial.passed is False


def test_a_model_that_stores_the_wrong_value_is_broken_at_arguments() -> None:
    wrong = call("save_topic", topic="user.language", content="Erlang")
    done = run(NEW_SESSION, [wrong, "Saved: Elixir.", RECALL, "Erlang."])
    assert done.trial.broken_at == "s1t1 arguments"
    assert stages(done.turns[0]) == (True, False, None, None, None)
    assert done.trial.passed is False


def test_a_model_that_claims_without_writing_is_broken_at_called_and_a_phantom() -> None:
    done = run(NEW_SESSION, ["I've saved that for you!", *LOOK_UP])
    assert done.trial.broken_at == "s1t1 called"
    assert done.turns[0].phantom_save is True
    assert done.turns[0].answered is None


def test_a_model_that_echoes_the_request_is_broken_at_answered() -> None:
    done = run(NEW_SESSION, [SAVE, REMEMBER["user"], RECALL, "Elixir."])
    assert done.trial.broken_at == "s1t1 answered"
    assert stages(done.turns[0]) == (True, True, True, None, False)


def test_a_model_that_echoes_the_question_is_broken_at_answered() -> None:
    done = run(NEW_SESSION, [SAVE, "Saved: Elixir.", RECALL, ASK["user"]])
    assert done.trial.broken_at == "s2t1 answered"
    assert stages(done.turns[1]) == (True, True, None, True, False)


def test_a_model_that_answers_from_world_knowledge_is_broken_at_called() -> None:
    done = run(story(*S5, facts={"capital": CANBERRA}), ["Right.", "Canberra is the capital."])
    assert done.trial.broken_at == "s2t1 called"
    assert done.turns[1].answered is None
    assert done.trial.passed is False


def test_world_knowledge_after_an_empty_search_is_broken_at_retrieved() -> None:
    script = ["Right.", call("search_memory", query="geography"), "Canberra is the capital."]
    done = run(story(*S5, facts={"capital": CANBERRA}), script)
    assert done.trial.broken_at == "s2t1 retrieved"
    assert done.turns[1].answered is None


def test_a_model_that_saves_on_a_decoy_is_broken_at_called() -> None:
    done = run(story([DECOY]), [call("save_memory", content="We met."), "Of course."])
    assert done.trial.broken_at == "s1t1 called"
    assert done.trial.passed is False
    assert done.turns[0].decoy is True


def test_a_model_that_leaves_a_decoy_alone_passes() -> None:
    done = run(story([DECOY]), ["I do not recall that."])
    assert (done.turns[0].called, done.trial.passed) == (True, True)


@pytest.mark.parametrize("content", ["", "   "])
def test_a_right_call_with_an_empty_value_is_broken_at_arguments(content: str) -> None:
    empty = call("save_topic", topic="user.language", content=content)
    done = run(NEW_SESSION, [empty, "Saved: Elixir.", *LOOK_UP])
    assert done.trial.broken_at == "s1t1 arguments"
    assert done.turns[0].stored is None
    assert done.turns[0].wrote == 0


def test_a_refused_key_is_broken_at_stored() -> None:
    refused = call("save_topic", topic="language", content="Elixir")
    done = run(NEW_SESSION, [refused, "Saved: Elixir.", *LOOK_UP])
    assert done.trial.broken_at == "s1t1 stored"
    assert done.turns[0].phantom_save is True


def test_ingest_by_the_design_is_no_save_of_the_models() -> None:
    done = run(NEW_SESSION, ["I'll remember Elixir.", *LOOK_UP], design="local2_single")
    assert done.turns[0].phantom_save is True
    assert done.turns[0].stored is None
    assert done.trial.passed is False


def test_a_recall_in_the_session_that_told_it_is_a_control() -> None:
    done = run(story([REMEMBER, ASK]), [SAVE, "Saved: Elixir.", "Elixir."])
    assert stages(done.turns[1]) == (None, None, None, None, True)
    assert done.trial.passed is True


@pytest.mark.parametrize("script", [["Noted.", "I do not know."]])
def test_stages_are_null_where_a_design_has_no_tool(script: Sequence[str]) -> None:
    done = run(NEW_SESSION, script, design="none")
    assert stages(done.turns[0])[:4] == (None, None, None, None)
    assert done.turns[1].answered is False
    assert done.trial.passed is False


def test_full_context_retrieves_by_injection() -> None:
    done = run(NEW_SESSION, ["Elixir it is.", "You prefer Elixir."], design="full_context")
    assert stages(done.turns[1]) == (None, None, None, True, True)
    assert done.trial.passed is True
