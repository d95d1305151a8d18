"""Surfaces: the look of tools changes, what they do does not."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from memeval.designs import MemoryDesign, open_design, save_tool
from memeval.designs import tools as build
from memeval.designs.base import Context, Injection
from memeval.designs.local2 import Local2Dual, Local2Single
from memeval.designs.registry import _BUILT_IN, DesignSpec
from memeval.designs.surface import LENGTH, Surface
from memeval.embedding import open_embedder
from memeval.errors import InputError
from memeval.memory.inmemory import InMemoryStore
from memeval.messages import Tool, ToolCall, ToolResult
from memeval.records import Scope, SeededIds, StoryClock


@pytest.fixture
def ctx() -> Context:
    store = InMemoryStore("user", open_embedder("hash", cache=None))
    clock = StoryClock(datetime(2026, 5, 30, 9, tzinfo=UTC))
    return Context(scope=Scope("user", "session-1"), store=store, clock=clock, ids=SeededIds(1))


def tools(design: MemoryDesign) -> dict[str, Tool]:
    return {tool.name: tool for tool in design.tools()}


def words(design: MemoryDesign) -> int:
    return sum(len(re.findall(r"\w+|[^\w\s]", tool.description)) for tool in design.tools())


def test_a_design_as_written_is_the_design_itself() -> None:
    design = Local2Dual()
    assert Surface().on(design) is design
    assert Surface().label == ""


def test_a_split_dual_mode_tool_is_one_tool_a_mode_with_its_own_required_parameter() -> None:
    split = tools(Surface("split").on(Local2Dual()))
    assert list(split) == ["memory_recall_topic", "memory_recall_query", "memory_save"]
    assert split["memory_recall_topic"].parameters["required"] == ["topic"]
    assert list(split["memory_recall_query"].parameters["properties"]) == ["query"]
    assert split["memory_recall_topic"].intents({"topic": "user.name"}) == ("recall",)


def test_a_split_leaves_all_else_byte_for_byte_as_it_was() -> None:
    split, whole = tools(Surface("split").on(Local2Dual())), tools(Local2Dual())
    assert split["memory_save"].schema() == whole["memory_save"].schema()
    assert Surface("split").on(Local2Dual()).system_prompt() == Local2Dual().system_prompt()
    recall = whole["memory_recall"].parameters["properties"]
    assert split["memory_recall_topic"].parameters["properties"]["topic"] == recall["topic"]


def test_each_mode_is_described_by_its_numbered_part_and_what_stands_around_both() -> None:
    said = tools(Surface("split").on(Local2Dual()))["memory_recall_topic"].description
    assert said.startswith("Retrieve from memory. Topic lookup — pass topic key to retrieve a stored")
    assert "Two modes" not in said
    assert "similarity search" not in said
    assert said.endswith("use query search when looking for prior conversation context.")


def test_a_split_tool_does_what_the_dual_one_does(ctx: Context) -> None:
    split, whole = tools(Surface("split").on(Local2Dual())), tools(Local2Dual())
    split["memory_save"].run({"topic": "user.name", "content": "Ann"}, ctx)
    one = split["memory_recall_topic"].run({"topic": "user.name"}, ctx)
    other = whole["memory_recall"].run({"topic": "user.name"}, ctx)
    assert one == other
    assert one.text == "[Memory: user.name]\nAnn"


def test_a_dispatcher_splits_by_the_values_of_its_action() -> None:
    merged = Surface("merged").on(Local2Single())

    class Again(MemoryDesign):
        name = "again"

        def tools(self) -> Any:
            return merged.tools()

    again = tools(Surface("split").on(Again()))
    assert list(again) == [
        "memory_save_topic", "memory_recall_topic", "memory_save_memory", "memory_search_memory"
    ]  # fmt: skip
    assert again["memory_recall_topic"].intents({"topic": "x"}) == ("recall",)


def test_merged_tools_are_one_that_does_what_each_did(ctx: Context) -> None:
    memory = tools(Surface("merged").on(Local2Single()))["memory"]
    assert memory.parameters["required"] == ["action"]
    assert memory.parameters["properties"]["action"]["enum"][0] == "save_topic"
    args = {"action": "save_topic", "topic": "user.name", "content": "Ann"}
    assert memory.run(args, ctx).text == "Memory saved: user.name"
    assert memory.intents(args) == ("remember", "update")
    assert memory.run({"action": "recall_topic", "topic": "user.name"}, ctx).text.endswith("Ann")
    assert memory.effect == "write"


def test_a_merged_call_that_lacks_an_argument_says_which_and_writes_nothing(ctx: Context) -> None:
    memory = tools(Surface("merged").on(Local2Single()))["memory"]
    result = memory.run({"action": "save_topic", "topic": "user.name"}, ctx)
    assert (result.is_error, result.text) == (True, "Error: action 'save_topic' needs content as well.")
    assert ctx.store.count() == 0


def test_a_shared_parameter_says_what_it_means_for_each_action() -> None:
    memory = tools(Surface("merged").on(Local2Single()))["memory"]
    content = memory.parameters["properties"]["content"]
    assert content["description"] == (
        "For save_topic: The value to store. For save_memory: What to note, as one sentence."
    )


def test_tools_that_mean_different_types_by_one_parameter_cannot_be_merged() -> None:
    class Clashing(MemoryDesign):
        name = "clashing"

        def tools(self) -> Any:
            return [
                save_tool("keep", "Keep."),
                build.tool(
                    "drop", "Drop.", {"content": {"type": "integer"}}, lambda a, c: ToolResult(text="")
                ),
            ]

    with pytest.raises(InputError, match=r"keep and drop cannot be merged: .* by 'content'"):
        Surface("merged").on(Clashing())


def test_neutral_names_are_said_wherever_the_old_ones_were() -> None:
    neutral = tools(Surface(names="neutral").on(Local2Dual()))
    assert list(neutral) == ["tool_a", "tool_b"]
    assert "Example: tool_b(topic='user.name', content='Richard')" in neutral["tool_b"].description


def test_the_actions_of_a_merged_tool_are_neutral_too() -> None:
    (memory,) = Surface("merged", "neutral").on(Local2Dual()).tools()
    assert memory.name == "tool"
    assert memory.parameters["properties"]["action"]["enum"] == ["tool_a", "tool_b"]
    assert "memory_" not in memory.description


def test_a_tool_that_was_split_is_said_by_the_names_of_its_parts() -> None:
    class Named(Local2Dual):
        def system_prompt(self) -> str:
            return "Look with memory_recall, keep with memory_save."

    split = Surface("split").on(Named()).system_prompt()
    assert split == "Look with memory_recall_topic or memory_recall_query, keep with memory_save."
    neutral = Surface("split", "neutral").on(Named()).system_prompt()
    assert neutral == "Look with tool_a or tool_b, keep with tool_c."


def test_an_error_names_the_tool_as_the_model_knows_it(ctx: Context) -> None:
    class Complains(MemoryDesign):
        name = "complains"

        def tools(self) -> Any:
            def run(args: Any, ctx: Any) -> ToolResult:
                raise InputError("save_it wants more; saved save_items stay.")

            return [build.tool("save_it", "Saves.", {}, run)]

    (tool,) = Surface(names="neutral").on(Complains()).tools()
    assert tool.run({}, ctx).text == "Error: tool_a wants more; saved save_items stay."


def test_terse_words_are_the_first_sentence() -> None:
    terse = tools(Surface(words="terse").on(Local2Dual()))
    assert terse["memory_recall"].description == "Retrieve from memory."


def test_when_to_use_follows_from_the_intents_alone() -> None:
    one = tools(Surface(words="when_to_use").on(Local2Single()))["save_topic"].description
    other = tools(Surface(words="when_to_use").on(Local2Dual()))["memory_save"].description
    assert one == other
    assert one == (
        "Use this when the user asks you to remember something, "
        "or when something that is remembered has changed."
    )


FULLER = (
    ("oxydra_tags", "scratchpad", True),
    ("harness_runs", "read_path", "both"),
    ("memex", "mode", "lossy"),
)
EVERY = [*(design.name for design in _BUILT_IN), *({name: {key: value}} for name, key, value in FULLER)]
WITH_TOOLS = [spec for spec in map(open_design, EVERY) if spec().tools()]


@pytest.mark.parametrize("spec", WITH_TOOLS, ids=lambda spec: spec.variant)
def test_length_matched_words_are_as_many_for_every_design(spec: DesignSpec) -> None:
    matched = Surface(words="length_matched").on(spec())
    assert abs(words(matched) - LENGTH) <= 0.08 * LENGTH
    for tool in matched.tools():
        assert tool.description.endswith(".")
        assert not re.search(r":\.|(?<!e\.g)\.\s+[a-z]|\s\s", tool.description), "no sentence is broken"


@pytest.mark.parametrize("spec", WITH_TOOLS, ids=lambda spec: spec.variant)
def test_a_sentence_that_makes_a_description_longer_holds_for_the_tool(spec: DesignSpec) -> None:
    own = tools(spec())
    for name, tool in tools(Surface(words="length_matched").on(spec())).items():
        said = tool.description.removeprefix(own[name].description)
        assert tool.parameters["properties"] or "argument" not in said
        assert tool.timeout_s <= 20 or "quick" not in said
        assert own[name].intents({}) not in ((), ("compact",)) or "long-term" not in said


def test_wrapped_lines_are_one_sentence_and_a_list_stays_with_its_header() -> None:
    class Listing(MemoryDesign):
        name = "listing"

        def tools(self) -> Any:
            said = "Save a\nnote. Use this when:\n- It matters\n  much.\n- You are asked.\n\nSay it\nshortly."
            return [save_tool("keep", said)]

    (terse,) = Surface(words="terse").on(Listing()).tools()
    assert terse.description == "Save a note."
    (matched,) = Surface(words="length_matched").on(Listing()).tools()
    assert matched.description.startswith(
        "Save a note. Use this when:\n- It matters much.\n- You are asked.\nSay it shortly. Use this when the"
    )


def test_what_changes_nothing_about_a_design_is_no_part_of_its_surface() -> None:
    spec = open_design("local2_single").behind(Surface("split", "neutral"))
    assert spec.surface == Surface(names="neutral")
    assert spec.variant == "local2_single [neutral names]"
    assert open_design("none").behind(Surface("merged", "neutral", "terse")).surface == Surface()


def test_another_surface_is_another_cell_and_the_same_one_is_not() -> None:
    plain = open_design("local2_dual")
    split = plain.behind(Surface("split"))
    assert split.fingerprint() != plain.fingerprint()
    assert split.fingerprint() == open_design("local2_dual").behind(Surface("split")).fingerprint()


def test_hooks_see_the_designs_own_tools_whatever_the_model_was_shown(ctx: Context) -> None:
    seen: list[Any] = []

    class Watching(MemoryDesign):
        name = "watching"

        def tools(self) -> Any:
            return [save_tool("keep", "Keep."), save_tool("note", "Note.", parameter="text")]

        def before_turn(self, ctx: Context) -> Injection:
            return Injection("Use keep or note; keepsakes stay.")

        def on_result(self, ctx: Context, call: ToolCall, result: ToolResult) -> ToolResult:
            seen.append(call)
            return result

        def after_turn(self, ctx: Context) -> None:
            seen.extend(ctx.calls)

    design = Surface("merged", "neutral").on(Watching())
    shown = ToolCall("tool", {"action": "tool_b", "text": "x"})
    design.on_result(ctx, shown, ToolResult(text="ok"))
    ctx.calls = [shown]
    design.after_turn(ctx)
    assert seen == [ToolCall("note", {"text": "x"})] * 2
    assert design.hooks() == ("before_turn", "on_result", "after_turn")
    renamed = Surface(names="neutral").on(Watching()).before_turn(ctx)
    assert renamed is not None
    assert renamed.text == "Use tool_a or tool_b; keepsakes stay."


@pytest.mark.parametrize("names", ["as_written", "neutral"])
def test_hooks_behind_a_split_see_the_tool_that_was_split_and_all_it_is_given(
    ctx: Context, names: Any
) -> None:
    (memory,) = Surface("merged").on(Local2Single()).tools()
    dispatcher = replace(memory, name="keeper")
    seen: list[Any] = []

    class Watching(MemoryDesign):
        name = "watching"

        def tools(self) -> Any:
            return [dispatcher, *Local2Dual().tools()]

        def after_turn(self, ctx: Context) -> None:
            seen.extend(ctx.calls)

    design = Surface("split", names).on(Watching())
    shown = [tool.name for tool in design.tools()]
    ctx.calls = [ToolCall(shown[1], {"topic": "user.name"}), ToolCall(shown[5], {"query": "tea"})]
    design.after_turn(ctx)
    assert seen == [
        ToolCall("keeper", {"action": "recall_topic", "topic": "user.name"}),
        ToolCall("memory_recall", {"query": "tea"}),
    ]


def test_a_dispatcher_of_ones_own_serves_what_its_actions_do() -> None:
    (memory,) = Surface("merged").on(Local2Single()).tools()

    class Dispatching(MemoryDesign):
        name = "dispatching"

        def tools(self) -> Any:
            return [memory]

    assert Dispatching().serves() == Local2Single().serves()
