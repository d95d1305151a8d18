"""`memeval show`: designs side by side, what was exercised, and what a design did beside its tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_setting import Invoke

from memeval.cli import _trial


def test_designs_are_shown_side_by_side_with_their_costs(invoke: Invoke, done: Path) -> None:
    told = invoke("show", done, "--designs").stdout
    assert "local2_dual write_path=tool" in told
    assert "2/4" in told  # two families: counts, no rate
    assert "What they cost: tokens and seconds a turn" in told


def test_what_never_ran_is_named(invoke: Invoke, done: Path) -> None:
    told = invoke("show", done, "--exercised").stdout
    (recall,) = (line for line in told.splitlines() if "memory_recall" in line)
    (save,) = (line for line in told.splitlines() if "memory_save" in line)
    (hook,) = (line for line in told.splitlines() if "after_turn" in line)
    assert recall.rstrip().endswith("not exercised live")
    assert save.rstrip().endswith("yes")
    assert hook.rstrip().endswith("not exercised live")


def test_both_are_data_on_request(invoke: Invoke, done: Path) -> None:
    data = json.loads(invoke("show", done, "--designs", "--exercised", "--json").stdout)
    by_name = {row["variant"]: row for row in data["designs"]}
    dual = by_name["local2_dual write_path=tool"]
    assert (dual["passed yes"], dual["passed of"], dual["passed"]) == (2, 4, None)
    assert by_name["none"]["called of"] == 0
    assert {row["name"] for row in data["exercised"]} == {"memory_recall", "memory_save", "after_turn"}


def test_a_table_of_a_run_takes_no_trial(invoke: Invoke, done: Path) -> None:
    result = invoke("show", done, "warm:0:dual", "--designs")
    assert result.exit_code == 2
    assert "leave 'warm:0:dual' out" in result.stderr


def trial(**changes: Any) -> dict[str, Any]:
    """A trial as data, in which nothing happened but what `changes` say."""
    row = {
        "scenario": "s", "repeat": 0, "trial_key": "k", "variant": "v", "model": "m", "calling": "native",
        "order": "read_first", "outcome": "ok", "passed": True, "broken_at": "", "hooks": {}, "counts": {},
        "hook_requests": 0, "hook_tokens": 0, "seconds_hooks": 0.0, "seconds_after_turn": 0.0,
    }  # fmt: skip
    return {"trial": row | changes, "turns": [], "calls": [], "hits": [], "messages": []}


def test_what_a_design_did_beside_its_tools_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    more = {"hooks": {"compact": 2}, "counts": {"stubs": 1}, "hook_requests": 3, "hook_tokens": 812}
    _trial.draw(trial(**more, seconds_hooks=4.25, seconds_after_turn=0.314))
    told = capsys.readouterr().out
    assert "hooks that did something: compact 2" in told
    assert "counted by the design: stubs 1" in told
    assert "asked of the model by the design: 3 requests, 812 tokens, 4.2 s" in told
    assert "after its answers, in after_turn: 0.31 s" in told
    _trial.draw(trial())
    told = capsys.readouterr().out
    assert "design" not in told
    assert "after_turn" not in told


def test_small_talk_is_one_line_and_a_compacted_history_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    history = "\n".join(f"user: line {n}" for n in range(30))
    data = trial()
    data["messages"] = [
        *[{"session": 1, "turn": 2, "role": "user", "content": "Nice day.", "filler": True}] * 8,
        {"session": 1, "turn": 2, "role": "user", "content": "What is my name?"},
        {"session": 1, "turn": 2, "role": "compacted", "content": history},
        {"session": 1, "turn": 2, "role": "assistant", "content": "Ada."},
    ]
    _trial.draw(data)
    told = capsys.readouterr().out
    assert "(8 messages of small talk that no model was asked for)" in told
    assert "Nice day." not in told
    assert "compacted user: line 0" in told
    assert "(18 more lines; --json has them)" in told
    assert "line 12" not in told
    assert told.index("compacted") < told.index("Ada.")


def test_a_trial_says_what_was_stored_and_why_it_was_judged_so(invoke: Invoke, done: Path) -> None:
    told = invoke("show", done, "warm:0:dual").stdout
    assert "expected  to remember “vermilion”; required: called; the reply confirms “vermilion”" in told
    (new,) = (line for line in told.splitlines() if line.startswith("    new "))
    assert "(tool, by memory_save): vermilion" in new
    assert "✓ arguments: memory_save carries “vermilion”" in told
    told = invoke("show", done, "cold:0:dual").stdout
    assert "✗ called: no tool that serves remember was called" in told
    assert "✗ phantom save: the reply claims “I have saved it.”, but nothing was written by a call" in told


def test_a_trial_is_written_as_a_page(invoke: Invoke, done: Path, tmp_path: Path) -> None:
    result = invoke("show", done, "warm:0:dual", "--html", tmp_path / "pages" / "warm.html")
    assert result.exit_code == 0
    assert result.stdout == f"Page: {tmp_path / 'pages' / 'warm.html'}\n"
    html = (tmp_path / "pages" / "warm.html").read_text(encoding="utf-8")
    assert "A colour the user asks to be remembered" in html
    assert "\x1b" not in html
    data = json.loads(invoke("show", done, "warm:0:dual", "--html", tmp_path / "x.html", "--json").stdout)
    assert data["turns"][0]["why"]["stored"] == {
        "verdict": True,
        "because": "what was written names “vermilion”",
    }
    assert (tmp_path / "x.html").is_file()


def test_a_page_is_of_one_trial(invoke: Invoke, done: Path, tmp_path: Path) -> None:
    result = invoke("show", done, "--html", tmp_path / "x.html")
    assert result.exit_code == 2
    assert "--html is of one trial" in result.stderr
    assert invoke("show", done, "warm", "--html", tmp_path / "x.html").exit_code == 2
    assert not (tmp_path / "x.html").exists()


def test_reasons_that_cannot_be_given_are_missed_with_the_cause(
    invoke: Invoke, done: Path, tmp_path: Path
) -> None:
    (tmp_path / "warm.yaml").unlink()
    told = invoke("show", done, "warm:0:dual").stdout
    assert "the story was not found" in told
    assert "passed ✓" in told
