"""What must hold for every design: isolation, errors that are answers, all tools and hooks in use."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stories import run, story

from memeval.designs import open_design, register
from memeval.designs.base import Context, Injection, MemoryDesign, served
from memeval.designs.registry import _BUILT_IN
from memeval.embedding import open_embedder
from memeval.errors import InputError, TextTooLongError
from memeval.evaluation.arguments import read_arguments
from memeval.evaluation.trial import Trial, run_trial
from memeval.memory.inmemory import InMemoryStore
from memeval.messages import Message, Tool, ToolCall
from memeval.models.base import Options
from memeval.models.scripted import ScriptedModel
from memeval.records import Record, Scope, SeededIds, StoryClock

NAMES = [design.name for design in _BUILT_IN]
# Each with the settings that give it all of its tools, beside the design as it comes.
FULLER: Mapping[str, Mapping[str, Any]] = {
    "oxydra_tags": {"scratchpad": True},
    "synthorg_triad": {"write_path": "tool"},
    "synthorg_tools": {"write_path": "tool"},
    "harness_runs": {"read_path": "both"},
}
VARIANTS = [*NAMES, *({name: dict(more)} for name, more in FULLER.items())]
WITH_TOOLS = [v for v in VARIANTS if open_design(v)().tools()]


def label(variant: Any) -> str:
    return open_design(variant).variant


def answers(messages: Sequence[Message], tools: Any) -> str:
    """A model for the requests of hooks and tools: an observation, a plan, a summary, whatever is asked."""
    return json.dumps({
        "title": "Colours", "narrative": "The colours were talked about.", "facts": ["Teal was chosen."],
        "steps": ["Answer."], "prior_work": ["Teal was chosen."],
    })  # fmt: skip


class Users:
    """Two users of one trial, each with a store, and the tools as the trial would run them."""

    def __init__(self, variant: Any) -> None:
        self.design: MemoryDesign = open_design(variant)()
        embedder, state = open_embedder("hash", cache=None), dict[str, Any]()
        clock, ids = StoryClock(datetime(2026, 5, 30, 9, tzinfo=UTC)), SeededIds(7)
        self.contexts = {
            user: Context(
                scope=Scope(user, f"session-{user}"), store=InMemoryStore(user, embedder), clock=clock,
                ids=ids, model=ScriptedModel(answers), state=state, turn=1,
                messages=[Message(role="system", content="")] + [Message(role="user", content="Hm.")] * 6,
            )
            for user in ("ann", "bob")
        }  # fmt: skip

    def call(self, user: str, tool: Tool, args: Any) -> str:
        """What the model gets for a call; whatever it wrote, no exception ever comes out."""
        ctx = self.contexts[user]
        read = read_arguments(args, tool)
        before = ctx.store.snapshot()
        try:
            result = None if read.error else tool.run(read.values, ctx)
        except (InputError, TextTooLongError) as error:
            result = None
            read = type(read)(error=str(error))
        if result is not None:
            result = self.design.on_result(ctx, ToolCall(tool.name, read.values), result)
        if result is None or result.is_error:
            assert ctx.store.snapshot() == before, "a call that failed must leave the store as it was"
            text = read.error if result is None else result.text
            assert re.search(r"\w{3}.*[.;)\]!]?", text), "an error is a sentence"
            return text
        return result.text

    def turn(self, user: str, query: str, answer: str) -> str:
        """A whole turn without calls; what was injected into it."""
        ctx = self.contexts[user]
        ctx.query, ctx.answer, ctx.turn = query, answer, ctx.turn + 1
        injection = self.design.before_turn(ctx)
        self.design.after_turn(ctx)
        return injection.text if injection else ""

    def known(self, user: str) -> list[str]:
        return [record.id for record in self.contexts[user].store.find()]


AWKWARD = [
    "",
    " ",
    "\x00",
    "\ud800",
    "user.\ud83d",
    "مرحبا",
    "👍🏽 𝔘",
    'C++ AND "x" NEAR(',
    "a'b",
    "name:*",
    "-" * 300,
    "x" * 60_000,
]
text = st.one_of(st.sampled_from(["teal", "the colour teal", "budget", *AWKWARD]), st.text(max_size=20))


def arguments(tool: Tool, words: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    """Arguments as weak models write them: mostly of the right form, sometimes missing or of another type."""
    odd = st.one_of(
        st.none(), st.integers(-3, 99), st.floats(allow_nan=False), st.booleans(), st.lists(words, max_size=2)
    )
    parts = {}
    for name, schema in tool.parameters.get("properties", {}).items():
        match schema.get("type"):
            case "integer" | "number":
                fit: st.SearchStrategy[Any] = st.one_of(st.integers(-2, 60), st.just("10"), st.floats(0, 1))
            case "array" if "properties" in schema.get("items", {}):
                inner = dict.fromkeys(schema["items"]["properties"], words)
                fit = st.lists(st.fixed_dictionaries(inner), max_size=2)
            case "array":
                fit = st.one_of(st.lists(words, max_size=3), words)
            case "boolean":
                fit = st.one_of(st.booleans(), st.just("true"))
            case _:
                fit = st.one_of(words, st.sampled_from(schema.get("enum", ["user.colour"])))
        parts[name] = st.one_of(fit, fit, fit, odd)
    return st.one_of(st.fixed_dictionaries({}, optional=parts), st.fixed_dictionaries(parts), odd)


@pytest.mark.parametrize("variant", VARIANTS, ids=label)
@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_no_design_reaches_another_users_memories(variant: Any, data: st.DataObject) -> None:
    users = Users(variant)
    tools = list(users.design.tools())
    secret = {"ann": "annasecret", "bob": "bobsecret"}
    for _ in range(data.draw(st.integers(3, 12))):
        user = data.draw(st.sampled_from(["ann", "bob"]))
        other = "bob" if user == "ann" else "ann"
        mine = f"{secret[user]} teal"
        if not tools or data.draw(st.booleans()):
            seen = users.turn(user, f"{mine} {data.draw(text)}", f"Noted, {mine}.")
        else:
            tool = data.draw(st.sampled_from(tools))
            ids = st.sampled_from([*users.known(other), *users.known(user), "note-1"])
            words = st.one_of(text, st.just(mine), ids)
            seen = users.call(user, tool, data.draw(arguments(tool, words)))
        assert secret[other] not in seen
        for name, ctx in users.contexts.items():
            foreign = secret["bob" if name == "ann" else "ann"]
            assert not any(foreign in _whole(record) for record in ctx.store.find())


def test_the_watch_over_other_peoples_memories_sees_a_design_that_mixes_them_up() -> None:
    class Mixing(MemoryDesign):
        name = "mixing"

        def before_turn(self, ctx: Context) -> Injection:
            return Injection(" ".join(ctx.state.get("said", [])))

        def after_turn(self, ctx: Context) -> None:
            ctx.state.setdefault("said", []).append(ctx.query)

    users = Users(register(Mixing).name)
    users.turn("ann", "annasecret", "Noted.")
    assert "annasecret" in users.turn("bob", "hello", "Hello.")


def _whole(record: Record) -> str:
    return " ".join([record.text, *map(str, record.fields.values()), *record.tags])


def sample(tool: Tool, store: Sequence[str]) -> dict[str, Any]:
    """Arguments that fit a tool, an id of the store where it wants one."""
    made: dict[str, Any] = {}
    for name, schema in tool.parameters.get("properties", {}).items():
        if name in ("topic", "key"):
            made[name] = "user.colour"
        elif name.endswith("_id"):
            made[name] = store[-1] if store else "note-1"
        elif name == "db_blocks":
            made[name] = [{"db_index": "colour", "db_content": "The colour is teal."}]
        elif name == "db_index":
            made[name] = "colour"
        elif name == "category":
            made[name] = "semantic"
        elif name in ("page", "limit"):
            made[name] = 1
        else:
            kinds = {"integer": 3, "number": 0.5, "boolean": True, "array": ["colour"]}
            made[name] = kinds.get(schema.get("type", ""), "The colour is teal; password: opensesame.")
    return made


@pytest.mark.parametrize("variant", VARIANTS, ids=label)
def test_a_trial_drives_every_tool_and_fires_every_hook(variant: Any) -> None:
    """Two users' worth of stores would hide nothing here: one story of three sessions, every tool in each."""
    spec = open_design(variant)
    embedder = open_embedder("hash", cache=None)
    stores: dict[str, InMemoryStore] = {}

    def script(messages: Sequence[Message], tools: Sequence[Tool]) -> Any:
        if not tools and not messages[0].content.startswith(spec().system_prompt()[:20]):
            return answers(messages, tools)
        tools = sorted(tools, key=_last)
        last = messages[-1]
        wanted = re.search(r"Turn (\d+)", last.content) if last.role == "user" else None
        at = int(wanted[1]) if wanted else -1
        if wanted and at < len(tools):
            return ToolCall(tools[at].name, sample(tools[at], _ids(stores["user"])))
        if wanted and at == count and (by_id := [tool for tool in tools if _id_of(tool)]):
            wrong = {_id_of(by_id[0]): "password: opensesame"}  # an error that repeats a secret
            return ToolCall(by_id[0].name, {**sample(by_id[0], ()), **wrong})
        return "The colour is teal."

    count = max(len(spec().tools()), 2)
    turns = [{"user": f"Turn {n}: the colour is teal, as I said.", "filler": 3} for n in range(count + 1)]
    tale = story(turns, turns, turns)
    trial = Trial(
        key="k", cell="c", scenario=tale, design=spec, calling="native",
        options=Options(num_ctx=600 if "compact" in spec().hooks() else 4096),
    )  # fmt: skip
    result = run_trial(
        trial, ScriptedModel(script), lambda user: stores.setdefault(user, InMemoryStore(user, embedder))
    )
    assert result.trial.outcome == "ok", result.trial.failure
    worked = {made.name for made in result.calls if made.status == "ok"}
    assert worked == {tool.name for tool in spec().tools()}
    if variant in NAMES:  # settings may leave a hook nothing to do
        assert set(result.trial.hooks) == set(spec().hooks())


