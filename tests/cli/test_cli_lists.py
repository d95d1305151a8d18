"""`memeval scenarios`, `designs` and `retrieval`: tables for people, JSON for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_setting import STORY, Invoke

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
    assert choices["write_path"] == ["auto_turn", "tool", "off"]


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
