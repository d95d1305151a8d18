"""LoCAL2's designs after seed 000, against what its own tests and result strings say of them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from stories import call as made
from stories import run, story

from memeval.designs import register
from memeval.designs.base import Context, Injection
from memeval.designs.local2_later import Local2Search, Local2Shipped, Local2Tiers, entities, rate
from memeval.embedding import open_embedder
from memeval.embedding.base import Vectors
from memeval.embedding.embedder import PrefixedEmbedder
from memeval.embedding.hashing import HashEncoder
from memeval.errors import InfrastructureError, InputError, ModelFailureError, TextTooLongError
from memeval.memory.guard import GuardedStore
from memeval.memory.inmemory import InMemoryStore
from memeval.messages import Message, Tool, ToolResult
from memeval.models.scripted import ScriptedModel
from memeval.records import Record, Scope, SeededIds, StoryClock, topic_id

EVERYTHING: Mapping[str, Any] = {"min_score": -1.0, "entities": "off", "merge": 0.0}
RUST = "My favorite programming language is Rust. I use it for all my systems work."


def context(*answers: Any) -> Context:
    store = InMemoryStore("user", open_embedder("hash", cache=None))
    clock = StoryClock(datetime(2026, 5, 30, 9, tzinfo=UTC))
    return Context(
        scope=Scope("user", "session-1"), store=store, clock=clock, ids=SeededIds(1),
        model=ScriptedModel(list(answers)),
    )  # fmt: skip


@pytest.fixture
def ctx() -> Context:
    return context()


def call(design: Any, ctx: Context, name: str, **args: Any) -> ToolResult:
    return next(t for t in design.tools() if t.name == name).run(args, ctx)


def turn(design: Any, ctx: Context, query: str, answer: str = "Noted.") -> Record | None:
    """One turn, ingested; the episode it left, if any."""
    ctx.query, ctx.answer, ctx.turn = query, answer, ctx.turn + 1
    design.after_turn(ctx)
    left = [r for r in ctx.store.find() if r.fields.get("query_id") == f"{ctx.scope.session}-{ctx.turn}"]
    return left[0] if left else None


def said(result: ToolResult) -> tuple[str, bool]:
    return result.text, result.is_error


# The four tools as shipped


def test_2a_1_the_shipped_tools_take_key_and_value_and_a_note() -> None:
    tools = {t.name: t.parameters["required"] for t in Local2Shipped().tools()}
    assert tools == {
        "save_topic": ["topic", "value"],
        "recall_topic": ["topic"],
        "search_memory": ["query"],
        "user_instruction_memory": ["note"],
    }


def test_2a_8_a_saved_topic_is_said_back_and_recalled_as_a_plain_value(ctx: Context) -> None:
    saved = call(Local2Shipped(), ctx, "save_topic", topic="user.language", value="Elixir")
    assert said(saved) == ("[saved: 'user.language' = 'Elixir']", False)
    assert said(call(Local2Shipped(), ctx, "recall_topic", topic="user.language")) == ("Elixir", False)


def test_2a_9_a_topic_written_again_keeps_its_id_and_takes_the_new_value(ctx: Context) -> None:
    for value in ("Elixir", "Rust"):
        written = call(Local2Shipped(), ctx, "save_topic", topic="user.language", value=value).written
        assert written == (topic_id("user.language"),)
    assert ctx.store.count() == 1
    assert call(Local2Shipped(), ctx, "recall_topic", topic="user.language").text == "Rust"


def test_2a_9_a_missing_topic_is_an_answer_that_names_the_key(ctx: Context) -> None:
    found = call(Local2Shipped(), ctx, "recall_topic", topic="user.age")
    assert said(found) == ("[no memory found for topic: 'user.age']", False)


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ({"topic": " ", "value": "Elixir"}, "[save_topic: key is required]"),
        ({"topic": "user.language", "value": ""}, "[save_topic: value is required]"),
    ],
)
def test_2a_9_an_empty_key_or_value_is_an_error_and_writes_nothing(
    ctx: Context, args: dict[str, str], text: str
) -> None:
    assert said(call(Local2Shipped(), ctx, "save_topic", **args)) == (text, True)
    assert ctx.store.count() == 0


def test_c6_any_topic_prefix_is_taken_unless_it_is_to_be_enforced(ctx: Context) -> None:
    assert not call(Local2Shipped(), ctx, "save_topic", topic="language", value="Elixir").is_error
    refused = call(Local2Shipped(topic_prefix="enforce"), ctx, "save_topic", topic="age", value="9")
    assert refused.is_error
    assert refused.text.startswith("[save_topic error: topic 'age' must start with one of: user.")
    assert ctx.store.count() == 1


def test_2a_1_a_noted_instruction_is_an_episode_under_its_own_question(ctx: Context) -> None:
    noted = call(Local2Shipped(), ctx, "user_instruction_memory", note="Answer in German")
    assert said(noted) == ("[noted: 'Answer in German']", False)
    record = ctx.store.get(noted.written[0])
    assert record is not None
    assert (record.kind, record.origin) == ("episodic", "tool")
    assert (record.fields["query"], record.fields["answer"]) == ("[user instruction]", "Answer in German")
    found = call(Local2Shipped(), ctx, "search_memory", query="Answer in German")
    assert found.text == "1. Q: [user instruction]\nA: Answer in German"


def test_2a_9_an_empty_note_is_an_error_and_writes_nothing(ctx: Context) -> None:
    noted = call(Local2Shipped(), ctx, "user_instruction_memory", note=" ")
    assert said(noted) == ("[user_instruction_memory: note is required]", True)
    assert ctx.store.count() == 0


def test_2a_8_found_episodes_are_a_numbered_list_with_blank_lines_between(ctx: Context) -> None:
    turn(Local2Shipped(), ctx, "The capital of Velmora?", "Tarquinel.")
    turn(Local2Shipped(), ctx, "A recipe for bread?", "Flour and water.")
    found = call(Local2Shipped(), ctx, "search_memory", query="The capital of Velmora?")
    assert found.text == (
        "1. Q: The capital of Velmora?\nA: Tarquinel.\n\n2. Q: A recipe for bread?\nA: Flour and water."
    )


@pytest.mark.parametrize("design", [Local2Shipped, Local2Search, Local2Tiers])
def test_2a_8_an_empty_store_is_an_answer_and_an_empty_query_an_error(ctx: Context, design: Any) -> None:
    found = call(design(), ctx, "search_memory", query="anything")
    assert said(found) == ("[no relevant memories found]", False)
    asked = call(design(), ctx, "search_memory", query=" ")
    assert said(asked) == ("[search_memory error: query is empty; say what to look for.]", True)


def test_2a_9_an_error_of_the_store_is_a_string_that_names_the_tool(ctx: Context) -> None:
    ctx.store = GuardedStore(ctx.store, read_only=True)
    refused = call(Local2Shipped(), ctx, "save_topic", topic="user.language", value="Elixir")
    assert said(refused) == ("[save_topic error: memory is read-only here; nothing was written.]", True)


def test_2a_9_a_search_sees_episodes_and_no_topics(ctx: Context) -> None:
    call(Local2Shipped(), ctx, "save_topic", topic="user.language", value="Elixir")
    found = call(Local2Shipped(), ctx, "search_memory", query="Elixir")
    assert found.text == "[no relevant memories found]"


# Ingest


@pytest.mark.parametrize("design", [Local2Shipped, Local2Search, Local2Tiers])
def test_2a_9_a_turn_is_ingested_and_an_empty_one_is_not(ctx: Context, design: Any) -> None:
    episode = turn(design(), ctx, "What is the capital of France?", "Paris.")
    assert episode is not None
    assert (episode.text, episode.origin) == ("Q: What is the capital of France?\nA: Paris.", "hook")
    assert turn(design(), ctx, "", "An answer.") is None
    assert turn(design(), ctx, "A question", "") is None


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (RUST, ["Rust"]),
        ("We met Ada Lovelace in New York. Then she left.", ["Ada Lovelace", "New York"]),
        ("The pump BA-117 ran 42 days on v1 firmware", ["BA-117", "42", "v1"]),
        ("Is it? Yes: Never mind. I am here\nToo", []),
        ("see Äpfel and a 5", ["Äpfel"]),
    ],
)
def test_entities_are_capitalised_words_within_a_sentence_and_words_with_a_digit(
    text: str, names: list[str]
) -> None:
    assert entities(text) == names


def test_2a_9_entities_are_stored_and_there_is_no_field_where_there_are_none(ctx: Context) -> None:
    named = turn(Local2Search(), ctx, RUST, "Good choice, Rust is safe.")
    plain = turn(Local2Search(), ctx, "how are you", "fine, thanks.")
    assert named is not None
    assert plain is not None
    assert named.fields["entities"] == "Rust"
    assert "entities" not in plain.fields
    assert "intent" not in named.fields


@pytest.mark.parametrize(
    "reply",
    [
        '{"intent": "tell", "entities": ["Rust", "Ada, Lady"]}',
        'Sure: {"intent": "tell", "entities": ["Rust", "Ada, Lady"]} Done.',
    ],
)
def test_2a_9_a_classification_by_the_model_is_read_within_prose(reply: str) -> None:
    ctx = context(reply)
    episode = turn(Local2Search(entities="model"), ctx, RUST)
    assert episode is not None
    assert (episode.fields["intent"], episode.fields["entities"]) == ("tell", "Rust, Ada Lady")
    assert (ctx.counts["classified"], ctx.counts["classified_unreadable"]) == (1, 0)


@pytest.mark.parametrize(
    "reply", ["nothing of the kind", "", '{"entities": "Rust"', ModelFailureError("none", kind="empty_reply")]
)
def test_2a_9_a_turn_is_kept_though_its_classification_cannot_be_read(reply: Any) -> None:
    ctx = context(reply)
    episode = turn(Local2Search(entities="model"), ctx, RUST)
    assert episode is not None
    assert "entities" not in episode.fields
    assert ctx.counts["classified_unreadable"] == 1


def test_trouble_with_the_server_is_no_unreadable_classification() -> None:
    ctx = context(InfrastructureError("gone", kind="server_down"))
    with pytest.raises(InfrastructureError):
        turn(Local2Search(entities="model"), ctx, RUST)


def test_2a_5_a_near_duplicate_takes_the_place_of_the_old_turn(ctx: Context) -> None:
    turn(Local2Search(), ctx, "Which port does the build server use?", "Port 8443.")
    turn(Local2Search(), ctx, "A recipe for bread?", "Flour and water.")
    new = turn(Local2Search(), ctx, "Which port does the build server use", "Port 8443.")
    assert [record.fields["query"] for record in ctx.store.find()] == [
        "A recipe for bread?",
        "Which port does the build server use",
    ]
    assert new is not None
    assert ctx.counts["merged"] == 1


class ShortSighted(HashEncoder):
    """Refuses what is longer than 1,000 characters."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        if any(len(text) > 1000 for text in texts):
            raise TextTooLongError("too long")
        return super().encode(texts)


