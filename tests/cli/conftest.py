"""A working folder of its own, a scripted model, and a run made with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_setting import STORY, Invoke, render, saves, write_sweep
from click.testing import CliRunner, Result

from memeval.cli import cli
from memeval.models.registry import register_model
from memeval.models.scripted import ScriptedModel


@pytest.fixture(autouse=True)
def _workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OLLAMA_HOST", raising=False)
    register_model("scripted:cli", lambda: ScriptedModel(saves, "scripted:cli", render=render))


@pytest.fixture
def invoke() -> Invoke:
    """Runs a command line in this process. A bug, which is an exception, fails the test."""

    def run(*args: str | Path) -> Result:
        result = CliRunner().invoke(cli, [str(arg) for arg in args], prog_name="memeval")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    """A sweep file of two designs and two stories, with a scripted model."""
    for name, value in (("warm", "vermilion"), ("cold", "cerulean")):
        (tmp_path / f"{name}.yaml").write_text(STORY.format(name=name, value=value), encoding="utf-8")
    return write_sweep(tmp_path / "small.yaml")


@pytest.fixture
def done(invoke: Invoke, sweep: Path, tmp_path: Path) -> Path:
    """The folder of a finished run."""
    assert invoke("run", sweep).exit_code == 0
    return tmp_path / "results" / "small"
