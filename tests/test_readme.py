"""What the README shows works: its commands are these, its files are there, its code runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from memeval.evaluation.sweep import plan, read_sweep
from memeval.messages import ToolCall
from memeval.models.registry import register_model
from memeval.models.scripted import ScriptedModel
from memeval.yamlfile import read_documents

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def test_the_two_commands_stand_there_as_promised() -> None:
    lines = [line.strip() for line in README.splitlines()]
    assert "pip install uv && uv run memeval demo" in lines
    assert "uv run pytest" in lines


@pytest.mark.parametrize("target", re.findall(r"\]\((?!http)([^)#]+)\)", README))
def test_a_link_leads_somewhere(target: str) -> None:
    assert (ROOT / target).exists()


def test_the_sweep_is_valid(tmp_path: Path) -> None:
    text, _ = blocks("yaml")
    path = tmp_path / "my_sweep.yaml"
    path.write_text(text, encoding="utf-8")
    assert len(read_documents(path)) == 1
    sweep, base = read_sweep(path)
    cells = plan(sweep, base, "hash")
    assert len(cells) == 6
    assert all(len(cell.scenarios) == 28 for cell in cells)


def test_the_surfaces_are_valid() -> None:
    _, text = blocks("yaml")
    sweep = {
        "sweep": "s",
        "scenarios": ["s6-preferred-language", "s6-new-session"],
        "models": ["scripted:x"],
        **YAML(typ="safe").load(text),
    }
    described, base = read_sweep(sweep)
    assert [cell.spec.design.variant for cell in plan(described, base, "hash")] == [
        "local2_dual", "local2_dual [split]", "local2_dual [neutral names]", "local2_dual [when_to_use words]"
    ]  # fmt: skip


def test_the_design_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def saves(messages: Any, tools: Any) -> Any:
        asked = messages[-1].content
        return "I see." if messages[-1].role == "tool" else ToolCall("stick", {"content": asked})

    monkeypatch.chdir(tmp_path)
    register_model("bundled:router", lambda: ScriptedModel(saves, "bundled:router"))
    scope: dict[str, Any] = {}
    exec(blocks("python")[0], scope)
    trials = scope["run"].trials
    assert set(trials["design"]) == {"sticky", "local2_single"}
    assert trials[trials["design"] == "sticky"]["stored"].any()


def test_the_embedder_can_be_opened() -> None:
    from memeval.embedding import open_embedder

    exec(blocks("python")[1], {})
    lengths = open_embedder("lengths", cache=None)
    assert lengths.embed(["a note"]).shape == (1, 3)
    assert lengths.fingerprint != open_embedder("lengths", prefix="none", cache=None).fingerprint
