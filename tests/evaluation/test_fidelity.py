from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest

from memeval.evaluation.fidelity import ledger, missing
from memeval.messages import Message, Tool, ToolResult
from memeval.models.base import Options
from memeval.models.recorded import RecordedModel
from memeval.models.scripted import ScriptedModel

FIXTURES = Path(__file__).parent.parent / "fixtures" / "ollama"
SYSTEM = 'You help. Say "thanks" & use save_memory.'
MODES = ("native", "prompted", "constrained")


def tool(name: str, description: str, properties: dict) -> Tool:
    return Tool(
        name=name,
        description=description,
        parameters={"type": "object", "properties": properties, "required": list(properties)[:1]},
        effect="write",
        intents=lambda _: ("remember",),
        run=lambda _a, _c: ToolResult(text="ok"),
    )


TOOLS = (
    tool(
        "save_memory",
        'Save a "fact" & keep it,\neven für Jürgen\'s <b>café</b> 🧠 (C:\\notes).',
        {"content": {"type": "string", "description": 'What to keep: "a & b" < c.'}},
    ),
    tool(
        "search_memory",
        "Search what was remembered.",
        {
            "filter": {
                "type": "object",
                "description": "Narrow it down.",
                "properties": {"since": {"type": "string", "description": "Not older than 'this'."}},
            },
            "limit": {"type": "integer"},
        },
    ),
)


def go_json(value) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return re.sub("[<>&]", lambda m: f"\\u{ord(m.group()):04x}", text)


def xml(tool: Tool) -> str:
    esc = html.escape
    parts = [f"<function><name>{tool.name}</name><description>{esc(tool.description)}</description>"]

    def walk(properties):
        for name, part in properties.items():
            parts.append(f"<parameter name='{name}'>{esc(part.get('description', ''))}</parameter>")
            walk(part.get("properties", {}))

    walk(tool.parameters["properties"])
    return "".join([*parts, "</function>"])


def typescript(tool: Tool) -> str:
    lines = [f"// {x}" for x in tool.description.split("\n")] + [f"type {tool.name} = (_: {{"]

    def walk(properties):
        for name, part in properties.items():
            lines.extend(f"  // {x}" for x in part.get("description", "").split("\n"))
            lines.append(f"  {name}: {part['type']},")
            walk(part.get("properties", {}))

    walk(tool.parameters["properties"])
    return "\n".join([*lines, "}) => any;"])


FORMS = {
    "go": lambda t: go_json(t.schema()["function"]),
    "json": lambda t: json.dumps(t.schema(), ensure_ascii=False),
    "ascii json": lambda t: json.dumps(t.schema()),
    "pretty json": lambda t: json.dumps(t.schema(), indent=4),
    "json in json": lambda t: json.dumps(json.dumps(t.schema())),
    "python": lambda t: repr(t.schema()),
    "xml": xml,
    "typescript": typescript,
}


def renderer(form, *, tools=True, calls=True, results=True):
    def render(messages: tuple[Message, ...], offered: tuple[Tool, ...]) -> str:
        parts = [messages[0].content]
        parts += [form(t) for t in offered] if tools else []
        for message in messages[1:]:
            if message.role != "tool" or results:
                parts.append(f"{message.role}: {message.content}")
            if calls:
                parts += [json.dumps({"name": c.name, "arguments": c.arguments}) for c in message.tool_calls]
        return "\n".join(parts)

    return render


def check(render, mode="native", tools=TOOLS):
    return ledger(ScriptedModel(lambda _m, _t: "x", render=render), mode, SYSTEM, tools, Options())


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_descriptions_with_signs_quotes_and_umlauts_are_not_accused_in_any_form(form) -> None:
    found = check(renderer(form))
    assert (found.status, found.notes) == ("readable", ())
    assert "And now?" in found.prompt