def _id_of(tool: Tool) -> str:
    """The parameter of a tool that takes an id; empty if none does."""
    return next((name for name in tool.parameters.get("properties", {}) if name.endswith("_id")), "")


def _last(tool: Tool) -> int:
    """Writing comes first and forgetting last, so that there is something to read."""
    return (
        2
        if "forget" in tool.intents({})
        else int(tool.effect == "read" and "compact" not in tool.intents({}))
    )


def _ids(store: InMemoryStore) -> list[str]:
    """Ids to ask for, the model's own last."""
    return [record.id for record in sorted(store.find(), key=lambda record: record.origin == "tool")]


@pytest.mark.parametrize("variant", WITH_TOOLS, ids=label)
def test_every_tool_says_what_it_serves_and_has_described_parameters(variant: Any) -> None:
    for tool in open_design(variant)().tools():
        scratch = tool.name.startswith("scratchpad")
        assert served(tool) or scratch
        assert tool.description.strip()
        for part in tool.parameters.get("properties", {}).values():
            assert part.get("description", "").strip()
        assert 0 < tool.timeout_s <= 600


@pytest.mark.parametrize("name", NAMES)
def test_every_design_says_what_it_is_and_where_it_comes_from(name: str) -> None:
    design = open_design(name)()
    assert design.title
    assert design.origin or name in ("none", "full_context")
    assert design.system_prompt().strip()