def test_a_turn_too_long_to_be_compared_does_not_keep_others_from_being_merged() -> None:
    ctx = context()
    ctx.store = InMemoryStore("user", PrefixedEmbedder(ShortSighted()))
    question = "Which port does the build server use?"
    turn(Local2Search(), ctx, question, "Port 8443. " + "It is a port of the build server. " * 40)
    assert ctx.counts == {"merge_too_long": 1}
    for _ in range(2):
        turn(Local2Search(), ctx, question, "Port 8443.")
    assert (ctx.store.count(), ctx.counts["merged"], ctx.counts["merge_too_long"]) == (2, 1, 3)


def test_half_a_surrogate_pair_is_an_error_and_no_crash(ctx: Context) -> None:
    said = call(Local2Tiers(), ctx, "remember_this", fact="I like \ud83d")
    assert said.is_error
    assert ctx.store.count() == 0


def test_2a_5_nothing_is_merged_where_that_is_off_or_what_the_model_or_the_story_wrote(ctx: Context) -> None:
    turn(Local2Search(merge=0.0), ctx, "The same question", "The same answer.")
    old = turn(Local2Search(merge=0.0), ctx, "The same question", "The same answer.")
    assert old is not None
    assert ctx.store.count() == 2
    for origin in ("tool", "given"):
        ctx.store.put(Record(
            id=origin, kind="episodic", text=old.text, origin=origin,  # type: ignore[arg-type]
            created_at=old.created_at, updated_at=old.updated_at,
        ))  # fmt: skip
    turn(Local2Search(), ctx, "The same question", "The same answer.")
    assert [record.origin for record in ctx.store.find()] == ["given", "tool", "hook"]


