"""The harness of seed 004: what a session leaves behind, and what of it stands before a later one."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from stories import run

from memeval.designs import register
from memeval.designs.base import Context, Injection
from memeval.designs.harness_runs import COMPRESS_PROMPT, HarnessRuns, extract_keywords, task_type
from memeval.embedding import open_embedder
from memeval.embedding.base import Purpose, Vectors
from memeval.errors import InfrastructureError, ModelFailureError, ReadOnlyError, TextTooLongError
from memeval.memory.guard import GuardedStore
from memeval.memory.inmemory import InMemoryStore
from memeval.messages import Message, Reply
from memeval.models.base import Options
from memeval.models.scripted import ScriptedModel
from memeval.records import Record, Scope, SeededIds, StoryClock
from memeval.scenarios.loader import load_scenarios

TASK = "Top 5 context engineering techniques"
MADE = {
    "title": "Context Engineering",
    "narrative": "Covered the top 5 context engineering techniques. RAG won.",
    "facts": ["RAG outperforms static context", "Compression saves 60-80%"],
}
START = datetime(2026, 3, 2, 9, tzinfo=UTC)


class Noting(ScriptedModel):
    """A scripted model that keeps the options it was asked with."""

    options: Options

    def chat(self, messages: Sequence[Message], **more: Any) -> Reply:
        self.options = more["options"]
        return super().chat(messages, **more)

    @property
    def prompt(self) -> str:
        """The last message of the last request."""
        return self.seen[-1][0][-1].content


def context(*answers: Any, user: str = "user") -> Context:
    store = InMemoryStore(user, open_embedder("hash", cache=None))
    return Context(
        scope=Scope(user, "session-1"), store=store, clock=StoryClock(START), ids=SeededIds(1),
        model=Noting(list(answers)),
    )  # fmt: skip


def end(design: HarnessRuns, ctx: Context, *turns: tuple[str, str]) -> Record | None:
    """Run a session of turns to its end and give the observation it left."""
    for number, (query, answer) in enumerate(turns, 1):
        ctx.query, ctx.answer, ctx.turn = query, answer, number
        design.after_turn(ctx)
    design.after_session(ctx)
    found = ctx.store.find()
    return found[-1] if found else None


def keep(ctx: Context, text: str, title: str = "A run", **more: Any) -> str:
    """An observation as a story gives it."""
    now = ctx.clock()
    facts = more.pop("facts", "")
    fields = {"title": title, "content": text} | ({"facts": facts} if facts else {})
    return ctx.store.put(
        Record(
            id=ctx.ids("given"), kind=more.pop("kind", "observation"), text=text, origin="given",
            created_at=now, updated_at=now, fields=fields, **more,
        )
    )  # fmt: skip


def inject(ctx: Context, query: str, turn: int = 1, **settings: Any) -> Injection | None:
    ctx.query, ctx.turn = query, turn
    return HarnessRuns(**{"plan": "off", "min_score": -1.0} | settings).before_turn(ctx)


def titles(ctx: Context, query: str, **settings: Any) -> list[Any]:
    found = inject(ctx, query, **settings)
    return [hit.record.fields["title"] for hit in found.hits] if found else []


# Retrieval


@pytest.mark.parametrize(
    ("task", "keywords"),
    [
        ("What's the best way to manage LLM costs?", "best way manage llm costs"),
        ("Is C++ or C# faster than Node.js on a Pi 4?", "c++ c# faster node.js 4"),
        ("Costs, costs and COSTS.", "costs"),
        ("one two three four five six seven eight nine ten", "one two three four five six seven eight"),
        ("Who are you?", ""),
        ("", ""),
    ],
)
def test_ha_2_keywords_are_up_to_eight_words_without_stop_words(task: str, keywords: str) -> None:
    assert extract_keywords(task) == keywords.split()


def test_ha_1_a_term_finds_what_is_too_far_by_meaning() -> None:
    ctx = context()
    keep(ctx, "Measured the recall of bm25 over long notes.", "By word")
    keep(ctx, "Painted the garden fence.", "By neither")
    assert titles(ctx, "bm25", min_score=0.99) == ["By word"]


def test_ha_1_meaning_finds_what_no_term_does() -> None:
    ctx = context()
    keep(ctx, "Budgeting tokens", "Near")
    assert titles(ctx, "budget of a token", min_score=0.2) == ["Near"]
    assert ctx.store.candidates("budget of a token").keyword_rank.tolist() == [1]  # stemmed: a word does, too
    assert titles(ctx, "budge tok", min_score=0.2) == ["Near"]
    assert ctx.store.candidates("budge tok").keyword_rank.tolist() == [0]


def test_ha_2_what_only_a_keyword_finds_is_ranked_by_its_true_cosine() -> None:
    ctx, draw = context(), random.Random(1)
    stops = "What would you do about this, how they have that"
    for start in (*[stops] * 14, *["Kettles"] * 30, "Zorblax"):
        noise = " ".join("".join(draw.choices("abdefgilmnorst", k=6)) for _ in range(45))
        last = keep(ctx, f"{start} {noise}", start, final_score=9.5 if start == "Zorblax" else 1.0)
    query = f"{stops} zorblax?"
    exact = ctx.store.candidates(query, k=45, words=False)
    cosine = {record.id: value for record, value in zip(exact.records, exact.cosine.tolist(), strict=True)}
    assert last not in [record.id for record in ctx.store.candidates(query, k=12).records]
    found = inject(ctx, query, min_score=0.3)
    assert found is not None
    (best, *_) = found.hits
    assert (best.record.id, best.cosine) == (last, cosine[last])
    assert best.score == pytest.approx(0.7 * cosine[last] + 0.3 * 0.95)


def test_ha_2_what_both_legs_find_is_injected_once() -> None:
    ctx = context()
    keep(ctx, "Compared vector indexes.", "Indexes")
    assert titles(ctx, "Compared vector indexes.") == ["Indexes"]


def test_ha_2_three_are_injected_unless_told_otherwise() -> None:
    ctx = context()
    for number in range(5):
        keep(ctx, f"Run {number} about glaze", f"Run {number}")
    assert len(titles(ctx, "glaze")) == 3
    assert len(titles(ctx, "glaze", top_k=4)) == 4


def test_a6_a_good_run_is_ranked_though_three_poor_ones_are_nearer() -> None:
    ctx = context()
    for number in range(3):
        keep(ctx, "Which glaze holds best", f"Poor {number}", final_score=1.0)
    keep(ctx, "Which glaze holds best of all", "Good", final_score=9.5)
    assert titles(ctx, "Which glaze holds best")[0] == "Good"


def test_ha_4_a_poor_run_comes_after_a_good_one_and_is_not_left_out() -> None:
    ctx = context()
    keep(ctx, "The boiler has 11.7 bar.", "Shallow", final_score=5.8)
    keep(ctx, "The boiler has 14.2 bar.", "Deep", final_score=9.1)
    assert titles(ctx, "The boiler has how many bar?") == ["Deep", "Shallow"]


def test_a5_a_run_without_a_score_comes_before_one_just_below_the_floor() -> None:
    ctx = context()
    keep(ctx, "The same words", "6.9", final_score=6.9)
    keep(ctx, "The same words", "None")
    keep(ctx, "The same words", "7.0", final_score=7.0)
    assert titles(ctx, "words") == ["7.0", "None", "6.9"]


def test_ha_9_a_persons_rating_moves_a_run() -> None:
    ctx = context()
    keep(ctx, "The same words", "Disliked", final_score=8.0, rating=-1)
    keep(ctx, "The same words", "Liked", final_score=8.0, rating=1)
    assert titles(ctx, "The same words") == ["Liked", "Disliked"]


@pytest.mark.parametrize("plan", ["on", "off"])
def test_ha_11_a_novel_topic_starts_from_scratch(plan: str) -> None:
    ctx = context()
    keep(ctx, "Compared vector indexes.")
    assert inject(ctx, "When did grandmother sell her bakery?", min_score=0.3, plan=plan) is None
    assert inject(context(), "Anything", plan=plan) is None
    assert ctx.asked.requests == 0


def test_only_observations_are_looked_at() -> None:
    ctx = context()
    keep(ctx, "A glaze note", kind="note")
    assert inject(ctx, "glaze") is None


def test_a_long_message_is_looked_up_by_its_first_passage() -> None:
    ctx = context()
    keep(ctx, "Compared kiln glazes.", "Glazes")
    assert titles(ctx, "Compared kiln glazes. " + "So it goes on and on. " * 200) == ["Glazes"]


def test_a_message_that_cannot_be_looked_up_is_counted_and_nothing_injected() -> None:
    ctx = context()
    assert inject(ctx, " ") is None
    assert ctx.counts["injections_skipped"] == 1


def test_2d_2_runs_under_one_title_may_be_told_apart_or_not() -> None:
    ctx = context()
    keep(ctx, "The glaze cracked", "Glaze", final_score=3.0)
    keep(ctx, "The glaze held", "Glaze", final_score=9.0)
    assert titles(ctx, "glaze") == ["Glaze", "Glaze"]
    found = inject(ctx, "glaze", dedupe="title")
    assert found is not None
    assert [hit.record.final_score for hit in found.hits] == [9.0]


def test_2d_2_runs_without_a_title_are_not_taken_for_one() -> None:
    ctx = context()
    for number in range(3):
        keep(ctx, f"The glaze held, said run {number}", "")
    assert len(titles(ctx, "glaze", dedupe="title")) == 3


# The injected block


def test_ha_7_the_block_is_as_the_seed_writes_it() -> None:
    ctx = context()
    facts = json.dumps(["RAG outperforms static context injection", "Compression reduces cost by 60-80%"])
    keep(ctx, "Covered the top 5 techniques.", "Context Engineering", final_score=8.7, facts=facts)
    keep(ctx, "Covered the costs.", "Cost Management for AI Agents", final_score=8.2, facts="A\nB")
    found = inject(ctx, "Covered the top 5 techniques.")
    assert found is not None
    assert found.text == (
        "Prior work on related topics:\n"
        "[Context Engineering — score 8.7]\n"
        "Covered the top 5 techniques.\n"
        "Key facts:\n"
        "• RAG outperforms static context injection\n"
        "• Compression reduces cost by 60-80%\n"
        "[Cost Management for AI Agents — score 8.2]\n"
        "Covered the costs.\n"
        "Key facts:\n"
        "• A\n"
        "• B"
    )


def test_ha_7_what_is_not_known_of_a_run_is_not_shown() -> None:
    ctx = context()
    keep(ctx, "Looked at glazes.", "Glazes")
    found = inject(ctx, "glazes")
    assert found is not None
    assert found.text == "Prior work on related topics:\n[Glazes]\nLooked at glazes."


def test_a39_a_block_that_grows_too_long_is_cut_at_whole_observations() -> None:
    ctx = context()
    for number in range(3):
        keep(ctx, "glaze " * 400, f"Run {number}")
    found = inject(ctx, "glaze")
    assert found is not None
    assert len(found.hits) == 1
    assert found.text.endswith("(2 more left out to keep this short)")


# What a session leaves behind


def test_ha_5_a_session_becomes_one_observation_of_the_seeds_fields() -> None:
    ctx = context(json.dumps(MADE))
    ctx.final_score = 8.7
    kept = end(HarnessRuns(), ctx, (TASK, "First answer."), ("Go on.", "Second answer."))
    assert kept is not None
    assert (kept.kind, kept.origin, kept.final_score) == ("observation", "hook", 8.7)
    fields = dict(kept.fields)
    assert datetime.fromisoformat(str(fields.pop("timestamp"))) > START
    assert json.loads(str(fields.pop("facts"))) == MADE["facts"]
    assert fields == {
        "title": "Context Engineering", "narrative": MADE["narrative"], "content": MADE["narrative"],
        "task": TASK, "task_type": "enumerated",
    }  # fmt: skip


def test_ha_5_the_narrative_is_embedded_and_the_facts_are_not() -> None:
    kept = end(HarnessRuns(), context(json.dumps(MADE)), (TASK, "An answer."))
    assert kept is not None
    assert kept.text == MADE["narrative"]


def test_2d_2_title_and_facts_are_embedded_as_well_where_that_is_asked() -> None:
    kept = end(HarnessRuns(embed="all"), context(json.dumps(MADE)), (TASK, "An answer."))
    assert kept is not None
    assert kept.text == "\n".join([str(MADE["title"]), str(MADE["narrative"]), *MADE["facts"]])
    assert kept.fields["narrative"] == MADE["narrative"]


@pytest.mark.parametrize(
    ("task", "kind"),
    [
        ("List three ways to cut costs", "enumerated"),
        (TASK, "enumerated"),
        ("What are best practices for prompts?", "best_practices"),
        ("Stop the leak", "research"),
    ],
)
def test_ha_5_the_type_of_a_task_follows_from_its_words(task: str, kind: str) -> None:
    assert task_type(task) == kind


def test_ha_6_the_prompt_is_the_seeds_and_is_asked_at_low_temperature() -> None:
    ctx = context(json.dumps(MADE))
    end(HarnessRuns(), ctx, (TASK, "One."), ("Go on.", "Two."))
    assert isinstance(ctx.model, Noting)
    assert ctx.model.options.temperature == 0.1
    assert ctx.model.prompt == (
        "You have just completed the following task:\n"
        f"Task: {TASK}\n"
        "Output:\n"
        "One.\n\nTwo.\n"
        "Produce a structured observation for storage in memory:\n"
        "1. A one-line title describing the topic\n"
        "2. A 2-3 sentence narrative of what was covered and what was concluded\n"
        "3. 5-10 key facts as bullet points\n"
        'Output as JSON: {"title": ..., "narrative": ..., "facts": [...]}'
    )


def test_a2_the_prompt_as_printed_cannot_be_formatted() -> None:
    with pytest.raises(TypeError):
        COMPRESS_PROMPT.format(task=TASK, output="An answer.")


def test_a2_the_output_is_cut_before_it_is_put_into_the_prompt() -> None:
    ctx = context(json.dumps(MADE))
    end(HarnessRuns(), ctx, ("{task}", "x" * 2000 + "y"))
    assert isinstance(ctx.model, Noting)
    assert "Task: {task}\n" in ctx.model.prompt
    assert "x" * 2000 + "\n" in ctx.model.prompt


@pytest.mark.parametrize(("given", "kept"), [(0, 0), (2, 2), (10, 10), (13, 10)])
def test_a8_fewer_facts_are_accepted_and_more_are_cut(given: int, kept: int) -> None:
    facts = [f"• Fact {number}" for number in range(given)]
    ctx = context(json.dumps(MADE | {"facts": facts}))
    stored = end(HarnessRuns(), ctx, (TASK, "An answer."))
    assert stored is not None
    assert json.loads(str(stored.fields["facts"])) == [f"Fact {number}" for number in range(kept)]
    assert ctx.counts["stubs"] == 0


@pytest.mark.parametrize(
    "reply",
    [
        f"```json\n{json.dumps(MADE, indent=1)}\n```",
        f"Here is the observation:\n{json.dumps(MADE)}\nI hope it helps.",
    ],
)
def test_2d_3_a_code_fence_never_becomes_the_title(reply: str) -> None:
    kept = end(HarnessRuns(), context(reply), (TASK, "An answer."))
    assert kept is not None
    assert kept.fields["title"] == "Context Engineering"
    assert "stub" not in kept.fields


@pytest.mark.parametrize(
    "reply",
    [
        "I could not do that.",
        "",
        '{"title": "Cut off", "narr',
        '["a list"]',
        '{"title": "No narrative", "facts": []}',
        '{"title": "No facts", "narrative": "Text."}',
        '{"title": ["a"], "narrative": 3, "facts": {}}',
        ModelFailureError("no reply", kind="empty_reply"),
    ],
)
def test_a8_what_cannot_be_read_is_kept_as_a_marked_stub(reply: Any) -> None:
    ctx = context(reply)
    ctx.final_score = 4.0
    kept = end(HarnessRuns(), ctx, ("A task\nof two lines", "z" * 700))
    assert kept is not None
    assert kept.fields["stub"] is True
    assert (kept.fields["title"], kept.text, kept.final_score) == ("A task of two lines", "z" * 600, 4.0)
    assert (ctx.counts["compressions"], ctx.counts["stubs"]) == (1, 1)


def test_half_a_character_in_the_models_json_is_no_reason_to_lose_the_rest() -> None:
    ctx = context('{"title": "A \\ud83d", "narrative": "Text.", "facts": ["\\udc00 b"]}')
    kept = end(HarnessRuns(), ctx, (TASK, "An answer."))
    assert kept is not None
    assert (kept.fields["title"], kept.fields["facts"]) == ("A ?", '["? b"]')


def test_trouble_with_the_server_is_no_stub() -> None:
    ctx = context(InfrastructureError("gone", kind="server_down"))
    with pytest.raises(InfrastructureError):
        end(HarnessRuns(), ctx, (TASK, "An answer."))
    assert ctx.store.count() == 0


@pytest.mark.parametrize("answer", ["", " \n"])
def test_a_session_without_an_answer_leaves_nothing(answer: str) -> None:
    ctx = context()
    assert end(HarnessRuns(), ctx, (TASK, answer)) is None
    assert (ctx.asked.requests, ctx.counts) == (0, {})


def test_nothing_is_written_where_the_write_path_is_off() -> None:
    assert end(HarnessRuns(write_path="off"), context(), (TASK, "An answer.")) is None


def test_2d_3_a_run_that_could_not_be_compressed_is_not_injected_again() -> None:
    ctx = context("unreadable")
    end(HarnessRuns(), ctx, ("Compare glazes", "Some words about glazes."))
    assert inject(ctx, "Compare glazes") is None
    assert titles(ctx, "Compare glazes", inject_stubs=True) == ["Compare glazes"]


class Short:
    """Hash vectors of texts of at most 100 characters."""

    name, dim, fingerprint = "short", 256, "short-1"

    def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Vectors:
        if any(len(text) > 100 for text in texts):
            raise TextTooLongError("a text has more than 100 characters")
        return open_embedder("hash", cache=None).embed(texts, purpose)


@pytest.mark.parametrize("reply", [json.dumps(MADE | {"narrative": "x" * 101}), "no json"])
def test_what_the_store_cannot_keep_is_left_out_and_counted(reply: str) -> None:
    ctx = context(reply)
    ctx.store = InMemoryStore("user", Short())
    assert end(HarnessRuns(), ctx, (TASK, "z" * 700)) is None
    assert (ctx.counts["compressions"], ctx.counts["compress_skipped"]) == (1, 1)


def test_where_nothing_may_be_written_no_run_counts_as_skipped() -> None:
    ctx = context(json.dumps(MADE))
    ctx.store = GuardedStore(ctx.store, read_only=True)
    with pytest.raises(ReadOnlyError):
        end(HarnessRuns(), ctx, (TASK, "An answer."))
    assert "compress_skipped" not in ctx.counts


# The plan


def test_ha_8_a_plan_is_made_from_what_is_injected_and_put_after_it() -> None:
    plan = {
        "steps": ["Take the best glaze", "Fire it"],
        "prior_work": ["Tolvane had no flaw", "Moon dust is cheap"],
    }
    ctx = context(json.dumps(plan))
    keep(ctx, "Compared three glazes.", "Glazes", facts='["Tolvane at 1220 degrees had no flaw"]')
    found = inject(ctx, "Plan the next glazes", plan="on")
    assert found is not None
    assert found.text == (
        "Prior work on related topics:\n[Glazes]\nCompared three glazes.\n"
        "Key facts:\n• Tolvane at 1220 degrees had no flaw\n"
        "Plan:\n1. Take the best glaze\n2. Fire it\n"
        "Already covered:\n• Tolvane had no flaw\n• Moon dust is cheap"
    )
    assert ctx.counts == {
        "plans": 1, "plans_unreadable": 0, "prior_work_items": 2, "prior_work_grounded": 1,
    }  # fmt: skip


def test_2d_3_the_planner_sees_the_memory() -> None:
    ctx = context("{}")
    keep(ctx, "Compared three glazes.", "Glazes", final_score=8.0)
    inject(ctx, "Plan the next glazes", plan="on")
    assert isinstance(ctx.model, Noting)
    assert "Task: Plan the next glazes\n" in ctx.model.prompt
    assert "[Glazes — score 8.0]\nCompared three glazes." in ctx.model.prompt


@pytest.mark.parametrize(("plan", "turn"), [("off", 1), ("on", 2)])
def test_ha_8_no_plan_is_asked_for_but_before_the_first_turn(plan: str, turn: int) -> None:
    ctx = context()
    keep(ctx, "Compared three glazes.", "Glazes")
    assert inject(ctx, "glazes", turn, plan=plan) is not None
    assert ctx.asked.requests == 0


@pytest.mark.parametrize("reply", ["no plan", ModelFailureError("no reply", kind="empty_reply")])
def test_ha_8_a_plan_that_cannot_be_read_costs_the_plan_alone(reply: Any) -> None:
    ctx = context(reply)
    keep(ctx, "Compared three glazes.", "Glazes")
    found = inject(ctx, "glazes", plan="on")
    assert found is not None
    assert found.text.endswith("Compared three glazes.")
    assert (ctx.counts["plans"], ctx.counts["plans_unreadable"]) == (1, 1)


# The tool


def test_there_is_no_tool_unless_it_is_asked_for() -> None:
    assert list(HarnessRuns().tools()) == []
    (tool,) = HarnessRuns(read_path="both").tools()
    assert (tool.name, tool.effect, tool.parameters["required"]) == ("search_observations", "read", ["query"])


def test_the_tool_finds_what_would_be_injected_and_says_so_where_that_is_nothing() -> None:
    ctx = context()
    (tool,) = HarnessRuns(read_path="tool", min_score=-1.0).tools()
    empty = tool.run({"query": "glazes"}, ctx)
    assert (empty.text, empty.is_error) == ("No memories found.", False)
    keep(ctx, "Compared three glazes.", "Glazes")
    found = tool.run({"query": "glazes"}, ctx)
    assert found.text == "Prior work on related topics:\n[Glazes]\nCompared three glazes."
    assert len(found.hits) == 1
    assert tool.run({"query": " "}, ctx).is_error


def test_where_only_the_tool_reads_nothing_is_injected() -> None:
    ctx = context()
    keep(ctx, "Compared three glazes.")
    assert inject(ctx, "glazes", read_path="tool") is None


# Whole trials


def test_ha_8_a_later_session_builds_on_what_an_earlier_one_found() -> None:
    register(HarnessRuns)

    def script(messages: Sequence[Message], tools: Any) -> str:
        asked = messages[-1].content
        if asked.startswith("You have just completed"):
            facts = ["Tolvane at 1220 degrees had no flaw"]
            return json.dumps({"title": "Pottery glazes", "narrative": "Compared firings.", "facts": facts})
        if "prior_work" in asked:
            return '{"steps": ["Fire Tolvane"], "prior_work": ["Tolvane had no flaw"]}'
        return "Use Tolvane at 1220 degrees." if "[Pottery glazes — score 8.6]" in asked else "Noted."

    (told,) = load_scenarios("runs-kiln-glaze")
    done = run(told, script, design={"harness_runs": {"min_score": 0.0}})
    assert (done.trial.passed, done.turns[1].retrieved, done.turns[1].answered) == (True, True, True)
    assert done.trial.counts["compressions"] == 2
    assert done.trial.counts["prior_work_grounded"] == 1
    assert (done.trial.hooks["before_turn"], done.trial.hooks["after_session"]) == (1, 2)
    assert done.trial.hook_requests == 3


@pytest.mark.parametrize("name", ["runs-boiler-worse-is-newer", "runs-boiler-better-is-newer"])
def test_ha_4_of_two_findings_the_better_runs_stands_first(name: str) -> None:
    register(HarnessRuns)
    (told,) = load_scenarios(name)
    done = run(told, lambda messages, tools: "14.2 bar.", design={"harness_runs": {"plan": "off"}})
    assert done.trial.passed is True
    block = done.transcript.messages[1]["injected"]
    assert block.index("[Boiler pressure of the Harrowgate plant — score 9.2]") < block.index("score 4.1]")


def test_one_users_runs_are_not_anothers() -> None:
    register(HarnessRuns)
    (told,) = load_scenarios("runs-kiln-glaze")
    other = told.sessions[1].model_copy(update={"user": "other"})
    told = told.model_copy(update={"sessions": [told.sessions[0], other]})
    done = run(told, lambda messages, tools: json.dumps(MADE), design={"harness_runs": {"min_score": -1.0}})
    assert done.hits == []
