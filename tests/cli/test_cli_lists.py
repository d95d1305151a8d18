"""`memeval scenarios`, `designs` and `retrieval`: tables for people, JSON for programs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_setting import STORY, Invoke

from memeval.errors import InfrastructureError, ModelFailureError
from memeval.messages import Reply
from memeval.models.registry import register_model
from memeval.models.scripted import ScriptedModel

DESIGN = """
from memeval import MemoryDesign
from memeval.designs import save_tool

class Helper:
    pass

class Sticky(MemoryDesign):
    name = "sticky"
    title = "sticky notes"
    defaults = {"colour": "yellow"}
    def tools(self):
        return [save_tool("stick", "Keep a note.", kind="note")]
"""


# scenarios


def test_scenarios_are_listed(invoke: Invoke) -> None:
    result = invoke("scenarios", "list", "tag:acceptance")
    assert result.exit_code == 0
    assert "s6-preferred-language" in result.stdout
    assert "scenarios of" in result.stdout


def test_scenarios_as_json(invoke: Invoke) -> None:
    data = json.loads(invoke("scenarios", "list", "s6-preferred-language", "--json").stdout)
    assert [story["family"] for story in data] == ["s6"]
    assert data[0]["facts"]["language"]["values"] == ["Elixir"]


def test_a_pattern_without_match_names_the_nearest(invoke: Invoke) -> None:
    result = invoke("scenarios", "list", "tag:acceptence")
    assert result.exit_code == 2
    assert "did you mean 'acceptance'" in result.stderr


def test_the_shipped_stories_are_valid(invoke: Invoke) -> None:
    data = json.loads(invoke("scenarios", "validate", "--json").stdout)
    assert data["scenarios"] > 20
    assert data["errors"] == []


def test_every_broken_file_is_named_with_its_line(invoke: Invoke, tmp_path: Path) -> None:
    good = STORY.format(name="good", value="teal")
    (tmp_path / "a.yaml").write_text(good, encoding="utf-8")
    (tmp_path / "b.yaml").write_text(good.replace("family:", "famly:"), encoding="utf-8")
    (tmp_path / "c.yaml").write_text("scenario: &a x\n", encoding="utf-8")
    (tmp_path / "d.yaml").write_text(good, encoding="utf-8")
    result = invoke("scenarios", "validate", tmp_path)
    assert result.exit_code == 2
    assert f"{tmp_path / 'b.yaml'}:2: unknown key 'famly'; did you mean 'family'?" in result.stdout
    assert f"{tmp_path / 'c.yaml'}:1: anchors" in result.stdout
    assert f"{tmp_path / 'd.yaml'}:1: scenario 'good' stands twice" in result.stdout
    assert "1 scenarios, 3 errors" in result.stdout


def test_a_finding_is_shown_with_its_line_and_is_no_error(invoke: Invoke, tmp_path: Path) -> None:
    file = tmp_path / "weak.yaml"
    file.write_text(STORY.format(name="weak", value="x"), encoding="utf-8")
    result = invoke("scenarios", "validate", file)
    assert result.exit_code == 0
    assert f"{file}:6: weak: " in result.stdout
    finding = json.loads(invoke("scenarios", "validate", file, "--json").stdout)["findings"][0]
    assert (finding["rule"], finding["line"]) == ("weak-value", 6)


def test_a_file_that_is_not_there_is_one_sentence(invoke: Invoke) -> None:
    result = invoke("scenarios", "validate", "nope.yaml")
    assert (result.exit_code, result.stderr) == (2, "memeval: nope.yaml: no such file or folder\n")


def test_stories_are_counted_by_folder_and_the_most_alike_are_shown(invoke: Invoke, tmp_path: Path) -> None:
    for folder, name in (("warm", "vermilion"), ("cold", "cerulean")):
        (tmp_path / folder).mkdir()
        text = STORY.format(name=name, value=name)
        (tmp_path / folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    told = invoke("scenarios", "validate", tmp_path).stdout
    rows = [line.split()[:6] for line in told.splitlines() if line.startswith(("cold ", "warm ", "all "))]
    assert [row[:3] + row[5:] for row in rows] == [
        ["cold", "1", "1", "1"],
        ["warm", "1", "1", "1"],
        ["all", "2", "2", "2"],
    ]
    assert "remember 1" in told
    assert "Please remember that my favourite colour is vermilion.  (vermilion, vermilion.yaml:9)" in told
    assert "Facts to be kept that no later turn asks for: 2." in told
    assert told.endswith("2 scenarios, 0 errors, 0 findings\n")
    assert "Most alike" not in invoke("scenarios", "validate", tmp_path, "--pairs", "0").stdout

    data = json.loads(invoke("scenarios", "validate", tmp_path, "--json").stdout)
    assert [(c["folder"], c["stories"], c["intents"], c["tags"]) for c in data["counts"]] == [
        ("cold", 1, {"remember": 1}, {"remember": 1}), ("warm", 1, {"remember": 1}, {"remember": 1}),
        ("", 2, {"remember": 2}, {"remember": 2}),
    ]  # fmt: skip
    (pair,) = data["pairs"]
    assert 0.5 < pair["likeness"] < 1
    assert {pair[which]["scenario"] for which in ("first", "second")} == {"vermilion", "cerulean"}
    assert [(note["rule"], note["line"]) for note in data["notes"]] == [("never-asked", 6)] * 2
    assert "known" not in data


def test_import_is_a_command_and_its_readers_are_not_loaded_for_a_list(invoke: Invoke) -> None:
    assert "import" in invoke("scenarios", "--help").stdout
    code = """if True:
        import sys
        from memeval.cli import cli
        cli.main(["scenarios", "list", "family:s6"], standalone_mode=False)
        print([name for name in sys.modules if name.startswith(("memeval.scenarios.importers", "numpy"))])
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