# Search by score


def test_2a_3_one_tool_is_left_and_it_searches() -> None:
    assert [t.name for t in Local2Search().tools()] == ["search_memory"]
    assert "search" in Local2Search().serves()
    assert "remember" not in Local2Search().serves()


@pytest.fixture
def two(ctx: Context) -> tuple[Context, list[str]]:
    """Two episodes as near to the question "alpha beta" as each other."""
    ids = []
    for _ in range(2):
        episode = turn(Local2Search(**EVERYTHING), ctx, "alpha beta", "gamma.")
        assert episode is not None
        ids.append(episode.id)
    return ctx, ids


def scores(ctx: Context, query: str = "alpha beta", **settings: Any) -> dict[str, float]:
    """What a search finds, best first."""
    found = call(Local2Search(**{**EVERYTHING, **settings}), ctx, "search_memory", query=query)
    return {hit.record.id: hit.score for hit in found.hits}


def test_l2_3_a_well_rated_answer_comes_first_and_a_poor_one_last(two: tuple[Context, list[str]]) -> None:
    ctx, _ = two
    first, second = scores(ctx)
    rate(ctx, second, 5)
    assert list(scores(ctx)) == [second, first]
    rate(ctx, second, 1)
    assert list(scores(ctx)) == [first, second]
    assert list(scores(ctx, critic_weight=0.0)) == [first, second]


