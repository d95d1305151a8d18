"""`memeval doctor`: what is missing, whose need of it counts, and the exact command that mends it."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from cli_setting import Invoke, saves, write_sweep

from memeval.cli import _checks
from memeval.models.registry import register_model
from memeval.models.scripted import ScriptedModel

NOWHERE = ("--host", "http://127.0.0.1:9")


@pytest.fixture(autouse=True)
def _sound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sound machine, whatever is installed on this one."""
    monkeypatch.setattr(_checks, "bundled", lambda wanted: _checks.Check("bundled models", "ok", "there"))
    monkeypatch.setattr(_checks, "kernel", lambda: _checks.Check("notebook kernel", "ok", "there"))


def checks(invoke: Invoke, *args: str | Path) -> tuple[dict[str, dict[str, Any]], int]:
    """The findings by name, and the exit code."""
    result = invoke("doctor", "--json", *args)
    return {check["name"]: check for check in json.loads(result.stdout)["checks"]}, result.exit_code


def test_without_a_wish_an_absent_server_is_a_note(invoke: Invoke) -> None:
    found, code = checks(invoke, *NOWHERE)
    assert (found["ollama"]["status"], code) == ("note", 0)


def test_an_absent_server_is_to_be_mended_where_a_model_of_it_is_wanted(invoke: Invoke) -> None:
    found, code = checks(invoke, "--model", "ollama:qwen3:4b", *NOWHERE)
    assert (found["ollama"]["status"], found["ollama"]["mend"], code) == ("mend", ["ollama serve"], 1)
    assert found["ollama:qwen3:4b"]["status"] == "note"


def test_a_person_reads_the_command_on_a_line_of_its_own(invoke: Invoke) -> None:
    told = invoke("doctor", "--model", "ollama:qwen3:4b", *NOWHERE).stdout
    assert "✗ ollama: " in told
    assert "\n      ollama serve\n" in told
    assert "1 to mend" in told


def test_a_model_the_server_does_not_have_gets_its_pull_command() -> None:
    wanted = _checks.Wanted(named=True, chat={"ollama:gemma3:4b": {}}, embedders=["ollama:nomic-embed-text"])
    chat, embedder = _checks.models(wanted, frozenset({"qwen3:4b"}), None)
    assert (chat.status, chat.mend) == ("mend", ("ollama pull gemma3:4b",))
    assert (embedder.status, embedder.mend) == ("mend", ("ollama pull nomic-embed-text",))


def test_a_tag_left_out_means_latest() -> None:
    assert _checks._absent("ollama:llama3.2", frozenset({"llama3.2:latest"})) is None


def test_a_readable_model_is_well(invoke: Invoke) -> None:
    found, code = checks(invoke, "--model", "scripted:cli", *NOWHERE)
    assert (found["scripted:cli native local2_dual"]["status"], code) == ("ok", 0)


def test_an_unreadable_template_is_found(invoke: Invoke) -> None:
    structs = "{save_memory Save {object <nil> <nil> [text] map[]}}"
    register_model("scripted:go", lambda: ScriptedModel(saves, "scripted:go", render=lambda m, t: structs))
    found, code = checks(invoke, "--model", "scripted:go", *NOWHERE)
    check = found["scripted:go native local2_dual"]
    assert (check["status"], code) == ("mend", 1)
    assert "unreadable" in check["found"]
    assert "memeval prompt scripted:go local2_dual --calling native" in check["mend"][0]


class _NoTools(ScriptedModel):
    modes = ("prompted", "constrained")


@pytest.mark.parametrize(("calling", "status", "code"), [("native", "mend", 1), ("constrained", "note", 0)])
def test_a_model_without_tools_is_told_of_and_matters_where_native_is_wanted(
    invoke: Invoke, sweep: Path, calling: str, status: str, code: int
) -> None:
    from cli_setting import render

    register_model("scripted:plain", lambda: _NoTools(saves, "scripted:plain", render=render))
    write_sweep(sweep, models=["scripted:plain"], calling=[calling])
    found, ended = checks(invoke, "--sweep", sweep, *NOWHERE)
    assert (found["scripted:plain"]["status"], ended) == (status, code)
    assert "prompted, constrained" in found["scripted:plain"]["found"]
    assert "calling: [prompted, constrained]" in found["scripted:plain"]["mend"][0]


def test_a_sweep_is_looked_at_with_its_designs_modes_and_embedders(invoke: Invoke, sweep: Path) -> None:
    write_sweep(sweep, calling=["native", "constrained"])
    found, _ = checks(invoke, "--sweep", sweep, *NOWHERE)
    looked_at = {name for name in found if name.startswith("scripted:cli")}
    designs = ("local2_dual write_path=tool", "none")
    assert looked_at == {f"scripted:cli {mode} {d}" for mode in ("native", "constrained") for d in designs}
    assert found["hash"]["status"] == "ok"


def test_a_retrieval_sweep_wants_only_embedders(invoke: Invoke, tmp_path: Path) -> None:
    file = tmp_path / "r.yaml"
    file.write_text("retrieval: r\nembedders: [hash]\n", encoding="utf-8")
    found, code = checks(invoke, "--sweep", file, *NOWHERE)
    assert (found["hash"]["status"], code) == ("ok", 0)


def test_an_unknown_model_names_the_nearest(invoke: Invoke) -> None:
    found, code = checks(invoke, "--model", "scripted:cly", *NOWHERE)
    assert "did you mean 'scripted:cli'" in found["scripted:cly"]["found"]
    assert code == 1


def test_an_unknown_sweep_is_bad_input(invoke: Invoke) -> None:
    assert invoke("doctor", "--sweep", "nope", *NOWHERE).exit_code == 2


def test_an_old_python_is_told_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_checks.sys, "version_info", (3, 10, 4, "final", 0))
    check = _checks.python()
    assert (check.status, check.mend) == ("mend", ("uv sync --python 3.13",))


def test_sqlite_without_fts5_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Bare:
        def __enter__(self) -> Bare:
            return self

        def __exit__(self, *_: object) -> None: ...

        def execute(self, _: str) -> None:
            raise sqlite3.OperationalError("no such module: fts5")

    monkeypatch.setattr(_checks.sqlite3, "connect", lambda _: Bare())
    assert _checks.fts5().status == "mend"
