"""One trial as a page: whole, escaped, offline, also where little was kept."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import memeval
from memeval.evaluation.results import TRANSCRIPTS, Run
from memeval.messages import Reply, ToolCall
from memeval.models.registry import register_model
from memeval.models.scripted import ScriptedModel
from memeval.reporting.one_trial import laid_out, plain_rows, whole
from memeval.reporting.trial_page import trial_page

STORY = """
scenario: five-sessions
family: five
title: A <b>title</b> & five sessions
facts:
  language: {text: The language is Elixir., values: [Elixir], key: user.language}
  older: {text: It was Erlang., values: [Erlang], key: user.language}
sessions:
  - at: 2026-03-01T09:00:00Z
    user: ada
    given: [{text: Erlang is what Ada likes.}]
    turns:
      - user: Please remember that I prefer Elixir.
        strength: please
        expect: {intent: remember, facts: [language], required: [called], answer: {confirms: [language]}}
      - user: Hello there.
  - at: 2026-03-02T09:00:00Z
    user: ada
    turns:
      - user: What do I prefer?
        filler: 3
        expect: {intent: recall, facts: [language], answer: {states: [language]}}
  - at: 2026-03-03T09:00:00Z
    user: bob
    channel: telegram
    turns:
      - user: What do I prefer?
        expect: {intent: recall, answer: {admits_unknown: true}}
  - at: 2026-03-04T09:00:00Z
    user: ada
    turns:
      - user: Please remember that it is Elixir 2 now.
        expect: {intent: remember, facts: [language], answer: {confirms: [language]}}
  - at: 2026-03-05T09:00:00Z
    user: ada
    turns:
      - user: Never mind.
        expect: {intent: none, forbid: [remember, note, update]}