def test_2a_9_a_mark_moves_the_score_by_a_twentieth_a_point(two: tuple[Context, list[str]]) -> None:
    ctx, (good, bad) = two
    plain = scores(ctx, "alpha")
    rate(ctx, good, 5)
    rate(ctx, bad, 1)
    moved = scores(ctx, "alpha")
    assert moved[good] - plain[good] == pytest.approx(0.10)
    assert moved[bad] - plain[bad] == pytest.approx(-0.10)


def test_2a_9_an_episode_whose_entity_is_asked_for_is_lifted_by_a_tenth(ctx: Context) -> None:
    episode = turn(Local2Search(merge=0.0), ctx, RUST)
    assert episode is not None
    (plain,) = call(Local2Search(**EVERYTHING), ctx, "search_memory", query="Which language?").hits
    assert plain.score == plain.cosine
    (named,) = call(Local2Search(**EVERYTHING), ctx, "search_memory", query="What about rust?").hits
    assert named.cosine is not None
    assert named.score == pytest.approx(named.cosine + 0.1)


def test_a_boost_lets_nothing_in_that_is_below_the_floor(ctx: Context) -> None:
    episode = turn(Local2Search(), ctx, RUST)
    assert episode is not None
    rate(ctx, episode.id, 5)
    found = call(Local2Search(min_score=0.95), ctx, "search_memory", query="rust")
    assert found.text == "[no relevant memories found]"


@pytest.mark.parametrize(
    ("critic", "mark"),
    [
        (5, "[GOOD EXAMPLE — rated 5/5]\n"),
        (4.5, "[GOOD EXAMPLE — rated 4.5/5]\n"),
        (3, "[MIXED — rated 3/5]\n"),
        (1, "[AVOID — rated 1/5 — do not repeat this approach]\n"),
        (None, ""),
    ],
)
def test_2a_5_results_carry_their_mark(ctx: Context, critic: float | None, mark: str) -> None:
    episode = turn(Local2Search(), ctx, "alpha beta", "gamma.")
    assert episode is not None
    if critic is not None:
        assert rate(ctx, episode.id, critic)
    found = call(Local2Search(**EVERYTHING), ctx, "search_memory", query="alpha beta")
    assert found.text == f"1. {mark}Q: alpha beta\nA: gamma."


