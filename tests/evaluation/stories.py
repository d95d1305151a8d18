"""Small stories, scripted models and a trial in one call, shared by the tests of the evaluation room."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from memeval.designs import open_design
from memeval.embedding import open_embedder
from memeval.evaluation.recorder import TrialResult
from memeval.evaluation.trial import Trial, run_trial
from memeval.memory.inmemory import InMemoryStore
from memeval.messages import Message, Tool, ToolCall
from memeval.models.base import Options
from memeval.models.scripted import ScriptedModel
from memeval.scenarios.schema import Scenario

TOOL_ONLY: Mapping[str, Any] = {"write_path": "tool"}
ELIXIR = {"text": "The user's preferred language is Elixir.", "values": ["Elixir"], "key": "user.language"}
CANBERRA = {"text": "The capital of Australia is Canberra.", "values": ["Canberra"]}


def story(*sessions: Sequence[Mapping[str, Any]], facts: Mapping[str, Any] | None = None) -> Scenario:
    """A scenario of sessions of turns, about Elixir unless other facts are given."""
    return Scenario.model_validate(
        {
            "scenario": "tale",
            "family": "tale",
            "title": "A test story",
            "facts": dict(facts or {"language": ELIXIR}),
            "sessions": [{"turns": list(turns)} for turns in sessions],
        }
    )


REMEMBER = {
    "user": "Please remember my preferred language is Elixir.",
    "expect": {
        "intent": "remember",
        "facts": ["language"],
        "store": {"holds": ["language"]},
        "answer": {"confirms": ["language"]},
    },
}
ASK = {
    "user": "What language do I prefer?",
    "expect": {"intent": "recall", "facts": ["language"], "answer": {"states": ["language"]}},
}
DECOY = {
    "user": "Do you remember when we met? No need to note that.",
    "expect": {"intent": "none", "forbid": ["remember", "note", "update"]},
}
S5 = (
    [{"user": "The capital of Australia is Canberra, not Sydney."}],
    [
        {
            "user": "What do you remember about Australian geography?",
            "expect": {
                "intent": "recall",
                "facts": ["capital"],
                "required": ["called"],
                "answer": {"states": ["capital"]},
            },
        }
    ],
)


def call(name: str, **arguments: Any) -> ToolCall:
    """A call as a model makes it."""
    return ToolCall(name, arguments)


SAVE = call("save_topic", topic="user.language", content="Elixir")
RECALL = call("recall_topic", topic="user.language")


def run(
    scenario: Scenario,
    script: Sequence[Any] | Callable[[Sequence[Message], Sequence[Tool]], Any],
    design: Any = None,
    **trial: Any,
) -> TrialResult:
    """Run one trial in memory with the hash embedder; `local2_single`, tools only, unless told otherwise."""
    spec = open_design(design or {"local2_single": TOOL_ONLY})
    embedder = open_embedder("hash", cache=None)
    stores: dict[str, InMemoryStore] = {}
    planned = Trial(
        key="key", cell="cell", scenario=scenario, design=spec,
        calling=trial.pop("calling", "native"), options=trial.pop("options", Options()), **trial,
    )  # fmt: skip
    model = ScriptedModel(script)
    return run_trial(planned, model, lambda user: stores.setdefault(user, InMemoryStore(user, embedder)))
