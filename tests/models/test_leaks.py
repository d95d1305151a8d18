from __future__ import annotations

import pytest

from memeval.messages import ToolCall
from memeval.models.leaks import find_leaks, whole_calls

KNOWN = frozenset({"save_memory", "search_memory"})
CALL = '{"name": "save_memory", "arguments": {"content": "Elixir"}}'
SAVE = ToolCall("save_memory", {"content": "Elixir"})


@pytest.mark.parametrize(
    "text",
    [
        CALL,
        f"```json\n{CALL}\n```",
        f"```\n{CALL}\n```",
        f"Sure, I will keep that.\n\n```json\n{CALL}\n```\nAnything else?",
        f"<tool_call>\n{CALL}\n</tool_call>",
        f"<tool_call>{CALL}",
        f"{CALL}</tool_call>",
        f"<response>{CALL}</response>",
        f"<response>\n{CALL}",
        f"<tools>\n{CALL}\n</tools>",
        f"<tools>[{CALL}]</tools>",
        f"<json>{CALL}</json>",
        f"[{CALL}]",
        '{"name": "save_memory", "parameters": {"content": "Elixir"}}',
        '{"save_memory": {"content": "Elixir"}}',
        '{"type": "function", "function": {"name": "save_memory", "arguments": {"content": "Elixir"}}}',
        f'{{"tool_calls": [{CALL}]}}',
        f"I call the tool: {CALL}",
        f"Set {{x}} first. {CALL}",
        f"<tools>\n{{bad json}}\n{CALL}",
    ],
)
def test_a_call_written_as_text_is_found_in_every_form_seen(text: str) -> None:
    assert find_leaks(text, KNOWN) == (SAVE,)


def test_several_calls_come_in_the_order_they_were_written() -> None:
    second = '{"name": "search_memory", "arguments": {"query": "x"}}'
    names = [call.name for call in find_leaks(f"<tool_call>{second}</tool_call> then {CALL}", KNOWN)]
    assert names == ["search_memory", "save_memory"]


def test_a_whole_tools_block_gives_its_calls_and_not_the_definitions_repeated_in_it() -> None:
    definition = (
        '{"type": "function", "function": {"name": "save_memory", "description": "Save.", "parameters":'
        ' {"type": "object", "properties": {"content": {"type": "string"}}}}}'
    )
    assert find_leaks(f"<tools>\n{definition}\n</tools>", KNOWN) == ()
    assert find_leaks(f"<tools>\n{definition}\n{CALL}\n</tools>", KNOWN) == (SAVE,)


def test_an_invented_tool_is_kept_under_its_name() -> None:
    assert find_leaks('{"name": "greet", "arguments": {"who": "me"}}', KNOWN) == (
        ToolCall("greet", {"who": "me"}),
    )
    assert find_leaks('<tool_call>{"name": "hello"}</tool_call>', KNOWN) == (ToolCall("hello", {}),)


def test_arguments_in_a_string_stay_as_the_model_wrote_them() -> None:
    text = '{"name": "save_memory", "arguments": "{\\"content\\": \\"Elixir\\"}"}'
    assert find_leaks(text, KNOWN) == (ToolCall("save_memory", '{"content": "Elixir"}'),)


def test_a_line_feed_inside_a_string_does_not_hide_a_call() -> None:
    text = '{"name": "save_memory", "arguments": {"content": "two\nlines"}}'
    assert find_leaks(text, KNOWN) == (ToolCall("save_memory", {"content": "two\nlines"}),)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I have saved your memory. Use save_memory for more.",
        'Your data: {"name": "Elena", "age": 30}',
        '{"name": "Elena"}',
        '{"name": "Elena Rossi", "arguments": {"with": "her sister"}}',
        '{"language": "Elixir"}',
        '{"reply": "Hello!"}',
        "[1, 2, 3]",
        "{not json} and {'name': 'save_memory'}",
        '{"name": "save_memory", "arguments": {"content": "cut off',
        '{"name": "...", "arguments": {...}}',
        '{"name": "save_memory", "arguments": {"n": NaN}}',
        "{" * 3000,
        '{"a":' * 3000,
    ],
)
def test_prose_and_other_json_are_not_accused(text: str) -> None:
    assert find_leaks(text, KNOWN) == ()


def test_a_known_tools_name_alone_is_a_call_without_arguments() -> None:
    assert find_leaks('{"name": "search_memory"}', KNOWN) == (ToolCall("search_memory", {}),)


def test_only_a_reply_that_is_nothing_else_is_a_whole_call() -> None:
    assert whole_calls(f"  ```json\n{CALL}\n```\n", KNOWN) == (SAVE,)
    assert whole_calls(f"[{CALL}, {CALL}]", KNOWN) == (SAVE, SAVE)
    assert whole_calls(f"Sure: {CALL}", KNOWN) == ()
    assert whole_calls(f'[{CALL}, {{"age": 3}}]', KNOWN) == ()
    assert whole_calls("[]", KNOWN) == ()


def test_a_call_written_as_code_is_a_leak_of_a_known_tool_only() -> None:
    text = "memory_save(topic='user.language_preference', content='Elixir')"
    assert find_leaks(text, {"memory_save"}) == (
        ToolCall("memory_save", {"topic": "user.language_preference", "content": "Elixir"}),
    )
    assert find_leaks("print(sep=', ')", {"memory_save"}) == ()