def test_2a_9_a_mark_leaves_all_else_of_an_episode_as_it_is(ctx: Context) -> None:
    episode = turn(Local2Search(), ctx, RUST)
    assert episode is not None
    assert rate(ctx, episode.id, 4)
    now = ctx.store.get(episode.id)
    assert now is not None
    assert now.critic == 4.0
    assert (now.fields, now.text, now.updated_at) == (episode.fields, episode.text, episode.updated_at)


def test_2a_9_an_unknown_id_is_skipped_and_a_mark_out_of_range_refused(ctx: Context) -> None:
    assert rate(ctx, "episodic-nothing", 4) is False
    with pytest.raises(InputError, match=r"from 1 to 5, not 8\.7"):
        rate(ctx, "episodic-nothing", 8.7)


def test_a37_what_a_session_was_worth_is_no_mark(ctx: Context) -> None:
    ctx.final_score = 9.5
    episode = turn(Local2Search(), ctx, RUST)
    Local2Search().after_session(ctx)
    assert episode is not None
    assert (episode.critic, episode.final_score) == (None, None)


# Three tiers


def test_2a_4_a_pinned_fact_is_said_back_and_kept_once_under_its_own_id(ctx: Context) -> None:
    fact = "Prefers dark mode for all UIs."
    for reason in ("asked", ""):
        kept = call(Local2Tiers(), ctx, "remember_this", fact=f" {fact} ", reason=reason)
        assert said(kept) == (f"Remembered: {fact}", False)
        assert kept.written == (f"pinned:{hashlib.sha256(fact.encode()).hexdigest()[:16]}",)
    assert [(r.kind, r.origin, r.text) for r in ctx.store.find()] == [("pinned", "tool", fact)]


def test_2a_4_an_empty_fact_is_an_error_and_writes_nothing(ctx: Context) -> None:
    assert said(call(Local2Tiers(), ctx, "remember_this", fact=" ")) == (
        "[remember_this: fact is required]",
        True,
    )
    assert ctx.store.count() == 0


def ask(ctx: Context, query: str, **settings: Any) -> Injection | None:
    ctx.query = query
    return Local2Tiers(**settings).before_turn(ctx)


def test_2a_4_pinned_facts_stand_before_every_turn(ctx: Context) -> None:
    assert ask(ctx, "Good morning") is None
    for fact in ("Prefers dark mode.", "Is called Ada."):
        call(Local2Tiers(), ctx, "remember_this", fact=fact)
    found = ask(ctx, "Good morning")
    assert found is not None
    assert found.text == (
        "[Things to always remember about the user:]\n- Prefers dark mode.\n- Is called Ada."
    )
    assert [hit.record.kind for hit in found.hits] == ["pinned", "pinned"]


def later(ctx: Context, *queries: str) -> None:
    """Turns of an earlier session, all kept; the context is then in a new one."""
    for query in queries:
        turn(Local2Tiers(merge=0.0, entities="off"), ctx, query, "Yes.")
    ctx.scope, ctx.turn = Scope("user", "session-2"), 0


def test_2a_4_a_near_episode_of_an_earlier_session_is_relayed(ctx: Context) -> None:
    later(ctx, "Which port does the build server use?")
    found = ask(ctx, "Which port does the build server use?", relay_min_score=0.5)
    assert found is not None
    assert found.text == ("[Relevant prior sessions:]\n1. Q: Which port does the build server use?\nA: Yes.")
    assert ask(ctx, "What is for lunch?", relay_min_score=0.5) is None