@pytest.mark.parametrize("variant", WITH_TOOLS, ids=label)
def test_empty_arguments_are_an_error_or_an_answer_and_write_nothing(variant: Any) -> None:
    users = Users(variant)
    for tool in users.design.tools():
        blank = {
            name: " " for name, part in tool.parameters.get("properties", {}).items()
            if part.get("type") == "string" and "enum" not in part
        }  # fmt: skip
        if blank and tool.parameters.get("required"):
            users.call("ann", tool, blank)
    assert users.known("ann") == []


@pytest.mark.parametrize("variant", WITH_TOOLS, ids=label)
def test_every_text_a_tool_takes_may_be_awkward(variant: Any) -> None:
    """Each awkward text in each parameter, all else as it should be: an answer or an error, never a crash."""
    users = Users(variant)
    for tool in users.design.tools():
        for name, part in tool.parameters.get("properties", {}).items():
            for awkward in AWKWARD if part.get("type") == "string" else ():
                users.call("ann", tool, {**sample(tool, users.known("ann")), name: awkward})


def test_the_same_story_and_seed_give_the_same_rows_for_every_design() -> None:
    for name in NAMES:
        one, two = (run(story([{"user": "Hello, the colour is teal."}]), ["Hi."] * 3, name) for _ in range(2))
        assert [row.called_tool for row in one.turns] == [row.called_tool for row in two.turns]
        assert one.trial.hooks == two.trial.hooks
