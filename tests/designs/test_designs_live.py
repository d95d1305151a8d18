"""Every design against the real server: each of its tools is called with arguments that the model wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from live_model import live

from memeval.designs import open_design
from memeval.designs.registry import _BUILT_IN
from memeval.embedding import open_embedder
from memeval.evaluation.trial import Trial, run_trial
from memeval.memory.inmemory import InMemoryStore
from memeval.messages import Message, Reply, Tool
from memeval.models.base import Options
from memeval.models.calling import reply_schema
from memeval.models.ollama import OllamaModel
from memeval.scenarios.schema import Scenario

pytestmark = pytest.mark.live

SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "oxydra_tags": {"scratchpad": True},
    "synthorg_triad": {"write_path": "tool"},
    "synthorg_tools": {"write_path": "tool", "rewrite": "on", "sufficiency": "on", "rounds": 1},
    "harness_runs": {"read_path": "both"},
}
SMALL = Options(num_ctx=2048, num_predict=200, temperature=0.0, seed=3, deadline=240)


class Forced:
    """A model that is made to call one tool first in each turn, and then to answer in words."""

    def __init__(self, model: OllamaModel, tools: Sequence[Tool]) -> None:
        self._model, self._left = model, list(tools)
        self._asked: tuple[str, int] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def chat(self, messages: Sequence[Message], **more: Any) -> Reply:
        if more.get("schema"):
            called = "Result of" in messages[-1].content
            more["schema"] = reply_schema(()) if called or not self._left else self._only(self._left.pop(0))
        return self._model.chat(messages, **more)

    @staticmethod
    def _only(tool: Tool) -> Mapping[str, Any]:
        return {"anyOf": [reply_schema([tool])["anyOf"][0]]}


@pytest.mark.parametrize("name", [design.name for design in _BUILT_IN])
def test_every_tool_runs_with_the_models_own_arguments_and_every_hook_fires(name: str) -> None:
    model = live("qwen05-json")
    spec = open_design({name: dict(SETTINGS.get(name, {}))})
    tools = sorted(spec().tools(), key=lambda tool: tool.effect == "read")
    asks = [f"The colour of my boat is teal ({n}). Keep it in mind." for n in range(max(len(tools), 2))]
    compacts = "compact" in spec().hooks()
    turns = [{"user": said, "filler": 4 if compacts else 0} for said in asks]
    story = Scenario.model_validate({
        "scenario": "live", "family": "live", "title": "Each tool once",
        "sessions": [
            {"at": "2026-05-30T09:00:00Z", "turns": turns, "final_score": 8.0},
            {"at": "2026-05-31T09:00:00Z", "turns": [{"user": "What colour is my boat?"}]},
        ],
    }, strict=False)  # fmt: skip
    stores: dict[str, InMemoryStore] = {}
    embedder = open_embedder("ollama:all-minilm", cache=None)
    options = SMALL if compacts else replace(SMALL, num_ctx=4096)
    trial = Trial(key="k", cell="c", scenario=story, design=spec, calling="constrained", options=options)
    result = run_trial(
        trial, Forced(model, tools), lambda user: stores.setdefault(user, InMemoryStore(user, embedder))
    )  # type: ignore[arg-type]
    print(name, [(made.name, made.status) for made in result.calls], result.trial.hooks, result.trial.counts)
    assert result.trial.outcome == "ok", (result.trial.failure, result.trial.invalid_reason)
    run = {made.name for made in result.calls if made.status in ("ok", "tool_error")}
    assert run == {tool.name for tool in tools}
    quiet = {"on_result"} if name.startswith("oxydra") else set()  # it acts only on secrets
    quiet |= {"after_turn"} if spec.settings.get("write_path") == "tool" else set()
    assert set(result.trial.hooks) >= set(spec().hooks()) - quiet - {"compact"}
