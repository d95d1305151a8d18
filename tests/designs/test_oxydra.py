"""Oxydra's two designs, against the words, results and lists of tests of seeds 002 and 003."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from stories import call, run
from storing import Tiny

from memeval.designs.base import Context, MemoryDesign
from memeval.designs.oxydra import OxydraNotes, OxydraTags
from memeval.designs.oxydra_prompt import BASE, GUIDE, MANDATE
from memeval.embedding import open_embedder
from memeval.embedding.base import Purpose, Vectors
from memeval.errors import InfrastructureError, InputError, ReadOnlyError
from memeval.evaluation.arguments import read_arguments
from memeval.evaluation.rows import TrialRow
from memeval.memory.chroma import ChromaStore
from memeval.memory.guard import GuardedStore
from memeval.memory.inmemory import InMemoryStore
from memeval.messages import Message, Tool, ToolCall, ToolResult
from memeval.records import Scope, SeededIds, StoryClock, Where
from memeval.scenarios.loader import load_scenarios

BOTH = pytest.mark.parametrize("design", [OxydraNotes(), OxydraTags()], ids=["notes", "tags"])
NAMES = ["memory_search", "memory_save", "memory_update", "memory_delete"]
PAD = OxydraTags(scratchpad=True)
UNKNOWN = "note `note-nowhere` not found; use memory_search to find the note and its note_id."


def memory(user: str = "user", session: str = "session-1", **parts: Any) -> Context:
    """A user's conversation over a fresh store, or over one that is given."""
    store = parts.pop("store", None) or InMemoryStore(user, open_embedder("hash", cache=None))
    clock = parts.pop("clock", None) or StoryClock(datetime(2026, 5, 30, 9, tzinfo=UTC))
    ids = parts.pop("ids", None) or SeededIds(1)
    return Context(scope=Scope(user, session), store=store, clock=clock, ids=ids, **parts)


def elsewhere(ctx: Context, session: str, channel: str = "") -> Context:
    """Another conversation of the same user."""
    scope = Scope(ctx.scope.user, session, channel)
    return Context(scope=scope, store=ctx.store, clock=ctx.clock, ids=ctx.ids, state=ctx.state)


@pytest.fixture
def ctx() -> Context:
    return memory()


def tool(design: MemoryDesign, name: str) -> Tool:
    return next(t for t in design.tools() if t.name == name)


def use(design: MemoryDesign, ctx: Context, name: str, **args: Any) -> ToolResult:
    return tool(design, name).run(args, ctx)


def save(design: MemoryDesign, ctx: Context, content: str, **args: Any) -> str:
    result = use(design, ctx, "memory_save", content=content, **args)
    assert not result.is_error, result.text
    return str(json.loads(result.text)["note_id"])


def search(design: MemoryDesign, ctx: Context, query: str, **args: Any) -> list[dict[str, Any]]:
    result = use(design, ctx, "memory_search", query=query, **args)
    assert not result.is_error, result.text
    found: list[dict[str, Any]] = json.loads(result.text)
    return found


def texts(found: Sequence[dict[str, Any]]) -> list[str]:
    return [item["text"] for item in found]


def say(design: MemoryDesign, ctx: Context, query: str, answer: str = "") -> None:
    """A turn of the conversation, as the design sees it when it is over."""
    ctx.query, ctx.answer = query, answer
    design.after_turn(ctx)