# values that a model knows

ASKED = """\
scenario: {name}
family: {family}
title: A capital
facts:
  capital: {{text: The capital is {value}., values: [{value}], guessable: {guessable}}}
sessions:
  - at: 2026-01-01T09:00:00Z
    turns:
      - user: Note down the capital of {country}, it is {value}.
        expect: {{intent: remember, facts: [capital]}}
  - at: 2026-01-02T09:00:00Z
    turns:
      - user: What is the capital of {country}?
        expect: {{intent: recall, facts: [capital], answer: {{states: [capital]}}}}
"""


@pytest.fixture
def capitals(tmp_path: Path) -> Path:
    """Stories about capitals; the model of `knowing` knows that of Peru, and no other."""
    folder = tmp_path / "capitals"
    folder.mkdir()
    for name, family, country, value, guessable in (
        ("peru-one", "peru", "Peru", "Lima", "false"),
        ("peru-two", "peru", "Peru", "Lima", "false"),
        ("velmora", "velmora", "Velmora", "Tarquinel", "false"),
        ("australia", "australia", "Australia", "Canberra", "true"),
    ):
        text = ASKED.format(name=name, family=family, country=country, value=value, guessable=guessable)
        text = text.replace("Note down", "Write down") if name == "peru-two" else text
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return folder


def knowing(answer: Callable[[str], Any], **attributes: Any) -> list[ScriptedModel]:
    """Registers `scripted:knows`, which answers a question by a function of it; those opened."""
    opened: list[ScriptedModel] = []

    def make() -> ScriptedModel:
        model = ScriptedModel(lambda messages, tools: answer(messages[-1].content), "scripted:knows")
        for name, value in attributes.items():
            setattr(model, name, value)
        opened.append(model)
        return model

    register_model("scripted:knows", make)
    return opened


def test_values_that_a_model_knows_are_listed_with_its_reply(invoke: Invoke, capitals: Path) -> None:
    opened = knowing(lambda asked: "That would be Lima \x1b[31m." if "Peru" in asked else "I was not told.")
    before = {path: path.read_bytes() for path in capitals.iterdir()}
    args = ("scenarios", "validate", capitals, "--model", "scripted:knows", "--repeats", "2")
    told = invoke(*args).stdout
    assert "scripted:knows (native), told nothing: 3 questions about 3 facts, each 2x" in told
    assert "smoke test" in told
    assert "Facts named without memory: 1; mark them `guessable: true`" in told
    (line,) = (line for line in told.splitlines() if line.startswith("peru-one and 1 more"))
    assert " ".join(line.split()[4:]) == "13 capital Lima 2 of 2 That would be Lima \ufffd[31m."
    assert "Named, and marked" not in told
    assert "Marked `guessable: true`, and not named:" in told
    assert "Tarquinel" not in told.partition("told nothing")[2]
    (model,) = opened
    assert len(model.seen) == 6
    for messages, tools in model.seen:
        assert (len(messages), messages[0].role, len(tools)) == (2, "system", 0)
        assert messages[1].content.startswith("What is the capital of")
    assert {path: path.read_bytes() for path in capitals.iterdir()} == before

    data = json.loads(invoke(*args, "--json").stdout)["known"]
    assert (data["questions"], data["facts_asked"], data["failed"]) == (3, 3, 0)
    facts = {fact["scenarios"][0]: fact for fact in data["facts"]}
    assert facts["peru-one"] | {"file": "", "reply": ""} == {
        "scenarios": ["peru-one", "peru-two"], "file": "", "line": 13,
        "question": "What is the capital of Peru?",
        "fact": "capital", "values": ["Lima"], "guessable": False, "named": 2, "asked": 2, "reply": "",
    }  # fmt: skip
    assert (facts["australia"]["guessable"], facts["australia"]["named"]) == (True, 0)
    assert set(facts) == {"peru-one", "australia"}


def test_the_words_of_the_question_are_no_knowledge(invoke: Invoke, capitals: Path) -> None:
    path = capitals / "velmora.yaml"
    text = path.read_text(encoding="utf-8").replace("capital of Velmora?", "capital, Tarquinel?")
    path.write_text(text, encoding="utf-8")
    knowing(lambda asked: asked)
    told = invoke("scenarios", "validate", path, "--model", "scripted:knows").stdout
    assert "[echo]" in told
    assert "Facts named without memory: 0." in told