def test_2a_4_what_was_said_in_this_session_is_not_relayed_to_it(ctx: Context) -> None:
    turn(Local2Tiers(), ctx, "Which port does the build server use?", "Port 8443.")
    assert ask(ctx, "Which port does the build server use?", relay_min_score=-1.0) is None


@pytest.mark.parametrize(("third", "relayed"), [(0.9, 2), (-1.0, 3)])
def test_2a_5_two_are_relayed_and_a_third_only_if_it_is_very_near(
    ctx: Context, third: float, relayed: int
) -> None:
    later(ctx, *["Which port does the server use?"] * 4)
    found = ask(ctx, "port of the server", relay_min_score=-1.0, relay_third=third)
    assert found is not None
    assert len(found.hits) == relayed


def test_2a_5_relayed_episodes_carry_their_mark(ctx: Context) -> None:
    later(ctx, "Which port?")
    rate(ctx, ctx.store.find()[0].id, 1)
    found = ask(ctx, "Which port?", relay_min_score=-1.0)
    assert found is not None
    assert "1. [AVOID — rated 1/5 — do not repeat this approach]\nQ: Which port?" in found.text


def test_a_message_that_cannot_be_looked_up_still_gets_the_pinned_facts(ctx: Context) -> None:
    call(Local2Tiers(), ctx, "remember_this", fact="Is called Ada.")
    found = ask(ctx, " ")
    assert found is not None
    assert found.text.endswith("- Is called Ada.")
    assert ctx.counts["injections_skipped"] == 1


def test_without_writes_nothing_can_be_pinned() -> None:
    assert [t.name for t in Local2Tiers(write_path="off").tools()] == ["search_memory"]


# Whole trials


def test_2a_7_what_was_told_is_put_before_the_question_in_a_new_session() -> None:
    register(Local2Tiers)
    asked: list[str] = []

    def script(messages: Sequence[Message], tools: Sequence[Tool]) -> str:
        asked.append(messages[-1].content)
        return "Rust." if "[Relevant prior sessions:]" in asked[-1] else "Good to know."

    language = {"text": "The user's language is Rust.", "values": ["Rust"]}
    question = {
        "user": "What programming language did I tell you I use for systems work?",
        "expect": {"intent": "recall", "facts": ["language"], "answer": {"states": ["language"]}},
    }
    told = story([{"user": RUST}], [question, {"user": "Thanks."}], facts={"language": language})
    done = run(told, script, design={"local2_tiers": {"relay_min_score": 0.3}})
    assert (done.trial.passed, done.turns[1].retrieved, done.hits[0].origin) == (True, True, "hook")
    assert asked[1].startswith("[Relevant prior sessions:]\n1. Q: My favorite")
    assert "[Relevant prior sessions:]" not in asked[2]


def test_2a_7_a_pinned_preference_is_there_in_a_new_session() -> None:
    register(Local2Tiers)
    pin = made("remember_this", fact="Prefers dark mode for all UIs.")

    def script(messages: Sequence[Message], tools: Sequence[Tool]) -> Any:
        if "UI preference" in messages[-1].content:
            return "Dark mode." if "- Prefers dark mode" in messages[-1].content else "I do not know."
        return "Remembered." if messages[-1].role == "tool" else pin

    mode = {"text": "The user prefers dark mode.", "values": ["dark mode"]}
    remember = {
        "user": "Please remember that I prefer dark mode for all UIs.",
        "expect": {"intent": "remember", "facts": ["mode"], "store": {"holds": ["mode"]}},
    }
    question = {
        "user": "What UI preference have I told you about?",
        "expect": {"intent": "recall", "facts": ["mode"], "answer": {"states": ["mode"]}},
    }
    done = run(story([remember], [question], facts={"mode": mode}), script, design="local2_tiers")
    assert (done.trial.passed, done.turns[0].stored, done.turns[1].retrieved) == (True, True, True)


def test_a_store_that_may_not_be_written_is_left_as_it_is_and_the_trial_goes_on() -> None:
    register(Local2Search)
    done = run(story([{"user": RUST}]), ["Fine."], design="local2_search", read_only=True)
    assert done.trial.outcome == "ok"
