"""`memeval prompt`: what the model sees, and exit code 1 where it cannot read it."""

from __future__ import annotations

import json

import pytest
from cli_setting import Invoke, saves

from memeval.models.registry import register_model
from memeval.models.scripted import ScriptedModel

BOTH = ("scripted:cli", "local2_dual")


def test_the_prompt_and_its_ledger_are_printed(invoke: Invoke) -> None:
    result = invoke("prompt", "scripted:cli", "local2_single")
    assert result.exit_code == 0
    assert "save_topic" in result.stdout
    assert "fidelity: readable" in result.stdout
    assert "tool tax: " in result.stdout


def test_as_json(invoke: Invoke) -> None:
    data = json.loads(
        invoke("prompt", "scripted:cli", "local2_dual", "--calling", "constrained", "--json").stdout
    )
    assert (data["calling"], data["status"], data["notes"]) == ("constrained", "readable", [])


def test_a_setting_of_the_design_changes_the_prompt(invoke: Invoke) -> None:
    setting = ("--set", "descriptions=length_matched")
    assert "Use when you know the key." in invoke("prompt", "scripted:cli", "local2_single", *setting).stdout


def test_tools_that_are_not_shown_end_with_1(invoke: Invoke) -> None:
    register_model("scripted:blind", lambda: ScriptedModel(saves, render=lambda messages, tools: "Hello."))
    result = invoke("prompt", "scripted:blind", "local2_dual")
    assert result.exit_code == 1
    assert "fidelity: unreadable" in result.stdout
    assert "memory_save" in result.stdout


def test_a_prompt_that_cannot_be_had_is_no_pass(invoke: Invoke) -> None:
    register_model("scripted:mute", lambda: ScriptedModel(saves))
    result = invoke("prompt", "scripted:mute", "local2_dual")
    assert result.exit_code == 0
    assert "fidelity: unverified" in result.stdout


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("scripted:cly", "local2_dual"), 2, "scripted:cli"),
        (("scripted:cli", "local2_duel"), 2, "did you mean 'local2_dual'"),
        (("scripted:cli", "local2_dual", "--calling", "nativ"), 2, "did you mean 'native'"),
        (("scripted:cli", "local2_dual", "--set", "top_k=five"), 2, "top_k is 'five'"),
        (("ollama:qwen3:4b", "local2_dual", "--host", "http://127.0.0.1:9"), 4, "ollama serve"),
    ],
)
def test_what_is_wrong_is_one_sentence(invoke: Invoke, args: tuple[str, ...], code: int, said: str) -> None:
    result = invoke("prompt", *args)
    assert result.exit_code == code
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