"""
NASTY = "<script>alert(1)</script> \u202eElixir\u202c \x1b[31m \ud800 &amp; I have noted it."


def script(messages: Any, tools: Any) -> Any:
    last = messages[-1]
    if last.role == "tool":
        return Reply(content=NASTY, thinking="Hmm <i>hmm</i>")
    if "Elixir 2" in last.content:
        return ToolCall("memory_save", {"topic": "user.language", "content": "Elixir 2"})
    if "remember" in last.content:
        return ToolCall("memory_save", {"topic": "user.language", "content": "Elixir </td><img src=x>"})
    if "What do I" in last.content:
        return ToolCall("memory_recall", {"topic": "user.language"})
    return "I have saved it." if "Hello" in last.content else "Fine."


@pytest.fixture
def run(tmp_path: Path) -> Run:
    register_model("scripted:test", lambda: ScriptedModel(script))
    (tmp_path / "five.yaml").write_text(STORY, encoding="utf-8")
    plan = {
        "sweep": "five", "scenarios": [str(tmp_path / "five.yaml")], "designs": ["local2_dual"],
        "models": ["scripted:test"], "embedders": ["hash"], "store": "inmemory", "repeats": 1,
    }  # fmt: skip
    return memeval.run(plan, tmp_path / "run")


def data_of(run: Run) -> dict[str, Any]:
    return whole(run, plain_rows(run.trials)[0])


def page_of(run: Run, folder: Path) -> str:
    return trial_page(data_of(run), folder / "deep" / "page.html").read_text(encoding="utf-8")


def text_of(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html.partition("</style>")[2]))


def test_what_was_stored_and_by_whom_is_told(run: Run) -> None:
    first, _, third, *_ = data_of(run)["turns"]
    assert [(c["change"], c["origin"], c["by"]) for c in first["changed"]] == [
        ("new", "given", ""),
        ("new", "tool", "memory_save"),
    ]
    assert [(c["change"], c["origin"]) for c in third["changed"]] == [("new", "hook")]
    again = next(turn for turn in data_of(run)["turns"] if turn["session"] == 4)
    (changed,) = (c for c in again["changed"] if c["change"] == "changed")
    assert changed["by"] == "memory_save"
    assert changed["text"].startswith("Elixir 2")
    assert changed["before"].startswith("Elixir </td>")


def test_what_one_user_stored_is_not_anothers(run: Run) -> None:
    other = next(turn for turn in data_of(run)["turns"] if turn["session"] == 3)
    assert other["changed"] == []


def test_steps_stand_in_the_order_in_which_they_happened(run: Run) -> None:
    before, first, _, third, *_ = laid_out(data_of(run))
    assert [step.label for step in before.steps] == ["system"]
    assert [step.label for step in first.steps] == [
        "new", "user", "call", "result", "wrote", "thinking", "model", "new"
    ]  # fmt: skip
    # what a hook kept of the turn before was there before the user spoke
    assert [step.label for step in third.steps][:3] == ["new", "filler", "user"]


def test_the_page_tells_the_whole_trial(run: Run, tmp_path: Path) -> None:
    told = text_of(page_of(run, tmp_path))
    for part in (
        "five-sessions, of the family five", "local2_dual", "scripted:test", "native", "seed",
        "smoke test, not a measurement of your model", "2026-03-03 09:00, bob, channel telegram",
        "Session 5", "asks by: please", "Expected: to remember “Elixir”; required: called",
        "memory_save carries “Elixir”", "but nothing was written by a call",
        "(6 messages of small talk that no model was asked for)", "(was: Elixir", "seconds in after_turn 0.",
    ):  # fmt: skip
        assert part in told, part


def test_nothing_that_a_model_wrote_is_markup_and_nothing_is_loaded(run: Run, tmp_path: Path) -> None:
    html = page_of(run, tmp_path)
    for part in ("<script", "<img", "<b>title", "<i>hmm", "\u202e", "\x1b", "http://", "https://", "@import"):
        assert part not in html, part
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "&amp;amp;" in html
    assert "default-src 'none'" in html
    assert not re.search(r"<[^>]+\bon\w+=", html)


def test_every_turn_has_its_place_and_its_link(run: Run, tmp_path: Path) -> None:
    html = page_of(run, tmp_path)
    links = re.findall(r'href="#(s\dt\d)"', html)
    assert links == ["s1t1", "s1t2", "s2t1", "s3t1", "s4t1", "s5t1"]
    assert [name for name in links if f'id="{name}"' not in html] == []


def test_verdicts_that_would_come_out_otherwise_are_marked(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "five.yaml"
    path.write_text(path.read_text().replace("states: [language]", "avoids: [language]"), encoding="utf-8")
    data = data_of(run)
    third = next(turn for turn in data["turns"] if turn["session"] == 2)
    assert third["moved"] == ["passed", "answered"]
    assert third["why"]["answered"]["verdict"] is False
    told = text_of(page_of(run, tmp_path))
    assert "memeval rescore takes them over" in told
    assert "(today ✗)" in told
    memeval.rescore(run.folder)
    assert "takes them over" not in text_of(page_of(memeval.load(run.folder), tmp_path))


def test_without_evidence_or_story_the_verdicts_are_told_without_reasons(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "five.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("Never mind.", "Do not mind."), encoding="utf-8")
    assert data_of(run)["unexplained"] == "story_changed"
    assert "the story is told otherwise by now" in text_of(page_of(run, tmp_path))
    path.unlink()
    assert data_of(run)["unexplained"] == "story_missing"
    (run.folder / TRANSCRIPTS).unlink()
    assert data_of(run)["unexplained"] == "no_evidence"
    told = text_of(page_of(run, tmp_path))
    assert "What was said was not kept with this run" in told
    assert "memory_save" in told
    assert "asks to" in told


def test_trials_of_the_runs_before_can_be_shown(tmp_path: Path) -> None:
    run = memeval.load(Path(__file__).parents[2] / "results" / "designs")
    failed = [row for row in plain_rows(run.trials) if row["outcome"] == "model_failure"]
    for row in [plain_rows(run.trials)[0], *failed[:1]]:
        html = trial_page(whole(run, row), tmp_path / "page.html").read_text(encoding="utf-8")
        assert row["trial_key"] in html