@pytest.mark.parametrize("mode", MODES)
def test_every_calling_mode_is_readable_where_the_template_shows_what_it_gets(mode) -> None:
    found = check(renderer(FORMS["go"]), mode)
    assert (found.status, found.notes) == ("readable", ())
    assert found.tool_tax > 0


def test_go_structs_are_caught_and_the_cure_is_named() -> None:
    def struct(t: Tool) -> str:
        properties = json.dumps(t.parameters["properties"], ensure_ascii=False)
        return f"{{{t.name} {t.description} {{object <nil> <nil> [content] {properties}}}}}"

    found = check(renderer(struct))
    assert found.status == "unreadable"
    assert "Go struct" in found.notes[0]
    assert "{{ json .Function }}" in found.notes[0]
    mapped = check(renderer(lambda t: f"{FORMS['json'](t)} map[type:string]"))
    assert mapped.status == "unreadable"
    bare = check(renderer(lambda t: f"{{{t.name} {t.description} {FORMS['json'](t)}}}"))
    assert bare.status == "unreadable"


def test_a_description_that_speaks_of_go_maps_itself_is_not_accused() -> None:
    tools = (tool("save", "Keeps a map[string] of things.", {"x": {"type": "string"}}),)
    assert check(renderer(FORMS["go"]), tools=tools).status == "readable"


def test_a_template_without_tools_is_caught_though_the_system_prompt_names_one() -> None:
    found = check(renderer(FORMS["go"], tools=False, calls=False))
    assert found.status == "unreadable"
    assert any("save_memory: its name" in note for note in found.notes)
    assert any("search_memory: its description of since" in note for note in found.notes)


@pytest.mark.parametrize(
    ("dropped", "note"),
    [("calls", "a past call of save_memory is dropped"), ("results", "the result of a past call")],
)
def test_a_template_that_drops_the_past_is_caught_by_name(dropped: str, note: str) -> None:
    found = check(renderer(FORMS["go"], **{dropped: False}))
    assert found.status == "unreadable"
    assert len(found.notes) == 1
    assert note in found.notes[0]


def test_a_name_inside_another_name_is_not_shown() -> None:
    notes = list(missing("save_memory", "", [tool("save", "", {})]))
    assert notes == ["save: its name 'save' is not in the prompt"]


def test_a_lost_system_prompt_is_caught() -> None:
    found = check(
        lambda messages, offered: renderer(FORMS["go"])(
            (Message(role="user", content=""), *messages[1:]), offered
        )
    )
    assert found.notes == ("the system prompt is not in the prompt as it was written",)


def test_without_a_rendering_it_is_unverified_and_that_is_said() -> None:
    found = check(None)
    assert (found.status, found.prompt) == ("unverified", None)
    assert found.notes


def test_a_design_without_tools_has_no_tax_and_can_be_readable() -> None:
    found = check(renderer(FORMS["go"]), tools=())
    assert (found.status, found.tool_tax) == ("readable", 0)


@pytest.mark.parametrize(
    ("fixture", "readable"),
    [("native_call", True), ("structs", False)],
    ids=["json .Function", "bare .Function"],
)
def test_real_templates_are_told_apart(fixture: str, readable: bool) -> None:
    tools = [
        tool(
            "save_memory",
            'Save a "fact" & keep it (für später).',
            {"content": {"type": "string", "description": "The fact to keep & recall."}},
        ),
        tool(
            "search_memory",
            "Search what was remembered.",
            {"query": {"type": "string", "description": "What to look for."}},
        ),
    ]
    system = "You are a helpful assistant with a memory."
    data = json.loads((FIXTURES / f"{fixture}.json").read_text(encoding="utf-8"))
    rendered = next(e for e in data["exchanges"] if e["request"] and "_debug_render_only" in e["request"])
    prompt = json.loads(rendered["lines"][0])["_debug_info"]["rendered_template"]
    assert (not list(missing(prompt, system, tools))) is readable
    assert RecordedModel(FIXTURES / f"{fixture}.json").modes[0] == "native"