def seal(text: str) -> str:
    """A short hash of a text: those in this file were taken from the seeds themselves."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def parameter_seals(design: MemoryDesign) -> dict[str, list[str]]:
    return {
        t.name: [seal(part["description"]) for part in t.parameters["properties"].values()]
        for t in design.tools()
    }


# the tools as the model sees them


@BOTH
def test_ox_1_there_are_four_tools_in_the_seeds_order_and_no_more(design: MemoryDesign) -> None:
    assert [t.name for t in design.tools()] == NAMES


@BOTH
def test_ox_5_to_8_searching_reads_for_15_seconds_and_the_others_write_for_10(design: MemoryDesign) -> None:
    assert [(t.effect, t.timeout_s) for t in design.tools()] == [("read", 15.0), *[("write", 10.0)] * 3]


def test_ox_5_to_8_the_plain_tools_have_the_seeds_parameters() -> None:
    shapes = {t.name: t.parameters for t in OxydraNotes().tools()}
    assert {name: list(shape["properties"]) for name, shape in shapes.items()} == {
        "memory_search": ["query", "top_k", "include_conversation"],
        "memory_save": ["content"],
        "memory_update": ["note_id", "content"],
        "memory_delete": ["note_id"],
    }
    assert [shape["required"] for shape in shapes.values()] == [
        ["query"], ["content"], ["note_id", "content"], ["note_id"],
    ]  # fmt: skip
    kinds = {name: part["type"] for name, part in shapes["memory_search"]["properties"].items()}
    assert kinds == {"query": "string", "top_k": "integer", "include_conversation": "boolean"}


def test_ox_5_the_default_of_top_k_is_told_as_it_is_set() -> None:
    said = [tool(d, "memory_search").parameters["properties"]["top_k"]["description"]
            for d in (OxydraNotes(), OxydraNotes(top_k=3))]  # fmt: skip
    assert said == [f"Max results to return (default: {k}, max: 20)" for k in (5, 3)]


def test_ox_13_the_descriptions_are_the_seeds_word_for_word() -> None:
    assert {t.name: seal(t.description) for t in OxydraNotes().tools()} == {
        "memory_search": "8594892b4be3",
        "memory_save": "3a31ade41553",
        "memory_update": "9dce70fbe1b1",
        "memory_delete": "0f2e5ff83d2c",
    }
    assert parameter_seals(OxydraNotes()) == {
        "memory_search": ["05ac0173245e", "bb2d6e12f568", "78b521b8c7bc"],
        "memory_save": ["a5c71d1432bb"],
        "memory_update": ["97f96119bd6c", "39f54e75af15"],
        "memory_delete": ["a6e29c506993"],
    }


@BOTH
def test_a38_the_user_is_never_an_argument(design: MemoryDesign) -> None:
    assert not [name for t in design.tools() for name in t.parameters["properties"] if "user" in name]


def test_ox_14_the_tools_are_in_the_request_that_the_model_gets() -> None:
    shown: list[str] = []

    def script(messages: Sequence[Message], tools: Sequence[Tool]) -> str:
        shown.extend(t.name for t in tools)
        return "I do not know."

    run(load_scenarios("maintain/update.yaml")[0], script, "oxydra_notes")
    assert shown[:4] == NAMES


# save and search


@BOTH
def test_ox_6_saving_returns_the_note_id_and_a_message(design: MemoryDesign, ctx: Context) -> None:
    result = use(design, ctx, "memory_save", content="The user keeps bees.")
    (note_id,) = result.written
    assert result.text == f'{{"note_id": "{note_id}", "message": "Note saved successfully."}}'
    kept = ctx.store.get(note_id)
    assert kept is not None
    assert (kept.kind, kept.text, kept.origin, kept.by_passage) == (
        "note",
        "The user keeps bees.",
        "tool",
        True,
    )


@BOTH
def test_ox_4_every_note_has_a_uuid_of_its_own_that_a_repeat_gives_again(design: MemoryDesign) -> None:
    ids, again, other = (
        [save(design, ctx, f"note number {n}") for n in range(5)]
        for ctx in (memory(), memory(), memory(ids=SeededIds(2)))
    )
    assert len({*ids, *other}) == 10
    assert ids == again
    form = r"note-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    assert all(re.fullmatch(form, name) for name in ids)


@BOTH
def test_ox_6_empty_content_is_an_error_and_writes_nothing(design: MemoryDesign, ctx: Context) -> None:
    result = use(design, ctx, "memory_save", content="  ")
    assert result.is_error
    assert result.text == "Error: content is empty; give the text to remember."
    assert ctx.store.count() == 0


def test_ox_5_a_result_has_its_note_id_its_text_a_score_and_its_source(ctx: Context) -> None:
    note_id = save(OxydraNotes(), ctx, "The user keeps bees.")
    result = use(OxydraNotes(), ctx, "memory_search", query="bees")
    assert result.text == (
        f'[{{"note_id": "{note_id}", "text": "The user keeps bees.", "score": 1.0, "source": "user_memory"}}]'
    )
    assert [hit.record.id for hit in result.hits] == [note_id]


@BOTH
def test_ox_5_an_empty_memory_is_an_empty_array_and_no_error(design: MemoryDesign, ctx: Context) -> None:
    result = use(design, ctx, "memory_search", query="anything")
    assert (result.text, result.is_error) == ("[]", False)


@BOTH
def test_ox_5_an_empty_query_is_an_error(design: MemoryDesign, ctx: Context) -> None:
    save(design, ctx, "The user keeps bees.")
    result = use(design, ctx, "memory_search", query=" ")
    assert (result.text, result.is_error) == ("Error: query is empty; say what to look for.", True)


@pytest.mark.parametrize(
    ("asked", "given", "said"),
    [
        ({}, 5, ""),
        ({"top_k": 2}, 2, ""),
        ({"top_k": 20}, 20, ""),
        ({"top_k": 50}, 20, "(top_k can be 1 to 20; 20 was taken)"),
        ({"top_k": 0}, 1, "(top_k can be 1 to 20; 1 was taken)"),
    ],
)
def test_ox_5_five_results_unless_asked_and_twenty_at_most_which_is_said(
    ctx: Context, asked: dict[str, int], given: int, said: str
) -> None:
    for n in range(25):
        save(OxydraNotes(), ctx, f"bee {n}")
    array, _, behind = use(OxydraNotes(), ctx, "memory_search", query="bee", **asked).text.partition("\n")
    assert len(json.loads(array)) == given
    assert behind == said


@pytest.mark.parametrize(("top_k", "more"), [(20, ""), (99, "\n(top_k can be 1 to 20; 20 was taken)")])
def test_ox_14_what_does_not_fit_is_left_out_at_whole_notes_and_said(
    ctx: Context, top_k: int, more: str
) -> None:
    for n in range(12):
        save(OxydraNotes(), ctx, f"note {n}: " + "bees " * 110)
    result = use(OxydraNotes(), ctx, "memory_search", query="bees", top_k=top_k)
    array, _, said = result.text.partition("\n")
    assert len(result.text) <= 4000
    assert len(json.loads(array)) == len(result.hits) < 12
    assert said == f"({12 - len(result.hits)} more left out to keep this short){more}"


def test_ox_14_a_long_note_is_found_by_the_passage_that_was_asked_for(ctx: Context) -> None:
    filler = "Nothing much happened on the farm on that day, as so often. " * 20
    note_id = save(OxydraNotes(), ctx, f"{filler}The hive keys hang behind the barometer. {filler}")
    (found,) = search(OxydraNotes(), ctx, "hive keys barometer")
    assert found["note_id"] == note_id
    assert "behind the barometer" in found["text"]
    assert len(found["text"]) <= 640


@BOTH
def test_ox_14_secrets_are_scrubbed_from_what_a_tool_gives_back(design: MemoryDesign, ctx: Context) -> None:
    save(design, ctx, "The deploy token is ghp_0123456789abcdefghijABCDEFGHIJ, for the build server.")
    result = use(design, ctx, "memory_search", query="deploy token")
    shown = design.on_result(ctx, ToolCall("memory_search", {}), result)
    assert "ghp_" not in shown.text
    assert "[redacted], for the build server." in json.loads(shown.text)[0]["text"]
    assert shown.hits == result.hits


@BOTH
def test_ox_14_a_key_without_an_end_takes_nothing_of_other_notes_with_it(
    design: MemoryDesign, ctx: Context
) -> None:
    save(design, ctx, "The deploy key is -----BEGIN RSA PRIVATE KEY----- MIIabc")
    save(design, ctx, "The deploy day is Friday.")
    say(design, ctx, "My deploy password: hunter22")
    result = use(design, ctx, "memory_search", query="deploy", include_conversation=True)
    shown = design.on_result(ctx, ToolCall("memory_search", {}), result)
    assert set(texts(json.loads(shown.text))) == {
        "The deploy key is [redacted]",
        "The deploy day is Friday.",
        "My deploy password: [redacted]",
    }


def test_ox_14_secrets_are_scrubbed_from_tags_errors_and_the_scratchpad(ctx: Context) -> None:
    token = "ghp_0123456789abcdefghijabcdefghij"
    save(PAD, ctx, "The user keeps bees.", tags=[token])
    use(PAD, ctx, "scratchpad_write", items=[f"try {token}", "-----BEGIN PRIVATE KEY-----", "order wax"])
    for name, args in (
        ("memory_search", {"query": "bees"}),
        ("memory_delete", {"note_id": token}),
        ("scratchpad_read", {}),
    ):
        result = PAD.on_result(ctx, ToolCall(name, args), use(PAD, ctx, name, **args))
        assert token not in result.text
        assert "[redacted]" in result.text
    assert pad(ctx) == ["try [redacted]", "[redacted]", "order wax"]


def test_ox_14_a_result_without_secrets_goes_through_as_it_is(ctx: Context) -> None:
    result = use(OxydraNotes(), ctx, "memory_save", content="The user keeps bees.")
    assert OxydraNotes().on_result(ctx, ToolCall("memory_save", {}), result) is result


# update and delete


@BOTH
def test_ox_7_an_update_keeps_the_note_id_and_leaves_nothing_of_the_old_text(
    design: MemoryDesign, ctx: Context
) -> None:
    note_id = save(design, ctx, "The user keeps bees.")
    result = use(design, ctx, "memory_update", note_id=note_id, content="The user keeps geese.")
    assert result.text == f'{{"note_id": "{note_id}", "message": "Note updated successfully."}}'
    assert result.written == (note_id,)
    assert [(i["note_id"], i["text"]) for i in search(design, ctx, "bees")] == [
        (note_id, "The user keeps geese.")
    ]
    assert ctx.store.candidates("bees").keyword_rank.tolist() == [0]


@BOTH
def test_ox_8_a_deleted_note_is_gone_from_every_index(design: MemoryDesign, ctx: Context) -> None:
    note_id = save(design, ctx, "The user keeps bees. " * 80)
    assert len(ctx.store.candidates("bees")) == 1
    result = use(design, ctx, "memory_delete", note_id=note_id)
    assert result.text == f'{{"note_id": "{note_id}", "message": "Note deleted successfully."}}'
    assert (ctx.store.get(note_id), len(ctx.store.candidates("bees")), ctx.store.count()) == (None, 0, 0)


@BOTH
@pytest.mark.parametrize("name", ["memory_update", "memory_delete"])
def test_ox_7_and_8_an_unknown_note_is_an_error_that_changes_nothing(
    design: MemoryDesign, ctx: Context, name: str
) -> None:
    save(design, ctx, "The user keeps bees.")
    before = ctx.store.snapshot()
    args = (
        {"note_id": "note-nowhere", "content": "geese"}
        if name == "memory_update"
        else {"note_id": "note-nowhere"}
    )
    result = use(design, ctx, name, **args)
    assert (result.text, result.is_error, result.written) == (f"Error: {UNKNOWN}", True, ())
    assert ctx.store.snapshot() == before


def test_ox_8_a_note_can_be_deleted_only_once(ctx: Context) -> None:
    note_id = save(OxydraNotes(), ctx, "The user keeps bees.")
    assert not use(OxydraNotes(), ctx, "memory_delete", note_id=note_id).is_error
    assert use(OxydraNotes(), ctx, "memory_delete", note_id=note_id).is_error


@BOTH
def test_ox_7_an_update_without_content_is_an_error_and_keeps_the_note(
    design: MemoryDesign, ctx: Context
) -> None:
    note_id = save(design, ctx, "The user keeps bees.")
    assert use(design, ctx, "memory_update", note_id=note_id, content=" ").is_error
    assert texts(search(design, ctx, "bees")) == ["The user keeps bees."]


@BOTH
def test_ox_14_a_name_is_found_changed_and_forgotten(design: MemoryDesign, ctx: Context) -> None:
    save(design, ctx, "User's name is Shantanu")
    (found,) = search(design, ctx, "name")
    assert found["text"] == "User's name is Shantanu"
    use(design, ctx, "memory_update", note_id=found["note_id"], content="User prefers SG")
    assert texts(search(design, ctx, "name")) == ["User prefers SG"]
    use(design, ctx, "memory_delete", note_id=found["note_id"])
    assert search(design, ctx, "name") == []


def note_id_shown(messages: Sequence[Message]) -> str:
    """The id of the first note in the last result, as a model reads it."""
    return str(json.loads(messages[-1].content)[0]["note_id"])


def play(design: type[MemoryDesign], file: str, name: str, *steps: Any) -> TrialRow:
    """A shipped story with a model that does these steps; a function among them is given the messages."""
    script = iter(steps)

    def model(messages: Sequence[Message], tools: Sequence[Tool]) -> Any:
        step = next(script)
        return step(messages) if callable(step) else step

    story = next(story for story in load_scenarios(file) if story.scenario == name)
    done = run(story, model, design.name).trial
    assert (done.outcome, list(script)) == ("ok", [])
    return done


@pytest.mark.parametrize("design", [OxydraNotes, OxydraTags])
def test_ox_14_a_whole_story_of_saving_updating_and_deleting_passes(design: type[MemoryDesign]) -> None:
    find, new = call("memory_search", query="parking space"), "The user's parking space is D-092."
    done = play(
        design, "maintain/lifecycle.yaml", "lifecycle-parking",
        call("memory_save", content="The user's parking space is B-417."), "I have noted B-417.",
        find, "You may park at B-417.",
        find, lambda said: call("memory_update", note_id=note_id_shown(said), content=new), "Saved: D-092.",
        find, "You may park at D-092.",
        find, lambda said: call("memory_delete", note_id=note_id_shown(said)), "It is forgotten.",
        find, "I do not know which one you had.",
    )  # fmt: skip
    assert (done.passed, done.called, done.stored, done.retrieved) == (True, True, True, True)


@pytest.mark.parametrize(
    ("change", "passed"),
    [
        (
            lambda said: call(
                "memory_update", note_id=note_id_shown(said), content="Call the user Fennimore."
            ),
            True,
        ),
        (call("memory_save", content="Call the user Fennimore."), False),
    ],
    ids=["update", "second-note"],
)
def test_ox_9_a_second_note_beside_the_outdated_one_does_not_pass_for_an_update(
    change: Any, passed: bool
) -> None:
    find = call("memory_search", query="what the user likes to be called")
    done = play(
        OxydraNotes, "maintain/update.yaml", "update-form-of-address",
        find, change, "Noted, Fennimore.", find, "Hello, Fennimore!",
    )  # fmt: skip
    assert done.passed is passed


@pytest.mark.parametrize("deletes", [True, False])
def test_ox_9_what_is_only_said_to_be_forgotten_does_not_pass(deletes: bool) -> None:
    find = call("memory_search", query="candied ginger", top_k=1)
    delete = [find, lambda said: call("memory_delete", note_id=note_id_shown(said))] if deletes else []
    done = play(
        OxydraNotes, "maintain/forget.yaml", "forget-sweet",
        *delete, "It is forgotten.", call("memory_search", query="sweet"), "I don't know of any.",
        call("memory_search", query="bicycle"), "It is a Wanderfalke.",
    )  # fmt: skip
    assert done.passed is deletes


# whose memory it is


@BOTH
def test_ox_2_a_note_saved_on_one_channel_is_found_on_another(design: MemoryDesign, ctx: Context) -> None:
    note_id = save(design, elsewhere(ctx, "session-1", "tui"), "The user keeps bees.")
    later = elsewhere(ctx, "session-2", "whatsapp")
    assert [item["note_id"] for item in search(design, later, "bees")] == [note_id]
    assert not use(design, later, "memory_delete", note_id=note_id).is_error


def test_ox_2_a_story_on_two_channels_passes_and_another_user_is_told_nothing() -> None:
    find = call("memory_search", query="number of the order at the bakery")
    done = play(
        OxydraNotes, "multi/channels.yaml", "channels-one-user",
        call("memory_save", content="The user's order at the bakery has the number 6053."), "Noted: 6053.",
        find, lambda said: f"It is {json.loads(said[-1].content)[0]['text'].split()[-1]}",
        find, lambda said: "I do not know." if said[-1].content == "[]" else said[-1].content,
    )  # fmt: skip
    assert (done.passed, done.retrieved) == (True, True)


@BOTH
def test_ox_2_a_note_is_neither_found_nor_changed_by_another_user(design: MemoryDesign) -> None:
    ann, bob = memory("ann"), memory("bob", ids=SeededIds(2))
    note_id = save(design, ann, "Ann keeps bees.")
    assert search(design, bob, "bees", include_conversation=True) == []
    assert use(design, bob, "memory_update", note_id=note_id, content="geese").is_error
    assert use(design, bob, "memory_delete", note_id=note_id).is_error
    assert texts(search(design, ann, "bees")) == ["Ann keeps bees."]


@pytest.mark.parametrize("name", [*NAMES, "scratchpad_read", "scratchpad_write", "scratchpad_clear"])
def test_ox_11_without_a_user_a_tool_says_so_and_does_nothing(name: str) -> None:
    nobody = memory("")
    result = use(PAD, nobody, name, query="q", content="c", note_id="n", items=["i"])
    assert result.is_error
    assert result.text.startswith("Error: user context is not available")
    assert (nobody.store.count(), nobody.state) == (0, {})


# the conversation


def test_ox_5_the_conversation_is_searched_only_when_asked_and_its_hits_have_no_note_id(ctx: Context) -> None:
    design = OxydraNotes()
    say(design, ctx, "The swarm left on Tuesday.", "I see.")
    assert search(design, ctx, "swarm") == []
    swarm, seen = search(design, ctx, "swarm", include_conversation=True)
    assert (swarm["note_id"], swarm["text"], swarm["source"]) == (
        "",
        "The swarm left on Tuesday.",
        "conversation",
    )
    assert seen["text"] == "I see."
    kept = ctx.store.find(Where(kinds=("message",)))
    assert [(r.origin, r.fields["session"], r.fields["role"]) for r in kept] == [
        ("hook", "session-1", "user"),
        ("hook", "session-1", "assistant"),
    ]


def test_ox_5_only_the_current_conversation_is_searched(ctx: Context) -> None:
    design = OxydraNotes()
    say(design, ctx, "The swarm left on Tuesday.")
    later = elsewhere(ctx, "session-2")
    say(design, later, "A swarm of questions.")
    assert texts(search(design, later, "swarm", include_conversation=True)) == ["A swarm of questions."]


def test_ox_5_notes_and_conversation_are_found_side_by_side(ctx: Context) -> None:
    design = OxydraNotes()
    note_id = save(design, ctx, "The swarm came from the north hive.")
    say(design, ctx, "The swarm left on Tuesday.")
    found = search(design, ctx, "swarm", include_conversation=True)
    assert {(item["source"], item["note_id"]) for item in found} == {
        ("user_memory", note_id),
        ("conversation", ""),
    }


def test_ox_10_a_message_is_no_note_that_could_be_changed_or_deleted(ctx: Context) -> None:
    say(OxydraNotes(), ctx, "The swarm left on Tuesday.")
    (message,) = ctx.store.find()
    assert use(OxydraNotes(), ctx, "memory_update", note_id=message.id, content="geese").is_error
    assert use(OxydraNotes(), ctx, "memory_delete", note_id=message.id).is_error
    assert ctx.store.find() == [message]


def test_ox_5_without_kept_messages_only_notes_are_found(ctx: Context) -> None:
    design = OxydraNotes(keep_messages=False)
    say(design, ctx, "The swarm left on Tuesday.", "I see.")
    assert ctx.store.count() == 0
    assert search(design, ctx, "swarm", include_conversation=True) == []


def test_ox_5_without_a_session_there_is_no_conversation_to_search() -> None:
    nowhere = memory(session="")
    say(OxydraNotes(), nowhere, "The swarm left on Tuesday.")
    assert search(OxydraNotes(), nowhere, "swarm", include_conversation=True) == []


def test_ox_5_a_long_message_is_kept_and_one_too_long_is_counted() -> None:
    ctx = memory(store=InMemoryStore("user", Tiny()))
    say(OxydraNotes(), ctx, "The swarm left on Tuesday. " * 100, "buzz " * 11_000)
    assert [record.fields["role"] for record in ctx.store.find()] == ["user"]
    assert ctx.counts == {"messages_skipped": 1}


def test_ox_5_where_nothing_may_be_written_no_message_counts_as_skipped(ctx: Context) -> None:
    ctx.store = GuardedStore(ctx.store, read_only=True)
    with pytest.raises(ReadOnlyError):
        say(OxydraNotes(), ctx, "The swarm left on Tuesday.")
    assert not ctx.counts


# what Oxydra's own code had to learn


@BOTH
def test_2c8_notes_of_the_same_text_stay_independent(design: MemoryDesign, ctx: Context) -> None:
    first, second = (save(design, ctx, "The user keeps bees.") for _ in range(2))
    assert {item["note_id"] for item in search(design, ctx, "bees")} == {first, second}
    use(design, ctx, "memory_update", note_id=first, content="The user keeps geese.")
    assert {item["text"] for item in search(design, ctx, "bees")} == {
        "The user keeps bees.",
        "The user keeps geese.",
    }
    use(design, ctx, "memory_delete", note_id=first)
    assert [item["note_id"] for item in search(design, ctx, "bees")] == [second]


@pytest.mark.parametrize("seed", range(4))
def test_2c2_of_equal_notes_the_newest_stands_first(seed: int) -> None:
    ctx = memory(ids=SeededIds(seed))
    first, second, third = (save(OxydraNotes(), ctx, "The user keeps bees.") for _ in range(3))
    assert [item["note_id"] for item in search(OxydraNotes(), ctx, "bees")] == [third, second, first]
    use(OxydraNotes(), ctx, "memory_update", note_id=first, content="The user keeps bees.")
    assert [item["note_id"] for item in search(OxydraNotes(), ctx, "bees")] == [first, third, second]


def test_2c7_a_query_is_its_words_and_not_one_phrase(ctx: Context) -> None:
    save(OxydraNotes(), ctx, "The user has a preference about the name of the hive.")
    (hit,) = use(OxydraNotes(), ctx, "memory_search", query="name preference?").hits
    assert hit.keyword is not None


def test_2c7_the_notes_of_others_do_not_crowd_out_a_users_own(tmp_path: Path) -> None:
    crowd = memory("ann")
    for n in range(60):
        save(OxydraNotes(), crowd, f"The queen bee is marked blue, says page {n}.")
    ann, bob = (ChromaStore(tmp_path, user, crowd.store.embedder) for user in ("ann", "bob"))
    ann.restore(crowd.store.snapshot())
    ctx = memory("bob", store=bob)
    note_id = save(OxydraNotes(), ctx, "Something about geese.")
    found = search(OxydraNotes(), ctx, "The queen bee is marked blue", top_k=1)
    ann.close()
    bob.close()
    assert [item["note_id"] for item in found] == [note_id]


class Faulty:
    """Hash vectors, until a text is a storm."""

    dim = 256
    name = "faulty"
    fingerprint = "faulty-1"

    def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Vectors:
        if any("storm" in text for text in texts):
            raise InfrastructureError("the embedder is gone", kind="embedding")
        return Tiny().embed(texts, purpose)


def test_2c7_an_update_that_fails_leaves_the_old_note_whole() -> None:
    ctx = memory(store=InMemoryStore("user", Faulty()))
    note_id = save(OxydraTags(), ctx, "The user keeps bees.", tags=["fact"])
    before = ctx.store.snapshot()
    with pytest.raises(InfrastructureError):
        use(OxydraTags(), ctx, "memory_update", note_id=note_id, content="storm", tags=[])
    assert ctx.store.snapshot() == before
    assert texts(search(OxydraTags(), ctx, "bees")) == ["The user keeps bees."]


def test_2c7_notes_and_messages_are_scored_once_together_and_not_in_two_lists(ctx: Context) -> None:
    design = OxydraNotes()
    save(design, ctx, "zzz qqq")
    say(design, ctx, "The swarm left on Tuesday.")
    message, note = search(design, ctx, "The swarm left on Tuesday.", include_conversation=True)
    assert (message["source"], message["score"]) == ("conversation", 1.0)
    assert (note["source"], note["score"]) == ("user_memory", 0.0)


def test_2c7_without_a_lowest_score_any_query_finds_a_note(ctx: Context) -> None:
    save(OxydraNotes(), ctx, "The user keeps bees.")
    assert texts(search(OxydraNotes(), ctx, "zzz qqq")) == ["The user keeps bees."]


@pytest.mark.parametrize(
    ("weight", "first"), [(1.0, "harbourside harbourfront"), (0.0, "a harbour in the fog")]
)
def test_2c8_the_weight_decides_between_meaning_and_words(ctx: Context, weight: float, first: str) -> None:
    design = OxydraNotes(vector_weight=weight)
    for content in ("harbourside harbourfront", "a harbour in the fog"):
        save(design, ctx, content)
    assert search(design, ctx, "harbour side front")[0]["text"] == first


@pytest.mark.parametrize("weight", [-0.1, 1.1])
def test_2c8_a_weight_that_is_none_is_refused_before_any_trial(weight: float) -> None:
    with pytest.raises(InputError, match="must be from 0 to 1"):
        OxydraNotes(vector_weight=weight).tools()


# tags, dates, prompts: seed 003


def test_oe_14_the_tagged_tools_have_the_seeds_parameters() -> None:
    shapes = {t.name: list(t.parameters["properties"]) for t in OxydraTags().tools()}
    assert shapes == {
        "memory_search": ["query", "top_k", "tags", "include_conversation"],
        "memory_save": ["content", "tags"],
        "memory_update": ["note_id", "content", "tags"],
        "memory_delete": ["note_id"],
    }
    for t in OxydraTags().tools()[:3]:
        tags = t.parameters["properties"]["tags"]
        assert (tags["type"], tags["items"]) == ("array", {"type": "string"})


def test_oe_14_the_descriptions_are_the_seeds_word_for_word_and_that_of_delete_is_unchanged() -> None:
    assert {t.name: seal(t.description) for t in OxydraTags().tools()} == {
        "memory_search": "0102198ac64e",
        "memory_save": "2254e31b28cf",
        "memory_update": "b670df1ea8a4",
        "memory_delete": "0f2e5ff83d2c",
    }
    assert parameter_seals(OxydraTags()) == {
        "memory_search": ["05ac0173245e", "bb2d6e12f568", "911040d2f162", "78b521b8c7bc"],
        "memory_save": ["c45a335e20fb", "a4aaaf1bf122"],
        "memory_update": ["97f96119bd6c", "39f54e75af15", "a4aaaf1bf122"],
        "memory_delete": ["a6e29c506993"],
    }


def test_oe_6_content_says_what_makes_a_good_note_and_must_not_be_empty() -> None:
    saving = tool(OxydraTags(), "memory_save")
    content = saving.parameters["properties"]["content"]
    assert content["minLength"] == 1
    assert content["description"].endswith("Include WHEN/WHERE it applies.")
    assert read_arguments({"content": ""}, saving).error


def test_oe_2_tags_are_kept_trimmed_in_lower_case_and_each_once(ctx: Context) -> None:
    note_id = save(OxydraTags(), ctx, "The user keeps bees.", tags=[" Fact", "bees", "fact", ""])
    kept = ctx.store.get(note_id)
    assert kept is not None
    assert kept.tags == ("fact", "bees")


def test_oe_2_more_tags_than_can_be_kept_are_an_error_and_write_nothing(ctx: Context) -> None:
    result = use(OxydraTags(), ctx, "memory_save", content="bees", tags=[f"tag {n}" for n in range(17)])
    assert result.text == "Error: there are 17 tags; at most 16 can be kept."
    assert ctx.store.count() == 0


@pytest.fixture
def tagged(ctx: Context) -> Context:
    for content, tags in (
        ("bees one", ["fact", "garden"]),
        ("bees two", ["fact"]),
        ("bees three", ["garden"]),
    ):
        save(OxydraTags(), ctx, content, tags=tags)
    return ctx


@pytest.mark.parametrize(
    ("match", "tags", "found"),
    [
        ("any", ["fact", "garden"], {"bees one", "bees two", "bees three"}),
        ("all", ["fact", "garden"], {"bees one"}),
        ("any", ["Fact "], {"bees one", "bees two"}),
        ("any", ["weather"], set()),
        ("all", [" "], {"bees one", "bees two", "bees three"}),
    ],
)
def test_oe_3_a_search_is_filtered_by_any_or_by_all_of_its_tags(
    tagged: Context, match: str, tags: list[str], found: set[str]
) -> None:
    assert set(texts(search(OxydraTags(tag_match=match), tagged, "bees", tags=tags))) == found


def test_oe_3_the_filter_is_described_as_it_works() -> None:
    said = [
        tool(OxydraTags(tag_match=match), "memory_search").parameters["properties"]["tags"]["description"]
        for match in ("any", "all")
    ]
    assert said[0] == "Optional tag filter — only return notes matching ANY of these tags"
    assert "EVERY" in said[1]


def test_oe_3_tags_filter_before_the_best_are_taken_so_that_none_is_missed(ctx: Context) -> None:
    for n in range(40):
        save(OxydraTags(), ctx, f"The queen bee is marked blue, says page {n}.")
    note_id = save(OxydraTags(), ctx, "Something about geese.", tags=["geese"])
    found = search(OxydraTags(), ctx, "The queen bee is marked blue", top_k=1, tags=["geese"])
    assert [item["note_id"] for item in found] == [note_id]


def test_oe_3_a_filter_by_tags_leaves_the_conversation_out(tagged: Context) -> None:
    say(OxydraTags(), tagged, "bees four")
    found = search(OxydraTags(), tagged, "bees", tags=["fact"], include_conversation=True)
    assert {item["source"] for item in found} == {"user_memory"}


def test_oe_4_a_result_has_its_tags_and_when_it_was_created_and_nothing_more(ctx: Context) -> None:
    note_id = save(OxydraTags(), ctx, "The user keeps bees.", tags=["fact"])
    assert search(OxydraTags(), ctx, "bees") == [
        {
            "note_id": note_id,
            "text": "The user keeps bees.",
            "score": 1.0,
            "source": "user_memory",
            "tags": ["fact"],
            "created_at": "2026-05-30T09:00:01Z",
        }
    ]


def test_oe_4_a_note_from_before_there_were_tags_is_found_with_none(ctx: Context) -> None:
    save(OxydraNotes(), ctx, "The user keeps bees.")
    (found,) = search(OxydraTags(), ctx, "bees")
    assert found["tags"] == []


@pytest.mark.parametrize(
    ("reset", "created"), [(True, "2026-05-30T09:00:02Z"), (False, "2026-05-30T09:00:01Z")]
)
def test_oe_5_an_update_has_a_fresh_date_of_creation_unless_told_otherwise(
    ctx: Context, reset: bool, created: str
) -> None:
    design = OxydraTags(reset_created_on_update=reset)
    note_id = save(design, ctx, "The user keeps bees.")
    use(design, ctx, "memory_update", note_id=note_id, content="The user keeps geese.")
    (found,) = search(design, ctx, "geese")
    kept = ctx.store.get(note_id)
    assert found["created_at"] == created
    assert kept is not None
    assert kept.updated_at == datetime(2026, 5, 30, 9, 0, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("given", "kept"), [({}, ["fact"]), ({"tags": []}, []), ({"tags": ["correction"]}, ["correction"])]
)
def test_a22_an_update_keeps_tags_it_does_not_name_and_clears_them_when_told(
    ctx: Context, given: dict[str, list[str]], kept: list[str]
) -> None:
    note_id = save(OxydraTags(), ctx, "The user keeps bees.", tags=["fact"])
    use(OxydraTags(), ctx, "memory_update", note_id=note_id, content="The user keeps geese.", **given)
    assert [item["tags"] for item in search(OxydraTags(), ctx, "geese")] == [kept]


@pytest.mark.parametrize("name", ["memory_update", "memory_delete"])
def test_oe_14_a_result_with_an_empty_note_id_can_be_neither_updated_nor_deleted(
    ctx: Context, name: str
) -> None:
    say(OxydraTags(), ctx, "The swarm left on Tuesday.")
    (found,) = search(OxydraTags(), ctx, "swarm", include_conversation=True)
    result = use(OxydraTags(), ctx, name, note_id=found["note_id"], content="geese")
    assert result.text == "Error: the id is empty; give one that a search or a save returned."
    assert len(ctx.store.find()) == 1


@pytest.mark.parametrize(
    ("backend", "offered", "opened"),
    [
        ("sweep", "hash", "hash"),
        ("sweep", "ollama:nomic-embed-text", "ollama:nomic-embed-text"),
        ("deterministic", "ollama:nomic-embed-text", "hash"),
        ("fastembed", "bundled:minilm", "bundled:minilm"),
    ],
)
def test_oe_7_the_embedding_backend_is_a_setting(backend: str, offered: str, opened: str) -> None:
    assert OxydraTags(embedding_backend=backend).embedder(offered) == opened


def test_oe_7_a_backend_that_cannot_be_had_is_refused_and_not_replaced() -> None:
    with pytest.raises(InputError, match="list a real embedder, or set 'deterministic'"):
        OxydraTags(embedding_backend="fastembed").embedder("hash")


@pytest.mark.parametrize("design", [OxydraNotes(), OxydraTags(prompt="none")])
def test_oe_9_without_guidance_the_prompt_does_not_speak_of_memory(design: MemoryDesign) -> None:
    assert design.system_prompt() == BASE
    assert "memory" not in BASE.lower()


def test_oe_9_the_guide_is_the_seeds_four_blocks_after_the_base_prompt() -> None:
    assert OxydraTags().system_prompt() == f"{BASE}\n\n{GUIDE}"
    assert [line for line in GUIDE.splitlines() if line.startswith("#")] == [
        "## Memory & Knowledge Management",
        "### When to Search Memory",
        "### When to Save to Memory",
        "### How to Write Good Notes",
        "### Maintaining Memory",
    ]
    assert seal(GUIDE) == "d4457ffcfcf1"


def test_oe_10_each_trigger_to_save_has_its_tag() -> None:
    for prompt in (GUIDE, MANDATE):
        tags = [line.rpartition("Tag: ")[2] for line in prompt.splitlines() if "Tag: " in line]
        assert sorted(tags) == ['"convention"', '"correction"', '"fact"', '"preference"', '"procedure"']


def test_oe_11_both_prompts_say_what_is_never_saved() -> None:
    for prompt in (GUIDE, MANDATE):
        assert "secrets, passwords, API keys, one-off command outputs, or transient status" in prompt


def test_2c5_the_mandate_has_the_parts_of_the_later_prompt() -> None:
    said = OxydraTags(prompt="mandate").system_prompt()
    assert said == f"{BASE}\n\n{MANDATE}"
    assert "Before executing ANY task, you MUST call `memory_search`" in said
    parts = [
        "Plan, Recall, Execute, Reflect, Learn",
        "You MUST Save",
        "NEVER",
        "Example",
        "CRITICAL REMINDER",
    ]
    assert [at for at in map(said.find, parts) if at > 0] == sorted(map(said.find, parts))


# the scratchpad


def pad(ctx: Context) -> list[str]:
    items: list[str] = json.loads(use(PAD, ctx, "scratchpad_read").text)["items"]
    return items


def test_2c4_there_is_a_scratchpad_only_where_it_is_set() -> None:
    assert [t.name for t in PAD.tools()] == [
        *NAMES,
        "scratchpad_read",
        "scratchpad_write",
        "scratchpad_clear",
    ]


def test_2c4_writing_the_scratchpad_replaces_all_and_clearing_empties_it(ctx: Context) -> None:
    assert pad(ctx) == []
    wrote = use(PAD, ctx, "scratchpad_write", items=["count frames", "order wax"])
    assert wrote.text == '{"message": "Scratchpad written successfully."}'
    use(PAD, ctx, "scratchpad_write", items=["order wax"])
    assert pad(ctx) == ["order wax"]
    assert use(PAD, ctx, "scratchpad_clear").text == '{"message": "Scratchpad cleared successfully."}'
    assert pad(ctx) == []


def test_2c4_a_scratchpad_belongs_to_one_session_of_one_user(ctx: Context) -> None:
    use(PAD, ctx, "scratchpad_write", items=["count frames"])
    assert pad(elsewhere(ctx, "session-2")) == []
    assert pad(memory("bob", state=ctx.state)) == []
    assert pad(elsewhere(ctx, "session-1")) == ["count frames"]


def test_2c4_the_scratchpad_is_no_memory_and_serves_no_save(ctx: Context) -> None:
    use(PAD, ctx, "scratchpad_write", items=["count frames"])
    assert ctx.store.count() == 0
    assert (
        PAD.serves() == OxydraTags().serves() == {"search", "recall", "remember", "note", "update", "forget"}
    )


@pytest.mark.parametrize("items", [[], ["x"] * 33, ["x" * 241], [""]])
def test_2c4_the_scratchpads_limits_stand_in_its_schema(items: list[str]) -> None:
    assert read_arguments({"items": items}, tool(PAD, "scratchpad_write")).error
    assert not read_arguments({"items": ["x" * 240] * 32}, tool(PAD, "scratchpad_write")).error


@pytest.mark.parametrize(
    ("items", "said"), [([" "], "an item is empty"), (["ü" * 240] * 32, "at most 8192 fit")]
)
def test_2c4_what_the_scratchpad_cannot_hold_is_an_error_and_keeps_what_was_there(
    ctx: Context, items: list[str], said: str
) -> None:
    use(PAD, ctx, "scratchpad_write", items=["count frames"])
    result = use(PAD, ctx, "scratchpad_write", items=items)
    assert result.is_error
    assert said in result.text
    assert pad(ctx) == ["count frames"]
