"""The entry point: light, lazy, one sentence for what is wrong, an exit code for whose doing it is."""

from __future__ import annotations

import errno
import importlib
import subprocess
import sys
from types import SimpleNamespace

import click
import pytest
from cli_setting import Invoke

from memeval import __version__
from memeval.cli import COMMANDS, cli
from memeval.errors import HarnessError, InfrastructureError, InputError

HEAVY = ("chromadb", "pandas", "matplotlib", "scipy", "papermill", "xllamacpp", "dask", "nbconvert", "ollama",
         "tokenizers", "safetensors", "rich", "pydantic", "numpy")  # fmt: skip


def loaded_by(code: str) -> set[str]:
    """The top-level modules that some code loads in a fresh Python."""
    script = f"{code}\nimport sys; print('\\n' + ' '.join({{m.partition('.')[0] for m in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_importing_memeval_loads_nothing_heavy() -> None:
    assert not loaded_by("import memeval").intersection(HEAVY)


@pytest.mark.parametrize("args", [["--help"], ["--version"], ["memory", "--help"], ["run", "--help"]])
def test_help_loads_nothing_heavy(args: list[str]) -> None:
    code = f"from memeval.cli import cli\ncli.main({args!r}, prog_name='memeval', standalone_mode=False)"
    assert not loaded_by(code).intersection(HEAVY)


def test_help_lists_every_command_with_one_line(invoke: Invoke) -> None:
    told = invoke("--help").output
    for name, line in COMMANDS.items():
        assert f"  {name} " in told
        assert line in told


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_its_module_and_agrees_with_the_table(name: str) -> None:
    command = importlib.import_module(f"memeval.cli.{name}").command
    assert isinstance(command, click.Command)
    assert command.name == name


def test_python_m_memeval_works() -> None:
    args = [sys.executable, "-m", "memeval", "--version"]
    done = subprocess.run(args, capture_output=True, text=True, check=True)
    assert done.stdout == f"memeval {__version__}\n"


def test_an_unknown_command_names_the_nearest(invoke: Invoke) -> None:
    result = invoke("retrival")
    assert result.exit_code == 2
    assert "did you mean 'retrieval'" in result.stderr


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (InputError("the file is wrong"), 2, "the file is wrong"),
        (HarnessError("your design is wrong"), 2, "your design is wrong"),
        (InfrastructureError("the server is down"), 4, "the server is down"),
        (KeyboardInterrupt("stopped; 3 of 9 are kept"), 130, "stopped; 3 of 9 are kept"),
        (KeyboardInterrupt(), 130, "stopped before it was done"),
        (OSError(errno.ENOSPC, "No space left on device", "rows"), 4, "rows: No space left on device"),
    ],
)  # fmt: skip
def test_what_is_no_bug_is_one_sentence_and_an_exit_code(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, said: str
) -> None:
    _put_command(monkeypatch, error)
    result = invoke("show")
    assert result.exit_code == code
    assert result.stderr == f"memeval: {said}\n"
    assert result.stdout == ""


@pytest.mark.parametrize("error", [KeyError("x"), FileNotFoundError(errno.ENOENT, "No such file", "x")])
def test_a_bug_is_shown_as_it_is(invoke: Invoke, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    _put_command(monkeypatch, error)
    with pytest.raises(type(error)):
        invoke("show")


def _put_command(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail() -> None:
        raise error

    command = click.Command("show", callback=fail)
    monkeypatch.setattr(
        "memeval.cli.importlib", SimpleNamespace(import_module=lambda _: SimpleNamespace(command=command))
    )


def test_the_group_is_what_the_entry_point_runs(capsys: pytest.CaptureFixture[str]) -> None:
    from memeval.cli import main

    with pytest.raises(SystemExit) as ended:
        main(["show", "nowhere"])
    assert ended.value.code == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("memeval: nowhere holds no run")
    assert cli.name == "cli"