def test_a_reply_that_was_cut_off_or_is_none_is_said(invoke: Invoke, capitals: Path) -> None:
    def answer(asked: str) -> Any:
        if "Peru" in asked:
            return Reply(content="Lima, of course, and ", done_reason="length")
        return ModelFailureError("the model replied nothing", kind="empty_reply")

    knowing(answer)
    told = invoke("scenarios", "validate", capitals, "--model", "scripted:knows").stdout
    assert "3 replies were unusable or cut off" in told
    assert "Facts named without memory: 1" in told


def test_what_a_model_cannot_do_and_a_server_that_is_gone_are_one_sentence(
    invoke: Invoke, capitals: Path
) -> None:
    args = ("scenarios", "validate", capitals, "--model")
    knowing(lambda asked: "?", modes=("native",))
    result = invoke(*args, "scripted:knows", "--calling", "constrained")
    assert (result.exit_code, result.stderr) == (
        2, "memeval: scripted:knows cannot do constrained calling; it can do native\n",
    )  # fmt: skip
    knowing(lambda asked: InfrastructureError("nobody answers", kind="server_down"))
    result = invoke(*args, "scripted:knows")
    assert result.exit_code == 4
    assert result.stderr.endswith("scripted:knows could not be asked about australia: nobody answers\n")
    assert "did you mean" in invoke(*args, "scripted:know").stderr


# designs


def test_designs_are_listed_with_tools_settings_and_choices(invoke: Invoke) -> None:
    told = invoke("designs", "list").stdout
    for word in ("local2_single: ", "save_topic", "auto_turn, tool, off", "description tokens"):
        assert word in told


def test_designs_as_json(invoke: Invoke) -> None:
    (dual,) = json.loads(invoke("designs", "list", "local2_dual", "--json").stdout)
    assert [tool["name"] for tool in dual["tools"]] == ["memory_recall", "memory_save"]
    assert dual["description_tokens"] > 0
    choices = {setting["name"]: setting["choices"] for setting in dual["settings"]}
    assert choices["write_path"] == ["auto_turn", "tool", "off", "auto_unread"]


def test_the_designs_of_a_file_of_ones_own(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(DESIGN, encoding="utf-8")
    for name in ("mine.py", "mine.py:Sticky"):
        (design,) = json.loads(invoke("designs", "list", name, "--json").stdout)
        assert (design["name"], design["title"]) == ("sticky", "sticky notes")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1", "defines no design"),
        ("def", "mine.py:1: not Python"),
        ("class A(B): pass", "mine.py, line 1)"),
    ],
)
def test_a_file_without_a_design_is_one_sentence(
    invoke: Invoke, tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "mine.py").write_text(text, encoding="utf-8")
    result = invoke("designs", "list", "mine.py")
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_bug_in_ones_own_design_names_file_and_line(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(DESIGN.replace("return [", "return 1 / 0, ["), encoding="utf-8")
    for args in (("designs", "list", "mine.py"), ("prompt", "scripted:cli", "mine.py:Sticky")):
        result = invoke(*args)
        assert result.exit_code == 2
        assert f"{tmp_path / 'mine.py'}, line 13" in result.stderr
        assert result.stderr.count("\n") == 1


# retrieval


@pytest.fixture
def retrieval(tmp_path: Path) -> Path:
    file = tmp_path / "r.yaml"
    file.write_text("retrieval: quality\nembedders: [hash]\nprefixes: [card, none]\n", encoding="utf-8")
    return file


def test_retrieval_prints_a_row_for_each_prefix(invoke: Invoke, retrieval: Path) -> None:
    result = invoke("retrieval", retrieval)
    assert result.exit_code == 0
    assert "recall@5" in result.stdout
    assert "identical by construction to card" in result.stdout
    assert "memeval report results/quality" in result.stdout
    assert "1 of 2: hash card" in result.stderr


def test_retrieval_as_json_and_shown_again(invoke: Invoke, retrieval: Path) -> None:
    data = json.loads(invoke("retrieval", retrieval, "--json").stdout)
    card, none = data["cells"]
    assert 0 < card["recall@5"]["lo"] < card["recall@5"]["mean"] < card["recall@5"]["hi"] < 1
    assert none["identical_to"] == "card"
    assert none["ndcg@10"]["mean"] is None
    assert json.loads(invoke("show", "results/quality", "--json").stdout)["cells"] == data["cells"]
    assert invoke("show", "results/quality", "x").exit_code == 2


def test_an_unknown_embedder_is_one_sentence_and_nothing_is_written(
    invoke: Invoke, retrieval: Path, tmp_path: Path
) -> None:
    retrieval.write_text("retrieval: quality\nembedders: [hasch]\n", encoding="utf-8")
    result = invoke("retrieval", retrieval)
    assert result.exit_code == 2
    assert "did you mean 'hash'" in result.stderr
    assert not (tmp_path / "results").exists()
